"""Cadences by example: gaps and folds in pairs, what is far away, and what an occurrence says.

Expected values are local times with their offset. Each pair has its changes of the clocks printed above it.
"""

import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.cadence import Cadence, Fold, explain
from rota.domain.recurrence import Cron, Every, Recurrence, RRule
from rota.domain.zone import Zone
from rota.zones import load_zone
from tests.domain.occurrences import cadence, first, shown, times, utc

PROBES_A_YEAR = 250
"""More than it takes to find the segments of one year."""


def counting_zone(name: str, asked: list[int]) -> Zone:
    """The zone, with every instant whose offset it was asked for."""
    zone = load_zone(name)

    def offset_seconds_at(seconds: int) -> int:
        asked.append(seconds)
        return zone.offset_seconds_at(seconds)

    return Zone(name, offset_seconds_at)


def daily(time: str) -> RRule:
    return RRule(text=f"DTSTART:20200101T{time}00\nRRULE:FREQ=DAILY")


# America/New_York  2025-03-09T07:00Z  -05:00 to -04:00   02:00 to 03:00
# America/New_York  2025-11-02T06:00Z  -04:00 to -05:00   02:00 to 01:00
@pytest.mark.parametrize("rule", [Cron(expression="30 2 * * *"), daily("0230")])
def test_a_lost_time_in_spring_is_skipped_or_moved(rule: Recurrence) -> None:
    after = "2025-03-08T00:00"
    assert times(cadence(rule, "America/New_York", gap="skip"), 3, after=after) == [
        "2025-03-08T02:30-05:00",
        "2025-03-10T02:30-04:00",
        "2025-03-11T02:30-04:00",
    ]
    assert times(cadence(rule, "America/New_York", gap="forward"), 3, after=after) == [
        "2025-03-08T02:30-05:00",
        "2025-03-09T03:00-04:00",
        "2025-03-10T02:30-04:00",
    ]


@pytest.mark.parametrize("rule", [Cron(expression="30 1 * * *"), daily("0130")])
@pytest.mark.parametrize(
    ("fold", "passes"),
    [
        ("first", ["2025-11-02T01:30-04:00"]),
        ("second", ["2025-11-02T01:30-05:00"]),
        ("both", ["2025-11-02T01:30-04:00", "2025-11-02T01:30-05:00"]),
    ],
)
def test_a_repeated_time_in_autumn_is_kept_once_or_twice(
    rule: Recurrence, fold: Fold, passes: list[str]
) -> None:
    found = times(cadence(rule, "America/New_York", fold=fold), len(passes) + 2, after="2025-11-01T00:00")
    assert found == ["2025-11-01T01:30-04:00", *passes, "2025-11-03T01:30-05:00"]


# Australia/Lord_Howe  2025-10-04T15:30Z  +10:30 to +11:00   02:00 to 02:30
# Australia/Lord_Howe  2025-04-05T15:00Z  +11:00 to +10:30   02:00 to 01:30
def test_a_change_of_half_an_hour_loses_and_repeats_half_an_hour() -> None:
    every_quarter = "*/15 1,2 * * *"
    assert times(cadence(every_quarter, "Australia/Lord_Howe"), 4, after="2025-10-04T15:00") == [
        "2025-10-05T01:45+10:30",
        "2025-10-05T02:30+11:00",
        "2025-10-05T02:45+11:00",
        "2025-10-06T01:00+11:00",
    ]
    assert times(cadence(every_quarter, "Australia/Lord_Howe", fold="both"), 5, after="2025-04-05T14:20") == [
        "2025-04-06T01:30+11:00",
        "2025-04-06T01:45+11:00",
        "2025-04-06T01:30+10:30",
        "2025-04-06T01:45+10:30",
        "2025-04-06T02:00+10:30",
    ]


# Antarctica/Troll  2025-03-30T01:00Z  +00:00 to +02:00   01:00 to 03:00
# Antarctica/Troll  2025-10-26T01:00Z  +02:00 to +00:00   03:00 to 01:00
def test_a_change_of_two_hours_moves_all_it_swallows_to_one_occurrence() -> None:
    moved = first(cadence("30 1,2 * * *", "Antarctica/Troll", gap="forward"), 2, after="2025-03-29T03:00")
    assert [shown(occurrence) for occurrence in moved] == ["2025-03-30T03:00+02:00", "2025-03-31T01:30+02:00"]
    assert moved[0].named_local == datetime(2025, 3, 30, 1, 30)
    assert times(cadence("30 1,2 * * *", "Antarctica/Troll", fold="second"), 2, after="2025-10-25T12:00") == [
        "2025-10-26T01:30+00:00",
        "2025-10-26T02:30+00:00",
    ]


# Pacific/Apia  2011-12-30T10:00Z  -10:00 to +14:00   the 30th is left out
def test_on_a_day_that_never_was_a_daily_job_is_skipped_or_moved_to_the_next_midnight() -> None:
    noon = "0 12 * * *"
    assert times(cadence(noon, "Pacific/Apia"), 2, after="2011-12-29T12:00") == [
        "2011-12-29T12:00-10:00",
        "2011-12-31T12:00+14:00",
    ]
    assert times(cadence(noon, "Pacific/Apia", gap="forward"), 3, after="2011-12-29T12:00") == [
        "2011-12-29T12:00-10:00",
        "2011-12-31T00:00+14:00",
        "2011-12-31T12:00+14:00",
    ]


