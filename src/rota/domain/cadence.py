"""The stream of instants that a recurrence names in a zone, under a policy for gaps and one for folds.

The naive rule and the zone meet segment by segment. In a segment with offset o a local time L is the instant
L - o; so the next occurrence is the rule's next local time, if it lies in the segment, and else is sought in
the segments that follow. Three things happen at their borders:

- A gap before a segment: lost local times that the rule names are dropped (`skip`), or become one occurrence
  at the segment's first instant (`forward`), unless the rule names that instant's own local time.
- A first pass is kept unless the policy is `second`, a second pass unless it is `first`.
- Where the rule's next local time is far away, the search goes on shortly before it. What lies between holds
  no local time that the rule names, save for second passes of times just before, which it walks first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, assert_never

from rota.domain.cron import CronRule
from rota.domain.instants import format_local, whole_second_floor
from rota.domain.recurrence import Recurrence
from rota.domain.rrule import RRuleSet
from rota.domain.rules import Grid, LocalRule, OneInstant, OneLocalTime, compile_rule
from rota.domain.zone import FIRST_YEAR, LAST_YEAR, REACH, Segment, Zone

Gap = Literal["skip", "forward"]
Fold = Literal["first", "second", "both"]
FoldAsked = Literal["auto", "first", "second", "both"]
Note = Literal["gap_forward", "fold_first", "fold_second"]
CoarsestPeriod = Literal["month", "week", "day", "instant", "once"]

_BEGINNING = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_WEEK = timedelta(weeks=1)
_CALENDAR_REPEATS_AFTER_YEARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One instant that the rule names, a whole second."""

    scheduled_at: datetime
    named_local: datetime
    """The local time in the rule; it may be one that does not exist."""
    local: datetime
    """What the clocks show at `scheduled_at`."""
    offset: timedelta
    second_pass: bool
    """Under fold `both`, this is the second of two occurrences with this local time."""
    note: Note | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedLocal:
    """A local time that the rule names and the zone's clocks pass over."""

    local: datetime
    gap_starts_at: datetime
    message: str


class Cadence:
    """A compiled recurrence in a zone; immutable but for the last segment it met, so threads may share it."""

    def __init__(self, recurrence: Recurrence, zone: Zone, *, gap: Gap, fold: Fold) -> None:
        self.recurrence = recurrence
        self.zone = zone
        self.gap = gap
        self.fold = fold
        self._rule = compile_rule(recurrence)
        self._last_segment: Segment | None = None

    def next(self, after: datetime) -> Occurrence | None:
        """The first occurrence strictly later than `after`; None where there are no more, ever."""
        after = whole_second_floor(after if after.tzinfo is UTC else after.astimezone(UTC))
        rule = self._rule
        if isinstance(rule, Grid | OneInstant):
            instant = rule.next(after)
            return None if instant is None else self._at_instant(instant)
        segment = self._last_segment
        if segment is not None and segment.from_ <= after < segment.until:
            named = _first_named(rule, segment, after=(after + segment.offset).replace(tzinfo=None))
            if named is not None and named < segment.local_until:
                return self._occurrence(named, segment)
        return self._search(rule, after)

    def at(self, instant: datetime) -> Occurrence | None:
        """The occurrence at exactly `instant`, if there is one."""
        if instant < _BEGINNING:
            return None
        occurrence = self.next(instant - _SECOND)
        return occurrence if occurrence is not None and occurrence.scheduled_at == instant else None

    def occurrences(self, *, after: datetime, until: datetime) -> Iterator[Occurrence]:
        """The occurrences in `(after, until]`, in order, each computed when asked for."""
        occurrence = self.next(after)
        while occurrence is not None and occurrence.scheduled_at <= until:
            yield occurrence
            occurrence = self.next(occurrence.scheduled_at)

    def skipped_in_gaps(self, *, after: datetime, until: datetime, limit: int) -> list[SkippedLocal]:
        """The first `limit` local times that the rule names and that a gap in `(after, until]` swallows."""
        rule = self._rule
        skipped: list[SkippedLocal] = []
        if self.gap != "skip" or isinstance(rule, Grid | OneInstant):
            return skipped
        position: datetime | None = max(after, _BEGINNING)
        while position is not None and position <= until and position.year <= LAST_YEAR:
            segment = self.zone.segment_at(position)
            if segment.follows_a_gap and after < segment.from_ <= until:
                for local in _lost_times(rule, segment):
                    if len(skipped) == limit:
                        return skipped
                    skipped.append(_skipped(local, segment, self.zone))
            position = _position_after(segment, rule.next(segment.local_until - _SECOND))
        return skipped

    def coarsest_period(self) -> CoarsestPeriod:
        """The coarsest period in which at most one occurrence can lie (two passes counted as one)."""
        if isinstance(self._rule, OneLocalTime | OneInstant):
            return "once"
        return "instant" if isinstance(self._rule, Grid) else self._rule.coarsest_period()

    def two_share_a_week(self) -> bool:
        """Whether the rule names two times in one ISO week; one a month may, as on January 31 and February 1.

        It looks through a cycle of the calendar: up to a tenth of a second for a rule that is monthly at most.
        """
        rule = self._rule
        if isinstance(rule, Grid | OneInstant):
            return isinstance(rule, Grid) and rule.interval < _WEEK
        earlier = rule.next(_BEGINNING.replace(tzinfo=None))
        last_year = LAST_YEAR if earlier is None else earlier.year + _CALENDAR_REPEATS_AFTER_YEARS
        while earlier is not None and earlier.year <= last_year:
            later = rule.next(earlier)
            if later is not None and later.isocalendar()[:2] == earlier.isocalendar()[:2]:
                return True
            earlier = later
        return False

    def _search(self, rule: LocalRule, after: datetime) -> Occurrence | None:
        """Segment by segment from `after` on, with leaps where no second pass can be near."""
        after = max(after, _BEGINNING - _SECOND)
        position: datetime | None = max(after, _BEGINNING)
        last_year = LAST_YEAR
        while position is not None and position.year <= last_year:
            segment = self.zone.segment_at(position)
            if segment.from_ > after and self.gap == "forward" and segment.follows_a_gap:
                lost = next(_lost_times(rule, segment), None)
                if lost is not None and rule.next(segment.local_from - _SECOND) != segment.local_from:
                    return self._occurrence(lost, segment)
            if not self._keeps(segment):
                position = segment.until
                continue
            local_after = max(segment.local_from - _SECOND, (after + segment.offset).replace(tzinfo=None))
            named = _first_named(rule, segment, after=local_after)
            if named is not None and named < segment.local_until:
                self._last_segment = segment
                return self._occurrence(named, segment)
            if named is not None:
                # What has found no valid instant while the calendar went round never will.
                last_year = min(last_year, named.year + _CALENDAR_REPEATS_AFTER_YEARS)
            near = segment.until - max(after, segment.from_) <= REACH
            position = segment.until if near else _position_after(segment, named)
        return None

    def _keeps(self, segment: Segment) -> bool:
        if segment.seen_before and self.fold == "first":
            return False
        return not (segment.comes_again and self.fold == "second")

    def _occurrence(self, named: datetime, segment: Segment) -> Occurrence:
        """The occurrence of a local time of the segment, or of one lost in the gap before it."""
        note: Note | None = None
        local = named
        if named < segment.local_from:
            note, local = "gap_forward", segment.local_from
        elif segment.seen_before:
            note = "fold_second"
        elif segment.comes_again:
            note = "fold_first"
        return Occurrence(
            scheduled_at=(local - segment.offset).replace(tzinfo=UTC),
            named_local=named,
            local=local,
            offset=segment.offset,
            second_pass=segment.seen_before and self.fold == "both",
            note=note,
        )

    def _at_instant(self, instant: datetime) -> Occurrence | None:
        """The occurrence of an instant that the rule names itself; its local time is merely shown."""
        if instant.year > LAST_YEAR:
            return None
        offset = self.zone.segment_at(instant).offset
        local = (instant + offset).replace(tzinfo=None)
        return Occurrence(
            scheduled_at=instant, named_local=local, local=local, offset=offset, second_pass=False, note=None
        )


