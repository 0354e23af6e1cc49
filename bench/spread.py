"""How evenly an hour boundary spreads over the keys: `python -m bench.spread`.

Everything is due at one instant, so time does not spread it: only the hash of the schedule's id does, which gives it a
slot and by that a partition. Largest against mean is what the fullest has to do beside the others.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import log, sqrt
from random import Random
from uuid import UUID

from bench.figures import print_table
from rota.domain.identity import SLOT_COUNT, ScheduleId, partition_of, slot_of
from rota.ids import new_schedule_id

SCHEDULES, SEED = 1_000_000, 7
PARTITION_COUNTS = (64, 256, 1024)
FULLEST_HOUR = 9
BEGUN_AT_MILLIS = 1_767_225_600_000
CUSTOMERS = ("acme", "globex", "initech", "umbrella", "hooli", "soylent", "stark", "wayne")
REPORTS = ("daily-sales", "weekly-payroll", "stock", "reminder", "invoice", "digest")


def numbered(count: int, _random: Random) -> Iterator[str]:
    return (f"report-{number}" for number in range(1, count + 1))


def made_by_rota(count: int, _random: Random) -> Iterator[str]:
    return (new_schedule_id() for _ in range(count))


def uuid7(count: int, random: Random) -> Iterator[str]:
    """One each millisecond."""
    for number in range(count):
        millis = BEGUN_AT_MILLIS + number
        yield str(
            UUID(int=millis << 80 | 7 << 76 | random.getrandbits(12) << 64 | 2 << 62 | random.getrandbits(62))
        )


def of_customers(count: int, random: Random) -> Iterator[str]:
    """Few customers have very many, as it is."""
    for number in range(count):
        customer = CUSTOMERS[min(int(random.expovariate(1.0)), len(CUSTOMERS) - 1)]
        yield f"{customer}-{number // len(REPORTS)}-{REPORTS[number % len(REPORTS)]}"


FORMS: dict[str, Callable[[int, Random], Iterator[str]]] = {
    "report-1, report-2, ...": numbered,
    "ids that Rota makes": made_by_rota,
    "uuid7": uuid7,
    "customer-number-report": of_customers,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print for each form of id how many schedules the fullest slot and partition have, against the mean."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--schedules", type=int, default=SCHEDULES, help="due at one instant")
    parser.add_argument("--seed", type=int, default=SEED, help="of what is random in ids")
    options = parser.parse_args(arguments)
    count = options.schedules
    print(f"{count:,} schedules due at one instant")
    table = []
    for form, make in FORMS.items():
        slots = Counter(slot_of(ScheduleId(text)) for text in make(count, Random(options.seed)))
        table.append(_row(form, "slots", slots.values(), SLOT_COUNT))
        for partitions in PARTITION_COUNTS:
            shares: Counter[int] = Counter()
            for slot, size in slots.items():
                shares[partition_of(slot, partitions)] += size
            table.append(_row(form, "partitions", shares.values(), partitions))
    print_table(("form of id: over", "mean", "smallest", "largest", "largest / mean", "by chance"), table)
    print()
    _print_slices(count, Random(options.seed))


def _print_slices(count: int, random: Random) -> None:
    """A made-up day: half are due at a full hour, three of four of these at 09:00 in one of 24 zones; a quarter at a
    half hour; the others at any minute."""
    minutes: Counter[int] = Counter()
    fullest: Counter[int] = Counter()
    for text in numbered(count, random):
        minute = _minute_of_day(random)
        minutes[minute] += 1
        if minute == FULLEST_HOUR * 60:
            fullest[partition_of(slot_of(ScheduleId(text)), PARTITION_COUNTS[0])] += 1
    table = [
        _row("the day", "slices of a minute", minutes.values(), 24 * 60),
        _row(
            f"its fullest slice ({FULLEST_HOUR:02d}:00 UTC)",
            "partitions",
            fullest.values(),
            PARTITION_COUNTS[0],
        ),
    ]
    print_table(("a made-up day: over", "mean", "smallest", "largest", "largest / mean", "by chance"), table)


def _minute_of_day(random: Random) -> int:
    kind = random.random()
    if kind < 3 / 8:
        # Zones are not populated alike.
        return (FULLEST_HOUR + int(abs(random.gauss(0, 4)))) % 24 * 60
    if kind < 1 / 2:
        return random.randrange(24) * 60
    if kind < 3 / 4:
        return random.randrange(24) * 60 + 30
    return random.randrange(24 * 60)


def _row(form: str, of: str, sizes: Iterable[int], count: int) -> tuple[str, ...]:
    """The last figure is what chance alone gives: the mean and `sqrt(2 ln n)` standard deviations of it."""
    found = sorted(sizes)
    smallest = found[0] if len(found) == count else 0
    mean = sum(found) / count
    chance = 1 + sqrt(2 * log(count) / mean)
    return (
        f"{form}: {count:,} {of}",
        f"{mean:,.0f}",
        f"{smallest:,}",
        f"{found[-1]:,}",
        f"{found[-1] / mean:.3f}",
        f"{chance:.3f}",
    )


if __name__ == "__main__":
    main()
