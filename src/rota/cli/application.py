"""The commands by name, each loaded only when it is called, and what becomes of their errors."""

import difflib
import io
import os
import sys
from collections.abc import Sequence

from cyclopts import (
    App,
    CycloptsError,
    MissingArgumentError,
    Parameter,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts.exceptions import RepeatArgumentError

from rota.cli.config_option import NAMED_CONFIG, take_config
from rota.cli.errors import ExitCode, complain, fail
from rota.domain.errors import RotaError

COMMANDS = {
    "up": ("rota.cli.processes:up", "Serve the API, dispatch, relay and work in one process."),
    "serve": ("rota.cli.processes:serve", "Serve the API; other processes dispatch, relay and work."),
    "dispatch": (
        "rota.cli.processes:dispatch",
        "Turn due occurrences into runs; several share the partitions.",
    ),
    "work": ("rota.cli.processes:work", "Run the jobs of an application."),
    "relay": ("rota.cli.relaying:relay", "Send due runs to the sinks of their jobs."),
    "init": ("rota.cli.init:init", "Make the database, and fix its number of partitions."),
    "schedules": ("rota.cli.schedules:schedules", "Create, show, edit, plan, pause and end schedules."),
    "runs": ("rota.cli.runs:runs", "Show, cancel and replay runs."),
    "deliveries": (
        "rota.cli.deliveries:deliveries",
        "Show what is on its way to sinks, and redrive what is dead.",
    ),
    "apply": ("rota.cli.applying:apply", "Make schedules as a TOML document has them."),
    "jobs": ("rota.cli.jobs:jobs", "Show and declare jobs."),
    "preview": (
        "rota.cli.preview:preview",
        "Compute the occurrences of a rule that is not saved, without a database.",
    ),
    "tz": ("rota.cli.zones:tz", "Check and take up new rules of time zones."),
    "partitions": (
        "rota.cli.partitions:partitions",
        "Show how late admission is, how much is due, who dispatches, and partitions not held or late.",
    ),
    "doctor": ("rota.cli.doctor:doctor", "Check the machine, the database and the clock."),
    "demo": ("rota.cli.demo:demo", "Tell what Rota does, on a database of its own."),
}
"""Where each is, and what it says in `rota --help`, which loads none of them."""

SYNONYMS = {
    "--db": "--database",
    "--tz": "--timezone",
    "--zone": "--timezone",
}
"""What options are called elsewhere: by its letters, --tz is nearer to --at."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command (by default the one that the process was started with) and returns its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name that the terminal cannot spell is no reason to end with a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        rest, config = take_config(sys.argv[1:] if arguments is None else arguments)
        NAMED_CONFIG.set(config)
        result = build_application()(rest)
        sys.stdout.flush()
    except CycloptsError as error:
        complain(_usage_problem(error))
        return ExitCode.USAGE
    except RotaError as error:
        return fail(error)
    except BrokenPipeError:
        # What is still buffered would fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.READER_GONE
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        return ExitCode.READER_GONE  # rich has met it first, and ends the process with a code of its own
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    return result if isinstance(result, int) else ExitCode.DONE


def build_application() -> App:
    """The tree of commands."""
    application = App(
        name="rota",
        help="Timezone-aware schedules, one run record per due occurrence.\n\n"
        "Every command takes --config PATH, a file of settings and jobs; not given, it is that of ROTA_CONFIG, or "
        "rota.toml where there is one.",
        help_format="plaintext",
        version=_version,
        result_action="return_value",
        default_parameter=Parameter(negative=(), show_default=False),
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
    )
    for place, (name, (path, help_)) in enumerate(COMMANDS.items()):
        application.command(path, name=name, help=help_, sort_key=place)
    return application


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - slow to load, and seldom asked for

    return f"rota {version('rota')}"


def _usage_problem(error: CycloptsError) -> str:
    """One sentence. Those of cyclopts are kept where they say what to do."""
    words = " ".join(["rota", *(error.command_chain or ())])
    match error:
        case MissingArgumentError(argument=argument) if argument is not None and not error.keyword:
            return f"{argument.name}: Give it; `{words} --help` lists what the command takes."
        case UnusedCliTokensError(unused_tokens=[first, *_]):
            return f"{first!r} is one argument too many; `{words} --help` lists what the command takes."
        case UnknownCommandError(unused_tokens=[first, *_]) if not error.command_chain:
            # The sentence of cyclopts would import every command.
            near = difflib.get_close_matches(first, COMMANDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(COMMANDS)}."
            return f"There is no command {first!r}; {hint}"
        case UnknownOptionError(token=token, argument_collection=arguments) if (
            meant := SYNONYMS.get(str(token.keyword or token.value).partition("=")[0])
        ) is not None and any(argument.name == meant for argument in arguments):
            return f"There is no {token.keyword or token.value}; did you mean {meant}?"
        case RepeatArgumentError(token=token):
            return f"{token.keyword} is given twice; give it once."
        case _:
            return str(error)
