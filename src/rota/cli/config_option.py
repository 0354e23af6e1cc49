"""`--config PATH`, which every command takes: which `rota.toml` its settings are read from."""

from collections.abc import Sequence
from contextvars import ContextVar

from rota.domain.errors import FieldError, InvalidRequest

OPTION = "--config"

NAMED_CONFIG: ContextVar[str | None] = ContextVar("named_config", default=None)
"""The file that was named by the command that is carried out; None: none was."""


def take_config(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """The arguments without the option, and the file that it names. What follows `--` is left alone.

    Raises `InvalidRequest`.
    """
    rest: list[str] = []
    named: list[str] = []
    given = iter(arguments)
    for argument in given:
        if argument == "--":
            rest += [argument, *given]
        elif argument == OPTION:
            path = next(given, None)
            if path is None:
                raise InvalidRequest(FieldError(OPTION, "Give the path of a file, such as rota.toml."))
            named.append(path)
        elif argument.startswith(f"{OPTION}="):
            named.append(argument.partition("=")[2])
        else:
            rest.append(argument)
    if len(named) > 1:
        raise InvalidRequest(FieldError(OPTION, "It is given twice; give it once."))
    return rest, named[0] if named else None
