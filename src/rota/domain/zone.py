"""A zone as a function from instants to offsets: its segments, gaps and folds, and a digest of its changes.

A `Segment` is a span of UTC with one offset in which all local times occur equally often. Most last half a
year; a fold makes two short ones, the first pass and the second; a gap is told by the segment after it.
Segments are built a year at a time, when first asked for, and cut at each new year; a reader need not notice.
Only offsets count: a change of abbreviation, or of the daylight-saving flag alone, is no change here.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise

from rota.domain.instants import EPOCH

FIRST_YEAR = 2
LAST_YEAR = 9998
"""Instants of other years are in no segment: their local time may be none that a datetime can hold."""

FINGERPRINT_YEARS = (2015, 2065)

REACH = timedelta(days=2)
"""More than any two offsets of one zone differ by (26 hours), so two passes of a local time are closer."""

_LOCAL_EPOCH = EPOCH.replace(tzinfo=None)
# A change taken back between two probes would be missed. The closest that two changes of a zone have ever
# been is 167 hours (Brazil in 2000, Gaza from 2040); a test compares with every transition in the tz data.
PROBE_SECONDS = 2 * 86400
_YEARS_KEPT = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A half-open span of UTC with one offset.

    Local times in `[lost_from, local_from)` never occur: the gap that ends where the segment begins, empty
    where the two are equal.
    """

    from_: datetime
    until: datetime
    offset: timedelta
    local_from: datetime
    local_until: datetime
    lost_from: datetime
    seen_before: bool
    """Its local times have occurred already: it is a second pass."""
    comes_again: bool
    """Its local times will occur again: it is a first pass."""

    @property
    def follows_a_gap(self) -> bool:
        return self.lost_from < self.local_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Unambiguous:
    """The local time occurs at one instant."""

    instant: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The local time never occurs; `starts_at` is the instant at which the clocks pass over it."""

    starts_at: datetime
    before_offset: timedelta
    after_offset: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """The local time occurs twice."""

    first: datetime
    second: datetime


class Zone:
    """A named zone; `offset_seconds_at` takes seconds since 1970 in UTC and returns seconds east of UTC.

    Immutable but for a bounded cache, so any number of threads may share it.
    """

    def __init__(self, name: str, offset_seconds_at: Callable[[int], int]) -> None:
        self.name = name
        self.offset_seconds_at = offset_seconds_at
        self.segments_of_year = lru_cache(maxsize=_YEARS_KEPT)(self._build_year)

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    def segment_at(self, instant: datetime) -> Segment:
        """The segment that holds `instant` (aware UTC).

        `OverflowError` outside the years `FIRST_YEAR` to `LAST_YEAR`.
        """
        if not FIRST_YEAR <= instant.year <= LAST_YEAR:
            raise OverflowError(
                f"A zone is computed for {FIRST_YEAR} to {LAST_YEAR}, not for {instant.year}."
            )
        segments = self.segments_of_year(instant.year)
        return next(segment for segment in reversed(segments) if segment.from_ <= instant)

    def segments(self, *, from_: datetime, until: datetime) -> Iterator[Segment]:
        """The segments that overlap `[from_, until)`, in order, as far as `LAST_YEAR`."""
        while from_ < until and from_.year <= LAST_YEAR:
            segment = self.segment_at(from_)
            yield segment
            from_ = segment.until

    def transitions(self, *, from_: int, until: int) -> Iterator[tuple[int, int, int]]:
        """`(instant, offset before, offset from then on)` of each change of offset after `from_`, by `until`.

        Everything in seconds; instants since 1970.
        """
        at, offset = from_, self.offset_seconds_at(from_)
        while at < until:
            probe = min(at + PROBE_SECONDS, until)
            while self.offset_seconds_at(probe) != offset:
                at = self._last_second_with(offset, at, probe) + 1
                before, offset = offset, self.offset_seconds_at(at)
                yield at, before, offset
            at = probe

    def _last_second_with(self, offset: int, low: int, high: int) -> int:
        """By bisection between `low`, which has the offset, and `high`, which has another."""
        while high - low > 1:
            middle = (low + high) // 2
            if self.offset_seconds_at(middle) == offset:
                low = middle
            else:
                high = middle
        return low

    def _build_year(self, year: int) -> tuple[Segment, ...]:
        year_from, year_until = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
        from_, until = _seconds(year_from - REACH), _seconds(year_until + REACH)
        transitions = list(self.transitions(from_=from_, until=until))
        instants = [from_, *(instant for instant, _, _ in transitions), until]
        offsets = [self.offset_seconds_at(from_), *(offset for _, _, offset in transitions)]
        spans = [
            _Span(from_=span_from, until=span_until, offset=offset)
            for (span_from, span_until), offset in zip(pairwise(instants), offsets, strict=True)
        ]
        segments = (
            segment
            for index, span in enumerate(spans)
            for segment in _segments_of_span(span, earlier=spans[:index], later=spans[index + 1 :])
        )
        clipped = (_clipped(segment, year_from, year_until) for segment in segments)
        return tuple(segment for segment in clipped if segment is not None)


def resolve_local_time(zone: Zone, local: datetime) -> Unambiguous | Gap | Fold:
    """When the zone's clocks show the naive `local`; `OverflowError` as in `Zone.segment_at`."""
    instants: list[datetime] = []
    gap: Gap | None = None
    before_offset = timedelta(0)
    around = local.replace(tzinfo=UTC)
    for segment in zone.segments(from_=around - REACH, until=around + REACH):
        if segment.local_from <= local < segment.local_until:
            instants.append((local - segment.offset).replace(tzinfo=UTC))
        elif segment.lost_from <= local < segment.local_from:
            gap = Gap(starts_at=segment.from_, before_offset=before_offset, after_offset=segment.offset)
        before_offset = segment.offset
    if gap is not None and not instants:
        return gap
    if not instants:
        raise OverflowError(f"{zone.name} is computed for {FIRST_YEAR} to {LAST_YEAR}, not for {local}.")
    if len(instants) == 1:
        return Unambiguous(instant=instants[0])
    return Fold(first=instants[0], second=instants[-1])


