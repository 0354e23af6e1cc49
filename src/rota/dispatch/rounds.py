"""One round over the partitions in which something is due: what is served first, and how much of each.

In this order, each of it bounded: planned runs that fell due; what is ordinary among what fell due within the last
`SLICE`, in all partitions at once; what is ordinary of before; then, one by one through the planner, what is left of
the slice, and a smaller page of what is left of before. So neither a backlog nor one partition, nor one schedule,
holds up what is on time elsewhere, and a backlog still comes on in every round. Partitions take turns: the next round
begins after the one that was served last. Of a partition that raises, the others are served all the same.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rota.cadences import Cadences
from rota.dispatch.admitting import admit_page
from rota.dispatch.beats import Beats
from rota.dispatch.planned import admit_planned
from rota.domain.errors import RotaError
from rota.store.port import DueTimes, Fence, Store, StoreUnavailable, ZoneRules

SLICE = timedelta(minutes=1)
"""What fell due within it is on time, or nearly; what fell due before is a backlog."""

EACH_MIN = 10
"""Ordinary schedules of a partition a commit, however many partitions share it."""

PREPARED_EACH = 100
"""Schedules of a partition that are looked at ahead of their time."""

BACKLOG_SHARE = 8
"""A round reads this part of a page of the backlog: each may be a long walk, with many runs to write."""

BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True, kw_only=True)
class RoundReport:
    """What one round did."""

    admitted: int = 0
    """Runs queued."""
    is_changed: bool = False
    """There may be more to do at once."""
    is_time_up: Callable[[], bool]
    is_passed_over: bool = False
    """Something is worth another look before long (`rota.dispatch.admitting`)."""
    problem: RotaError | None = None
    """The first that one of the partitions raised."""
    gone: set[int] = field(default_factory=set)
    """Partitions that turned out to be no longer the caller's."""


