"""Set-based admission in SQL: thousands of ordinary schedules by a few statements, none of them visiting Python.

One transaction. The rows of the partitions are read under a share lock, so that their epochs stay what they are (I6).
Then of each partition the first schedules are chosen that are ordinary and stand at one of the beats; they are advanced
to the instant that follows, and run and delivery intent of each are made of its row and its beat. A key that exists
already (the net under I2) undoes all of it. What is ordinary stands in `conditions.py`, what is written in
`writes.py`; how the two databases do it in `postgresql.py` and `sqlite.py`.

PostgreSQL chooses and writes in one statement. Where somebody else changes a chosen schedule before it is advanced, the
update waits for its row and then finds another one than was chosen: the schedule is left as it is, and without a run.
Where somebody holds one for long, it is passed over.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, cast

from sqlalchemy import Connection, Row, bindparam, select
from sqlalchemy.exc import IntegrityError

from rota.domain.beat import Beat, BeatKey
from rota.domain.instants import from_millis
from rota.domain.period import Period
from rota.store.port import BeatsOutcome, Fence, Notice
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part
from rota.store.sql.beats import postgresql, sqlite
from rota.store.sql.beats.held import RowHeld
from rota.store.sql.beats.writes import given_values
from rota.store.sql.engine import is_unique_violation
from rota.store.sql.notices import notify
from rota.store.sql.planned import PASSED_OVER_MAX
from rota.store.sql.schema import partitions as partitions_table


class _Form(Protocol):
    """How one database does it: a module."""

    def read(
        self,
        connection: Connection,
        partitions: Sequence[int],
        excluding: Collection[str],
        bounds: rows.Values,
    ) -> Iterable[Row[*tuple[object, ...]]]:
        """The keys of beats, each with the columns `conditions.BEAT_KEY`; some may come twice."""

    def admit(
        self,
        connection: Connection,
        partitions: Sequence[int],
        given: Sequence[rows.Values],
        bounds: rows.Values,
        *,
        passing_held: bool,
    ) -> int:
        """How many were admitted. Raises `RowHeld` unless `passing_held`."""


_FORMS: Mapping[str, _Form] = {"postgresql": postgresql, "sqlite": sqlite}


class SqlBeats(Part):
    _is_passing_held = False
    """A row was held, and the commits since then have come on without it."""

    def read_beats(
        self,
        partitions: Sequence[int],
        *,
        after: datetime,
        now: datetime,
        each: int,
        excluding: Collection[str] = (),
    ) -> list[BeatKey]:
        bounds = _bounds(after, now, each)
        with self._database.reading() as connection:
            form = _FORMS[connection.dialect.name]
            found = form.read(connection, sorted(set(partitions)), excluding, bounds)
            keys = {_to_key(*columns) for columns in set(found)}
        return sorted(keys, key=lambda key: (key.scheduled_at, key.cadence_id, key.period, key.series))

    def commit_beats(
        self, fences: Sequence[Fence], beats: Sequence[Beat], *, after: datetime, now: datetime, each: int
    ) -> BeatsOutcome:
        # A newer instant that is due may supersede this one: that is for the planner.
        given = [given_values(beat) for beat in beats if beat.following > now]
        bounds = _bounds(after, now, each)
        passing_held = self._is_passing_held
        try:
            outcome = self._commit(fences, given, bounds, passing_held=passing_held)
        except RowHeld:
            passing_held = True
            outcome = self._commit(fences, given, bounds, passing_held=passing_held)
        # The others of a burst are not to wait for it once more each.
        self._is_passing_held = passing_held and outcome.admitted > 0
        return outcome

    def _commit(
        self,
        fences: Sequence[Fence],
        given: Sequence[rows.Values],
        bounds: rows.Values,
        *,
        passing_held: bool,
    ) -> BeatsOutcome:
        fenced: frozenset[int] = frozenset()
        try:
            with self._database.writing() as connection:
                fenced = _fenced(connection, fences)
                held = sorted({fence.partition for fence in fences} - fenced)
                if not held or not given:
                    return BeatsOutcome(fenced=fenced)
                form = _FORMS[connection.dialect.name]
                admitted = form.admit(connection, held, given, bounds, passing_held=passing_held)
                if admitted:
                    notify(connection, Notice.QUEUED)
        except IntegrityError as error:
            if not is_unique_violation(error):
                raise
            return BeatsOutcome(fenced=fenced, is_key_used=True)
        return BeatsOutcome(admitted=admitted, fenced=fenced)


def _to_key(cadence_id: object, period: object, series: object, at: object) -> BeatKey:
    return BeatKey(
        cadence_id=cells.text(cadence_id),
        period=cast("Period", period),
        series=cells.integer(series),
        scheduled_at=cells.instant(at),
    )


def _bounds(after: datetime, now: datetime, each: int) -> rows.Values:
    """As `conditions` names them. Instants of schedules are whole milliseconds: a fraction of `now` makes none due,
    but may make one later than its policy allows."""
    started = cells.millis(now)
    ended = started if from_millis(started) == now else started + 1
    return {
        "after": cells.millis(after),
        "now": started,
        "now_ended": ended,
        "each": each,
        "looked_at": each + PASSED_OVER_MAX,
    }


def _fenced(connection: Connection, fences: Sequence[Fence]) -> frozenset[int]:
    """The partitions whose epochs are others; those of all the others cannot change before the commit (I6)."""
    wanted = {"partitions": list({fence.partition for fence in fences})}
    epochs = {row["partition"]: row["epoch"] for row in connection.execute(_READ_EPOCHS, wanted).mappings()}
    return frozenset(fence.partition for fence in fences if epochs.get(fence.partition) != fence.epoch)


# In the order of their key, as others who lock several of them do.
_READ_EPOCHS = (
    select(partitions_table.c.partition, partitions_table.c.epoch)
    .where(partitions_table.c.partition.in_(bindparam("partitions", expanding=True)))
    .order_by(partitions_table.c.partition)
    .with_for_update(read=True)
)