@lru_cache(maxsize=1024)
def fingerprint(zone: Zone) -> str:
    """A digest of the zone's changes of offset in `FINGERPRINT_YEARS` (hex, 128 bits), whatever its name.

    Two processes that agree on it compute the same instants in those years.
    """
    from_, until = (_seconds(datetime(year, 1, 1, tzinfo=UTC)) for year in FINGERPRINT_YEARS)
    digest = hashlib.blake2b(str(zone.offset_seconds_at(from_)).encode(), digest_size=16)
    for instant, _, offset in zone.transitions(from_=from_, until=until):
        digest.update(f" {instant}:{offset}".encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """Seconds since 1970 between two changes of offset; the local bounds count from the same midnight."""

    from_: int
    until: int
    offset: int

    @property
    def local_from(self) -> int:
        return self.from_ + self.offset

    @property
    def local_until(self) -> int:
        return self.until + self.offset

    def holds(self, local: int) -> bool:
        return self.local_from <= local < self.local_until


def _segments_of_span(span: _Span, *, earlier: Sequence[_Span], later: Sequence[_Span]) -> Iterator[Segment]:
    """The span, cut where its local times begin or cease to occur in another span too."""
    bounds = {bound for other in (*earlier, *later) for bound in (other.local_from, other.local_until)}
    inside = sorted(bound for bound in bounds if span.local_from < bound < span.local_until)
    lost_from = min(span.local_from, max((other.local_until for other in earlier), default=span.local_from))
    for local_from, local_until in pairwise([span.local_from, *inside, span.local_until]):
        yield Segment(
            from_=_instant(local_from - span.offset),
            until=_instant(local_until - span.offset),
            offset=timedelta(seconds=span.offset),
            local_from=_local(local_from),
            local_until=_local(local_until),
            lost_from=_local(lost_from),
            seen_before=any(other.holds(local_from) for other in earlier),
            comes_again=any(other.holds(local_from) for other in later),
        )
        lost_from = local_until


def _clipped(segment: Segment, from_: datetime, until: datetime) -> Segment | None:
    if segment.until <= from_ or until <= segment.from_:
        return None
    if from_ <= segment.from_ and segment.until <= until:
        return segment
    cut_from, cut_until = max(from_, segment.from_), min(until, segment.until)
    local_from = (cut_from + segment.offset).replace(tzinfo=None)
    return replace(
        segment,
        from_=cut_from,
        until=cut_until,
        local_from=local_from,
        local_until=(cut_until + segment.offset).replace(tzinfo=None),
        lost_from=segment.lost_from if cut_from == segment.from_ else local_from,
    )


def _seconds(instant: datetime) -> int:
    return (instant - EPOCH) // timedelta(seconds=1)


def _instant(seconds: int) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def _local(seconds: int) -> datetime:
    return _LOCAL_EPOCH + timedelta(seconds=seconds)
