"""The rules of a zone kept as text, and where two releases of them differ for a schedule (I11).

A process has one release of the tz data. What a schedule was computed with before is read from the store, so that an
update is judged by both: the versions that it makes carry and suppress occurrences as any edit does.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from rota.domain.cadence import Cadence
from rota.domain.instants import EPOCH
from rota.domain.json_text import JsonText, encode_json, load_json
from rota.domain.recurrence import Every
from rota.domain.zone import FINGERPRINT_YEARS, Zone

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_WEEK = timedelta(weeks=1)
AROUND = timedelta(days=3)
"""How far from a span of other offsets an occurrence can lie that is changed by it."""


def offsets_text(zone: Zone) -> JsonText:
    """Seconds east of UTC at the beginning of `FINGERPRINT_YEARS`, and each change of them: `[instant, offset]`."""
    from_, until = _fingerprinted()
    changes = [[instant, offset] for instant, _, offset in zone.transitions(from_=from_, until=until)]
    return encode_json({"first": zone.offset_seconds_at(from_), "changes": changes})


def zone_of_offsets(name: str, text: JsonText) -> Zone:
    """The zone that `offsets_text` wrote; before and after `FINGERPRINT_YEARS` its offset does not change.

    Raises `ValueError` for a text that it did not write.
    """
    try:
        stored = load_json(text)
        offsets = [int(stored["first"]), *(int(offset) for _, offset in stored["changes"])]
        instants = [int(instant) for instant, _ in stored["changes"]]
    except (KeyError, TypeError) as error:
        raise ValueError(f"the stored rules of {name} make no sense: {error}") from error
    if instants != sorted(set(instants)):
        raise ValueError(f"the stored rules of {name} make no sense: their changes are not in order")
    return Zone(name, lambda seconds: offsets[bisect_right(instants, seconds)])


COMPARED_MAX = 20_000
"""Occurrences after which two cadences are compared only where days begin and where clocks change.

A rule that names so many has days that are alike: had they differed within such a day, it would have shown. They may
still begin or end at another instant, with a month that the rule names or leaves out, or at a change of the clocks.
"""


def names_the_same(old: Cadence, new: Cadence, *, from_: datetime, ends: Iterable[datetime]) -> bool:
    """Whether both name the same instants from `from_` to the earliest of `ends` and the end of `FINGERPRINT_YEARS`."""
    return first_difference(old, new, from_=from_, until=min(ends, default=None)) is None


def first_difference(
    old: Cadence, new: Cadence, *, from_: datetime, until: datetime | None = None
) -> datetime | None:
    """The first instant that one of them names and the other does not, from `from_` to `until` and the end of
    `FINGERPRINT_YEARS`; None: there is none.

    After `COMPARED_MAX` occurrences it may be one that is a little later.
    """
    if isinstance(old.recurrence, Every):
        return None
    last = EPOCH + timedelta(seconds=_fingerprinted()[1])
    until = last if until is None else min(last, until)
    compared = 0
    for start, end in _chunks(_differing_spans(old.zone, new.zone, from_=from_, until=until)):
        if compared > COMPARED_MAX:
            differing = _difference_at_edges(old, new, after=start, until=end)
        else:
            before, after = (_named(cadence, after=start, until=end) for cadence in (old, new))
            compared += len(before)
            differing = min(before ^ after, default=None)
        if differing is not None:
            return differing
    return None


def _named(cadence: Cadence, *, after: datetime, until: datetime) -> set[datetime]:
    return {occurrence.scheduled_at for occurrence in cadence.occurrences(after=after, until=until)}


def _difference_at_edges(old: Cadence, new: Cadence, *, after: datetime, until: datetime) -> datetime | None:
    """The same, looked for at the beginnings of days and around the changes of the clocks, those of both zones."""
    differing: set[datetime] = set()
    for zone in (old.zone, new.zone):
        for day in range((until - after) // _DAY + 2):
            before = max(after, _beginning_of_day(zone, after + day * _DAY) - _SECOND)
            following = {each.scheduled_at if each else None for each in (old.next(before), new.next(before))}
            if len(following) > 1:
                differing.add(min(instant for instant in following if instant is not None))
        for from_, to in _changes(zone, from_=after, until=until):
            around = {"after": max(after, from_), "until": min(until, to)}
            differing |= _named(old, **around) ^ _named(new, **around)
    return min((instant for instant in differing if instant <= until), default=None)


def _changes(zone: Zone, *, from_: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Spans around changes of the clocks: where local times are repeated or passed over."""
    start, end = ((instant - EPOCH) // _SECOND for instant in (from_ - _DAY, until + _DAY))
    for instant, before, offset in zone.transitions(from_=start, until=end):
        change, at = timedelta(seconds=abs(offset - before)), EPOCH + timedelta(seconds=instant)
        yield at - change - _SECOND, at + change


def _beginning_of_day(zone: Zone, instant: datetime) -> datetime:
    midnight = (instant + zone.segment_at(instant).offset).replace(hour=0, minute=0, second=0)
    beginning = midnight - zone.segment_at(instant).offset
    # The offset at midnight may be another one than later on that day.
    return midnight - zone.segment_at(beginning).offset


def _chunks(spans: Iterator[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, datetime]]:
    """Week by week, so that a difference at the beginning of a long span is found at once."""
    for start, end in spans:
        for week in range((end - start) // _WEEK + 1):
            yield start + week * _WEEK, min(end, start + (week + 1) * _WEEK)


def _differing_spans(
    old: Zone, new: Zone, *, from_: datetime, until: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """`(after, until]` spans in which the offsets differ, some days wider on both sides, none before `from_`."""
    start, end = ((instant - EPOCH) // timedelta(seconds=1) for instant in (from_ - AROUND, until + AROUND))
    bounds = {start, end}
    for zone in (old, new):
        bounds |= {instant for instant, _, _ in zone.transitions(from_=start, until=end)}
    for span_from, span_until in pairwise(sorted(bounds)):
        if old.offset_seconds_at(span_from) != new.offset_seconds_at(span_from):
            wide_from = EPOCH + timedelta(seconds=span_from) - AROUND
            wide_until = EPOCH + timedelta(seconds=span_until) + AROUND
            yield max(from_ - _SECOND, wide_from), min(until, wide_until)


def _fingerprinted() -> tuple[int, int]:
    """The first and the last second of `FINGERPRINT_YEARS`, since 1970."""
    first, last = (datetime(year, 1, 1, tzinfo=UTC) for year in FINGERPRINT_YEARS)
    return int(first.timestamp()), int(last.timestamp())
