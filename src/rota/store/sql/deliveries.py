"""Deliveries in SQL: taken by relays, and ended under the number of their try.

Whoever takes some chooses them from what it read, and then locks those that are still as they were. It waits for
nobody: a delivery or a run that another connection holds is left for a later call. Who gives a delivery back, or ends
it as dead, holds its run first, as do those who open its attempt or cancel it; then, of a dead one, the run's place.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    bindparam,
    insert,
    literal_column,
    select,
    union_all,
    update,
)

from rota.domain.delivery import IN_HAND, Delivery, DeliveryEnd, DeliveryState, first_taken, taken
from rota.domain.errors import UnreadableRow
from rota.domain.run import RunState
from rota.store.port import Intent, Notice, OfAttempt, TakenDelivery, Wanted
from rota.store.sql import cells, sending_rows
from rota.store.sql.batches import Part
from rota.store.sql.demands import Demand, drop_permits, lock_demands, read_demands, write_permits
from rota.store.sql.jobs import job_or_default
from rota.store.sql.notices import notify
from rota.store.sql.openings import waits_for
from rota.store.sql.outbox import drop_intents, groups_of, intent_row, next_time_of, write_intent_rows
from rota.store.sql.places import free_places
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.records import to_run, version_of
from rota.store.sql.rows import Values
from rota.store.sql.run_changes import drop_deliveries
from rota.store.sql.schema import deliveries, runs
from rota.store.sql.taking import take_intents
from rota.store.sql.waiting_runs import fail_unreadable, held_by_others, read_to_send

JOBS_AT_ONCE = 100
LIVING = (DeliveryState.SENDING, DeliveryState.SENT, DeliveryState.RETRYING)
"""States in which a delivery is to be taken at some time."""


class SqlDeliveries(Part):
    def commit_takes(
        self,
        wanted: Sequence[Wanted],
        *,
        now: datetime,
        lease: timedelta,
        limit: int,
        intents_first: bool = False,
        backlog_first: bool = False,
    ) -> list[TakenDelivery]:
        self._check_count(range(limit))
        with self._database.writing() as connection:
            until = now + lease
            demands = lock_demands(connection, wanted, limit=limit)
            order = _Order(intents_first=intents_first, backlog_first=backlog_first)
            due, intents = _lock_first(connection, demands, order, now=now, limit=limit)
            ids = [each.run_id for each in due] + [each.run_id for each in intents]
            found = read_to_send(connection, ids)
            held = held_by_others(connection, ids, found)
            again = [taken(delivery, until=until, now=now) for delivery in due if delivery.run_id not in held]
            free = [intent for intent in intents if intent.run_id not in held]
            drop_intents(connection, free)
            first = [
                _begin(intent, found[intent.run_id], until, now) for intent in free if intent.run_id in found
            ]
            answer = _write_taken(connection, again, first, found, now=now)
            # The sort is stable: only what was an intent is at its first try.
            return sorted(answer, key=lambda each: each.delivery.tries > 1) if intents_first else answer

    def commit_delivery_ends(
        self,
        ends: Sequence[DeliveryEnd],
        *,
        now: datetime,
    ) -> list[bool]:
        self._check_count(ends)
        if not ends:
            return []
        with self._database.writing() as connection:
            leaving = sorted({end.run_id for end in ends if end.becomes is None or _is_dead(end.becomes)})
            queued = (
                {row["run_id"]: row for row in _LOCK_RUNS.read(connection, leaving).mappings()}
                if leaving
                else {}
            )
            ids = sorted({end.run_id for end in ends})
            standing = {row["run_id"]: row for row in _LOCK.read(connection, ids).mappings()}
            answers: list[bool] = []
            accepted: list[DeliveryEnd] = []
            for end in ends:
                row = standing.get(end.run_id)
                answers.append(row is not None and _applies(end, row))
                if answers[-1]:
                    del standing[end.run_id]
                    accepted.append(end)
            _write_ends(connection, accepted, queued, now=now)
            return answers

    def read_next_delivery_time(self, jobs: Sequence[str]) -> datetime | None:
        with self._database.reading() as connection:
            demands = {each.job: each for each in read_demands(connection, jobs)}
            times: list[datetime] = []
            for names in groups_of(list(demands)):
                for job, state, next_at in _read_next_times_of(len(names)).read(
                    connection, _job_values(names)
                ):
                    if state != DeliveryState.RETRYING.value or demands[cells.text(job)].free:
                        times.append(cells.instant(next_at))
            sent = [each.job for each in demands.values() if not each.is_fetched and each.free]
            intent_at = next_time_of(connection, sent)
        return min(times if intent_at is None else [*times, intent_at], default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """In which order `commit_takes` takes."""

    intents_first: bool
    backlog_first: bool


def _lock_first(
    connection: Connection, demands: Sequence[Demand], order: _Order, *, now: datetime, limit: int
) -> tuple[list[Delivery], list[Intent]]:
    """The deliveries and the intents that are to be taken, held until the commit."""

    def lock_intents(demands: Sequence[Demand], limit: int) -> list[Intent]:
        sent = [each for each in demands if not each.is_fetched]
        return take_intents(connection, sent, now=now, limit=limit, backlog_first=order.backlog_first)

    if order.intents_first:
        intents = lock_intents(demands, limit)
        left = _less_intents(demands, intents)
        return _lock_due(connection, left, now=now, limit=limit - len(intents)), intents
    due = _lock_due(connection, demands, now=now, limit=limit)
    return due, lock_intents(_less_due(demands, due), limit - len(due))


def _lock_due(
    connection: Connection, demands: Sequence[Demand], *, now: datetime, limit: int
) -> list[Delivery]:
    """The deliveries whose time has come, held until the commit; one that is in hand takes no further place."""
    asked = {each.job: each for each in demands if each.limit > 0} if limit > 0 else {}
    found: list[RowMapping] = []
    for names in groups_of(list(asked)):
        limits = {f"limit_{place}": asked[name].limit for place, name in enumerate(names)}
        values = {**_job_values(names), **limits, "now": cells.millis(now)}
        found += _read_due_of(len(names)).read(connection, values).mappings()
    found.sort(key=lambda row: (row["next_at"], row["run_id"]))
    left = {each.job: each.limit for each in asked.values()}
    free = {each.job: each.free for each in asked.values()}
    chosen: dict[str, RowMapping] = {}
    for row in found:
        takes_place = row["state"] == DeliveryState.RETRYING.value
        if len(chosen) < limit and left[row["job"]] > 0 and (not takes_place or free[row["job"]] > 0):
            left[row["job"]] -= 1
            free[row["job"]] -= takes_place
            chosen[row["run_id"]] = row
    if not chosen:
        return []
    locked = {row["run_id"]: row for row in _LOCK_FREE.read(connection, list(chosen)).mappings()}
    return [sending_rows.to_delivery(row) for id_, row in chosen.items() if locked.get(id_) == row]


def _less_due(demands: Sequence[Demand], due: Sequence[Delivery]) -> list[Demand]:
    """What may be taken beside these deliveries."""
    counts = Counter(delivery.job for delivery in due)
    placed = Counter(delivery.job for delivery in due if delivery.state not in IN_HAND)
    return [
        replace(each, limit=each.limit - counts[each.job], free=each.free - placed[each.job])
        for each in demands
    ]


def _less_intents(demands: Sequence[Demand], intents: Sequence[Intent]) -> list[Demand]:
    """What may be taken beside these intents, none of which was in hand."""
    counts = Counter(intent.job for intent in intents)
    return [
        replace(each, limit=each.limit - counts[each.job], free=each.free - counts[each.job])
        for each in demands
    ]


def _begin(intent: Intent, row: RowMapping, until: datetime, now: datetime) -> Delivery:
    return first_taken(
        run_id=intent.run_id,
        attempt=intent.attempt,
        schedule_id=row["schedule_id"],
        job=intent.job,
        until=until,
        now=now,
    )


def _write_taken(
    connection: Connection,
    again: Sequence[Delivery],
    first: Sequence[Delivery],
    found: Mapping[str, RowMapping],
    *,
    now: datetime,
) -> list[TakenDelivery]:
    """Writes those that ask for something, and takes the others away."""
    sent: dict[str, TakenDelivery] = {}
    unreadable: list[tuple[OfAttempt, str]] = []
    for delivery in (*again, *first):
        row = found.get(delivery.run_id)
        if row is None or not waits_for(row, delivery):
            continue
        try:
            sent[delivery.run_id] = _taken_of(delivery, row)
        except UnreadableRow as error:
            unreadable.append((delivery, str(error)))
    _CHANGE.change_each(connection, [_change_values(each) for each in again if each.run_id in sent])
    _WRITE.execute(connection, [sending_rows.delivery_values(each) for each in first if each.run_id in sent])
    limited = [(each.run.run_id, each.job.name) for each in sent.values() if each.job.max_running is not None]
    write_permits(connection, limited)
    lost = [each.run_id for each in again if each.run_id not in sent]
    if lost:
        drop_deliveries(connection, lost)
        drop_permits(connection, lost)
    fail_unreadable(connection, unreadable, now=now)
    return list(sent.values())


def _taken_of(delivery: Delivery, row: RowMapping) -> TakenDelivery:
    """Raises `UnreadableRow`."""
    run = to_run(row)
    with cells.reading(f"run {run.run_id}"):
        version = version_of(row, row["version"])
        return TakenDelivery(
            delivery=delivery, run=run, version=version, job=job_or_default(run.job, row["job_spec"])
        )


def _applies(end: DeliveryEnd, row: RowMapping) -> bool:
    return bool(
        row["state"] == DeliveryState.SENDING.value
        and row["attempt"] == end.attempt
        and row["tries"] == end.tries
    )


def _write_ends(
    connection: Connection, ends: Iterable[DeliveryEnd], queued: Mapping[str, RowMapping], *, now: datetime
) -> None:
    kept = [end.becomes for end in ends if end.becomes is not None]
    back = [end.run_id for end in ends if end.becomes is None]
    _CHANGE.change_each(connection, [_change_values(each) for each in kept])
    drop_deliveries(connection, back)
    write_intent_rows(connection, [intent_row(queued[run_id]) for run_id in back if run_id in queued])
    left = back + [each.run_id for each in kept if each.state not in IN_HAND]
    drop_permits(connection, left)
    dead = [each.run_id for each in kept if _is_dead(each) and each.run_id in queued]
    free_places(connection, dict.fromkeys(dead, cells.millis(now)))
    if left:
        notify(connection, Notice.QUEUED)


def _is_dead(delivery: Delivery) -> bool:
    return delivery.state is DeliveryState.DEAD


def _change_values(delivery: Delivery) -> Values:
    values = dict(sending_rows.delivery_values(delivery))
    return {"key_run_id": values.pop("run_id"), **values}


def _job_values(names: Sequence[str]) -> Values:
    return {f"job_{place}": name for place, name in enumerate(names)}


def _is_of(place: int, state: DeliveryState) -> ColumnElement[bool]:
    return (
        (deliveries.c.job == bindparam(f"job_{place}"))
        & (deliveries.c.state == literal_column(f"'{state.value}'"))
        & deliveries.c.next_at.is_not(None)
    )


@lru_cache(maxsize=JOBS_AT_ONCE)
def _read_due_of(job_count: int) -> Prepared:
    """Each job's first, state by state, along the index."""
    first = [
        select(deliveries)
        .where(_is_of(place, state), deliveries.c.next_at <= bindparam("now"))
        .order_by(deliveries.c.next_at, deliveries.c.run_id)
        .limit(bindparam(f"limit_{place}"))
        for place in range(job_count)
        for state in LIVING
    ]
    return Prepared(union_all(*(select(part.subquery()) for part in first)))


