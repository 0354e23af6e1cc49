"""`rota doctor`: what is right, what is not, and what to do about it. It changes nothing unless asked to."""

from typing import Annotated

from cyclopts import Parameter

from rota.cli import doctor_database, doctor_machine
from rota.cli.doctor_checks import Check, Level, worst
from rota.cli.errors import ExitCode
from rota.cli.options import Database, load_settings
from rota.cli.output import write_json, write_table
from rota.cli.tables import Column, Narrow

PROSE_WIDTH = 120

ConfirmClock = Annotated[
    bool, Parameter(help="Declare that the present time is right, so that admission goes on after a leap.")
]


def doctor(
    *,
    confirm_clock: ConfirmClock = False,
    database: Database = None,
    json: Annotated[bool, Parameter(help="Print the checks as one JSON document.")] = False,
) -> int:
    """Check the machine, the database and the clock. Exits with 1 where something does not work."""
    settings = load_settings(database_url=database)
    checks = [
        *doctor_machine.checks(settings),
        *doctor_database.checks(settings, is_clock_confirmed=confirm_clock),
    ]
    level = worst(checks)
    if json:
        write_json({"status": level.value, "checks": [check.to_wire() for check in checks]})
    else:
        write_table(
            ["CHECK", "LEVEL", Column(name="FOUND", narrow=Narrow.WRAP)],
            [(check.name, check.level, _found(check)) for check in checks],
            width_elsewhere=PROSE_WIDTH,
        )
    return ExitCode.FAILED if level is Level.FAIL else ExitCode.DONE


def _found(check: Check) -> str:
    return check.found if check.remedy is None else f"{check.found}\n-> {check.remedy}"
