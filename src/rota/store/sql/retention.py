"""How old history is given up in SQL: what may go is told at the port (`rota.store.port.retention`).

1. Old runs are found by the index of all runs, without a lock.
2. Their schedules are locked, in the order of their ids, but for those that somebody else is at work on: whoever
   creates a run holds its schedule, and reads `history_from` under that lock.
3. Only then what decides is read: the cursor, the earliest planned or held run, the run that stays, and the old runs
   themselves as they are now.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import (
    Connection,
    Table,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    select,
    tuple_,
    update,
)

from rota.domain.run import SETTLED
from rota.domain.schedule import ScheduleStatus
from rota.store.port.retention import KEEPS_ITS_KEY, PRUNED_BEHIND, PruneOutcome
from rota.store.port.runs import LedgerKey
from rota.store.port.work import RETRY_TURN
from rota.store.sql import cells
from rota.store.sql.batches import Part
from rota.store.sql.columns import DATES, Instant, Name, among
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.rows import Values
from rota.store.sql.schema import (
    attempts,
    audit,
    deliveries,
    effects,
    is_parked,
    outbox,
    results,
    runs,
    schedules,
    skips,
    suspensions,
)

BEHIND_MILLIS = round(PRUNED_BEHIND.total_seconds() * 1000)


@dataclass(slots=True, kw_only=True)
class _Standing:
    """What decides about a schedule's old runs. Instants are milliseconds."""

    has_ended: bool
    history_from: int
    undecided: int | None
    """The earliest instant that has no outcome yet; None: there is none."""
    stays: tuple[str, int, int] | None = None
    """The run that keeps the schedule's life used: its id, when it was scheduled, when it was due."""

    def raised(self, before: int) -> int:
        reachable = before if self.undecided is None else min(before, self.undecided)
        return max(self.history_from, reachable)

    def goes_on_without(self, run_id: str, scheduled_at: int, due_at: int) -> bool:
        """Whether the schedule's life stays used without that run."""
        if self.has_ended:
            return True
        if self.stays is None:
            return False
        id_, last_scheduled_at, last_due_at = self.stays
        return id_ != run_id and last_scheduled_at >= scheduled_at and last_due_at >= due_at


class SqlRetention(Part):
    def prune_history(self, *, before: datetime, after: LedgerKey | None, limit: int) -> PruneOutcome:
        with self._database.writing() as connection:
            found = _read_old(connection, cells.millis(before), after, limit)
            if not found:
                return PruneOutcome()
            standings = _read_standings(connection, sorted({schedule_id for _, schedule_id, _ in found}))
            pruned = _read_pruned(
                connection, [run_id for run_id, *_ in found], standings, cells.millis(before)
            )
            _RAISE_HISTORY.execute(
                connection,
                [
                    {"key_id": id_, "raised": standings[id_].raised(cells.millis(before))}
                    for id_ in sorted(pruned)
                ],
            )
            outcome = _forget_beside(connection, sorted(pruned), limit)
            if limit in (outcome.skips, outcome.suspensions, outcome.events):
                return replace(outcome, reached=after)
            count = _remove(connection, sorted(run_id for ids in pruned.values() for run_id in ids))
            last_id, _, last_at = found[-1]
            is_end = len(found) < limit
            reached = None if is_end else LedgerKey(instant=cells.instant(last_at), id_=last_id)
            return replace(outcome, runs=count, reached=reached)


def _read_old(
    connection: Connection, before: int, after: LedgerKey | None, limit: int
) -> list[tuple[str, str, int]]:
    """The id, schedule and instant of each run that is to be looked at."""
    values = {
        "before": before - BEHIND_MILLIS,
        "after_at": DATES[0] if after is None else cells.millis(after.instant),
        "after_id": "" if after is None else after.id_,
        "limit": limit,
    }
    return [
        (cells.text(run_id), cells.text(schedule_id), cells.integer(scheduled_at))
        for run_id, schedule_id, scheduled_at in _READ_OLD.read(connection, values)
    ]


