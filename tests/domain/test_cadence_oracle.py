"""Cadences against an oracle that looks at the clocks minute by minute, over changes of the zones that matter.

The oracle knows no segments: it notes what the clocks of a zone show at each step of UTC, so a local time that is
shown twice is a fold, and one that is jumped over and never shown is in a gap.
"""

import zoneinfo
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.domain.cadence import Cadence, Fold, Gap
from rota.domain.recurrence import Cron
from rota.zones import load_zone

DAY = timedelta(days=1)
POLICIES: list[tuple[Gap, Fold]] = [
    ("skip", "first"),
    ("skip", "second"),
    ("skip", "both"),
    ("forward", "first"),
    ("forward", "second"),
    ("forward", "both"),
]

# The offset changes within a day after noon UTC of the date, some of them twice within a month.
CHANGES = [
    ("Africa/Cairo", "2024-04-25"),
    ("Africa/Cairo", "2024-10-31"),
    ("Africa/Casablanca", "2025-02-22"),
    ("Africa/Casablanca", "2025-04-05"),
    ("Africa/Monrovia", "1972-01-06"),
    ("America/Asuncion", "2024-10-05"),
    ("America/Caracas", "2007-12-09"),
    ("America/Caracas", "2016-04-30"),
    ("America/Havana", "2024-03-09"),
    ("America/Havana", "2024-11-02"),
    ("America/New_York", "2025-03-08"),
    ("America/New_York", "2025-11-01"),
    ("America/Nuuk", "2023-03-25"),
    ("America/Nuuk", "2024-10-26"),
    ("America/Sao_Paulo", "2018-02-17"),
    ("America/Sao_Paulo", "2018-11-03"),
    ("America/St_Johns", "2011-03-12"),
    ("America/St_Johns", "2010-11-06"),
    ("Antarctica/Casey", "2010-03-04"),
    ("Antarctica/Troll", "2025-03-29"),
    ("Antarctica/Troll", "2025-10-25"),
    ("Asia/Gaza", "2025-04-11"),
    ("Asia/Gaza", "2025-10-24"),
    ("Asia/Kathmandu", "1985-12-31"),
    ("Asia/Pyongyang", "2015-08-14"),
    ("Asia/Pyongyang", "2018-05-04"),
    ("Australia/Lord_Howe", "2025-04-05"),
    ("Australia/Lord_Howe", "2025-10-04"),
    ("Europe/Dublin", "1968-02-17"),
    ("Europe/Dublin", "2025-03-29"),
    ("Europe/Dublin", "2025-10-25"),
    ("Europe/London", "2025-03-29"),
    ("Europe/London", "2025-10-25"),
    ("Kwajalein", "1993-08-20"),
    ("Pacific/Apia", "2011-09-24"),
    ("Pacific/Apia", "2011-12-29"),
    ("Pacific/Apia", "2012-03-31"),
    ("Pacific/Chatham", "2025-04-05"),
    ("Pacific/Chatham", "2025-09-27"),
    ("Pacific/Fakaofo", "2011-12-29"),
    ("Pacific/Kiritimati", "1994-12-31"),
]


