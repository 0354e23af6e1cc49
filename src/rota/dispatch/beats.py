"""Set-based admission: at the hour very many schedules share few beats, and are admitted by the thousand.

One call reads which beats are due in all partitions held, computes each once, and commits what is ordinary. What it
leaves behind (a backlog, what ends, what waits for another version, what an edit or a plan has touched) is for the
planner, page by page. A key that exists already refuses the whole commit; it is then done partition by partition, and
what is refused again goes through the planner in the same step.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rota.cadences import CADENCES_KEPT, Cadences
from rota.domain.beat import Beat, BeatKey, beat_of
from rota.domain.cadence import Cadence
from rota.domain.schedule import CadenceRow
from rota.store.port import Fence, Store


@dataclass(slots=True, kw_only=True)
class BeatsReport:
    """What became of the ordinary schedules of some partitions."""

    admitted: int = 0
    fenced: frozenset[int] = frozenset()
    refused: tuple[Fence, ...] = ()
    """Of these the first schedules are to go through the planner: one of them met a key that exists already."""


class Beats:
    """Admits by beats; keeps the cadences that it met, the least recently used forgotten first."""

    def __init__(self, store: Store, cadences: Cadences) -> None:
        self._store = store
        self._cadences = cadences
        self._met: OrderedDict[str, Cadence | None] = OrderedDict()
        """By id; None where this process cannot compute it: its schedules are the planner's."""
        self._last: dict[BeatKey, Beat] = {}
        """Of the commit before: the commits of a burst share most of theirs."""

    def admit(self, fences: Sequence[Fence], *, after: datetime, now: datetime, each: int) -> BeatsReport:
        """Up to `each` ordinary schedules of every partition that are due in `(after, now]`, oldest first."""
        beats = self._beats_of(self._read(fences, after=after, now=now, each=each), now=now)
        self._last = {beat.key: beat for beat in beats}
        if not beats:
            return BeatsReport()
        outcome = self._store.commit_beats(fences, beats, after=after, now=now, each=each)
        if not outcome.is_key_used:
            return BeatsReport(admitted=outcome.admitted, fenced=outcome.fenced)
        return self._one_by_one(fences, beats, after=after, now=now, each=each)

    def prepare(self, fences: Sequence[Fence], *, now: datetime, until: datetime, each: int) -> None:
        """Compiles the cadences of what falls due in `(now, until]`, whose zones take some milliseconds each.

        What could not be computed is tried again: a row may have been mended, or was read in a bad moment.
        """
        for cadence_id in [cadence_id for cadence_id, cadence in self._met.items() if cadence is None]:
            del self._met[cadence_id]
        self._meet({key.cadence_id for key in self._read(fences, after=now, now=until, each=each)})

    def _read(self, fences: Sequence[Fence], *, after: datetime, now: datetime, each: int) -> list[BeatKey]:
        excluded = [cadence_id for cadence_id, cadence in self._met.items() if cadence is None]
        partitions = [fence.partition for fence in fences]
        return self._store.read_beats(partitions, after=after, now=now, each=each, excluding=excluded)

    def _one_by_one(
        self, fences: Sequence[Fence], beats: Sequence[Beat], *, after: datetime, now: datetime, each: int
    ) -> BeatsReport:
        report = BeatsReport()
        for fence in fences:
            outcome = self._store.commit_beats([fence], beats, after=after, now=now, each=each)
            report.admitted += outcome.admitted
            report.fenced |= outcome.fenced
            if outcome.is_key_used:
                report.refused += (fence,)
        return report

    def _beats_of(self, keys: Sequence[BeatKey], *, now: datetime) -> list[Beat]:
        self._meet({key.cadence_id for key in keys})
        beats = (self._beat_of(key, now=now) for key in keys)
        return [beat for beat in beats if beat is not None]

    def _beat_of(self, key: BeatKey, *, now: datetime) -> Beat | None:
        last, cadence = self._last.get(key), self._met.get(key.cadence_id)
        if last is not None and last.following > now:
            return last
        return None if cadence is None else _beat_or_none(key, cadence, now=now)

    def _meet(self, cadence_ids: set[str]) -> None:
        new = cadence_ids - self._met.keys()
        if new:
            rows = {row.cadence_id: row for row in self._store.read_cadences(new)}
            for cadence_id in new:
                row = rows.get(cadence_id)
                self._met[cadence_id] = None if row is None else self._computable(row)
        for cadence_id in cadence_ids - new:
            self._met.move_to_end(cadence_id)
        while len(self._met) > max(CADENCES_KEPT, len(cadence_ids)):
            self._met.popitem(last=False)

    def _computable(self, row: CadenceRow) -> Cadence | None:
        try:
            return self._cadences.of_row(row)
        except Exception:  # noqa: BLE001 - I12: the planner meets it again, and stops the schedules that it belongs to
            return None


def _beat_or_none(key: BeatKey, cadence: Cadence, *, now: datetime) -> Beat | None:
    try:
        return beat_of(key, cadence, now=now)
    except Exception:  # noqa: BLE001 - I12: the same
        return None
