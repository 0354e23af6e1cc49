"""`rota apply`: schedules as a TOML document has them, each change told as a diff."""

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from rota.cli.definitions import FROM_FILE
from rota.cli.dry_run_tables import WAS_DRY_RUN, write_change, write_occurrences
from rota.cli.errors import Usage
from rota.cli.explanations import entries_of
from rota.cli.options import (
    ActorName,
    AsJson,
    Database,
    DryRun,
    Reason,
    actor_of,
    open_existing,
    open_or_make,
)
from rota.cli.output import write_json, write_line
from rota.cli.times import locals_of
from rota.cli.wording import InvalidFile, in_commands, in_options, of_file
from rota.config_file import parse_toml
from rota.domain.errors import FieldError, InvalidRequest, NotFound
from rota.service.applying import apply_document
from rota.service.context import Context
from rota.service.representation import Wire
from rota.service.schedules import show_schedule

DOCUMENT_BYTES_MAX = 4 * 1024 * 1024
OUTCOMES = ("created", "edited", "ended", "unchanged")

Document = Annotated[
    str, FROM_FILE, Parameter(help="A TOML file with a table for each schedule; - is standard input.")
]

_JSON_MEMBER = re.compile(r'"(\w+)": (true|false|"[^"]*")')


def apply(
    file: Document,
    /,
    *,
    dry_run: DryRun = False,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Create, edit and end schedules, so that they are as a TOML document has them; others are left alone.

    Nothing is written unless the whole document is right. Applying it again changes nothing.
    """
    who = actor_of(actor, reason)
    source = "standard input" if file == "-" else file
    document = _read(file, source)
    with (open_existing if dry_run else open_or_make)(database) as context:
        befores = _befores(context, document)
        try:
            answer = apply_document(context, document, dry_run=dry_run, actor=who)
        except InvalidRequest as error:
            raise InvalidFile(*(_in_document(problem, source) for problem in error.errors)) from None
        if json:
            write_json(answer)
            return
        _write(context, answer, befores)


def _read(file: str, source: str) -> Wire:
    """Raises `Usage`, and `InvalidRequest` with the line where it is no TOML."""
    try:
        if file == "-":
            data = sys.stdin.buffer.read(DOCUMENT_BYTES_MAX + 1)
        else:
            with Path(file).open("rb") as opened:
                data = opened.read(DOCUMENT_BYTES_MAX + 1)
    except OSError as error:
        raise Usage(f"{source} cannot be read: {error.strerror}.") from None
    if len(data) > DOCUMENT_BYTES_MAX:
        raise Usage(f"{source} is larger than {DOCUMENT_BYTES_MAX} bytes; apply it in several documents.")
    with of_file():
        return parse_toml(data, source)


def _befores(context: Context, document: Wire) -> dict[str, Wire]:
    """The schedules as they are, of those that the document names."""
    named = document.get("schedules")
    befores: dict[str, Wire] = {}
    for id_ in named if isinstance(named, dict) else ():
        try:
            befores[id_] = show_schedule(context, id_)
        except NotFound:
            continue
    return befores


def _in_document(error: FieldError, source: str) -> FieldError:
    """The error in the words of the document: its file, and TOML in place of JSON."""
    message = in_commands(_JSON_MEMBER.sub(r"\1 = \2", error.message))
    if error.field.endswith(".job"):
        message = in_options(FieldError("job", message)).message
    return FieldError(f"{source}: {error.field}", message)


def _write(context: Context, answer: Wire, befores: dict[str, Wire]) -> None:
    outcomes = entries_of(answer, "schedules")
    for outcome in outcomes:
        id_ = str(outcome["schedule_id"])
        local_of = locals_of(context, id_)
        match outcome["outcome"]:
            case "created":
                write_line(f"{id_}: created as version {outcome['version']}")
                write_line("")
                write_occurrences(outcome, ["skipped", "next"], local_of=local_of)
            case "edited":
                write_change(outcome, befores[id_], local_of=local_of, now=context.clock.now())
            case "unchanged" if "note" in outcome:
                write_line(f"{id_}: {outcome['note']}, nothing to end")
            case "ended":
                write_line(f"{id_}: {befores[id_]['status']} -> ended")
            case _:
                continue
        write_line("")
    counts = Counter(outcome["outcome"] for outcome in outcomes)
    write_line(", ".join(f"{counts[name]} {name}" for name in OUTCOMES))
    if answer["dry_run"]:
        write_line(WAS_DRY_RUN)
