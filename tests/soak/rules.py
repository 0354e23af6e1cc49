"""Which instants a stored recurrence names, by plain arithmetic on clocks: nothing of the product is asked.

Cron expressions are walked (`tests.simulation.rules`), RRULEs are python-dateutil's, `every` is a division.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr

from tests.simulation.rules import Named, Rule, key_text

AROUND = timedelta(hours=27)
"""No local time, read as UTC, lies further from its instant."""
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """A recurrence in wire form, in a zone."""

    recurrence: dict[str, str]
    timezone: str
    fold: str

    @property
    def period(self) -> str:
        """The coarsest period in which it names one instant, of the rules that the driver draws."""
        match self.recurrence:
            case {"at": _}:
                return "once"
            case {"cron": cron} if all(field.isdigit() for field in cron.split()[:2]):
                return "day"
            case _:
                return "instant"

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    def at(self, instant: datetime) -> Named | None:
        """What it names at that very instant."""
        return next(self.between(instant, instant + timedelta(seconds=1)), None)

    def between(self, from_: datetime, until: datetime) -> Iterator[Named]:
        """What it names in `[from_, until)`, in order."""
        match self.recurrence:
            case {"cron": cron}:
                yield from Rule(cron=cron, zone=self.zone, fold=self.fold).between(from_, until)
            case {"every": every, "anchor": anchor}:
                yield from self._shown(_grid(every, datetime.fromisoformat(anchor), from_, until))
            case {"rrule": text}:
                yield from self._of_locals(_rrule_locals(text, from_, until), from_, until)
            case {"at": time}:
                moment = datetime.fromisoformat(time)
                if moment.tzinfo is None:
                    yield from self._of_locals([moment], from_, until)
                elif from_ <= moment < until:
                    yield from self._shown([moment])
            case _:
                raise ValueError(f"The soak has no rule such as {self.recurrence}.")

    def _shown(self, instants: Iterator[datetime] | list[datetime]) -> Iterator[Named]:
        for instant in instants:
            local = instant.astimezone(self.zone).replace(tzinfo=None, fold=0)
            yield Named(instant=instant.astimezone(UTC), local=local, second_pass=False)

    def _of_locals(
        self, local_times: Iterator[datetime] | list[datetime], from_: datetime, until: datetime
    ) -> Iterator[Named]:
        for local in local_times:
            for fold in (0, 1) if self.fold == "both" else (0,):
                aware = local.replace(tzinfo=self.zone, fold=fold)
                instant = aware.astimezone(UTC)
                back = instant.astimezone(self.zone)
                is_there = back.replace(tzinfo=None, fold=0) == local and back.fold == fold
                if is_there and from_ <= instant < until:
                    yield Named(instant=instant, local=local, second_pass=bool(fold))


def key_of(period: str, named: Named, *, series: int) -> str:
    """The period key as a run bears it."""
    if period == "once":
        return "once" if series == 1 else f"once#{series}"
    return key_text(period, named.local, named.instant, second_pass=named.second_pass, series=series)


def _grid(every: str, anchor: datetime, from_: datetime, until: datetime) -> Iterator[datetime]:
    if not (every.startswith("PT") and every.endswith("S")):
        raise ValueError(f"The soak has no interval such as {every}.")
    interval = timedelta(seconds=int(every[2:-1]))
    steps = max(0, -((anchor - from_) // interval))
    instant = anchor + steps * interval
    while instant < until:
        if instant >= from_:
            yield instant
        instant += interval


def _rrule_locals(text: str, from_: datetime, until: datetime) -> Iterator[datetime]:
    first, last = (from_ - AROUND).replace(tzinfo=None), (until + AROUND).replace(tzinfo=None)
    named = rrulestr(text).xafter(first, inc=True)
    return takewhile(lambda local: local <= last, named)
