"""A witness of a life: looks at every schedule after each event, and compares what is there with what was there.

So it knows what a ledger cannot tell at the end: which run was there first, what a run was when it was planned, and
whether a schedule was paused when something was admitted. What an activation has to carry it finds by a walk of its
own, and nothing of the product is asked for it.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from operator import attrgetter

from rota.domain.run import SETTLED, Run, RunState
from rota.domain.schedule import ScheduleStatus, Suspension
from rota.store.port import Store
from tests.simulation.ledger import (
    LATE,
    Ledger,
    check_cursor,
    check_intents,
    check_windows,
    judge,
    read_ledger,
    uses_its_period,
)
from tests.simulation.life import JOB
from tests.simulation.rules import Named

AHEAD = {RunState.PLANNED, RunState.HELD}
IDENTITY = attrgetter(
    "schedule_id",
    "version",
    "scheduled_at",
    "named_local",
    "offset",
    "second_pass",
    "period_key",
    "origin",
    "job",
    "partition",
    "planned_at",
    "carried_by",
)
"""What a run keeps, whatever happens to it."""

REACH = {
    "day": timedelta(days=4),
    "week": timedelta(days=10),
    "month": timedelta(days=34),
}
"""Occurrences further apart are never of one period, whatever their zones. Of an `instant` none is ever at stake."""

JUDGED_EVERY = 40


class Witness:
    """Looks at the schedules of one store."""

    def __init__(self, store: Store, schedules: list[str]) -> None:
        self._store = store
        self._seen = {id_: read_ledger(store, id_) for id_ in schedules}
        self._suspensions: dict[str, set[Suspension]] = {id_: set() for id_ in schedules}
        self._looks = 0

    def look(self, event: str) -> None:
        """Raises `AssertionError` where something became what it must not."""
        self._looks += 1
        check_intents(self._store, [JOB])
        for id_, before in self._seen.items():
            now = self._seen[id_] = read_ledger(self._store, id_)
            closed = {item for item in now.record.suspensions if item.until and not item.apply_overdue}
            self._suspensions[id_] |= closed
            check_windows(now)
            check_cursor(now)
            check_kept(before, now, event)
            check_created(before, now, self._suspensions[id_])
            check_paused(before, now)
            check_released(before, now, self._suspensions[id_])
            check_activation(before, now)
            if self._looks % JUDGED_EVERY == 0:
                judge(now)


def check_kept(before: Ledger, now: Ledger, event: str) -> None:
    """I8: what exists keeps version, instant, key and params; what is settled stays. Only a move changes when a run
    is due, and restores one that was skipped on request."""
    for id_, was in before.runs.items():
        run = now.runs[id_]
        if run == was:
            continue
        is_movable = was.state is RunState.PLANNED or was.reason == "on_request"
        may_move = event == "move" and is_movable and run.state is RunState.PLANNED
        assert IDENTITY(run) == IDENTITY(was), event
        assert run.due_at == was.due_at or may_move, event
        if was.state in SETTLED and not may_move:
            assert (run.state, run.reason) == (was.state, was.reason), f"{id_} was {was.state}"
        if was.state not in AHEAD and not may_move:
            assert run.state not in AHEAD, f"{id_} was {was.state}"
    for number, version in before.versions.items():
        as_it_was = replace(now.versions[number], effective_until=version.effective_until)
        assert as_it_was == version, "a version is immutable, but for the end of its window"


def check_created(before: Ledger, now: Ledger, suspensions: set[Suspension]) -> None:
    """I2, I9, I10: a new run is its version's, of a period that no run used, and not of an instant in a pause."""
    known = [now.runs[id_] for id_ in before.runs]
    new = [run for id_, run in now.runs.items() if id_ not in before.runs]
    for run in sorted(new, key=lambda run: (run.version, run.scheduled_at)):
        if run.origin not in ("schedule", "backfill"):
            continue
        if run.origin == "schedule":
            assert run.carried_by is not None or _is_owned(run, before, now), f"{run.run_id} is nobody's"
            if run.planned_at is None:
                in_pause = [suspension for suspension in suspensions if suspension.covers(run.scheduled_at)]
                assert not in_pause, f"{run.run_id} is of a pause: {in_pause}"
        if uses_its_period(run):
            twins = [other.run_id for other in known if _shares_its_period(now, run, other)]
            assert not twins, f"{run.run_id} is of the period of {twins}"
        known.append(run)


