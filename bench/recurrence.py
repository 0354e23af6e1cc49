"""How many next occurrences a second one core computes, UTC result included, beside the usual libraries.

Run it with `python -m bench.recurrence`. Each line is measured in the same run as its baseline, in the same
zones, by the same walk from one occurrence to the next; read the ratio, as the machine may be busy.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from zoneinfo import ZoneInfo

from cronsim import CronSim
from dateutil.rrule import rrulestr

from rota.domain.cadence import Cadence
from rota.domain.recurrence import parse_recurrence
from rota.zones import load_zone

ZONES = ("America/New_York", "Europe/London", "Asia/Kolkata", "Australia/Sydney", "Africa/Casablanca", "UTC")
START = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS_PER_ZONE = 0.15
TURN = 200

RULES = (
    ("cron daily", {"cron": "0 9 * * *"}),
    ("cron weekday", {"cron": "0 9 * * 1-5"}),
    ("cron minutely", {"cron": "* * * * *"}),
    ("cron monthly, last day", {"cron": "0 9 L * *"}),
    ("rrule daily", {"rrule": "DTSTART:20260101T090000\nRRULE:FREQ=DAILY"}),
    ("rrule weekly", {"rrule": "DTSTART:20260105T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO,TH"}),
    ("every 15 minutes", {"every": "PT15M", "anchor": "2026-01-01T00:00:00Z"}),
)


def main() -> None:
    """Print one line for each rule: next occurrences a second, the baseline's, and the ratio."""
    print(f"{'rule':<26}{'next/s':>12}{'baseline/s':>14}{'ratio':>9}  baseline")
    for label, recurrence in RULES:
        ours = _rate(partial(_walk, recurrence))
        baseline, walk = _baseline(recurrence)
        if walk is None:
            print(f"{label:<26}{ours:>12,.0f}{'-':>14}{'-':>9}")
            continue
        theirs = _rate(walk)
        print(f"{label:<26}{ours:>12,.0f}{theirs:>14,.0f}{ours / theirs:>8.1f}x  {baseline}")


def _walk(recurrence: dict[str, str], zone: str) -> Iterator[datetime]:
    cadence = Cadence(
        parse_recurrence(recurrence, default_anchor=START), load_zone(zone), gap="skip", fold="first"
    )
    after = START
    while (occurrence := cadence.next(after)) is not None:
        after = occurrence.scheduled_at
        yield after


def _baseline(recurrence: dict[str, str]) -> tuple[str, Callable[[str], Iterator[datetime]] | None]:
    match recurrence:
        case {"cron": expression}:
            return "cronsim, kept iterator, aware to UTC", partial(_walk_cronsim, expression)
        case {"rrule": text}:
            return "dateutil, kept iterator, naive to UTC, no policies", partial(_walk_dateutil, text)
        case _:
            return "", None


def _walk_cronsim(expression: str, zone: str) -> Iterator[datetime]:
    for local in CronSim(expression, START.astimezone(ZoneInfo(zone))):
        yield local.astimezone(UTC)


def _walk_dateutil(text: str, zone: str) -> Iterator[datetime]:
    for local in rrulestr(text):
        yield local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def _rate(walk: Callable[[str], Iterator[datetime]]) -> float:
    """Instants a second over all zones; each starts anew every `TURN` instants, so that all stay near."""
    count, spent = 0, 0.0
    for zone in ZONES:
        instants = walk(zone)
        next(instants)
        start = time.perf_counter()
        while (elapsed := time.perf_counter() - start) < SECONDS_PER_ZONE:
            for _ in range(TURN):
                next(instants)
            count += TURN
        spent += elapsed
    return count / spent


if __name__ == "__main__":
    main()
