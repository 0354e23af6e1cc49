"""Options that several commands take, and the context that they are carried out in."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated

from cyclopts import Parameter
from pydantic import ValidationError

from rota.cli.allowed_values import refusal
from rota.cli.config_option import NAMED_CONFIG
from rota.cli.errors import Failed
from rota.cli.whole_numbers import WHOLE
from rota.cli.wording import of_file
from rota.config import Settings
from rota.config_file import CONFIG_NAME, ConfigFile, find_config_file, read_config_file
from rota.domain.errors import FieldError, InvalidRequest
from rota.service.context import REASON_CHARACTERS_MAX, Actor, Context
from rota.wiring import database_file, open_context, open_existing_context

Database = Annotated[
    str | None, Parameter(help="A SQLite file or a database URL, instead of ROTA_DATABASE_URL.")
]
AsJson = Annotated[bool, Parameter(help="Print the wire form, as the HTTP API answers.")]
ActorName = Annotated[str | None, Parameter(help="Who asks; kept in the schedule's history.")]
Reason = Annotated[str | None, Parameter(help="Why; kept in the schedule's history.")]
DryRun = Annotated[bool, Parameter(help="Tell what it would do, and why; write nothing.")]
Cursor = Annotated[str | None, Parameter(help="The next_cursor of the page before.")]

Limit = Annotated[
    int | None, WHOLE, Parameter(help="How many a page has at most, 1 to 200; 50 if not given.")
]
WalkAll = Annotated[bool, Parameter(name="--all", help="Every page, one after the other.")]

ACTOR_CHARACTERS_MAX = 120


def load_config() -> ConfigFile:
    """What the file of this command says; where there is none, nothing. Raises `InvalidRequest`."""
    path = find_config_file(NAMED_CONFIG.get())
    if path is None:
        return ConfigFile(source=CONFIG_NAME, settings={}, jobs=())
    with of_file():
        return read_config_file(path)


def load_settings(**given: object) -> Settings:
    """The settings: options that were given, else the environment, else the file, else the defaults.

    Raises `InvalidRequest`.
    """
    options = {name: value for name, value in given.items() if value is not None}
    config = load_config()
    from_file = config.settings_beside(os.environ)
    try:
        return Settings(**(from_file | options))  # type: ignore[arg-type]  # pydantic judges each
    except ValidationError as error:
        raise InvalidRequest(
            *(
                FieldError(
                    _source(str(problem["loc"][0]), options, from_file, config),
                    refusal(str(problem["loc"][0]), problem["input"]),
                )
                for problem in error.errors()
            )
        ) from None


@contextmanager
def open_existing(database: str | None) -> Iterator[Context]:
    """A context on a database that is there already: a command that only reads makes none by a slip of the finger."""
    settings = load_settings(database_url=database)
    path = database_file(settings)
    if path is not None and not path.exists():
        raise Failed(
            f"There is no database {settings.database_url}; `rota up --database {settings.database_url}` makes it."
        )
    with _opened(open_existing_context(settings)) as context:
        yield context


@contextmanager
def open_or_make(database: str | None) -> Iterator[Context]:
    """A context on a database that is made where there is none."""
    with _opened(open_context(load_settings(database_url=database))) as context:
        yield context


def asked(**filters: str | None) -> dict[str, str]:
    """The filters that were given."""
    return {name: value for name, value in filters.items() if value is not None}


def actor_of(name: str | None, reason: str | None) -> Actor:
    """Raises `InvalidRequest`."""
    errors = []
    if name is not None and not (0 < len(name) <= ACTOR_CHARACTERS_MAX and name.isprintable()):
        errors.append(FieldError("actor", f"Give 1 to {ACTOR_CHARACTERS_MAX} printable characters."))
    if reason is not None and not 0 < len(reason) <= REASON_CHARACTERS_MAX:
        errors.append(FieldError("reason", f"Give 1 to {REASON_CHARACTERS_MAX} characters."))
    if errors:
        raise InvalidRequest(*errors)
    return Actor(name=name, reason=reason)


@contextmanager
def _opened(context: Context) -> Iterator[Context]:
    try:
        yield context
    finally:
        context.store.close()


def _source(
    name: str, options: Mapping[str, object], from_file: Mapping[str, object], config: ConfigFile
) -> str:
    """Where a setting was given: the option, the key in the file, or the variable."""
    if name in options:
        return f"--{name.replace('_', '-')}"
    return f"{config.source}: {name}" if name in from_file else f"ROTA_{name.upper()}"
