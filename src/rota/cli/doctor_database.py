"""What `rota doctor` checks of the database: that it can be used, who dispatches, what is late, and the clock."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from rota.cli import doctor_postgresql
from rota.cli.doctor_checks import Check, Level, failure, fine, warning
from rota.cli.doctor_tables import check_tables
from rota.cli.zone_rules import check_zone_rules
from rota.config import Settings
from rota.domain.durations import format_duration
from rota.domain.errors import RotaError
from rota.domain.instants import format_instant
from rota.domain.schedule import ScheduleStatus
from rota.service.context import Context
from rota.service.deliveries import count_dead
from rota.service.health import check_readiness, confirm_clock
from rota.service.queries import parse_schedule_filter
from rota.wiring import database_file, inspect_sqlite, open_existing_context

LATE = timedelta(minutes=1)
SCHEDULES_NAMED_MAX = 5

STOPPING = {"database", "schema", "server"}
"""Checks without which the later ones cannot be made."""


def checks(settings: Settings, *, is_clock_confirmed: bool) -> Iterator[Check]:
    """Where one shows that the later ones cannot be made, it is the last."""
    path = database_file(settings)
    found = list(doctor_postgresql.checks(settings) if path is None else _file_checks(path))
    yield from found
    if any(check.name in STOPPING and check.level is not Level.OK for check in found):
        return
    try:
        context = open_existing_context(settings)
    except RotaError as error:
        yield failure("database", str(error), remedy="Set right what the message names.")
        return
    try:
        yield from _context_checks(context, is_clock_confirmed=is_clock_confirmed)
    except RotaError as error:
        yield failure("store", str(error), remedy="Set right what the message names, and run this again.")
    finally:
        context.store.close()


def _file_checks(path: Path) -> Iterator[Check]:
    try:
        report = inspect_sqlite(path)
    except RotaError as error:
        remedy = f"Give the right one with --database, or let `rota up --database {path}` make it."
        yield failure("database", str(error), remedy=remedy)
        return
    yield fine("database", f"{path} can be read and written" if report.synchronous else f"{path} can be read")
    yield check_tables(report)
    if report.journal_mode == "wal" and report.synchronous in {"full", "extra"}:
        yield fine("journal", f"write-ahead log, synchronous {report.synchronous}")
    else:
        yield warning(
            "journal",
            f"Journal mode {report.journal_mode}, synchronous {report.synchronous or 'not known'}.",
            remedy="Start Rota: it sets write-ahead mode, in which a commit survives a loss of power.",
        )


def _context_checks(context: Context, *, is_clock_confirmed: bool) -> Iterator[Check]:
    if is_clock_confirmed:
        confirm_clock(context)
    yield _check_clock(context, is_clock_confirmed=is_clock_confirmed)
    now = context.clock.now()
    yield _check_partitions(context, now=now)
    yield _check_checkpoints(context, now=now)
    yield _check_overdue(context, now=now)
    yield _check_errors(context)
    yield _check_deliveries(context)
    yield check_zone_rules(context)


def _check_clock(context: Context, *, is_clock_confirmed: bool) -> Check:
    judged = check_readiness(context).body["checks"]
    assert isinstance(judged, dict)  # noqa: S101 - as check_readiness makes it
    clock = judged["clock"]
    if clock["ok"]:
        said = "was declared right" if is_clock_confirmed else "has not leapt"
        return fine("clock", f"{format_instant(context.clock.now())} in UTC; it {said}")
    remedy = "Set the clock right; or, if it is right, run `rota doctor --confirm-clock`."
    return failure("clock", str(clock["problem"]), remedy=remedy)


def _check_partitions(context: Context, *, now: datetime) -> Check:
    states = context.store.list_partitions()
    leases = {
        state.partition: (state.owner, state.expires_at)
        for state in states
        if state.owner is not None and state.expires_at is not None
    }
    held = [(owner, until) for owner, until in leases.values() if until > now]
    if len(held) < len(states):
        without = f"{len(states) - len(held)} of the {len(states)} partitions" if held else "any partition"
        ended = [until for _, until in leases.values() if until <= now]
        since = f"; the last lease ran out at {format_instant(max(ended))}" if ended else ""
        return warning(
            "partitions",
            f"No dispatcher holds {without}{since}.",
            remedy="Start `rota dispatch` or `rota up`: what falls due there waits for it.",
        )
    owners = len({owner for owner, _ in held})
    until = min(until for _, until in held).strftime("%H:%M:%SZ")
    return fine(
        "partitions",
        f"{len(states)}, held until {until} by {owners} dispatcher{'' if owners == 1 else 's'}; "
        "one that runs renews them before that, one that was killed does not",
    )


def _check_checkpoints(context: Context, *, now: datetime) -> Check:
    checkpoints = [
        state.checkpoint for state in context.store.list_partitions() if state.checkpoint is not None
    ]
    if not checkpoints:
        return fine("checkpoints", "none yet: no dispatcher has been at work")
    lag = now - min(checkpoints)
    if lag > LATE:
        return warning(
            "checkpoints",
            f"The one furthest behind is {_shown(lag)} old.",
            remedy="See that a dispatcher runs and keeps up; its log says what stops it.",
        )
    return fine("checkpoints", "every partition is up to date")


def _check_overdue(context: Context, *, now: datetime) -> Check:
    due_times = context.store.read_due_times(range(context.partition_count))
    earliest = min((due.earliest for due in due_times.values()), default=None)
    if earliest is None:
        return fine("overdue", "nothing is waiting to fall due")
    if earliest > now:
        return fine("overdue", f"nothing; the next occurrence is due at {format_instant(earliest)}")
    if now - earliest > LATE:
        return warning(
            "overdue",
            f"What is due first, since {format_instant(earliest)}, has waited {_shown(now - earliest)}.",
            remedy="See that a dispatcher runs and keeps up; its log says what stops it.",
        )
    return fine("overdue", f"due since {format_instant(earliest)}, which is within what is normal")


def _check_errors(context: Context) -> Check:
    filter_ = parse_schedule_filter({"status": ScheduleStatus.ERROR})
    records = context.store.list_schedules(filter_, after=None, limit=SCHEDULES_NAMED_MAX + 1)
    if not records:
        return fine("schedules", "none is in error")
    named = ", ".join(record.schedule.schedule_id for record in records[:SCHEDULES_NAMED_MAX])
    more = " and more" if len(records) > SCHEDULES_NAMED_MAX else ""
    return warning(
        "schedules",
        f"In error: {named}{more}.",
        remedy="`rota schedules show ID` says why; set it right, then `rota schedules resume ID`.",
    )


def _check_deliveries(context: Context) -> Check:
    dead = count_dead(context)
    if not dead:
        return fine("deliveries", "none is dead")
    return warning(
        "deliveries",
        f"Dead: {dead}; their runs stay queued.",
        remedy="`rota deliveries list --state dead` says why; mend that, then `rota deliveries redrive`.",
    )


def _shown(duration: timedelta) -> str:
    return format_duration(timedelta(seconds=duration // timedelta(seconds=1)))
