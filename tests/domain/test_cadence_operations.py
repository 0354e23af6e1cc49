"""Situations in which schedulers in production went wrong (operations cases), for all policies."""

from datetime import UTC, datetime

import pytest

from rota.domain.cadence import Cadence, Fold, Gap
from rota.domain.instants import format_instant
from rota.domain.recurrence import Cron, Recurrence, RRule
from rota.zones import load_zone

GAPS: tuple[Gap, ...] = ("skip", "forward")
FOLDS: tuple[Fold, ...] = ("first", "second", "both")
ALL_POLICIES = [(gap, fold) for gap in GAPS for fold in FOLDS]


def instants(
    recurrence: Recurrence, zone: str, *, after: str, count: int, gap: Gap = "skip", fold: Fold = "first"
) -> list[str]:
    cadence = Cadence(recurrence, load_zone(zone), gap=gap, fold=fold)
    at = datetime.fromisoformat(after).astimezone(UTC)
    found: list[str] = []
    while len(found) < count and (occurrence := cadence.next(at)) is not None:
        at = occurrence.scheduled_at
        found.append(format_instant(at))
    return found


# America/Los_Angeles  2022-03-13T10:00Z  -08:00 to -07:00   02:00 to 03:00
@pytest.mark.parametrize(("gap", "fold"), ALL_POLICIES)
def test_b01_midnight_is_not_shifted_by_a_change_later_in_the_night(gap: Gap, fold: Fold) -> None:
    midnight = Cron(expression="0 0 * * *")
    assert instants(
        midnight, "America/Los_Angeles", after="2022-03-13T08:00:00Z", count=3, gap=gap, fold=fold
    ) == ["2022-03-14T07:00:00Z", "2022-03-15T07:00:00Z", "2022-03-16T07:00:00Z"]


# America/Los_Angeles  2025-03-09T10:00Z  -08:00 to -07:00   02:00 to 03:00
@pytest.mark.parametrize(("gap", "fold"), ALL_POLICIES)
def test_b02_what_the_spring_night_does_to_two_oclock_is_a_policy(gap: Gap, fold: Fold) -> None:
    moved = ["2025-03-09T10:00:00Z"] if gap == "forward" else []
    expected = [*moved, "2025-03-10T09:00:00Z", "2025-03-11T09:00:00Z"][:2]
    two = Cron(expression="0 2 * * *")
    assert expected == instants(
        two, "America/Los_Angeles", after="2025-03-08T10:00:00Z", count=2, gap=gap, fold=fold
    )


def test_b02_the_skipped_night_is_visible_with_its_reason() -> None:
    two = Cadence(Cron(expression="0 2 * * *"), load_zone("America/Los_Angeles"), gap="skip", fold="first")
    (skipped,) = two.skipped_in_gaps(
        after=datetime(2025, 3, 8, 10, tzinfo=UTC), until=datetime(2025, 3, 11, 9, tzinfo=UTC), limit=10
    )
    assert skipped.local == datetime(2025, 3, 9, 2)
    assert skipped.message == (
        "02:00 does not exist in America/Los_Angeles on 2025-03-09: the clocks go from 02:00 to 03:00"
    )


# Europe/Amsterdam  2023-10-29T01:00Z  +02:00 to +01:00   03:00 to 02:00
@pytest.mark.parametrize(("gap", "fold"), ALL_POLICIES)
def test_b05_from_within_the_second_pass_next_is_never_in_the_past(gap: Gap, fold: Fold) -> None:
    minutely = Cron(expression="* * * * *")
    expected = "2023-10-29T02:00:00Z" if fold == "first" else "2023-10-29T01:31:00Z"
    assert [expected] == instants(
        minutely, "Europe/Amsterdam", after="2023-10-29T01:30:15Z", count=1, gap=gap, fold=fold
    )


@pytest.mark.parametrize(("gap", "fold"), ALL_POLICIES)
@pytest.mark.parametrize("day", ["2023-03-26", "2023-10-29"])
def test_b05_next_is_later_than_after_at_every_half_minute_of_a_change(
    gap: Gap, fold: Fold, day: str
) -> None:
    cadence = Cadence(Cron(expression="* * * * *"), load_zone("Europe/Amsterdam"), gap=gap, fold=fold)
    start = datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()
    for half_minute in range(3 * 120):
        after = datetime.fromtimestamp(start + half_minute * 30, UTC)
        occurrence = cadence.next(after)
        assert occurrence is not None
        assert occurrence.scheduled_at > after


# Europe/Madrid  2024-03-31T01:00Z  +01:00 to +02:00   02:00 to 03:00
def test_b15_the_31st_leaves_out_short_months_and_the_last_day_does_not() -> None:
    the_31st = RRule(text="DTSTART:20240131T090000\nRRULE:FREQ=MONTHLY")
    the_last = RRule(text="DTSTART:20240131T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=-1")
    assert instants(the_31st, "Europe/Madrid", after="2024-01-01T00:00:00Z", count=3) == [
        "2024-01-31T08:00:00Z",
        "2024-03-31T07:00:00Z",
        "2024-05-31T07:00:00Z",
    ]
    assert instants(the_last, "Europe/Madrid", after="2024-01-01T00:00:00Z", count=3) == [
        "2024-01-31T08:00:00Z",
        "2024-02-29T08:00:00Z",
        "2024-03-31T07:00:00Z",
    ]
