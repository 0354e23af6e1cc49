"""Lives that walk between zones in memory: what is told of them, and that a doubled or lost day is told too."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from rota.demo.walks import MOMENTS, ORDINARY, Life, Moment, Walk, live, say_lives, walks

DAY, CHANGE, AT = ORDINARY
THERE = Walk(from_zone="Europe/London", to_zone="America/New_York", day=DAY, change=CHANGE, at=AT)
BACK = replace(THERE, from_zone="America/New_York", to_zone="Europe/London")
GOOD = Life(
    walk=THERE,
    moment="between",
    edited_at=datetime(2026, 1, 14, 11, 30, tzinfo=UTC),
    carried=(),
    suppressed=(datetime(2026, 1, 14, 14, 0, tzinfo=UTC),),
    runs_by_day=Counter(DAY + timedelta(days=number) for number in range(-3, 3)),
)


def test_every_pair_walks_there_and_back_on_a_plain_day_a_day_with_a_gap_and_one_with_a_fold() -> None:
    walked = list(walks())
    zones = {(walk.from_zone, walk.to_zone) for walk in walked}
    assert len(zones) == 6
    assert {(there, here) for here, there in zones} == zones
    for here, there in zones:
        changes = [
            walk.change.split()[0] for walk in walked if (walk.from_zone, walk.to_zone) == (here, there)
        ]
        assert changes == ["ordinary", "gap", "fold"]
    assert MOMENTS == ("before", "between", "after")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_edit_beside_both_local_times_of_its_day_carries_and_suppresses_nothing(moment: Moment) -> None:
    life = live(THERE, moment)
    assert (life.carried, life.suppressed) == ((), ())
    assert life.has_each_day_once


def test_an_edit_between_them_carries_the_day_or_suppresses_its_double() -> None:
    there, back = live(THERE, "between"), live(BACK, "between")
    two_in_the_afternoon = datetime(2026, 1, 14, 14, 0, tzinfo=UTC)
    assert (there.carried, there.suppressed) == ((), (two_in_the_afternoon,))
    assert (back.carried, back.suppressed) == ((two_in_the_afternoon,), ())
    assert there.has_each_day_once
    assert back.has_each_day_once


@pytest.mark.parametrize("day", [DAY, DAY + timedelta(days=2), DAY - timedelta(days=3)])
def test_a_day_with_two_runs_is_not_once(day: date) -> None:
    assert GOOD.has_each_day_once
    assert not replace(GOOD, runs_by_day=GOOD.runs_by_day + Counter([day])).has_each_day_once


@pytest.mark.parametrize("number", [-2, 0, 2])
def test_a_day_without_a_run_is_not_once(number: int) -> None:
    lost = Counter([DAY + timedelta(days=number)])
    assert not replace(GOOD, runs_by_day=GOOD.runs_by_day - lost).has_each_day_once


def test_a_row_says_the_zones_the_day_the_edit_and_what_became_of_the_day(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_lives([GOOD, replace(GOOD, suppressed=(), runs_by_day=Counter())])
    walked = "London -> New York  2026-01-14 09:00, ordinary  edited between 01-14 11:30Z  "
    assert capsys.readouterr().out.splitlines() == [
        f"{walked}suppressed 01-14 14:00Z        each day once: yes",
        f"{walked}nothing carried or suppressed  each day once: NO",
    ]
