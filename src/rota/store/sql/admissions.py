"""Admissions: a batch of elements in one transaction, each of them applied whole or not at all (I3).

1. The partition's row is read under a share lock: the epoch must be the fence's, and stays it until the commit (I6).
2. The schedules are read under row locks, each with the window of the version that owns its cursor (I8), and the runs
   that are to change as well. Elements are judged by them; one that does not apply drops out. On PostgreSQL what
   another connection holds is passed over, and is as stale as what it may leave: one schedule that somebody is slow
   with keeps none of the others waiting, and is read again in the next step. Where an element depends on the places of
   its schedule, these are locked and compared too.
3. Schedules are advanced, runs, delivery intents and skips are written, each table by one statement for the batch. The
   condition is repeated in the update: should it ever find another state, the batch is undone. What few elements have
   (changed runs, the end of a window, a later `careful_until`) is a statement more only where there is some.
4. A key that exists already (the net under I2) undoes the batch as well. It is then done again element by element, so
   that only the offender is told `KEY_USED`; and so is a batch in which two elements meet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, select, update
from sqlalchemy.exc import IntegrityError

from rota.domain.admission import Admission
from rota.domain.overlap import Places
from rota.domain.run import Run, RunState
from rota.domain.schedule import Cursor
from rota.store.port import AdmissionOutcome, Fence
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part, holds
from rota.store.sql.engine import is_unique_violation
from rota.store.sql.places import read_places_to_give, write_places
from rota.store.sql.prepared import Prepared
from rota.store.sql.run_changes import Stored, are_stale, read_stored, write_runs
from rota.store.sql.schema import schedules, versions
from rota.store.sql.skips import write_skips
from rota.store.sql.versions import end_windows, follow_versions

_State = tuple[int, int, int | None, int | None]
"""What an admission expects of a schedule's row: revision and cursor, as stored."""


@dataclass(slots=True)
class _Standing:
    """How a schedule stands, as its row says, and the window of its cursor's version."""

    partition: int
    state: _State
    history_from: int
    effective_from: int | None
    """None where there is no such version."""
    effective_until: int | None


class SqlAdmissions(Part):
    def commit_admissions(
        self, fence: Fence, admissions: Sequence[Admission], *, now: datetime
    ) -> list[AdmissionOutcome]:
        self._check_count(admissions)
        if not _meet(admissions):
            try:
                with self._database.writing() as connection:
                    return _admit(connection, fence, admissions, now=now)
            except IntegrityError as error:
                if not is_unique_violation(error):
                    raise
        with self._database.writing() as connection:
            return [_admit_alone(connection, fence, admission, now=now) for admission in admissions]


def _meet(admissions: Sequence[Admission]) -> bool:
    """Whether one element depends on what another leaves: they are of one schedule, or change one run."""
    if len({admission.schedule_id for admission in admissions}) < len(admissions):
        return True
    changed = [change.run.run_id for admission in admissions for change in admission.run_changes]
    return len(set(changed)) < len(changed)


def _admit_alone(
    connection: Connection, fence: Fence, admission: Admission, *, now: datetime
) -> AdmissionOutcome:
    try:
        with connection.begin_nested():
            [outcome] = _admit(connection, fence, [admission], now=now)
    except IntegrityError as error:
        if not is_unique_violation(error):
            raise
        return AdmissionOutcome.KEY_USED
    return outcome


def _admit(
    connection: Connection, fence: Fence, admissions: Sequence[Admission], *, now: datetime
) -> list[AdmissionOutcome]:
    if not admissions:
        return []
    if not holds(connection, fence):
        return [AdmissionOutcome.FENCED] * len(admissions)
    standings = _read_standings(connection, admissions)
    changes = [change for admission in admissions for change in admission.run_changes]
    stored = read_stored(connection, changes, waiting=False)
    placed = read_places_to_give(
        connection,
        {admission.schedule_id for admission in admissions if admission.expected_places is not None},
    )
    outcomes = [
        _judge(standings.get(admission.schedule_id), stored, placed, fence, admission)
        for admission in admissions
    ]
    accepted = [
        admission
        for admission, outcome in zip(admissions, outcomes, strict=True)
        if outcome is AdmissionOutcome.ADMITTED
    ]
    _write(connection, accepted, stored, now=now)
    return outcomes


def _read_standings(connection: Connection, admissions: Sequence[Admission]) -> dict[str, _Standing]:
    ids = {"ids": list({admission.schedule_id for admission in admissions})}
    return {
        id_: _Standing(partition, (revision, version, scheduled_at, due), *others)
        for id_, partition, revision, version, scheduled_at, due, *others in connection.execute(
            _READ_STANDINGS, ids
        )
    }


