"""Runs and the ledger of a schedule in SQL."""

from datetime import datetime

from sqlalchemy import ColumnElement, Select, literal, select, tuple_, update

from rota.domain.admission import Skip
from rota.domain.audit import AuditEvent
from rota.domain.identity import RunId, ScheduleId
from rota.domain.json_text import JsonText
from rota.domain.run import SETTLED, Run, RunDetail, RunEvent, RunState, next_state
from rota.store.port import LedgerKey, RunFilter
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part
from rota.store.sql.outbox import withdraw_intents
from rota.store.sql.schedules import write_audit
from rota.store.sql.schema import Instant, attempts, results, runs, schedule_labels, skips


class SqlRuns(Part):
    def get_run(self, run_id: RunId) -> RunDetail | None:
        with self._database.reading() as connection:
            row = connection.execute(select(runs).where(runs.c.run_id == run_id)).mappings().first()
            if row is None:
                return None
            opened = select(attempts).where(attempts.c.run_id == run_id).order_by(attempts.c.number)
            tried = connection.execute(opened).mappings().all()
            result = connection.execute(select(results.c.result).where(results.c.run_id == run_id)).scalar()
        with cells.reading(f"run {run_id}"):
            return RunDetail(
                run=rows.to_run(row),
                attempts=tuple(rows.to_attempt(attempt) for attempt in tried),
                result=None if result is None else JsonText(result),
            )

    def list_runs(self, filter_: RunFilter, *, before: LedgerKey | None, limit: int) -> list[Run]:
        statement = _newest_runs(before=before, limit=limit).where(*_conditions(filter_))
        with self._database.reading() as connection:
            return [rows.to_run(row) for row in connection.execute(statement).mappings()]

    def list_ledger(
        self, schedule_id: ScheduleId, *, before: LedgerKey | None, limit: int
    ) -> list[Run | Skip]:
        newest_runs = _newest_runs(before=before, limit=limit).where(runs.c.schedule_id == schedule_id)
        newest_skips = _newest_skips(schedule_id, before=before, limit=limit)
        with self._database.reading() as connection:
            entries: list[Run | Skip] = [
                *(rows.to_run(row) for row in connection.execute(newest_runs).mappings()),
                *(rows.to_skip(row) for row in connection.execute(newest_skips).mappings()),
            ]
        return sorted(entries, key=_place_of, reverse=True)[:limit]

    def commit_cancel(self, run_id: RunId, *, event: AuditEvent, now: datetime) -> Run | None:
        this_run = runs.c.run_id == run_id
        locked = select(runs).where(this_run).with_for_update()
        with self._database.writing() as connection:
            row = connection.execute(locked).mappings().first()
            if row is None:
                return None
            run = rows.to_run(row)
            if run.state in SETTLED:
                return run
            if run.state is RunState.RUNNING:
                if run.cancel_requested_at is not None:
                    return run
                connection.execute(update(runs).where(this_run).values(cancel_requested_at=now))
            else:
                state = next_state(run.state, RunEvent.CANCELLED)
                connection.execute(update(runs).where(this_run).values(state=state.value, finished_at=now))
                withdraw_intents(connection, [run] if run.state is RunState.QUEUED else [])
            write_audit(connection, event)
            return rows.to_run(connection.execute(locked).mappings().one())


def _newest_runs(*, before: LedgerKey | None, limit: int) -> Select[*tuple[object, ...]]:
    statement = select(runs).order_by(runs.c.scheduled_at.desc(), runs.c.run_id.desc()).limit(limit)
    if before is None:
        return statement
    place = tuple_(literal(before.instant, Instant), literal(before.id_))
    return statement.where(tuple_(runs.c.scheduled_at, runs.c.run_id) < place)


def _newest_skips(
    schedule_id: ScheduleId, *, before: LedgerKey | None, limit: int
) -> Select[*tuple[object, ...]]:
    statement = (
        select(skips)
        .where(skips.c.schedule_id == schedule_id)
        .order_by(skips.c.from_at.desc(), skips.c.version.desc(), skips.c.reason.desc())
        .limit(limit)
    )
    if before is None:
        return statement
    # A skip's id is empty, so at the same instant it comes after every run.
    reached = skips.c.from_at <= before.instant if before.id_ else skips.c.from_at < before.instant
    return statement.where(reached)


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
