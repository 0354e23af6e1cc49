"""A daily report that moves between zones, many times over: in memory and with a manual clock, since days must pass."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal, cast

from rota.demo.telling import say_rows
from rota.domain.instants import parse_instant
from rota.service.representation import Wire
from rota.testing import World
from rota.worker.context import RunContext

Moment = Literal["before", "between", "after"]
"""When the schedule is edited: in relation to the day's local time in the one zone and in the other."""

MOMENTS: tuple[Moment, ...] = ("before", "between", "after")
REPORT = "report-7"
HOUR = timedelta(hours=1)
LIVED_BEFORE, LIVED_AFTER = timedelta(days=3), timedelta(days=4)
"""A life begins and ends further from the day of its edit than the days lie that are judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """From one zone to another on a day, of a report that is due at one local time every day."""

    from_zone: str
    to_zone: str
    day: date
    change: str
    """What the clocks do that day: in which place the report's local time is left out, or comes twice."""
    at: str
    """The local time, HH:MM; in the gap or the fold, where the day has one."""

    @property
    def cron(self) -> str:
        hour, minute = self.at.split(":")
        return f"{int(minute)} {int(hour)} * * *"


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What became of the schedule that walked."""

    walk: Walk
    moment: Moment
    edited_at: datetime
    carried: tuple[datetime, ...]
    suppressed: tuple[datetime, ...]
    runs_by_day: Counter[date]
    """By the day that the rule named."""

    @property
    def is_accounted_for(self) -> bool:
        """Between the two local times one of the day's instants is carried, or suppressed; else neither is in doubt."""
        return len(self.carried) + len(self.suppressed) == (1 if self.moment == "between" else 0)

    @property
    def has_each_day_once(self) -> bool:
        days = {self.walk.day + timedelta(days=number) for number in range(-2, 3)}
        return all(self.runs_by_day[day] == 1 for day in days) and set(self.runs_by_day.values()) == {1}


NEW_YORK, LONDON, TOKYO = "America/New_York", "Europe/London", "Asia/Tokyo"
AUCKLAND, LOS_ANGELES = "Pacific/Auckland", "America/Los_Angeles"
ORDINARY = (date(2026, 1, 14), "ordinary", "09:00")
GAP_IN_LONDON = (date(2026, 3, 29), "gap in London", "01:30")
FOLD_IN_LONDON = (date(2026, 10, 25), "fold in London", "01:30")
GAP_IN_AMERICA = (date(2026, 3, 8), "gap in America", "02:30")
FOLD_IN_AMERICA = (date(2026, 11, 1), "fold in America", "01:30")
GAP_IN_AUCKLAND = (date(2026, 9, 27), "gap in Auckland", "02:30")
FOLD_IN_AUCKLAND = (date(2026, 4, 5), "fold in Auckland", "02:30")

PAIRS = (
    (LONDON, NEW_YORK, (ORDINARY, GAP_IN_AMERICA, FOLD_IN_LONDON)),
    (TOKYO, LONDON, (ORDINARY, GAP_IN_LONDON, FOLD_IN_LONDON)),
    (AUCKLAND, LOS_ANGELES, (ORDINARY, GAP_IN_AUCKLAND, FOLD_IN_AMERICA)),
)
"""Each there and back."""


def walks() -> Iterator[Walk]:
    for here, there, days in PAIRS:
        for from_zone, to_zone in ((here, there), (there, here)):
            for day, change, at in days:
                yield Walk(from_zone=from_zone, to_zone=to_zone, day=day, change=change, at=at)


def live(walk: Walk, moment: Moment) -> Life:
    """The whole life: saved some days before, edited once, and gone on with for some days."""
    midnight = datetime(walk.day.year, walk.day.month, walk.day.day, tzinfo=UTC)
    with World(now=midnight - LIVED_BEFORE) as world:

        @world.app.job("sales_report")
        def report(_: RunContext) -> None: ...

        world.app.create_schedule(
            id=REPORT,
            job="sales_report",
            timezone=walk.from_zone,
            recurrence={"cron": walk.cron},
            gap="forward",
            fold="first",
        )
        edited_at = _moment_of(world, walk, moment)
        world.pass_time(edited_at)
        world.app.edit(REPORT, timezone=walk.to_zone)
        world.pass_time(midnight + LIVED_AFTER)
        return _told(walk, moment, edited_at, list(world.app.iterate_occurrences(REPORT)))


def _moment_of(world: World, walk: Walk, moment: Moment) -> datetime:
    """An hour before the earlier of the day's two local times, half way between them, or an hour after the later."""
    earlier, later = sorted(_instant_in(world, walk, zone) for zone in (walk.from_zone, walk.to_zone))
    match moment:
        case "before":
            return earlier - HOUR
        case "between":
            return (earlier + (later - earlier) / 2).replace(second=0)
        case "after":
            return later + HOUR


def _instant_in(world: World, walk: Walk, zone: str) -> datetime:
    """When the walk's day has its local time there."""
    answer = world.app.preview(
        timezone=zone,
        recurrence={"cron": walk.cron},
        gap="forward",
        fold="first",
        after=world.now,
        count=10,
    )
    named = cast("list[Wire]", answer["occurrences"])
    return next(parse_instant(str(entry["scheduled_at"])) for entry in named if _is_of(entry, walk.day))


def _is_of(entry: Wire, day: date) -> bool:
    return date.fromisoformat(str(entry["local"])[:10]) == day


def _told(walk: Walk, moment: Moment, edited_at: datetime, entries: list[Wire]) -> Life:
    runs = [entry for entry in entries if entry["kind"] == "run"]
    skips = [entry for entry in entries if entry["kind"] == "skip"]
    return Life(
        walk=walk,
        moment=moment,
        edited_at=edited_at,
        carried=tuple(
            parse_instant(str(run["scheduled_at"])) for run in runs if run["carried_by"] is not None
        ),
        suppressed=tuple(
            parse_instant(str(skip["from"])) for skip in skips if skip["reason"] == "period_used"
        ),
        runs_by_day=Counter(date.fromisoformat(str(run["named_local"])[:10]) for run in runs),
    )


def say_lives(lives: Sequence[Life]) -> None:
    """A row each: the zones, the day and its local time, when it was edited, and what became of it, in UTC."""
    say_rows([_row(life) for life in lives])


def _row(life: Life) -> tuple[str, ...]:
    walk = life.walk
    return (
        f"{_place(walk.from_zone)} -> {_place(walk.to_zone)}",
        f"{walk.day} {walk.at}, {walk.change}",
        f"edited {life.moment:7} {_shown(life.edited_at)}",
        _became(life),
        f"each day once: {'yes' if life.has_each_day_once else 'NO'}",
    )


def _place(zone: str) -> str:
    return zone.rpartition("/")[2].replace("_", " ")


def _became(life: Life) -> str:
    told = [f"carried {_shown(instant)}" for instant in life.carried]
    told += [f"suppressed {_shown(instant)}" for instant in life.suppressed]
    return ", ".join(told) or "nothing carried or suppressed"


def _shown(instant: datetime) -> str:
    return f"{instant:%m-%d %H:%MZ}"
