"""Cron expressions: what each form means, where a rule ends, and which period it keeps."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from rota.domain.cron import CronRule, compile_cron


def local(text: str) -> datetime:
    return datetime.fromisoformat(text)


def times(rule: CronRule, *, after: str, count: int) -> list[str]:
    found: list[str] = []
    at: datetime | None = local(after)
    while at is not None and len(found) < count:
        at = rule.next(at)
        if at is not None:
            found.append(at.isoformat(timespec="minutes"))
    return found


def dates(expression: str, *, after: str, count: int) -> list[str]:
    """The first dates, of an expression that names midnight."""
    found = times(compile_cron(expression), after=after, count=count)
    assert all(time.endswith("T00:00") for time in found)
    return [time.removesuffix("T00:00") for time in found]


def minutes_named(field: str) -> list[int]:
    rule = compile_cron(f"{field} 0 1 1 *")
    named = []
    at = rule.next(local("2024-12-31T23:59"))
    while at is not None and at.year == 2025:
        named.append(at.minute)
        at = rule.next(at)
    return named


def weekdays_named(field: str) -> str:
    week = dates(f"0 0 * * {field}", after="2025-06-01T00:00", count=7)  # a Sunday
    return " ".join(local(day).strftime("%a") for day in week if "2025-06-02" <= day <= "2025-06-08")


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("7", [7]),
        ("07", [7]),
        ("5,1,5", [1, 5]),
        ("10-13", [10, 11, 12, 13]),
        ("19-19", [19]),
        ("9-9/3", [9]),
        ("*/15", [0, 15, 30, 45]),
        ("*/45", [0, 45]),
        ("*/60", [0]),
        ("*/999999999", [0]),
        ("50/4", [50, 54, 58]),
        ("10-20/5", [10, 15, 20]),
        ("1-4/100", [1]),
        ("0,20-22,50/5", [0, 20, 21, 22, 50, 55]),
        ("*", list(range(60))),
    ],
)
def test_a_field_names_its_values(field: str, expected: list[int]) -> None:
    assert minutes_named(field) == expected


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("0", "Sun"),
        ("7", "Sun"),
        ("1,7", "Mon Sun"),
        ("5-7", "Fri Sat Sun"),
        ("FRI-SUN", "Fri Sat Sun"),
        ("sun-tue", "Mon Tue Sun"),
        ("Sun-Sun", "Sun"),
        ("7-SUN", "Sun"),
        ("mon-5", "Mon Tue Wed Thu Fri"),
        ("0-7", "Mon Tue Wed Thu Fri Sat Sun"),
        ("SUN-SAT", "Mon Tue Wed Thu Fri Sat Sun"),
        ("*/2", "Tue Thu Sat Sun"),
        ("*/7", "Sun"),
        ("1/2", "Mon Wed Fri Sun"),
        ("FRI-SUN/2", "Fri Sun"),
    ],
)
def test_the_week_has_names_and_two_numbers_for_sunday(field: str, expected: str) -> None:
    assert weekdays_named(field) == expected


@pytest.mark.parametrize("field", ["1,4,7,10", "*/3", "JAN/3", "jan,Apr,JUL,10", "jan-oct/3"])
def test_months_have_names_in_any_case(field: str) -> None:
    expected = ["2025-01-01", "2025-04-01", "2025-07-01", "2025-10-01", "2026-01-01"]
    assert dates(f"0 0 1 {field} *", after="2024-12-31T00:00", count=5) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 L * *", ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"]),
        ("0 0 l * *", ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"]),
        ("0 0 L-0 * *", ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"]),
        ("0 0 L-2 * *", ["2024-01-29", "2024-02-27", "2024-03-29", "2024-04-28"]),
        ("0 0 L-28 * *", ["2024-01-03", "2024-02-01", "2024-03-03", "2024-04-02"]),
        ("0 0 L-30 * *", ["2024-01-01", "2024-03-01", "2024-05-01", "2024-07-01"]),
        ("0 0 31,L * *", ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"]),
        ("0 0 LW * *", ["2024-01-31", "2024-02-29", "2024-03-29", "2024-04-30"]),
        ("0 0 L-1W * *", ["2024-01-30", "2024-02-28", "2024-03-29", "2024-04-29"]),
        ("0 0 15W * *", ["2024-01-15", "2024-02-15", "2024-03-15", "2024-04-15"]),
        ("0 0 15w 6-9 *", ["2024-06-14", "2024-07-15", "2024-08-15", "2024-09-16"]),
        ("0 0 1W 6-9 *", ["2024-06-03", "2024-07-01", "2024-08-01", "2024-09-02"]),
        ("0 0 30W 6,11 *", ["2024-06-28", "2024-11-29", "2025-06-30", "2025-11-28"]),
        ("0 0 31W * *", ["2024-01-31", "2024-03-29", "2024-05-31", "2024-07-31"]),
        ("0 0 1W,L-1,15 * *", ["2024-01-01", "2024-01-15", "2024-01-30", "2024-02-01"]),
        ("0 0 * * 5L", ["2024-01-26", "2024-02-23", "2024-03-29", "2024-04-26"]),
        ("0 0 * * friL", ["2024-01-26", "2024-02-23", "2024-03-29", "2024-04-26"]),
        ("0 0 * * 7L", ["2024-01-28", "2024-02-25", "2024-03-31", "2024-04-28"]),
        ("0 0 * * FRI#2", ["2024-01-12", "2024-02-09", "2024-03-08", "2024-04-12"]),
        ("0 0 * * 0#1", ["2024-01-07", "2024-02-04", "2024-03-03", "2024-04-07"]),
        ("0 0 * * mon#5", ["2024-01-29", "2024-04-29", "2024-07-29", "2024-09-30"]),
        ("0 0 * * TUE#1,5#3,2L", ["2024-01-02", "2024-01-19", "2024-01-30", "2024-02-06"]),
        ("0 0 * * 1#1,SAT", ["2024-01-01", "2024-01-06", "2024-01-13", "2024-01-20"]),
    ],
)
def test_last_nearest_and_numbered_days(expression: str, expected: list[str]) -> None:
    assert dates(expression, after="2023-12-31T12:00", count=4) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 13 * FRI", ["2025-06-06", "2025-06-13", "2025-06-20", "2025-06-27", "2025-07-04"]),
        ("0 0 */2 * SAT", ["2025-06-07", "2025-06-21", "2025-07-05", "2025-07-19", "2025-08-09"]),
        ("0 0 13 * */5", ["2025-06-13", "2025-07-13", "2026-02-13", "2026-03-13", "2026-09-13"]),
        ("0 0 *,13 * FRI", ["2025-06-06", "2025-06-13", "2025-06-20", "2025-06-27", "2025-07-04"]),
        ("0 0 13,* * FRI", ["2025-06-02", "2025-06-03", "2025-06-04", "2025-06-05", "2025-06-06"]),
        ("0 0 L * MON#1", ["2025-06-02", "2025-06-30", "2025-07-07", "2025-07-31", "2025-08-04"]),
        ("0 0 13 * ?", ["2025-06-13", "2025-07-13", "2025-08-13", "2025-09-13", "2025-10-13"]),
        ("0 0 ? * FRIL", ["2025-06-27", "2025-07-25", "2025-08-29", "2025-09-26", "2025-10-31"]),
        ("0 0 ? * ?", ["2025-06-02", "2025-06-03", "2025-06-04", "2025-06-05", "2025-06-06"]),
    ],
)
def test_both_day_fields_must_match_if_either_starts_with_a_star(
    expression: str, expected: list[str]
) -> None:
    assert dates(expression, after="2025-06-01T00:00", count=5) == expected


@pytest.mark.parametrize(
    ("nickname", "expression"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        (" @Midnight\n", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
def test_a_nickname_is_its_expression(nickname: str, expression: str) -> None:
    assert compile_cron(nickname) == compile_cron(expression)
    assert compile_cron(nickname).expression == expression


def test_the_expression_is_kept_with_single_blanks() -> None:
    assert compile_cron(" 0\t9  * *   mon-FRI\n").expression == "0 9 * * mon-FRI"


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("2025-06-10T08:59:59.999999", "2025-06-10T09:00"),
        ("2025-06-10T09:00:00", "2025-06-10T09:30"),
        ("2025-06-10T09:00:00.000001", "2025-06-10T09:30"),
        ("2025-06-10T09:29:59", "2025-06-10T09:30"),
        ("2025-06-10T09:30:00", "2025-06-10T17:00"),
        ("2025-06-10T17:45:00", "2025-06-11T09:00"),
        ("2025-12-31T23:59:59", "2026-01-01T09:00"),
    ],
)
def test_the_next_time_is_strictly_later(after: str, expected: str) -> None:
    assert compile_cron("0,30 9,17 * * *").next(local(after)) == local(expected)


def test_the_next_time_is_of_the_first_pass_whatever_the_pass_of_after() -> None:
    found = compile_cron("* * * * *").next(local("2025-10-26T02:30").replace(fold=1))
    assert found is not None
    assert (found, found.fold, found.tzinfo) == (local("2025-10-26T02:31"), 0, None)


def test_a_time_with_a_zone_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="naive local"):
        compile_cron("* * * * *").next(datetime(2025, 6, 10, tzinfo=UTC))


def test_the_29th_of_february_waits_eight_years_over_2100() -> None:
    assert dates("0 0 29 2 *", after="2096-02-29T00:00", count=2) == ["2104-02-29", "2108-02-29"]


def test_the_29th_to_last_day_of_february_waits_for_a_leap_year() -> None:
    for expression in ("0 0 L-28 2 *", "0 0 L-28 2 MON#5"):
        assert dates(expression, after="2024-03-01T00:00", count=2) == ["2028-02-01", "2032-02-01"]


def test_a_fifth_weekday_of_february_waits_forty_years_over_2100() -> None:
    assert dates("0 0 * 2 MON#5", after="2072-03-01T00:00", count=2) == ["2112-02-29", "2140-02-29"]


def test_a_rule_ends_with_the_last_minute_of_the_calendar() -> None:
    every_minute = compile_cron("* * * * *")
    assert every_minute.next(local("9999-12-31T23:58:59")) == local("9999-12-31T23:59")
    assert every_minute.next(local("9999-12-31T23:59")) is None
    assert every_minute.next(local("9999-12-31T23:59:59.999999")) is None
    assert compile_cron("0 9 * * *").next(local("9999-12-31T09:00")) is None
    assert compile_cron("0 0 29 2 *").next(local("9996-02-29T00:00")) is None
    assert compile_cron("59 23 31 12 *").next(local("9999-12-31T23:58")) == local("9999-12-31T23:59")


def test_a_rule_begins_with_the_first_minute_of_the_calendar() -> None:
    assert compile_cron("* * * * *").next(local("0001-01-01T00:00")) == local("0001-01-01T00:01")
    assert compile_cron("0 0 * * MON").next(local("0001-01-01T00:00")) == local("0001-01-08T00:00")


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        ("*", True),
        ("*/1", True),
        ("0-23", True),
        ("0/1", True),
        ("0-11,12-23", True),
        ("0-22", False),
        ("*/2", False),
        ("1-23", False),
    ],
)
def test_a_rule_says_whether_it_covers_every_hour(hours: str, *, expected: bool) -> None:
    assert compile_cron(f"0 {hours} 1 1 *").covers_every_hour is expected


@pytest.mark.parametrize(
    ("expression", "period"),
    [
        ("0 9 * * *", "day"),
        ("0 9 * * 1-5", "day"),
        ("0 9 * * 1", "week"),
        ("0 9 * * FRI-FRI", "week"),
        ("0 9 * * 0,7", "week"),
        ("0 9 15 * *", "month"),
        ("0 9 LW * *", "month"),
        ("0 9 * * FRI#2", "month"),
        ("0 9 * * FRIL", "month"),
        ("0 9 1 1 *", "month"),
        ("0 9 29 2 *", "month"),
        ("0 9 */31 * *", "month"),
        ("0 9 1,15 * *", "week"),
        ("0 9 1,7 * *", "day"),
        ("0 9 1,8 * *", "week"),
        ("0 9 1,L * *", "day"),  # the 31st and the 1st share a week across two months
        ("0 9 1,31 1,12 *", "day"),  # ... and across two years
        ("0 9 1,31 1,7 *", "week"),  # January and July touch no other month of the rule
        ("0 9 1,29 2 *", "week"),
        ("0 9 1W,2W * *", "day"),  # one day in some months, two in others
        ("0 9 L,31 1,3 *", "month"),  # two terms, one day
        ("0 9 * * FRI#4,FRIL", "week"),
        ("0 9 * * MON#5,MONL", "month"),
        ("0 9 * * SUN#1,MON#2", "week"),  # a Sunday and the Monday after it
        ("0 9 30 * SUN#5", "day"),  # Saturday the 30th and Sunday the 31st
        ("0 9 1 * SUN#2", "week"),
        ("0 9,17 1 1 *", "instant"),
        ("0,30 9 * * 1", "instant"),
        ("* * * * *", "instant"),
        ("@hourly", "instant"),
    ],
)
def test_the_coarsest_period_that_holds_one_time_at_most(expression: str, period: str) -> None:
    assert compile_cron(expression).coarsest_period() == period


def test_a_rule_cannot_be_changed_and_compares_by_expression() -> None:
    rule = compile_cron("0 9 * * 1-5")
    with pytest.raises(AttributeError):
        rule.expression = "* * * * *"  # type: ignore[misc]
    assert rule == compile_cron("0  9 * * 1-5")
    assert rule != compile_cron("0 9 * * 1-6")
    assert len({rule, compile_cron(" 0 9 * * 1-5")}) == 1


def test_named_times_strictly_increase() -> None:
    rule = compile_cron("*/7 */5 L,LW,13 * FRI#2,SUN")
    found = times(rule, after="2024-01-01T00:00", count=2000)
    assert all(earlier < later for earlier, later in pairwise(found))