def _read_standings(connection: Connection, ids: Sequence[str]) -> dict[str, _Standing]:
    """Of the schedules that nobody else is at work on, which are locked by it."""
    standings = {
        cells.text(id_): _Standing(
            has_ended=status == ScheduleStatus.ENDED.value,
            history_from=cells.integer(history_from),
            undecided=None if cursor is None else cells.integer(cursor),
        )
        for id_, status, history_from, cursor in _LOCK_SCHEDULES.read(connection, ids)
    }
    locked = sorted(standings)
    for id_, due_at, scheduled_at in _READ_PARKED.read(connection, locked):
        standing = standings[cells.text(id_)]
        undecided = [cells.integer(due_at), cells.integer(scheduled_at)]
        standing.undecided = min(
            undecided if standing.undecided is None else [*undecided, standing.undecided]
        )
    for id_, run_id, scheduled_at, due_at in _READ_STAYING.read(connection, locked):
        standings[cells.text(id_)].stays = (
            cells.text(run_id),
            cells.integer(scheduled_at),
            cells.integer(due_at),
        )
    return standings


def _read_pruned(
    connection: Connection, run_ids: Sequence[str], standings: dict[str, _Standing], before: int
) -> dict[str, list[str]]:
    """Of the runs, as they are now, those that may go, by their schedules."""
    pruned: dict[str, list[str]] = {}
    for run_id, schedule_id, scheduled_at, due_at, uses_periods in _READ_ENDED.read(connection, run_ids):
        standing = standings.get(cells.text(schedule_id))
        if standing is None:
            continue
        instants = cells.integer(scheduled_at), cells.integer(due_at)
        is_old = max(instants) < standing.raised(before) - BEHIND_MILLIS
        if is_old and (not uses_periods or standing.goes_on_without(cells.text(run_id), *instants)):
            pruned.setdefault(cells.text(schedule_id), []).append(cells.text(run_id))
    return pruned


def _forget_beside(connection: Connection, ids: Sequence[str], limit: int) -> PruneOutcome:
    """What else of these schedules lies wholly before what is kept, up to `limit` of each kind."""
    old_skips = _read_keys(connection, _READ_OLD_SKIPS, ids, limit)
    old_suspensions = _read_keys(connection, _READ_OLD_SUSPENSIONS, ids, limit)
    old_events = _read_keys(connection, _READ_OLD_EVENTS, ids, limit)
    return PruneOutcome(
        skips=_FORGET_SKIP.execute(connection, old_skips),
        suspensions=_FORGET_SUSPENSION.execute(connection, old_suspensions),
        events=_FORGET_EVENT.execute(connection, old_events),
    )


def _read_keys(connection: Connection, old: Lookup, ids: Sequence[str], limit: int) -> list[Values]:
    found = old.read(connection, ids, {"limit": limit}).mappings()
    return [{str(name): cell for name, cell in row.items()} for row in found]


def _remove(connection: Connection, run_ids: Sequence[str]) -> int:
    keys = [{"key_run_id": run_id} for run_id in run_ids]
    _REMOVE_ATTEMPTS.execute(connection, keys)
    _REMOVE_RESULT.execute(connection, keys)
    _REMOVE_EFFECTS.execute(connection, keys)
    return _REMOVE_RUN.execute(connection, keys)