@lru_cache(maxsize=JOBS_AT_ONCE)
def _read_next_times_of(job_count: int) -> Prepared:
    first = [
        select(deliveries.c.job, deliveries.c.state, deliveries.c.next_at)
        .where(_is_of(place, state))
        .order_by(deliveries.c.next_at)
        .limit(literal_column("1"))
        for place in range(job_count)
        for state in LIVING
    ]
    return Prepared(union_all(*(select(part.subquery()) for part in first)))


_BY_RUN = (
    select(deliveries)
    .where(deliveries.c.run_id.in_(bindparam("keys", expanding=True)))
    .order_by(deliveries.c.run_id)
)
_LOCK = Lookup(_BY_RUN.with_for_update())
_LOCK_FREE = Lookup(_BY_RUN.with_for_update(skip_locked=True))
_LOCK_RUNS = Lookup(
    select(runs.c.run_id, runs.c.job, runs.c.turn, runs.c.available_at, runs.c.attempt)
    .where(runs.c.run_id.in_(bindparam("keys", expanding=True)), runs.c.state == RunState.QUEUED.value)
    .order_by(runs.c.run_id)
    .with_for_update()
)
_WRITE = Prepared(insert(deliveries))
_CHANGE = Prepared(
    update(deliveries)
    .where(deliveries.c.run_id == bindparam("key_run_id"))
    .values({column.name: bindparam(column.name) for column in deliveries.c if column.name != "run_id"})
)