def resolve_fold(asked: FoldAsked, recurrence: Recurrence) -> Fold:
    """`auto` is `first`, but `both` for a rule that covers every hour, which else fell silent for one."""
    if asked != "auto":
        return asked
    rule = compile_rule(recurrence)
    return "both" if isinstance(rule, CronRule | RRuleSet) and rule.covers_every_hour else "first"


def explain(occurrence: Occurrence) -> str | None:
    """The note of an occurrence as a sentence."""
    named = format_local(occurrence.named_local).partition("T")[2]
    match occurrence.note:
        case None:
            return None
        case "gap_forward":
            return f"{named} does not exist on this day; moved to the first instant after the gap"
        case "fold_first":
            return f"{named} occurs twice on this day; this is the first pass"
        case "fold_second":
            return f"{named} occurs twice on this day; this is the second pass"
        case _:
            assert_never(occurrence.note)


def _first_named(rule: LocalRule, segment: Segment, *, after: datetime) -> datetime | None:
    """The first local time that the rule names after `after`, unless it lies in the segment and past UNTIL.

    UNTIL is an instant, so whether it cuts a local time off is known only in the segment of that time.
    """
    named = rule.next(after)
    if not isinstance(rule, RRuleSet) or rule.until is None:
        return named
    while named is not None and named < segment.local_until:
        # A lost time comes at the segment's first instant; `- offset` alone would put it before that.
        instant = max((named - segment.offset).replace(tzinfo=UTC), segment.from_)
        if instant <= rule.until or rule.is_rdate(named):
            break
        named = rule.next(named)
    return named


def _lost_times(rule: LocalRule, segment: Segment) -> Iterator[datetime]:
    """The local times that the rule names in the gap before the segment."""
    named = _first_named(rule, segment, after=segment.lost_from - _SECOND)
    while named is not None and named < segment.local_from:
        yield named
        named = _first_named(rule, segment, after=named)


def _position_after(segment: Segment, named: datetime | None) -> datetime | None:
    """Where to go on when the rule names nothing between the segment's end and `named`; None: nowhere."""
    if named is None:
        return None
    return max(segment.until, named.replace(tzinfo=UTC) - REACH)


def _skipped(local: datetime, segment: Segment, zone: Zone) -> SkippedLocal:
    """`02:30 does not exist in Europe/Paris on 2025-03-30: the clocks go from 02:00 to 03:00`."""
    named, lost_from, lost_until = map(format_local, (local, segment.lost_from, segment.local_from))
    day, _, time = named.partition("T")
    where = f"in {zone.name} on {day}"
    if lost_from.startswith(day) and lost_until.startswith(day):
        lost_from, lost_until = lost_from.partition("T")[2], lost_until.partition("T")[2]
    return SkippedLocal(
        local=local,
        gap_starts_at=segment.from_,
        message=f"{time} does not exist {where}: the clocks go from {lost_from} to {lost_until}",
    )
