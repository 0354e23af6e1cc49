"""What `rota doctor` checks of the machine: Python, SQLite, the tz data."""

import platform
import sys
import zoneinfo
from collections.abc import Iterator

from rota.cli.doctor_checks import Check, failure, fine, warning
from rota.config import Settings
from rota.wiring import database_file, sqlite_in_use
from rota.zones import tzdata_release

PYTHON_MIN = (3, 11)
WAL_RESET_BUG = ((3, 7, 0), (3, 51, 2))
"""SQLite's versions, first and last, in which a checkpoint that meets a writer can corrupt the database."""


def checks(settings: Settings) -> Iterator[Check]:
    """SQLite where it is in use."""
    yield check_python(sys.version_info[:3])
    if database_file(settings) is not None:
        yield check_sqlite(*sqlite_in_use())
    yield check_tz_data(zoneinfo.TZPATH)


def check_python(version: tuple[int, ...]) -> Check:
    found = ".".join(str(part) for part in version)
    if version < PYTHON_MIN:
        return failure("python", found, remedy="Run Rota with Python 3.11 or newer.")
    return fine("python", f"{found} ({platform.python_implementation()})")


def check_sqlite(driver: str, version: str) -> Check:
    found = f"{version}, by {driver}"
    first, last = WAL_RESET_BUG
    if first <= _parts(version) <= last:
        return warning(
            "sqlite",
            f"{found}: it has the WAL-reset bug, which can corrupt a database. That is very rare: two checkpoints "
            "have to follow each other at once while another connection commits. Rota writes by one connection in "
            "each process, so a `rota up` that alone opens the file is not concerned.",
            remedy="Use SQLite 3.51.3 or newer (a newer Python or system library), and keep backups.",
        )
    return fine("sqlite", found)


def check_tz_data(machine_path: tuple[str, ...]) -> Check:
    release = tzdata_release()
    if machine_path:
        return warning(
            "tz data",
            f"{release}, but zones made elsewhere in this process come from {machine_path[0]}.",
            remedy="Unset PYTHONTZPATH, and do not call zoneinfo.reset_tzpath.",
        )
    return fine("tz data", f"{release}, of the pinned package; the machine's own is not used")


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