def _is_owned(run: Run, *ledgers: Ledger) -> bool:
    versions = [ledger.versions[run.version] for ledger in ledgers if run.version in ledger.versions]
    return any(
        version.effective_from <= run.scheduled_at < (version.effective_until or LATE) for version in versions
    )


def _shares_its_period(ledger: Ledger, run: Run, other: Run) -> bool:
    """Whether `other` used the period when the run was created, as the version that created it tells periods."""
    number = run.carried_by or run.version
    return (
        uses_its_period(other)
        and (run.origin == "backfill" or ledger.counts(other, under=number))
        and ledger.period_under(number, run) == ledger.period_under(number, other)
    )


def check_paused(before: Ledger, now: Ledger) -> None:
    """I10: while a schedule is paused none of its own runs is queued, and its cursor stands."""
    statuses = {ledger.record.schedule.status for ledger in (before, now)}
    if statuses != {ScheduleStatus.PAUSED}:
        return
    for id_, run in now.runs.items():
        was = before.runs.get(id_)
        if run.origin == "schedule" and (was is None or was.state in AHEAD):
            is_queued = run.admitted_at is not None
            assert not is_queued, f"{id_} was queued in a pause"
    assert len(now.skips) == len(before.skips), "something was decided in a pause"


def check_released(before: Ledger, now: Ledger, suspensions: set[Suspension]) -> None:
    """I10: what fell due in a pause is not made up for behind it, unless that was asked for."""
    for id_, was in before.runs.items():
        if was.state is RunState.HELD and now.runs[id_].admitted_at is not None:
            in_pause = [suspension for suspension in suspensions if suspension.covers(was.due_at)]
            assert not in_pause, f"{id_} was held in a pause: {in_pause}"


def check_activation(before: Ledger, now: Ledger) -> None:
    """I9: where a version took over, what nobody would run else was carried, and nothing more."""
    old, new = before.record.version.number, now.record.version.number
    carried = {run.scheduled_at: run for run in now.runs.values() if run.carried_by == new}
    if old == new or now.record.schedule.status is ScheduleStatus.ENDED:
        return
    at_stake = list(_at_stake(now, old, new))
    assert {run.version for run in carried.values()} <= {old}
    assert carried.keys() <= {named.instant for named in at_stake}, "carried, though it would have been run"
    # Whatever became of it since: a run that nobody started in time may have been skipped at once.
    used = {
        now.period_under(new, run)
        for run in (*before.occurrences, *now.occurrences)
        if (uses_its_period(run) or run.carried_by == new) and now.counts(run, under=new)
    }
    # What was planned has its own outcome, be it that it came too late.
    planned = {run.scheduled_at for run in before.occurrences if run.version == old}
    lost = {now.period_under(new, named) for named in at_stake if named.instant not in planned} - used
    assert not lost, f"{lost} lost at the change from version {old} to {new}"


def _at_stake(ledger: Ledger, old: int, new: int) -> Iterator[Named]:
    """The first occurrence of the old rule past the boundary, of each period whose new one lies before it."""
    version = ledger.versions[new]
    boundary = version.effective_from
    if version.boundary == "now" or version.period not in REACH:
        return
    reach = REACH[version.period]
    missed = {
        ledger.period_under(new, named) for named in ledger.rule(new).between(boundary - reach, boundary)
    }
    for named in ledger.rule(old).between(boundary, boundary + reach):
        period = ledger.period_under(new, named)
        if period in missed:
            missed.remove(period)
            yield named