class Rounds:
    """Serves the partitions of a dispatcher; remembers whose turn it is, and what this process cannot compute."""

    def __init__(
        self, store: Store, cadences: Cadences, *, page: int, batch: int, drop: Callable[[int], None]
    ) -> None:
        """`page` schedules, at most as many as the store takes, go through the planner in a round, and `batch` are
        admitted by one commit of beats.

        `drop` is told of partitions that turn out to be no longer the caller's.
        """
        self._store = store
        self._cadences = cadences
        self._beats = Beats(store, cadences)
        self._page = page
        self._batch = batch
        self._drop = drop
        self._differing: set[ZoneRules] = set()
        self._refused: set[int] = set()
        """Partitions in which a commit of beats met a key that exists: the planner's alone until it is through."""
        self._planned, self._slice, self._backlog = _Turns(), _Turns(), _Turns()

    def serve(
        self,
        fences: Mapping[int, Fence],
        due_times: Mapping[int, DueTimes],
        *,
        now: datetime,
        is_time_up: Callable[[], bool] = lambda: False,
    ) -> RoundReport:
        """One bounded piece of what is due at `now` in the partitions of `fences`. Raises `StoreUnavailable`.

        It is asked between two commits whether `is_time_up`: then the rest is left for the next round.
        """
        report = RoundReport(is_time_up=is_time_up)
        planned = {fences[partition] for partition, due in due_times.items() if _is_due(due.planned, now)}
        self._serve_planned(planned, report, now=now)
        border = now - SLICE
        standing = _standing(fences, due_times, until=now)
        is_full = self._admit_beats(standing, report, after=border, now=now)
        behind = _standing(fences, due_times, until=border)
        self._admit_beats(behind, report, after=BEGINNING, now=now)
        if standing:
            left = self._store.read_due_times([fence.partition for fence in standing])
            share = max(1, self._page // BACKLOG_SHARE)
            # While commits of beats are full, most of what is left of the slice is theirs.
            self._serve_pages(
                self._slice,
                _standing(fences, left, until=now),
                report,
                after=border,
                now=now,
                limit=share if is_full else self._page,
            )
            behind = _standing(fences, left, until=border)
            self._serve_pages(self._backlog, behind, report, after=BEGINNING, now=now, limit=share)
        return report

    def prepare(
        self, fences: Mapping[int, Fence], due_times: Mapping[int, DueTimes], *, now: datetime
    ) -> None:
        """Makes ready for what falls due within the next `SLICE`, so that a process that has just begun is on time."""
        soon = _standing(fences, due_times, until=now + SLICE)
        if soon:
            self._beats.prepare(soon, now=now, until=now + SLICE, each=PREPARED_EACH)

    def _serve_planned(self, fences: Iterable[Fence], report: RoundReport, *, now: datetime) -> None:
        left = self._page
        for fence in self._planned.order(fences):
            if left <= 0 or report.is_time_up():
                report.is_changed = True
                return
            self._planned.take(fence)
            with _noting_problems(report):
                planned = admit_planned(self._store, self._cadences, fence, now=now, limit=left)
                report.admitted += planned.queued
                report.is_changed |= planned.is_changed
                report.is_passed_over |= planned.is_passed_over
                left -= planned.looked_at

    def _admit_beats(
        self, fences: Sequence[Fence], report: RoundReport, *, after: datetime, now: datetime
    ) -> bool:
        """Whether there may be more of them."""
        fences = [fence for fence in fences if fence.partition not in self._refused | report.gone]
        if not fences:
            return False
        if report.is_time_up():
            report.is_changed = True
            return True
        each = max(EACH_MIN, self._batch // len(fences))
        admitted = 0
        with _noting_problems(report):
            beats = self._beats.admit(fences, after=after, now=now, each=each)
            admitted = beats.admitted
            report.admitted += admitted
            report.is_changed |= admitted > 0
            for partition in beats.fenced:
                self._let_go(partition, report)
            self._refused |= {fence.partition for fence in beats.refused}
            for fence in beats.refused:
                self._serve_page(fence, report, after=after, now=now, limit=min(each, self._page))
        return admitted >= each

    def _serve_pages(
        self,
        turns: "_Turns",
        fences: Sequence[Fence],
        report: RoundReport,
        *,
        after: datetime,
        now: datetime,
        limit: int,
    ) -> None:
        left = limit
        for fence in turns.order(fences):
            if fence.partition in report.gone:
                continue
            if left <= 0 or report.is_time_up():
                report.is_changed = True
                return
            turns.take(fence)
            with _noting_problems(report):
                left -= self._serve_page(fence, report, after=after, now=now, limit=left)

    def _serve_page(
        self, fence: Fence, report: RoundReport, *, after: datetime, now: datetime, limit: int
    ) -> int:
        """How many schedules it looked at."""
        page = admit_page(
            self._store,
            self._cadences,
            fence,
            after=after,
            now=now,
            limit=limit,
            differing=self._differing,
        )
        report.admitted += page.admitted
        report.is_changed |= page.is_changed
        report.is_passed_over |= page.is_passed_over
        if page.is_fenced:
            self._let_go(fence.partition, report)
        elif page.read < limit:
            self._refused.discard(fence.partition)
        return page.read

    def _let_go(self, partition: int, report: RoundReport) -> None:
        report.gone.add(partition)
        self._refused.discard(partition)
        self._drop(partition)


class _Turns:
    """Whose turn it is."""

    def __init__(self) -> None:
        self._last_taken = -1

    def order(self, fences: Iterable[Fence]) -> list[Fence]:
        """Beginning after the one that was taken last."""
        last = self._last_taken
        return sorted(fences, key=lambda fence: (fence.partition <= last, fence.partition))

    def take(self, fence: Fence) -> None:
        """Before it is served: of one that raises, the turn is over too."""
        self._last_taken = fence.partition


@contextmanager
def _noting_problems(report: RoundReport) -> Iterator[None]:
    """Keeps the first problem of a partition for the end of the step, so that the others are served before."""
    try:
        yield
    except StoreUnavailable:
        raise
    except RotaError as error:
        report.problem = report.problem or error


def _standing(
    fences: Mapping[int, Fence], due_times: Mapping[int, DueTimes], *, until: datetime
) -> list[Fence]:
    """The partitions with schedules that are due at `until`."""
    return [fences[partition] for partition, due in due_times.items() if _is_due(due.schedule, until)]


def _is_due(instant: datetime | None, until: datetime) -> bool:
    return instant is not None and instant <= until
