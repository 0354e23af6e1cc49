"""Runs and the ledger of a schedule in SQL."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, literal, select, tuple_, update

from rota.domain.admission import Skip
from rota.domain.audit import AuditEvent
from rota.domain.identity import RunId, ScheduleId
from rota.domain.run import SETTLED, Run, RunDetail, RunEvent, RunState, next_state
from rota.store.port import LedgerKey, RunFilter
from rota.store.sql import cells, rows, sending_rows
from rota.store.sql.audit import write_audit
from rota.store.sql.batches import Part
from rota.store.sql.columns import Instant
from rota.store.sql.pages import read_page, readable
from rota.store.sql.places import free_places, lock_places
from rota.store.sql.records import to_run
from rota.store.sql.run_changes import withdraw_messages
from rota.store.sql.schema import attempts, deliveries, effects, results, runs, schedule_labels, skips


class SqlRuns(Part):
    def get_run(self, run_id: RunId) -> RunDetail | None:
        with self._database.reading() as connection:
            row = connection.execute(select(runs).where(runs.c.run_id == run_id)).mappings().first()
            if row is None:
                return None
            opened = select(attempts).where(attempts.c.run_id == run_id).order_by(attempts.c.number)
            tried = connection.execute(opened).mappings().all()
            result = connection.execute(select(results.c.result).where(results.c.run_id == run_id)).scalar()
            begun = (
                select(effects).where(effects.c.run_id == run_id).order_by(effects.c.begun_at, effects.c.name)
            )
            done = connection.execute(begun).mappings().all()
            sending = (
                connection.execute(select(deliveries).where(deliveries.c.run_id == run_id)).mappings().first()
            )
        with cells.reading(f"run {run_id}"):
            return RunDetail(
                run=rows.to_run(row),
                attempts=tuple(rows.to_attempt(attempt) for attempt in tried),
                result=None if result is None else cells.json_text(result),
                effects=tuple(sending_rows.to_effect(effect) for effect in done),
                delivery=None if sending is None else sending_rows.to_delivery(sending),
            )

    def list_runs(self, filter_: RunFilter, *, before: LedgerKey | None, limit: int) -> list[Run]:
        with self._database.reading() as connection:
            return _read_runs(connection, _conditions(filter_), before=before, limit=limit)

    def list_ledger(
        self, schedule_id: ScheduleId, *, before: LedgerKey | None, limit: int
    ) -> list[Run | Skip]:
        own = [runs.c.schedule_id == schedule_id]
        with self._database.reading() as connection:
            entries: list[Run | Skip] = [
                *_read_runs(connection, own, before=before, limit=limit),
                *_read_skips(connection, schedule_id, before=before, limit=limit),
            ]
        return sorted(entries, key=_place_of, reverse=True)[:limit]

    def commit_cancel(self, run_id: RunId, *, event: AuditEvent, now: datetime) -> Run | None:
        this_run = runs.c.run_id == run_id
        locked = select(runs).where(this_run).with_for_update()
        with self._database.writing() as connection:
            # Of a run that waits the places come first, as for whoever queues it.
            waiting = select(runs.c.schedule_id).where(this_run, runs.c.state == RunState.WAITING.value)
            lock_places(connection, connection.execute(waiting).scalars().all())
            row = connection.execute(locked).mappings().first()
            if row is None:
                return None
            run = to_run(row)
            if run.state in SETTLED:
                return run
            if run.state is RunState.RUNNING:
                if run.cancel_requested_at is not None:
                    return run
                connection.execute(update(runs).where(this_run).values(cancel_requested_at=now))
            else:
                state = next_state(run.state, RunEvent.CANCELLED)
                connection.execute(update(runs).where(this_run).values(state=state.value, finished_at=now))
                withdraw_messages(connection, [row] if run.state is RunState.QUEUED else [])
                free_places(connection, {run_id: cells.millis(now)})
            write_audit(connection, event)
            return to_run(connection.execute(locked).mappings().one())


def _read_runs(
    connection: Connection,
    conditions: Sequence[ColumnElement[bool]],
    *,
    before: LedgerKey | None,
    limit: int,
) -> list[Run]:
    newest = select(runs).where(*conditions).order_by(runs.c.scheduled_at.desc(), runs.c.run_id.desc())

    def runs_after(last: RowMapping | None) -> Select[*tuple[object, ...]]:
        if last is not None:
            reached = (last["scheduled_at"], last["run_id"])
        elif before is not None:
            reached = (before.instant, before.id_)
        else:
            return newest
        place = tuple_(literal(reached[0], Instant), literal(reached[1]))
        return newest.where(tuple_(runs.c.scheduled_at, runs.c.run_id) < place)

    return read_page(connection, runs_after, _to_runs, limit=limit)


def _read_skips(
    connection: Connection, schedule_id: ScheduleId, *, before: LedgerKey | None, limit: int
) -> list[Skip]:
    key = (skips.c.from_at, skips.c.version, skips.c.reason)
    newest = select(skips).where(skips.c.schedule_id == schedule_id).order_by(*(part.desc() for part in key))

    def skips_after(last: RowMapping | None) -> Select[*tuple[object, ...]]:
        if last is not None:
            place = tuple_(*(literal(last[part.name], part.type) for part in key))
            return newest.where(tuple_(*key) < place)
        if before is None:
            return newest
        # A skip's id is empty, so at the same instant it comes after every run.
        reached = skips.c.from_at <= before.instant if before.id_ else skips.c.from_at < before.instant
        return newest.where(reached)

    return read_page(connection, skips_after, _to_skips, limit=limit)


def _to_runs(found: Sequence[RowMapping]) -> Iterator[Run]:
    return readable(found, to_run)


def _to_skips(found: Sequence[RowMapping]) -> Iterator[Skip]:
    return readable(found, _to_skip)


def _to_skip(row: RowMapping) -> Skip:
    with cells.reading(f"a skip of schedule {row['schedule_id']}"):
        return rows.to_skip(row)


def _conditions(filter_: RunFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filter_.schedule_id is not None:
        conditions.append(runs.c.schedule_id == filter_.schedule_id)
    if filter_.state is not None:
        conditions.append(runs.c.state == filter_.state.value)
    if filter_.job is not None:
        conditions.append(runs.c.job == filter_.job)
    if filter_.origin is not None:
        conditions.append(runs.c.origin == filter_.origin)
    if filter_.from_ is not None:
        conditions.append(runs.c.scheduled_at >= literal(filter_.from_, Instant))
    if filter_.until is not None:
        conditions.append(runs.c.scheduled_at < literal(filter_.until, Instant))
    if filter_.label is not None:
        key, value = filter_.label
        labelled = select(schedule_labels.c.schedule_id).where(
            schedule_labels.c.key == key,
            schedule_labels.c.value == value,
            schedule_labels.c.schedule_id == runs.c.schedule_id,
        )
        conditions.append(labelled.exists())
    return conditions


def _place_of(entry: Run | Skip) -> tuple[datetime, str]:
    return (entry.from_, "") if isinstance(entry, Skip) else (entry.scheduled_at, entry.run_id)