_LATER = runs.alias("later")
_USES_PERIODS = (runs.c.origin == literal_column("'schedule'")) | (
    runs.c.origin == literal_column("'backfill'")
)
_READ_OLD = Prepared(
    select(runs.c.run_id, runs.c.schedule_id, runs.c.scheduled_at)
    .where(
        runs.c.scheduled_at < bindparam("before"),
        tuple_(runs.c.scheduled_at, runs.c.run_id)
        > tuple_(bindparam("after_at", type_=Instant()), bindparam("after_id", type_=Name)),
    )
    .order_by(runs.c.scheduled_at, runs.c.run_id)
    .limit(bindparam("limit"))
)
_LOCK_SCHEDULES = Lookup(
    select(schedules.c.id, schedules.c.status, schedules.c.history_from, schedules.c.next_scheduled_at)
    .where(schedules.c.id.in_(bindparam("keys", expanding=True)))
    .order_by(schedules.c.id)
    .with_for_update(skip_locked=True)
)
_READ_PARKED = Lookup(
    select(runs.c.schedule_id, func.min(runs.c.due_at), func.min(runs.c.scheduled_at))
    .where(runs.c.schedule_id.in_(bindparam("keys", expanding=True)), is_parked())
    .group_by(runs.c.schedule_id)
)
_STAYING = (
    select(_LATER.c.run_id)
    .where(
        _LATER.c.schedule_id == schedules.c.id,
        _LATER.c.scheduled_at.between(*DATES),
        (_LATER.c.origin == literal_column("'schedule'")) | (_LATER.c.origin == literal_column("'backfill'")),
        among(_LATER.c.state, sorted(KEEPS_ITS_KEY)),
    )
    .order_by(_LATER.c.scheduled_at.desc(), _LATER.c.run_id.desc())
    .limit(1)
    .correlate(schedules)
    .scalar_subquery()
)
_READ_STAYING = Lookup(
    select(schedules.c.id, runs.c.run_id, runs.c.scheduled_at, runs.c.due_at)
    .select_from(schedules)
    .join(runs, runs.c.run_id == _STAYING)
    .where(schedules.c.id.in_(bindparam("keys", expanding=True)))
)
_HAS_OPEN_ATTEMPT = exists().where(attempts.c.run_id == runs.c.run_id, attempts.c.finished_at.is_(None))
_IS_TO_BE_DELIVERED = exists().where(
    outbox.c.job == runs.c.job,
    outbox.c.turn.in_([literal_column(str(RETRY_TURN)), runs.c.turn]),
    outbox.c.available_at == runs.c.available_at,
    outbox.c.run_id == runs.c.run_id,
)
_IS_SENT = exists().where(deliveries.c.run_id == runs.c.run_id)
_READ_ENDED = Lookup(
    select(runs.c.run_id, runs.c.schedule_id, runs.c.scheduled_at, runs.c.due_at, _USES_PERIODS)
    .where(
        runs.c.run_id.in_(bindparam("keys", expanding=True)),
        among(runs.c.state, sorted(SETTLED)),
        ~_HAS_OPEN_ATTEMPT,
        ~_IS_TO_BE_DELIVERED,
        ~_IS_SENT,
    )
    .order_by(runs.c.run_id)
    .with_for_update(of=runs, skip_locked=True)
)
_RAISE_HISTORY = Prepared(
    update(schedules)
    .where(schedules.c.id == bindparam("key_id"), schedules.c.history_from < bindparam("raised"))
    .values(history_from=bindparam("raised"))
)


def _old_of(table: Table, *, begin: str, end: str) -> Lookup:
    """The keys of rows that ended before what is kept of their schedule: its `history_from` was raised before.

    What ended so long ago began before as well, and only by that the index finds it.
    """
    keys = [column.label(f"key_{column.name}") for column in table.primary_key.columns]
    kept_from = schedules.c.history_from - BEHIND_MILLIS
    return Lookup(
        select(*keys)
        .select_from(table)
        .join(schedules, schedules.c.id == table.c.schedule_id)
        .where(
            schedules.c.id.in_(bindparam("keys", expanding=True)),
            table.c[begin] < kept_from,
            table.c[end] < kept_from,
        )
        .limit(bindparam("limit"))
    )


def _delete_by_key(table: Table) -> Prepared:
    is_it = [column == bindparam(f"key_{column.name}") for column in table.primary_key.columns]
    return Prepared(delete(table).where(*is_it))


_READ_OLD_SKIPS = _old_of(skips, begin="from_at", end="until_at")
_READ_OLD_SUSPENSIONS = _old_of(suspensions, begin="from_at", end="until_at")
_READ_OLD_EVENTS = _old_of(audit, begin="at", end="at")
_FORGET_SKIP, _FORGET_SUSPENSION, _FORGET_EVENT = map(_delete_by_key, (skips, suspensions, audit))
_REMOVE_ATTEMPTS = Prepared(delete(attempts).where(attempts.c.run_id == bindparam("key_run_id")))
_REMOVE_RESULT = Prepared(delete(results).where(results.c.run_id == bindparam("key_run_id")))
_REMOVE_EFFECTS = Prepared(delete(effects).where(effects.c.run_id == bindparam("key_run_id")))
_REMOVE_RUN = Prepared(delete(runs).where(runs.c.run_id == bindparam("key_run_id")))
