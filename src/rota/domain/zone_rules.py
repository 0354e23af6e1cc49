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
from rota.domain.zone import FINGERPRINT_YEARS, Zone

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
"""Occurrences after which two cadences count as the same: what names that many shows a difference soon."""


def names_the_same(old: Cadence, new: Cadence, *, from_: datetime, ends: Iterable[datetime]) -> bool:
    """Whether both name the same instants from `from_` to the earliest of `ends` and the end of `FINGERPRINT_YEARS`."""
    until = min([EPOCH + timedelta(seconds=_fingerprinted()[1]), *ends])
    compared = 0
    for start, end in _chunks(_differing_spans(old.zone, new.zone, from_=from_, until=until)):
        before = [occurrence.scheduled_at for occurrence in old.occurrences(after=start, until=end)]
        after = [occurrence.scheduled_at for occurrence in new.occurrences(after=start, until=end)]
        if before != after:
            return False
        compared += len(before)
        if compared > COMPARED_MAX:
            break
    return True


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
            yield max(from_ - timedelta(seconds=1), wide_from), min(until, wide_until)


def _fingerprinted() -> tuple[int, int]:
    """The first and the last second of `FINGERPRINT_YEARS`, since 1970."""
    first, last = (datetime(year, 1, 1, tzinfo=UTC) for year in FINGERPRINT_YEARS)
    return int(first.timestamp()), int(last.timestamp())
