"""How a command fails: one line for each thing that is wrong, on standard error, and an exit code.

No traceback: whoever typed the command can act on the sentence. What Rota does not raise on purpose is a fault of
Rota's or of a user's module, and keeps its traceback.
"""

import sys
from enum import IntEnum

from rota.cli.output import as_one_line
from rota.cli.wording import InvalidFile, TooLargeFile, beside_file, in_commands, in_options, option_of
from rota.domain.errors import (
    Conflict,
    FieldError,
    IllegalTransition,
    InvalidExpression,
    InvalidRequest,
    MalformedBody,
    NotFound,
    RotaError,
    Stale,
    TooLarge,
    WrongSetting,
    ZoneRulesDiffer,
)
from rota.service.idempotency import KeyReused


class ExitCode(IntEnum):
    """What a command's end says; documented in the reference of the command line."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    DIFFERENT = 5
    """Zone rules here differ from those that schedules were computed with."""
    INTERRUPTED = 130
    """Ended by Ctrl-C: 128 and the number of the signal, as shells have it."""
    READER_GONE = 141
    """Whoever read the output (`| head`) has gone: 128 and the number of SIGPIPE."""


class Usage(RotaError):
    """The command was not typed as it has to be; the message says what to type."""


class Failed(RotaError):
    """The command cannot do its work here and now; the message says what to do."""


def fail(error: RotaError) -> ExitCode:
    """Writes the error's lines and says how to exit."""
    for line in lines_of(error):
        complain(line)
    return exit_code_of(error)


def complain(message: str) -> None:
    sys.stderr.write(f"rota: {as_one_line(message)}\n")


def lines_of(error: RotaError) -> list[str]:
    """One line for each bad field, by its option or, in a file, by its wire name; else the message."""
    match error:
        case InvalidFile(errors=errors):
            return [_line_of(beside_file(field_error)) for field_error in errors]
        case InvalidRequest(errors=errors):
            return [_line_of(in_options(field_error)) for field_error in errors]
        case TooLargeFile(field=str(field)):
            return [f"{field}: {error}"]
        case TooLarge(field=str(field)):
            return [f"{option_of(field)}: {error}"]
        case KeyReused():
            return [in_options(FieldError("Idempotency-Key", str(error))).message]
        case Conflict():
            return [in_commands(str(error))]
        case _:
            return [str(error)]


def exit_code_of(error: RotaError) -> ExitCode:
    match error:
        case Usage() | InvalidRequest() | InvalidExpression() | MalformedBody() | TooLarge() | WrongSetting():
            return ExitCode.USAGE
        case NotFound():
            return ExitCode.NOT_FOUND
        case Conflict() | Stale() | IllegalTransition() | KeyReused() | ZoneRulesDiffer():
            return ExitCode.CONFLICT
        case _:
            return ExitCode.FAILED


def _line_of(error: FieldError) -> str:
    return f"{error.field}: {error.message}" if error.field else error.message
