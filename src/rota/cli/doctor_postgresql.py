"""What `rota doctor` checks of a PostgreSQL server and the database on it."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Protocol

from rota.cli.doctor_checks import Check, failure, fine, warning
from rota.cli.doctor_tables import Tables, check_tables
from rota.config import Settings
from rota.domain.errors import RotaError
from rota.wiring import inspect_postgresql, is_postgresql

VERSION_MIN = 14
CLOCK_DIFFERENCE_MAX = timedelta(seconds=1)
SYNCHRONOUS = {"on", "local", "remote_write", "remote_apply"}
"""Values of `synchronous_commit` with which a commit survives a crash of the server."""


class Server(Tables, Protocol):
    """What is found out about a server; `rota.store.sql.postgresql_inspection` says what each is."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def version_number(self) -> int: ...
    @property
    def encoding(self) -> str: ...
    @property
    def schema_name(self) -> str | None: ...
    @property
    def user(self) -> str: ...
    @property
    def may_create(self) -> bool: ...
    @property
    def fsync(self) -> str: ...
    @property
    def full_page_writes(self) -> str: ...
    @property
    def synchronous_commit(self) -> str: ...
    @property
    def is_read_only(self) -> bool: ...
    @property
    def clock_ahead(self) -> timedelta: ...
    @property
    def clock_known_within(self) -> timedelta: ...


def checks(settings: Settings) -> Iterator[Check]:
    """Nothing of the address is shown but what is no secret."""
    try:
        if not is_postgresql(settings):
            return  # opening it says what is wrong with the address
        report = inspect_postgresql(settings)
    except RotaError as error:
        yield failure("database", str(error), remedy="Set right what the message names.")
        return
    yield check_database(report)
    yield check_server(report)
    yield check_schema(report)
    yield check_durability(report)
    yield check_clock_difference(report)


def check_database(report: Server) -> Check:
    if report.is_read_only:
        return failure(
            "database",
            f"{report.name} can only be read: it is a standby, or its transactions are read only by default.",
            remedy="Give the address of the primary server.",
        )
    return fine("database", f"{report.name}, encoding {report.encoding}")


def check_server(report: Server) -> Check:
    if report.version_number < VERSION_MIN * 10_000:
        return failure(
            "server",
            f"PostgreSQL {report.version}.",
            remedy=f"Use PostgreSQL {VERSION_MIN} or newer.",
        )
    return fine("server", f"PostgreSQL {report.version}")


def check_schema(report: Server) -> Check:
    """Its tables; where there are none, whether the role may make them."""
    if report.revision is None and not report.may_create:
        schema = report.schema_name or "public"
        return failure(
            "schema",
            f"No tables yet, and the role {report.user} may not make them in the schema {schema}.",
            remedy=f"GRANT CREATE, USAGE ON SCHEMA {schema} TO {report.user}, then `rota init --partitions N`.",
        )
    return check_tables(report)


def check_durability(report: Server) -> Check:
    values = {
        "fsync": report.fsync,
        "full_page_writes": report.full_page_writes,
        "synchronous_commit": report.synchronous_commit,
    }
    told = ", ".join(f"{name} {value}" for name, value in values.items())
    if report.fsync != "on" or report.full_page_writes != "on":
        return warning(
            "durability",
            f"{told}: a loss of power can leave the whole database unreadable.",
            remedy="Turn fsync and full_page_writes on.",
        )
    if report.synchronous_commit not in SYNCHRONOUS:
        return warning(
            "durability",
            f"{told}: a crash of the server can lose commits that were answered.",
            remedy="Set synchronous_commit to on for this database: what was lost may run a second time.",
        )
    return fine("durability", told)


def check_clock_difference(report: Server) -> Check:
    """What is due is judged by one clock, and read by people on another machine by theirs (I13)."""
    ahead, within = report.clock_ahead.total_seconds(), report.clock_known_within.total_seconds()
    way = "ahead of" if ahead >= 0 else "behind"
    found = f"The database's clock is {abs(ahead):.3f} s {way} this machine's, give or take {within:.3f} s"
    if abs(report.clock_ahead) - report.clock_known_within > CLOCK_DIFFERENCE_MAX:
        return warning(
            "clock difference",
            f"{found}.",
            remedy="Have both machines take their time from the same servers (NTP).",
        )
    return fine("clock difference", found)