@dataclass(frozen=True)
class Pattern:
    """A cron rule simple enough to be matched by a second hand."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    weekdays: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7)

    @property
    def expression(self) -> str:
        fields = [",".join(map(str, values)) for values in (self.minutes, self.hours, self.weekdays)]
        return f"{fields[0]} {fields[1]} * * {fields[2]}"

    def names(self, local: datetime) -> bool:
        return (
            local.second == 0
            and local.minute in self.minutes
            and local.hour in self.hours
            and local.isoweekday() in self.weekdays
        )


EVERY_HOUR = tuple(range(24))
PATTERNS = [
    Pattern((0, 1, 29, 31, 44, 59), EVERY_HOUR),
    Pattern((0,), EVERY_HOUR),
    Pattern((15, 30, 45), (0, 1, 2, 3, 22, 23)),
    Pattern((30,), (0,)),
    Pattern((0,), (0,)),
    Pattern((30,), (1,)),
    Pattern((30,), (2,)),
    Pattern((0,), (2, 3)),
    Pattern((0,), (12,)),
    Pattern((59,), (23,), (5, 6)),
]


@dataclass(frozen=True)
class Clocks:
    """What the clocks of a zone show in the days around a change."""

    watched_from: datetime
    watched_until: datetime
    passes: dict[datetime, list[datetime]]
    """The instants at which each local time is shown."""
    lost: dict[datetime, datetime]
    """The local times that are never shown, each with the instant at which it is jumped over."""

    def named_by(self, pattern: Pattern) -> list[datetime]:
        """All local times around the change that the rule names, shown or not."""
        return [local for local in (*self.passes, *self.lost) if pattern.names(local)]


@cache
def watch(zone_name: str, day: str) -> Clocks:
    """From one day before noon of `day` to two days after it, and a day more on either side to see all passes."""
    zone = zoneinfo.ZoneInfo(zone_name)
    step = timedelta(seconds=30) if zone_name == "Africa/Monrovia" else timedelta(minutes=1)
    noon = datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=UTC)
    passes: dict[datetime, list[datetime]] = {}
    jumped: dict[datetime, datetime] = {}
    at, expected_next = noon - 2 * DAY, None
    while at < noon + 3 * DAY:
        local = at.astimezone(zone).replace(tzinfo=None)
        while expected_next is not None and expected_next < local:
            jumped[expected_next] = at
            expected_next += step
        passes.setdefault(local, []).append(at)
        at, expected_next = at + step, local + step
    lost = {local: jumped_at for local, jumped_at in jumped.items() if local not in passes}
    return Clocks(noon - DAY, noon + 2 * DAY, passes, lost)


def expected(clocks: Clocks, named: list[datetime], *, gap: Gap, fold: Fold) -> dict[datetime, datetime]:
    """Each instant after `watched_from` with the local time that the rule names for it."""
    by_itself: dict[datetime, datetime] = {}
    moved: dict[datetime, datetime] = {}
    for local in sorted(named):
        if local in clocks.lost:
            if gap == "forward":
                moved.setdefault(clocks.lost[local], local)
        else:
            passes = clocks.passes[local]
            for at in {"first": passes[:1], "second": passes[-1:], "both": passes}[fold]:
                by_itself[at] = local
    return {
        at: local
        for at, local in (moved | by_itself).items()
        if clocks.watched_from < at <= clocks.watched_until
    }


def test_each_of_the_changes_is_one() -> None:
    for zone_name, day in CHANGES:
        passes = watch(zone_name, day).passes
        offsets = {at - local.replace(tzinfo=UTC) for local in passes for at in passes[local]}
        assert len(offsets) == 2, (zone_name, day)


@pytest.mark.parametrize(("zone_name", "day"), CHANGES)
def test_a_walk_meets_what_the_clocks_show_under_every_policy(zone_name: str, day: str) -> None:
    clocks = watch(zone_name, day)
    for pattern in PATTERNS:
        named = clocks.named_by(pattern)
        for gap, fold in POLICIES:
            cadence = Cadence(Cron(expression=pattern.expression), load_zone(zone_name), gap=gap, fold=fold)
            walked = {
                occurrence.scheduled_at: occurrence.named_local
                for occurrence in cadence.occurrences(after=clocks.watched_from, until=clocks.watched_until)
            }
            assert walked == expected(clocks, named, gap=gap, fold=fold), (pattern, gap, fold)


@settings(max_examples=60, deadline=None)
@given(
    change=st.sampled_from(CHANGES),
    policy=st.sampled_from(POLICIES),
    pattern=st.builds(
        Pattern,
        minutes=st.sets(st.integers(0, 59), min_size=1, max_size=4).map(lambda values: tuple(sorted(values))),
        hours=st.sets(st.sampled_from((0, 1, 2, 3, 4, 12, 22, 23)), min_size=1).map(
            lambda values: tuple(sorted(values))
        ),
        weekdays=st.sets(st.integers(1, 7), min_size=3).map(lambda values: tuple(sorted(values))),
    ),
    seconds=st.lists(st.integers(0, 3 * 86400 - 1), min_size=1, max_size=20),
)
def test_next_is_the_first_that_the_clocks_show_later_whatever_was_asked_before(
    change: tuple[str, str], policy: tuple[Gap, Fold], pattern: Pattern, seconds: list[int]
) -> None:
    clocks = watch(*change)
    gap, fold = policy
    instants = sorted(expected(clocks, clocks.named_by(pattern), gap=gap, fold=fold))
    cadence = Cadence(Cron(expression=pattern.expression), load_zone(change[0]), gap=gap, fold=fold)
    for second in seconds:
        after = clocks.watched_from + timedelta(seconds=second)
        position = bisect_right(instants, after)
        occurrence = cadence.next(after)
        assert occurrence is not None
        if position < len(instants):
            assert occurrence.scheduled_at == instants[position]
        else:
            assert occurrence.scheduled_at > clocks.watched_until


@pytest.mark.parametrize(("zone_name", "day"), CHANGES)
def test_what_is_skipped_in_a_gap_is_what_the_clocks_never_show(zone_name: str, day: str) -> None:
    clocks = watch(zone_name, day)
    pattern = Pattern((0, 15, 30, 45), EVERY_HOUR)
    cadence = Cadence(Cron(expression=pattern.expression), load_zone(zone_name), gap="skip", fold="first")
    skipped = cadence.skipped_in_gaps(after=clocks.watched_from, until=clocks.watched_until, limit=1000)
    never_shown = [
        local
        for local in sorted(clocks.lost)
        if pattern.names(local) and clocks.watched_from < clocks.lost[local] <= clocks.watched_until
    ]
    assert [each.local for each in skipped] == never_shown
