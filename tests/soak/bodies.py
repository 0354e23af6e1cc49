"""Schedules and edits as the driver draws them: the same seed draws the same."""

from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

from rota.domain.instants import format_instant, format_local
from tests.soak.effects import JOB
from tests.soak.journal import Wire

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)

ZONES = (
    "America/New_York",
    "Europe/London",
    "Asia/Tokyo",
    "Asia/Kolkata",
    "Pacific/Auckland",
    "America/Los_Angeles",
    "Etc/GMT+12",
    "Australia/Lord_Howe",
)
POLICIES: tuple[Wire | None, ...] = (
    None,
    {"policy": "catch_up_all", "max_age": None},
    {"policy": "catch_up_all", "max_age": "PT8S"},
    {"policy": "latest_only", "grace": "PT2S"},
    {"policy": "expire", "deadline": "PT4S"},
)
MINUTELY = ("* * * * *", "*/2 * * * *")


class Bodies:
    """What is asked, in wire form."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def schedule(self, id_: str, *, now: datetime) -> tuple[str, Wire]:
        """The kind of the schedule, and its body."""
        kinds: dict[str, float] = {"every": 4, "minutely": 4, "rrule": 2, "daily": 2, "once": 2, "bounded": 1}
        [kind] = self.random.choices(list(kinds), list(kinds.values()))
        zone = self.random.choice(ZONES)
        bounds: Wire = {}
        if kind == "bounded":
            later = format_instant(_whole(now) + self.random.randint(6, 30) * SECOND)
            bounds = self.random.choice([{"max_occurrences": self.random.randint(1, 6)}, {"ends_at": later}])
        recurrence = self.recurrence(kind, zone, now=now)
        overdue = {"overdue": self.random.choice(POLICIES)} if kind not in ("daily", "once") else {}
        return kind, {
            "id": id_,
            "job": JOB,
            "timezone": zone,
            "recurrence": recurrence,
            "params": {"edit": 0},
            **bounds,
            **overdue,
        }

    def edit(self, kind: str, number: int, zone: str, *, now: datetime) -> Wire:
        """A patch whose params name it."""
        patch: Wire = {"params": {"edit": number}, "replaces_pending": self.random.random() < 0.6}
        if self.random.random() < 0.6:
            patch["timezone"] = zone = self.random.choice(ZONES)
        if kind == "once" or self.random.random() < 0.6:
            patch["recurrence"] = self.recurrence(kind, zone, now=now)
        if kind not in ("daily", "once") and self.random.random() < 0.3:
            patch["overdue"] = self.random.choice(POLICIES)
        if self.random.random() < 0.35:
            patch["effective_from"] = format_instant(_whole(now) + self.random.randint(2, 15) * SECOND)
        else:
            patch["at_once"] = self.random.random() < 0.7
            if kind in ("every", "minutely", "rrule") and self.random.random() < 0.2:
                patch["boundary"] = "now"
        return patch

    def recurrence(self, kind: str, zone: str, *, now: datetime) -> Wire:
        draw: dict[str, Callable[[], Wire]] = {
            "minutely": lambda: {"cron": self.random.choice(MINUTELY)},
            "rrule": lambda: {"rrule": self._minutely_rrule(zone, now)},
            "daily": lambda: {"cron": self._soon_each_day(zone, now)},
            "once": lambda: {"at": self._soon(zone, now)},
        }
        return draw.get(kind, lambda: self._every(now))()

    def _every(self, now: datetime) -> Wire:
        anchor = _whole(now) + self.random.randint(-3600, 12) * SECOND
        return {"every": f"PT{self.random.randint(1, 10)}S", "anchor": format_instant(anchor)}

    def _minutely_rrule(self, zone: str, now: datetime) -> str:
        start = _local(zone, now) - self.random.randint(0, 5) * MINUTE - self.random.randint(0, 59) * SECOND
        interval = self.random.choice(["", ";INTERVAL=2"])
        return f"DTSTART:{start:%Y%m%dT%H%M%S}\nRRULE:FREQ=MINUTELY{interval}"

    def _soon_each_day(self, zone: str, now: datetime) -> str:
        soon = _local(zone, now) + self.random.randint(-1, 2) * MINUTE
        return f"{soon.minute} {soon.hour} * * *"

    def _soon(self, zone: str, now: datetime) -> str:
        soon = _whole(now) + self.random.randint(2, 40) * SECOND
        return self.random.choice([format_instant(soon), format_local(_local(zone, soon))])


def _whole(now: datetime) -> datetime:
    return now.replace(microsecond=0)


def _local(zone: str, instant: datetime) -> datetime:
    return _whole(instant).astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)
