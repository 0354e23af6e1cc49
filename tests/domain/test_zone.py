"""Zones: segments against the compiled tz data, local times in gaps and folds, and the digest of a zone."""

import importlib.resources
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from rota.domain.instants import EPOCH
from rota.domain.zone import (
    FIRST_YEAR,
    LAST_YEAR,
    PROBE_SECONDS,
    Fold,
    Gap,
    Segment,
    Unambiguous,
    Zone,
    fingerprint,
    resolve_local_time,
)
from rota.zones import load_zone, pinned_zones

END_OF_2037 = 2145916800
HOUR = timedelta(hours=1)
DAY_SECONDS = 86400


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(text: str) -> datetime:
    return datetime.fromisoformat(text)


def zone_with_changes(*changes: tuple[str, int], first_offset: int = 0) -> Zone:
    """A zone that has `first_offset` hours, and from each of the instants on the hours beside it."""
    seconds = [((utc(at) - EPOCH) // timedelta(seconds=1), hours * 3600) for at, hours in changes]

    def offset_seconds_at(instant: int) -> int:
        return [first_offset * 3600, *(offset for at, offset in seconds if at <= instant)][-1]

    return Zone("Made/Up", offset_seconds_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledZone:
    """What a TZif file says outright (RFC 8536, version 2 block), offset changes only."""

    transitions: list[tuple[int, int, int]]
    footer: str


def distinct_zones() -> dict[bytes, str]:
    """Every file of the tz data once, with one of its names."""
    root = importlib.resources.files("tzdata") / "zoneinfo"
    return {root.joinpath(*name.split("/")).read_bytes(): name for name in sorted(pinned_zones().names())}


def read_compiled_zone(data: bytes) -> CompiledZone:
    header = struct.Struct(">4sc15x6l")
    _, _, ut_count, standard_count, leap_count, time_count, type_count, text_length = header.unpack_from(data)
    at = (
        header.size
        + time_count * 5
        + type_count * 6
        + text_length
        + leap_count * 8
        + standard_count
        + ut_count
    )
    _, _, ut_count, standard_count, leap_count, time_count, type_count, text_length = header.unpack_from(
        data, at
    )
    at += header.size
    instants = struct.unpack_from(f">{time_count}q", data, at)
    kinds = data[at + 8 * time_count : at + 9 * time_count]
    at += 9 * time_count
    offsets = [struct.unpack_from(">l", data, at + 6 * kind)[0] for kind in range(type_count)]
    at += type_count * 6 + text_length + leap_count * 12 + standard_count + ut_count
    changes = []
    before = offsets[0]
    for instant, kind in zip(instants, kinds, strict=True):
        if offsets[kind] != before:
            changes.append((instant, before, offsets[kind]))
        before = offsets[kind]
    return CompiledZone(transitions=changes, footer=data[at:].decode().strip())


def all_segments(zone: Zone, first_year: int, last_year: int) -> Iterator[Segment]:
    for year in range(first_year, last_year + 1):
        yield from zone.segments_of_year(year)


@pytest.mark.slow
def test_no_transition_in_the_tz_data_is_missed() -> None:
    compared = 0
    for data, name in distinct_zones().items():
        explicit = [change for change in read_compiled_zone(data).transitions if 0 < change[0] <= END_OF_2037]
        if explicit:
            from_, until = explicit[0][0] - DAY_SECONDS, explicit[-1][0] + DAY_SECONDS
            assert list(load_zone(name).transitions(from_=from_, until=until)) == explicit, name
            compared += len(explicit)
    assert compared > 7_000


@pytest.mark.slow
def test_no_transition_of_a_repeating_rule_is_missed() -> None:
    by_footer = {read_compiled_zone(data).footer: name for data, name in distinct_zones().items()}
    start = (utc("2030-01-01") - EPOCH) // timedelta(seconds=1)
    hours = range(start, start + 366 * DAY_SECONDS, 3600)
    assert len(by_footer) > 50
    for name in by_footer.values():
        zone = load_zone(name)
        offsets = [(at, zone.offset_seconds_at(at)) for at in hours]
        changes = [(a[1], b[1]) for a, b in pairwise(offsets) if a[1] != b[1]]
        found = zone.transitions(from_=hours[0], until=hours[-1])
        assert [(before, after) for _, before, after in found] == changes, name


def test_changes_of_a_zone_are_further_apart_than_the_probes() -> None:
    for data, name in distinct_zones().items():
        for (earlier, _, _), (later, _, _) in pairwise(read_compiled_zone(data).transitions):
            assert later - earlier > PROBE_SECONDS, name


# Only the abbreviation or the daylight-saving flag changes: the clocks do not.
#     Europe/Lisbon  1992-09-27T01:00Z  +01:00 daylight saving of WET becomes +01:00 standard time of CET
def test_a_change_of_name_alone_is_no_change_of_segment() -> None:
    zone = load_zone("Europe/Lisbon")
    segment = zone.segment_at(utc("1992-09-27T01:00"))
    assert segment.from_ < utc("1992-09-27T00:59") < segment.until


def test_segments_of_a_year_meet_without_overlap_from_new_year_to_new_year() -> None:
    for name in (
        "America/New_York",
        "Pacific/Apia",
        "Africa/Casablanca",
        "Australia/Lord_Howe",
        "Etc/GMT-14",
    ):
        segments = list(all_segments(load_zone(name), 2009, 2027))
        assert segments[0].from_ == utc("2009-01-01")
        assert segments[-1].until == utc("2028-01-01")
        for earlier, later in pairwise(segments):
            assert earlier.until == later.from_
            if not later.follows_a_gap and later.offset == earlier.offset:
                assert earlier.local_until == later.local_from
        for segment in segments:
            assert segment.from_ < segment.until
            assert (segment.from_ + segment.offset).replace(tzinfo=None) == segment.local_from
            assert (segment.until + segment.offset).replace(tzinfo=None) == segment.local_until


# America/New_York  2025-03-09T07:00Z  -05:00 to -04:00   02:00 to 03:00
# America/New_York  2025-11-02T06:00Z  -04:00 to -05:00   02:00 to 01:00
def test_a_gap_is_told_by_the_segment_after_it() -> None:
    segment = load_zone("America/New_York").segment_at(utc("2025-03-09T07:00"))
    assert segment.from_ == utc("2025-03-09T07:00")
    assert (segment.lost_from, segment.local_from) == (local("2025-03-09T02:00"), local("2025-03-09T03:00"))


def test_a_fold_is_two_segments_of_an_hour() -> None:
    zone = load_zone("America/New_York")
    first, second = zone.segment_at(utc("2025-11-02T05:00")), zone.segment_at(utc("2025-11-02T06:59"))
    assert (first.from_, first.until) == (utc("2025-11-02T05:00"), utc("2025-11-02T06:00"))
    assert (second.from_, second.until) == (utc("2025-11-02T06:00"), utc("2025-11-02T07:00"))
    assert (first.seen_before, first.comes_again) == (False, True)
    assert (second.seen_before, second.comes_again) == (True, False)
    assert first.local_from == second.local_from == local("2025-11-02T01:00")


def test_a_fold_across_new_year_is_seen_from_both_years() -> None:
    zone = zone_with_changes(("2025-01-01T00:00", 0), first_offset=1)
    before, after = zone.segments_of_year(2024)[-1], zone.segments_of_year(2025)[0]
    assert (before.from_, before.comes_again) == (utc("2024-12-31T23:00"), True)
    assert (after.until, after.seen_before) == (utc("2025-01-01T01:00"), True)


def test_a_gap_that_ends_at_new_year_is_not_lost_between_the_years() -> None:
    segment = zone_with_changes(("2025-01-01T00:00", 1)).segments_of_year(2025)[0]
    assert (segment.lost_from, segment.local_from) == (local("2025-01-01T00:00"), local("2025-01-01T01:00"))


def test_a_cut_at_new_year_makes_no_gap() -> None:
    assert not any(
        year[0].follows_a_gap for year in map(load_zone("Pacific/Apia").segments_of_year, (2011, 2012))
    )


def test_a_local_time_that_three_offsets_show_has_one_first_pass_and_one_last() -> None:
    zone = zone_with_changes(("2025-06-01T12:00", 1), ("2025-06-01T12:30", 0), first_offset=2)
    passes = [
        (segment.seen_before, segment.comes_again)
        for segment in zone.segments_of_year(2025)
        if segment.local_from <= local("2025-06-01T13:15") < segment.local_until
    ]
    assert passes == [(False, True), (True, True), (True, False)]
    assert resolve_local_time(zone, local("2025-06-01T13:15")) == Fold(
        first=utc("2025-06-01T11:15"), second=utc("2025-06-01T13:15")
    )


def test_a_local_time_that_a_later_offset_shows_after_all_is_in_no_gap() -> None:
    zone = zone_with_changes(("2025-06-01T12:00", 1), ("2025-06-01T12:30", 0))
    assert resolve_local_time(zone, local("2025-06-01T12:45")) == Unambiguous(instant=utc("2025-06-01T12:45"))


# Europe/Paris  2025-03-30T01:00Z  +01:00 to +02:00   02:00 to 03:00
# Europe/Paris  2025-10-26T01:00Z  +02:00 to +01:00   03:00 to 02:00
@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("2025-03-30T01:59:59", Unambiguous(instant=utc("2025-03-30T00:59:59"))),
        (
            "2025-03-30T02:00:00",
            Gap(starts_at=utc("2025-03-30T01:00"), before_offset=HOUR, after_offset=2 * HOUR),
        ),
        (
            "2025-03-30T02:59:59",
            Gap(starts_at=utc("2025-03-30T01:00"), before_offset=HOUR, after_offset=2 * HOUR),
        ),
        ("2025-03-30T03:00:00", Unambiguous(instant=utc("2025-03-30T01:00:00"))),
        ("2025-10-26T01:59:59", Unambiguous(instant=utc("2025-10-25T23:59:59"))),
        ("2025-10-26T02:00:00", Fold(first=utc("2025-10-26T00:00"), second=utc("2025-10-26T01:00"))),
        ("2025-10-26T02:59:59", Fold(first=utc("2025-10-26T00:59:59"), second=utc("2025-10-26T01:59:59"))),
        ("2025-10-26T03:00:00", Unambiguous(instant=utc("2025-10-26T02:00"))),
    ],
)
def test_a_local_time_resolves_at_the_very_edges_of_gap_and_fold(
    time: str, expected: Unambiguous | Gap | Fold
) -> None:
    assert resolve_local_time(load_zone("Europe/Paris"), local(time)) == expected


# Pacific/Apia  2011-12-30T10:00Z  -10:00 to +14:00   the 30th is left out
def test_a_day_that_never_was_is_one_gap() -> None:
    zone = load_zone("Pacific/Apia")
    for time in ("2011-12-30T00:00", "2011-12-30T23:59:59"):
        resolved = resolve_local_time(zone, local(time))
        assert isinstance(resolved, Gap)
        assert resolved.starts_at == utc("2011-12-30T10:00")
        assert resolved.after_offset - resolved.before_offset == timedelta(days=1)
    assert resolve_local_time(zone, local("2011-12-31T00:00")) == Unambiguous(instant=utc("2011-12-30T10:00"))


# Africa/Monrovia  1972-01-07T00:44:30Z  -00:44:30 to +00:00
def test_an_offset_may_have_seconds() -> None:
    zone = load_zone("Africa/Monrovia")
    assert resolve_local_time(zone, local("1971-06-01T12:00")) == Unambiguous(
        instant=utc("1971-06-01T12:44:30")
    )


def test_a_zone_is_computed_from_year_2_to_year_9998() -> None:
    for name in ("Etc/GMT+12", "Pacific/Kiritimati", "Asia/Manila"):
        zone = load_zone(name)
        for year in (FIRST_YEAR, LAST_YEAR):
            assert zone.segment_at(datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)).until.year == year + 1
        for year in (FIRST_YEAR - 1, LAST_YEAR + 1):
            with pytest.raises(OverflowError, match=str(year)):
                zone.segment_at(datetime(year, 6, 1, tzinfo=UTC))


