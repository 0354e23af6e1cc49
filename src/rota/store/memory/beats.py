"""Set-based admission of a memory store: the same conditions as in SQL, on one schedule after the other."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from rota.domain.admission import cursor_at, run_of
from rota.domain.beat import Beat, BeatKey, beat_key_of, is_ordinary, may_be_ordinary
from rota.domain.run import Run
from rota.domain.schedule import Cursor, Schedule, Version
from rota.store.memory.tables import key_of
from rota.store.memory.writes import Writes
from rota.store.port import BeatsOutcome, Fence


class MemoryBeats(Writes):
    def read_beats(
        self,
        partitions: Sequence[int],
        *,
        after: datetime,
        now: datetime,
        each: int,
        excluding: Collection[str] = (),
    ) -> list[BeatKey]:
        with self._lock:
            keys = {
                key
                for partition in partitions
                for key in islice(
                    (
                        key
                        for _, _, key in self._standing_in(partition, after=after, now=now)
                        if key.cadence_id not in excluding
                    ),
                    each,
                )
            }
        return sorted(keys, key=lambda key: (key.scheduled_at, key.cadence_id, key.period, key.series))

    def commit_beats(
        self, fences: Sequence[Fence], beats: Sequence[Beat], *, after: datetime, now: datetime, each: int
    ) -> BeatsOutcome:
        by_key = {beat.key: beat for beat in beats}
        with self._lock:
            fenced = {fence.partition for fence in fences if not self._holds(fence, fence.partition)}
            made: list[tuple[Schedule, Run, Cursor]] = []
            for partition in sorted({fence.partition for fence in fences} - fenced):
                standing = self._standing_in(partition, after=after, now=now)
                ordinary = (
                    (schedule, version, by_key[key])
                    for schedule, version, key in standing
                    if key in by_key and self._is_ordinary(schedule, version, by_key[key], now=now)
                )
                for schedule, version, beat in islice(ordinary, each):
                    run = run_of(schedule, version, beat.occurrence, queued_at=now)
                    following = replace(beat.occurrence, scheduled_at=beat.following)
                    made.append((schedule, run, cursor_at(version, following)))
            if any(run.run_id in self._runs or key_of(run) in self._key_holders for _, run, _ in made):
                return BeatsOutcome(fenced=frozenset(fenced), is_key_used=True)
            for schedule, run, cursor in made:
                self._write_run(run)
                self._schedules[schedule.schedule_id] = replace(
                    schedule, cursor=cursor, turn=0, updated_at=now
                )
            return BeatsOutcome(admitted=len(made), fenced=frozenset(fenced))

    def _standing_in(
        self, partition: int, *, after: datetime, now: datetime
    ) -> Iterator[tuple[Schedule, Version, BeatKey]]:
        """The partition's due schedules that may be ordinary, each with its version and the beat at which it stands.

        It walks through all that are due anyway, so it bounds nothing of what is passed over.
        """
        due = [
            (schedule.cursor.due_at, schedule.schedule_id, schedule)
            for schedule in self._schedules.values()
            if schedule.partition == partition
            and schedule.cursor.due_at is not None
            and after < schedule.cursor.due_at <= now
        ]
        for _, _, schedule in sorted(due, key=lambda entry: entry[:2]):
            version = self._versions.get((schedule.schedule_id, schedule.cursor.version))
            key = None if version is None else beat_key_of(schedule, version)
            if version is not None and key is not None and may_be_ordinary(schedule, version):
                yield schedule, version, key

    def _is_ordinary(self, schedule: Schedule, version: Version, beat: Beat, *, now: datetime) -> bool:
        policy = version.definition.overdue or self._job_or_default(schedule.job).overdue
        return is_ordinary(schedule, version, beat, policy, now=now)
