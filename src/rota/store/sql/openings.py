"""Attempts opened in SQL: runs are read under row locks, each intent or message is decided, then each table is written
for all.

One sees what those before it made of its run, so the same message twice in a batch opens one attempt.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from rota.domain.errors import UnreadableRow
from rota.domain.job import Job
from rota.domain.run import Attempt, Run, RunState
from rota.store.port import Intent, OfAttempt, OpenAttemptRow, OpenedAttempt, Wanted
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part
from rota.store.sql.demands import lock_demands, write_permits
from rota.store.sql.jobs import job_or_default
from rota.store.sql.outbox import drop_intents, intent_row, withdraw_intent_rows
from rota.store.sql.pages import readable
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.records import to_run, version_of
from rota.store.sql.run_changes import drop_deliveries
from rota.store.sql.schema import attempts, jobs, runs
from rota.store.sql.taking import take_intents
from rota.store.sql.waiting_runs import fail_unreadable, held_by_others, read_to_open


class SqlOpenings(Part):
    def commit_openings(
        self, worker: str, attempts: Sequence[OfAttempt], *, now: datetime
    ) -> list[OpenedAttempt | None]:
        self._check_count(attempts)
        if not attempts:
            return []
        with self._database.writing() as connection:
            waiting = read_to_open(connection, attempts, now=now, waiting=True)
            asked_for = [attempt for attempt in attempts if waits_for(waiting.get(attempt.run_id), attempt)]
            messages = {attempt.run_id: waiting[attempt.run_id] for attempt in asked_for}
            answers = _open(connection, worker, attempts, waiting, now=now)
            withdraw_intent_rows(connection, [_intent_before(row) for row in messages.values()])
            # Those that nobody can open any more as well: left waiting they would keep the place of others (I12).
            drop_intents(connection, [attempt for attempt in attempts if isinstance(attempt, Intent)])
            drop_deliveries(connection, list(messages))
            return answers

    def commit_claims(
        self,
        worker: str,
        wanted: Sequence[Wanted],
        *,
        now: datetime,
        limit: int,
        backlog_first: bool = False,
    ) -> list[OpenedAttempt]:
        """Waits for nobody: what another connection holds, be it the intent or its run, is left for a later claim.

        A change of the run holds the run and then takes its intent; to wait for the run here, with its intent held,
        would be a deadlock.
        """
        self._check_count(range(limit))
        with self._database.writing() as connection:
            demands = [each for each in lock_demands(connection, wanted, limit=limit) if each.is_fetched]
            intents = take_intents(connection, demands, now=now, limit=limit, backlog_first=backlog_first)
            if not intents:
                return []
            waiting = read_to_open(connection, intents, now=now, waiting=False)
            held = held_by_others(connection, [intent.run_id for intent in intents], waiting)
            free = [intent for intent in intents if intent.run_id not in held]
            answers = _open(connection, worker, free, waiting, now=now)
            # Those that nobody can open any more as well: left waiting they would keep the place of others (I12).
            drop_intents(connection, free)
            return [answer for answer in answers if answer is not None]

    def read_open_attempts(self, attempts: Sequence[OfAttempt]) -> list[OpenAttemptRow | None]:
        with self._database.reading() as connection:
            found = _READ_OPEN.read(connection, list({attempt.run_id for attempt in attempts})).mappings()
            opened = {entry.run.run_id: entry for entry in readable(found.all(), _to_open)}
        answers = [(opened.get(attempt.run_id), attempt) for attempt in attempts]
        return [
            entry if entry is not None and entry.run.attempt == attempt.attempt else None
            for entry, attempt in answers
        ]


def waits_for(row: RowMapping | None, attempt: OfAttempt) -> bool:
    """Whether the run of the row waits for that attempt."""
    return (
        row is not None
        and bool(row["state_before"] == RunState.QUEUED.value)
        and bool(row["attempt_before"] == attempt.attempt - 1)
    )


def _open(
    connection: Connection,
    worker: str,
    asked_for: Sequence[OfAttempt],
    waiting: dict[str, RowMapping],
    *,
    now: datetime,
) -> list[OpenedAttempt | None]:
    """Opens what the `waiting` rows, held until the commit, allow."""
    answers: list[OpenedAttempt | None] = []
    started: list[tuple[OpenedAttempt, Attempt]] = []
    unreadable: list[tuple[OfAttempt, str]] = []
    for attempt in asked_for:
        row = waiting.get(attempt.run_id)
        if row is None or not waits_for(row, attempt):
            answers.append(None)
            continue
        del waiting[attempt.run_id]
        try:
            start = _start_of(row, worker, now=now)
        except UnreadableRow as error:
            answers.append(None)
            unreadable.append((attempt, str(error)))
        else:
            answers.append(start[0])
            started.append(start)
    _write_openings(connection, started)
    fail_unreadable(connection, unreadable, now=now)
    return answers


def _start_of(row: RowMapping, worker: str, *, now: datetime) -> tuple[OpenedAttempt, Attempt]:
    """What the run's next attempt is made of. Raises `UnreadableRow`."""
    started = to_run(row)
    with cells.reading(f"run {started.run_id}"):
        job = job_or_default(started.job, row["job_spec"])
        attempt = Attempt(
            run_id=started.run_id,
            number=started.attempt,
            worker=worker,
            opened_at=now,
            lease_expires_at=now + job.lease,
        )
        return OpenedAttempt(run=started, version=version_of(row, row["version"]), job=job), attempt


def _write_openings(connection: Connection, started: Sequence[tuple[OpenedAttempt, Attempt]]) -> None:
    _START.change_each(connection, [_start_values(opened.run) for opened, _ in started])
    _WRITE_ATTEMPT.execute(
        connection,
        [rows.attempt_values(attempt, partition=opened.run.partition) for opened, attempt in started],
    )
    limited = [
        (opened.run.run_id, opened.job.name) for opened, _ in started if opened.job.max_running is not None
    ]
    write_permits(connection, limited)


def _start_values(run: Run) -> rows.Values:
    return {
        "key_run_id": run.run_id,
        "key_attempt": run.attempt - 1,
        "state": run.state.value,
        "attempt": run.attempt,
        "started_at": cells.millis_or_none(run.started_at),
    }


def _intent_before(row: RowMapping) -> rows.Values:
    """The outbox row that asked for the attempt with which the row begins."""
    return intent_row({**row, "attempt": row["attempt_before"]})


def _to_open(row: RowMapping) -> OpenAttemptRow:
    run = to_run(row)
    try:
        job = job_or_default(run.job, row["job_spec"])
    except UnreadableRow:
        job = Job(name=run.job)
    return OpenAttemptRow(run=run, job=job)


_START = Prepared(
    update(runs)
    .where(
        runs.c.run_id == bindparam("key_run_id"),
        runs.c.state == RunState.QUEUED.value,
        runs.c.attempt == bindparam("key_attempt"),
    )
    .values(state=bindparam("state"), attempt=bindparam("attempt"), started_at=bindparam("started_at"))
)
_WRITE_ATTEMPT = Prepared(insert(attempts))
# With its open attempt, as whoever settles it asks for.
_READ_OPEN = Lookup(
    select(runs, jobs.c.spec.label("job_spec"))
    .join(attempts, (attempts.c.run_id == runs.c.run_id) & (attempts.c.number == runs.c.attempt))
    .outerjoin(jobs, jobs.c.name == runs.c.job)
    .where(
        runs.c.run_id.in_(bindparam("keys", expanding=True)),
        runs.c.state == RunState.RUNNING.value,
        attempts.c.finished_at.is_(None),
    )
)
