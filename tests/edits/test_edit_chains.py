"""Random chains of edits, zones, plans, pauses and crashes: no period twice, and none lost while the rule is the same.

The judge knows nothing of activation. It looks at the runs alone: their named local times, and which periods are there.
"""

import random
from collections import Counter
from datetime import date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.store.memory import MemoryStore
from tests.conftest import OpenStore
from tests.edits.chains import Chain, Step, steps
from tests.edits.lives import Life

ANY_ZONE = st.integers(0, 8)
AT_WORK = ("passing", "plan", "down", "crash", "decide", "commit", "pause", "resume")


@pytest.mark.parametrize("period", ["day", "week", "month"])
@settings(max_examples=40, deadline=None)
@given(chain=steps(*AT_WORK, "zone", "zone", "later"), zone=ANY_ZONE)
def test_while_the_rule_stays_the_same_every_period_has_exactly_one_run(
    period: str, chain: list[Step], zone: int
) -> None:
    numbers = numbers_of(Chain(MemoryStore(), period, zone).played(chain), period)
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@settings(max_examples=60, deadline=None)
@given(chain=steps(*AT_WORK, "zone", "hour", "later"), zone=ANY_ZONE)
def test_whatever_hour_and_zone_a_daily_rule_is_moved_to_no_day_has_two_runs(
    chain: list[Step], zone: int
) -> None:
    counts = Counter(numbers_of(Chain(MemoryStore(), "day", zone).played(chain), "day"))
    assert set(counts.values()) == {1}


@settings(max_examples=40, deadline=None)
@given(chain=steps(*AT_WORK, "zone", "rule", "rule", "later"), zone=ANY_ZONE)
def test_a_run_of_any_rule_never_shares_its_versions_period_with_an_earlier_one(
    chain: list[Step], zone: int
) -> None:
    life = Chain(MemoryStore(), "day", zone).played(chain)
    versions = {version["version"]: version for version in life.versions()}
    ended_before: list[dict[str, object]] = []
    for run in life.runs():
        version = versions[run["version"]]
        if version["period"] != "instant" and run["carried_by"] is None and run["planned_at"] is None:
            period = str(version["period"])
            number = _number(_named(run), period)
            sharers = [
                other
                for other in ended_before
                if other["version"] != run["version"] and _number(_named(other), period) == number
            ]
            assert not sharers
        ended_before.append(run)


@settings(max_examples=40, deadline=None)
@given(chain=steps(*AT_WORK[:-2], "zone", "hour", "rule", "later", "anew"), zone=ANY_ZONE)
def test_every_run_lies_in_its_versions_window_or_was_decided_before_that_closed(
    chain: list[Step], zone: int
) -> None:
    life = Chain(MemoryStore(), "day", zone).played(chain)
    windows = {
        version["version"]: (str(version["effective_from"]), str(version["effective_until"] or "9999"))
        for version in life.versions()
    }
    for run in life.runs():
        begins, ends = windows[run["version"]]
        was_decided_before = run["carried_by"] is not None or str(run["planned_at"] or "9999") < ends
        assert begins <= str(run["scheduled_at"])
        assert was_decided_before or str(run["scheduled_at"]) < ends
    in_order = sorted(window for window in windows.values() if window[0] != window[1])
    assert [until for _, until in in_order[:-1]] == [begins for begins, _ in in_order[1:]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seed"), [*(("sqlite", n) for n in range(12)), *(("postgresql", n) for n in range(12, 16))]
)
def test_every_day_has_exactly_one_run_in_a_database_too(open_store: OpenStore, kind: str, seed: int) -> None:
    dice = random.Random(seed)
    kinds = (*AT_WORK, "zone", "zone", "later")
    chain = [(dice.choice(kinds), dice.randrange(200)) for _ in range(15)]
    numbers = numbers_of(Chain(open_store(kind), "day", seed).played(chain), "day")
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def numbers_of(life: Life, period: str) -> list[int]:
    """The number of the period of each run's named local time, in order: those of neighbours differ by one."""
    return sorted(_number(_named(run), period) for run in life.runs())


def _named(run: dict[str, object]) -> datetime:
    return datetime.fromisoformat(str(run["named_local"]))


def _number(local: datetime, period: str) -> int:
    if period == "month":
        return local.year * 12 + local.month
    day = date(local.year, local.month, local.day).toordinal()
    return (day - 1) // 7 if period == "week" else day
