"""`rota.toml`: settings by their names, and jobs as tables in their wire form, in a file beside the application.

A setting of the file gives way to the same one of the environment, and that one to an option of a command.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from rota.config import Settings
from rota.domain.errors import FieldError, InvalidRequest
from rota.domain.job import Job
from rota.domain.job_form import parse_job

CONFIG_NAME = "rota.toml"
CONFIG_VARIABLE = "ROTA_CONFIG"
CONFIG_BYTES_MAX = 1024 * 1024
JOBS = "jobs"

_PLACE = re.compile(r" \(at (line \d+, column \d+|end of document)\)$")
_AT_END = "end of document"
_JSON_MEMBER = re.compile(r'"(\w+)": (true|false|"[^"]*")')


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """What a file says."""

    source: str
    """Its path, as it was named."""
    settings: Mapping[str, object]
    """By name; of the right types, but not yet judged by their bounds."""
    jobs: tuple[Job, ...]

    def settings_beside(self, environment: Mapping[str, str]) -> dict[str, object]:
        """Its settings but for those that the environment has: these win."""
        variables = {name.upper() for name in environment}
        return {
            name: value for name, value in self.settings.items() if f"ROTA_{name.upper()}" not in variables
        }


def find_config_file(named: str | None) -> Path | None:
    """The file that was named, else the one that the environment names, else `rota.toml` where there is one here.

    None: there is none, or the empty text was named, by which none is read.
    """
    asked = named if named is not None else os.environ.get(CONFIG_VARIABLE)
    if asked is not None:
        return Path(asked) if asked else None
    here = Path(CONFIG_NAME)
    return here if here.is_file() else None


def read_config_file(path: Path) -> ConfigFile:
    """Raises `InvalidRequest` with all that is wrong, each with the file's name and the key."""
    source = str(path)
    try:
        with path.open("rb") as opened:
            data = opened.read(CONFIG_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidRequest(FieldError(source, f"It cannot be read: {error.strerror}.")) from None
    if len(data) > CONFIG_BYTES_MAX:
        raise InvalidRequest(FieldError(source, f"It is larger than {CONFIG_BYTES_MAX} bytes."))
    found = parse_toml(data, source)
    errors = [
        FieldError(f"{source}: {name}", problem)
        for name, value in found.items()
        if name != JOBS and (problem := _setting_problem(name, value)) is not None
    ]
    jobs: list[Job] = []
    tables = found.get(JOBS, {})
    if not isinstance(tables, Mapping):
        errors.append(FieldError(f"{source}: {JOBS}", "Give a table for each job: [jobs.NAME]."))
        tables = {}
    for name, table in tables.items():
        try:
            jobs.append(_parse_job(name, table))
        except InvalidRequest as error:
            errors += [FieldError(f"{source}: {each.field}", _in_toml(each.message)) for each in error.errors]
    if errors:
        raise InvalidRequest(*errors)
    settings = {name: value for name, value in found.items() if name != JOBS}
    return ConfigFile(source=source, settings=settings, jobs=tuple(jobs))


def parse_toml(data: bytes, source: str) -> dict[str, object]:
    """The document in these bytes. Raises `InvalidRequest`, with the line of `source` where it is no TOML."""
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidRequest(FieldError(source, f"line {line}: It is not UTF-8.")) from None
    except tomllib.TOMLDecodeError as error:
        found = _PLACE.search(str(error))
        place = f"{found[1]}: " if found else ""
        if found and found[1] == _AT_END:
            place = f"line {max(1, len(data.splitlines()))}, at the end: "
        raise InvalidRequest(FieldError(source, f"{place}{_PLACE.sub('', str(error))}.")) from None


def _setting_problem(name: str, value: object) -> str | None:
    """What is wrong with a setting's name or the type of its value; its bounds are for `Settings` to judge."""
    if name not in Settings.model_fields:
        if name == "schedules":
            return "Schedules belong in a document of their own, for `rota apply`."
        near = difflib.get_close_matches(name, [*Settings.model_fields, JOBS], n=1)
        if near:
            return f"This setting is not known; did you mean {near[0]!r}?"
        return f"This setting is not known; known are {', '.join(Settings.model_fields)}, and tables [jobs.NAME]."
    annotation = Settings.model_fields[name].annotation
    kinds = get_args(annotation) or (annotation,)
    if int in kinds:
        expected, is_right = "a whole number", type(value) is int
    elif float in kinds:
        expected, is_right = "a number", type(value) in (int, float)
    else:
        expected, is_right = "a text", isinstance(value, str)
    return None if is_right else f"Give {expected}; {value!r} is none."


def _parse_job(name: str, table: object) -> Job:
    """Raises `InvalidRequest`, its fields with the way to them."""
    field = f"{JOBS}.{name}"
    if not isinstance(table, Mapping):
        raise InvalidRequest(FieldError(field, f"Give a table with the fields of the job: [{field}]."))
    try:
        return parse_job(name, table)
    except InvalidRequest as error:
        raise InvalidRequest(
            *(FieldError(f"{field}.{each.field}", each.message) for each in error.errors)
        ) from None


def _in_toml(message: str) -> str:
    """A sentence that shows JSON, in TOML."""
    return _JSON_MEMBER.sub(r"\1 = \2", message)