def _judge(
    standing: _Standing | None,
    stored: Stored,
    placed: Mapping[str, Places | None],
    fence: Fence,
    admission: Admission,
) -> AdmissionOutcome:
    if standing is None:
        return AdmissionOutcome.STALE
    if standing.partition != fence.partition:
        return AdmissionOutcome.FENCED
    if standing.state != _state_of(admission.expected_revision, admission.expected_cursor):
        return AdmissionOutcome.STALE
    if are_stale(admission.run_changes, stored):
        return AdmissionOutcome.STALE
    if admission.expected_places is not None and admission.expected_places != placed[admission.schedule_id]:
        return AdmissionOutcome.STALE
    for run in admission.runs:
        if cells.millis(run.scheduled_at) < standing.history_from:
            return AdmissionOutcome.PRUNED
    for run in admission.runs:
        if not _is_owned(run, admission, standing):
            return AdmissionOutcome.NOT_OWNED
    return AdmissionOutcome.ADMITTED


def _is_owned(run: Run, admission: Admission, standing: _Standing) -> bool:
    """Whether the run's instant is its version's own, or an activation carries it (I8)."""
    if run.state is RunState.PLANNED:
        return run.carried_by == admission.cursor.version
    if run.version != admission.expected_cursor.version or standing.effective_from is None:
        return False
    scheduled_at, until = cells.millis(run.scheduled_at), standing.effective_until
    return standing.effective_from <= scheduled_at and (until is None or scheduled_at < until)


def _write(connection: Connection, accepted: Sequence[Admission], stored: Stored, *, now: datetime) -> None:
    _ADVANCE.change_each(connection, [_advance_values(admission, now=now) for admission in accepted])
    follow_versions(
        connection,
        [
            admission.schedule_id
            for admission in accepted
            if admission.cursor.version != admission.expected_cursor.version
        ],
    )
    _write_rare(connection, accepted)
    write_places(
        connection,
        {
            admission.schedule_id: admission.places
            for admission in accepted
            if admission.expected_places is not None and admission.places != admission.expected_places
        },
    )
    write_runs(
        connection,
        [run for admission in accepted for run in admission.runs],
        [change for admission in accepted for change in admission.run_changes],
        stored,
    )
    write_skips(connection, [skip for admission in accepted for skip in admission.skips])


def _write_rare(connection: Connection, accepted: Sequence[Admission]) -> None:
    end_windows(
        connection,
        [
            (admission.schedule_id, admission.cursor.version, admission.window_closed_at)
            for admission in accepted
            if admission.window_closed_at is not None
        ],
    )
    _RAISE_CAREFUL.execute(
        connection,
        [
            {"key_id": admission.schedule_id, "raised": cells.millis(admission.careful_until)}
            for admission in accepted
            if admission.careful_until is not None
        ],
    )


def _advance_values(admission: Admission, *, now: datetime) -> rows.Values:
    revision, version, scheduled_at, due = _state_of(admission.expected_revision, admission.expected_cursor)
    cursor = admission.cursor
    return {
        "schedule_id": admission.schedule_id,
        "expected_revision": revision,
        "expected_version": version,
        "expected_scheduled_at": scheduled_at,
        "expected_due": due,
        "status": admission.status.value,
        "status_reason": admission.status_reason,
        "version": cursor.version,
        "next_scheduled_at": cells.millis_or_none(cursor.scheduled_at),
        "next_due": cells.millis_or_none(cursor.due_at),
        "turn": admission.turn,
        "updated_at": cells.millis(now),
    }


def _state_of(revision: int, cursor: Cursor) -> _State:
    return (
        revision,
        cursor.version,
        cells.millis_or_none(cursor.scheduled_at),
        cells.millis_or_none(cursor.due_at),
    )


# An outer join: a schedule that lost its version is found, and owns nothing (I12).
_READ_STANDINGS = (
    select(
        schedules.c.id,
        schedules.c.partition,
        schedules.c.revision,
        schedules.c.version,
        schedules.c.next_scheduled_at,
        schedules.c.next_due,
        schedules.c.history_from,
        versions.c.effective_from,
        versions.c.effective_until,
    )
    .outerjoin(
        versions, (versions.c.schedule_id == schedules.c.id) & (versions.c.number == schedules.c.version)
    )
    .where(schedules.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(schedules.c.id)
    .with_for_update(of=schedules, skip_locked=True)
)
_ADVANCE = Prepared(
    update(schedules)
    .where(
        schedules.c.id == bindparam("schedule_id"),
        schedules.c.revision == bindparam("expected_revision"),
        schedules.c.version == bindparam("expected_version"),
        schedules.c.next_scheduled_at.is_not_distinct_from(bindparam("expected_scheduled_at")),
        schedules.c.next_due.is_not_distinct_from(bindparam("expected_due")),
    )
    .values(
        status=bindparam("status"),
        status_reason=bindparam("status_reason"),
        version=bindparam("version"),
        next_scheduled_at=bindparam("next_scheduled_at"),
        next_due=bindparam("next_due"),
        turn=bindparam("turn"),
        updated_at=bindparam("updated_at"),
    )
)
_RAISE_CAREFUL = Prepared(
    update(schedules)
    .where(
        schedules.c.id == bindparam("key_id"),
        schedules.c.careful_until.is_(None) | (schedules.c.careful_until < bindparam("raised")),
    )
    .values(careful_until=bindparam("raised"))
)