def test_segments_of_a_range_are_those_that_overlap_it() -> None:
    zone = load_zone("Europe/Paris")
    found = list(zone.segments(from_=utc("2025-03-30T00:59:59"), until=utc("2025-03-30T01:00:01")))
    assert [segment.offset for segment in found] == [HOUR, 2 * HOUR]
    assert len(list(zone.segments(from_=utc("2025-03-30T00:59:59"), until=utc("2025-03-30T01:00:00")))) == 1


def test_a_fingerprint_is_of_the_offsets_whatever_the_name() -> None:
    assert fingerprint(load_zone("Europe/Paris")) == fingerprint(load_zone("Europe/Paris"))
    assert fingerprint(load_zone("America/New_York")) == fingerprint(load_zone("US/Eastern"))
    assert len(fingerprint(load_zone("Europe/Paris"))) == 32


def test_a_fingerprint_tells_zones_apart_that_differ_in_any_offset_of_the_years() -> None:
    digests = [
        fingerprint(zone_with_changes()),
        fingerprint(zone_with_changes(first_offset=1)),
        fingerprint(zone_with_changes(("2030-06-01T00:00", 1))),
        fingerprint(zone_with_changes(("2030-06-01T00:00", 2))),
        fingerprint(zone_with_changes(("2030-06-01T01:00", 1))),
        fingerprint(zone_with_changes(("2030-06-01T00:00", 1), ("2030-06-08T00:00", 0))),
    ]
    assert len(set(digests)) == len(digests)


def test_a_fingerprint_leaves_other_years_out() -> None:
    assert fingerprint(zone_with_changes(("2065-06-01T00:00", 1))) == fingerprint(zone_with_changes())
    assert fingerprint(zone_with_changes(("2014-06-01T00:00", 1))) == fingerprint(
        zone_with_changes(first_offset=1)
    )
