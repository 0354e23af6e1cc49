"""Whether this service can do its work: the store, the clock, who holds the partitions, how late admission is.

Only what makes answers or admission impossible makes it unready. A missing dispatcher or a backlog is a warning: the
API still answers, and taking it out of service would help nobody.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from rota.clock import ClockUnreadable
from rota.clock_guard import judge_clock, read_clock
from rota.domain.durations import format_duration
from rota.domain.instants import format_instant, whole_second_floor
from rota.service.context import Context
from rota.service.deliveries import count_dead
from rota.service.representation import Wire
from rota.service.zone_updates import differing_zones
from rota.store.port import PartitionState, StoreUnavailable, is_held

UNAVAILABLE = (StoreUnavailable, ClockUnreadable)
"""Errors that pass without a change of the request: try again."""

ZONES_NAMED_MAX = 5
LAG_WARNED = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    is_ready: bool
    body: Wire


def check_readiness(context: Context) -> Readiness:
    """Judges everything anew; nothing is raised for what is unavailable, it is the answer."""
    store_problem = _problem_of(context.store.ping)
    clock_problem = _problem_of(context.clock.now)
    partitions: Wire | None = None
    overdue: Wire | None = None
    zones: Wire | None = None
    deliveries: Wire | None = None
    warnings: list[str] = []
    if store_problem is None and clock_problem is None:
        now = context.clock.now()
        try:
            clock_problem = _leap(context)
            states = context.store.list_partitions()
            due_times = context.store.read_due_times([state.partition for state in states])
        except StoreUnavailable as error:
            store_problem = str(error)
        else:
            partitions = _partitions(states, warnings, now=now)
            overdue = _overdue(
                min((due.earliest for due in due_times.values()), default=None), warnings, now=now
            )
            zones = _zones(context, warnings)
            deliveries = _deliveries(context, warnings)
    is_ready = store_problem is None and clock_problem is None
    body: Wire = {
        "status": "ready" if is_ready else "unready",
        "checks": {"store": _check(store_problem), "clock": _check(clock_problem)},
        "partitions": partitions,
        "overdue": overdue,
        "zones": zones,
        "deliveries": deliveries,
        "warnings": warnings,
    }
    return Readiness(is_ready=is_ready, body=body)


def confirm_clock(context: Context) -> None:
    """An operator declares the present time right: on every machine admission goes on from here.

    Raises what is `UNAVAILABLE`.
    """
    context.store.commit_clock_confirmation(read_clock(context.clock))


def _leap(context: Context) -> str | None:
    reading = read_clock(context.clock)
    leap = judge_clock(context.store.get_clock_reading(reading.boot_id), reading)
    return None if leap is None else str(leap)


def _partitions(states: list[PartitionState], warnings: list[str], *, now: datetime) -> Wire:
    held = sum(is_held(state, now=now) for state in states)
    if held < len(states):
        warnings.append(
            f"dispatcher: no live holder for {len(states) - held} of {len(states)} partitions; "
            "what falls due in them waits for one."
        )
    return {"count": len(states), "held": held}


def _overdue(earliest: datetime | None, warnings: list[str], *, now: datetime) -> Wire:
    is_due = earliest is not None and earliest <= now
    lag = now - earliest if earliest is not None and is_due else timedelta(0)
    if lag >= LAG_WARNED:
        shown = format_duration(whole_second_floor(now) - whole_second_floor(now - lag))
        warnings.append(f"overdue: what is due first has waited {shown} for admission.")
    return {
        "oldest_due_at": format_instant(earliest) if earliest is not None and is_due else None,
        "lag_ms": round(lag.total_seconds() * 1000),
    }


def _zones(context: Context, warnings: list[str]) -> Wire:
    """Zones whose schedules this process leaves alone until the rule change is applied (I11)."""
    differing = differing_zones(context)
    if differing:
        names = ", ".join(sorted({zone.stored.timezone for zone in differing})[:ZONES_NAMED_MAX])
        remedy = (
            "apply the rule change by `rota tz apply`"
            if all(zone.is_newer_here for zone in differing)
            else "upgrade this process, whose tz data is older, or which lacks a zone"
        )
        warnings.append(
            f"tzdata: schedules in {names} were computed with other rules than those of {context.zones.release()} "
            f"here, and are left alone; {remedy}."
        )
    return {
        "tzdata": context.zones.release(),
        "differing": [
            {"timezone": zone.stored.timezone, "stored_tzdata": zone.stored.tzdata} for zone in differing
        ],
    }


def _deliveries(context: Context, warnings: list[str]) -> Wire:
    """Messages that wait for a person: their runs stay queued until then."""
    dead = count_dead(context)
    if dead:
        warnings.append(
            f"deliveries: {dead} dead; mend what their errors name and redrive them, or cancel their runs."
        )
    return {"dead": dead}


def _check(problem: str | None) -> Wire:
    return {"ok": problem is None, "problem": problem}


def _problem_of(attempt: Callable[[], object]) -> str | None:
    try:
        attempt()
    except UNAVAILABLE as error:
        return str(error)
    return None