def test_an_instant_after_a_gap_that_the_rule_names_itself_keeps_its_own_name() -> None:
    midnight = first(cadence("0 0 * * *", "Pacific/Apia", gap="forward"), 2, after="2011-12-29T12:00")
    assert [shown(occurrence) for occurrence in midnight] == [
        "2011-12-31T00:00+14:00",
        "2012-01-01T00:00+14:00",
    ]
    assert midnight[0].named_local == datetime(2011, 12, 31)
    assert midnight[0].note is None


# Europe/Paris  2025-03-30T01:00Z  +01:00 to +02:00   02:00 to 03:00
# Europe/Paris  2025-10-26T01:00Z  +02:00 to +01:00   03:00 to 02:00
def test_an_occurrence_says_what_the_clocks_did_to_it() -> None:
    moved = cadence("30 2 * * *", "Europe/Paris", gap="forward").at(utc("2025-03-30T01:00"))
    assert moved is not None
    assert (moved.note, moved.second_pass) == ("gap_forward", False)
    assert explain(moved) == "02:30 does not exist on this day; moved to the first instant after the gap"

    both = cadence("30 2 * * *", "Europe/Paris", fold="both")
    first_pass, second_pass = both.occurrences(after=utc("2025-10-25T12:00"), until=utc("2025-10-26T12:00"))
    assert (first_pass.note, first_pass.second_pass) == ("fold_first", False)
    assert (second_pass.note, second_pass.second_pass) == ("fold_second", True)
    assert explain(first_pass) == "02:30 occurs twice on this day; this is the first pass"
    assert explain(second_pass) == "02:30 occurs twice on this day; this is the second pass"

    ordinary = cadence("30 2 * * *", "Europe/Paris").next(utc("2025-06-01T00:00"))
    assert ordinary is not None
    assert (ordinary.note, explain(ordinary)) == (None, None)


def test_the_second_pass_alone_is_no_second_occurrence() -> None:
    only = cadence("30 2 * * *", "Europe/Paris", fold="second").at(utc("2025-10-26T01:30"))
    assert only is not None
    assert (only.note, only.second_pass) == ("fold_second", False)


def test_next_is_strictly_later_to_the_fraction_of_a_second() -> None:
    minutely = cadence("* * * * *")
    for after, expected in [
        ("2025-06-10T10:00:00", "2025-06-10T10:01"),
        ("2025-06-10T09:59:59.999999", "2025-06-10T10:00"),
        ("2025-06-10T10:00:00.000001", "2025-06-10T10:01"),
    ]:
        occurrence = minutely.next(utc(after))
        assert occurrence is not None
        assert occurrence.scheduled_at == utc(expected)


def test_the_instant_asked_from_may_bear_any_offset() -> None:
    nine = cadence("0 9 * * *", "Asia/Tokyo")
    after = datetime.fromisoformat("2025-06-10T08:59:00+09:00")
    occurrence = nine.next(after)
    assert occurrence is not None
    assert occurrence.scheduled_at == after + timedelta(minutes=1)
    assert occurrence.scheduled_at.tzinfo is UTC


def test_at_knows_what_is_an_occurrence_and_what_is_not() -> None:
    nine = cadence("0 9 * * 1-5", "America/New_York")
    on_time = nine.at(utc("2026-01-14T14:00"))
    assert on_time is not None
    assert shown(on_time) == "2026-01-14T09:00-05:00"
    for other in (
        "2026-01-14T14:00:01",
        "2026-01-14T13:59:59",
        "2026-01-14T14:00:00.001",
        "2026-01-17T14:00",
    ):
        assert nine.at(utc(other)) is None


def test_occurrences_are_later_than_after_and_no_later_than_until() -> None:
    hourly = cadence("0 * * * *")
    found = list(hourly.occurrences(after=utc("2025-06-10T10:00"), until=utc("2025-06-10T12:00")))
    assert [occurrence.scheduled_at.hour for occurrence in found] == [11, 12]


def test_occurrences_are_computed_as_they_are_asked_for() -> None:
    endless = cadence("* * * * *").occurrences(after=utc("2025-06-10T10:00"), until=utc("9000-01-01T00:00"))
    assert next(endless).scheduled_at == utc("2025-06-10T10:01")


def test_one_cadence_answers_questions_in_any_order() -> None:
    jumping = cadence("30 1 * * *", "America/New_York", gap="forward", fold="both")
    questions = [
        "2031-07-01T00:00",
        "2025-11-02T05:30",
        "1999-01-01T00:00",
        "2025-03-09T00:00",
        "2031-07-01T00:00",
    ]
    alone = [
        times(cadence(jumping.recurrence, "America/New_York", fold="both"), 2, after=q) for q in questions
    ]
    assert [times(jumping, 2, after=question) for question in questions] == alone


def test_threads_may_share_a_cadence() -> None:
    shared = cadence("*/10 * * * *", "Europe/Paris", fold="both")
    starts = [f"{year}-{month:02d}-25T00:00" for year in (2024, 2025) for month in (3, 6, 10)]
    alone = {start: times(shared, 300, after=start) for start in starts}
    together: dict[str, list[str]] = {}

    def walk(start: str) -> None:
        together[start] = times(shared, 300, after=start)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=walk, args=(start,)) for start in starts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert together == alone


def test_a_time_far_ahead_is_found_without_building_the_years_between() -> None:
    leap_day = Cron(expression="0 9 29 2 *")
    built: list[int] = []
    watched = Cadence(leap_day, counting_zone("America/New_York", built), gap="skip", fold="first")
    assert times(watched, 3, after="2896-03-01T00:00") == [
        "2904-02-29T09:00-05:00",
        "2908-02-29T09:00-05:00",
        "2912-02-29T09:00-05:00",
    ]
    assert len(built) < 6 * PROBES_A_YEAR


def test_a_rule_that_only_ever_names_lost_times_ends_instead_of_searching_for_ever() -> None:
    built: list[int] = []
    lost = Cadence(
        Cron(expression="30 2 * 3 0#2"), counting_zone("America/New_York", built), gap="skip", fold="first"
    )
    assert lost.next(utc("2026-01-01T00:00")) is None
    assert len(built) < 410 * PROBES_A_YEAR


def test_a_zone_that_gives_up_daylight_saving_lets_such_a_rule_begin_again() -> None:
    # America/Mexico_City  2022-04-03T08:00Z  -06:00 to -05:00   the last gap it had
    first_sunday_in_april = cadence("30 2 * 4 0#1", "America/Mexico_City")
    assert times(first_sunday_in_april, 1, after="2015-01-01T00:00") == ["2023-04-02T02:30-06:00"]


@pytest.mark.parametrize("zone", ["Etc/GMT+12", "Pacific/Kiritimati", "UTC"])
def test_the_ends_of_the_calendar_are_ends_and_no_errors(zone: str) -> None:
    hourly = cadence("0 * * * *", zone)
    assert hourly.next(utc("9999-12-31T23:59:59")) is None
    assert hourly.next(utc("9998-12-31T23:00")) is None
    assert hourly.next(utc("9998-12-31T22:00")) is not None
    assert hourly.at(utc("0001-01-01T00:00")) is None
    early = hourly.next(utc("0001-01-01T00:00"))
    assert early is not None
    assert early.scheduled_at >= utc("0002-01-01T00:00")


# Europe/London  2025-03-30T01:00Z  +00:00 to +01:00   01:00 to 02:00
def test_a_skipped_local_time_says_where_the_clocks_went() -> None:
    half_past_one = cadence("30 1 * * *", "Europe/London")
    (skipped,) = half_past_one.skipped_in_gaps(
        after=utc("2025-01-01T00:00"), until=utc("2026-01-01T00:00"), limit=10
    )
    assert skipped.local == datetime(2025, 3, 30, 1, 30)
    assert skipped.gap_starts_at == utc("2025-03-30T01:00")
    assert skipped.message == (
        "01:30 does not exist in Europe/London on 2025-03-30: the clocks go from 01:00 to 02:00"
    )


def test_a_skipped_day_is_told_with_its_dates() -> None:
    noon = cadence("0 12 * * *", "Pacific/Apia")
    (skipped,) = noon.skipped_in_gaps(after=utc("2011-12-01T00:00"), until=utc("2012-01-01T00:00"), limit=10)
    assert skipped.message == (
        "12:00 does not exist in Pacific/Apia on 2011-12-30: "
        "the clocks go from 2011-12-30T00:00 to 2011-12-31T00:00"
    )


def test_skipped_times_are_those_of_gaps_later_than_after_and_no_later_than_until() -> None:
    half_past_one = cadence("30 1 * * *", "Europe/London")
    gap, second = utc("2025-03-30T01:00"), timedelta(seconds=1)
    assert half_past_one.skipped_in_gaps(after=gap - second, until=gap, limit=10)
    assert not half_past_one.skipped_in_gaps(after=gap, until=gap + second, limit=10)
    assert not half_past_one.skipped_in_gaps(after=gap - 2 * second, until=gap - second, limit=10)


def test_skipped_times_are_as_many_as_asked_for_and_none_where_none_are_skipped() -> None:
    after, until = utc("2020-01-01T00:00"), utc("2026-01-01T00:00")
    minutely = cadence("* * * * *", "Europe/London")
    assert len(minutely.skipped_in_gaps(after=after, until=until, limit=100)) == 100
    assert len(minutely.skipped_in_gaps(after=after, until=until, limit=1000)) == 6 * 60
    assert minutely.skipped_in_gaps(after=after, until=until, limit=0) == []
    moved = cadence("* * * * *", "Europe/London", gap="forward")
    assert moved.skipped_in_gaps(after=after, until=until, limit=10) == []
    elapsed = cadence(Every(interval=timedelta(minutes=1), anchor=after), "Europe/London")
    assert elapsed.skipped_in_gaps(after=after, until=until, limit=10) == []
