"""Occurrences as the tests of cadences ask for them and write them: local times with their offset."""

from datetime import UTC, datetime, timedelta

from rota.domain.cadence import Cadence, Fold, Gap, Occurrence
from rota.domain.recurrence import Cron, Recurrence
from rota.zones import load_zone


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def cadence(
    recurrence: Recurrence | str, zone: str = "UTC", *, gap: Gap = "skip", fold: Fold = "first"
) -> Cadence:
    if isinstance(recurrence, str):
        recurrence = Cron(expression=recurrence)
    return Cadence(recurrence, load_zone(zone), gap=gap, fold=fold)


def first(of: Cadence, count: int, *, after: str) -> list[Occurrence]:
    found: list[Occurrence] = []
    occurrence = of.next(utc(after))
    while occurrence is not None and len(found) < count:
        found.append(occurrence)
        occurrence = of.next(occurrence.scheduled_at)
    return found


def shown(occurrence: Occurrence) -> str:
    hours, minutes = divmod(abs(occurrence.offset) // timedelta(minutes=1), 60)
    sign = "-" if occurrence.offset < timedelta(0) else "+"
    assert occurrence.scheduled_at + occurrence.offset == occurrence.local.replace(tzinfo=UTC)
    return f"{occurrence.local.isoformat(timespec='minutes')}{sign}{hours:02d}:{minutes:02d}"


def times(of: Cadence, count: int, *, after: str) -> list[str]:
    return [shown(occurrence) for occurrence in first(of, count, after=after)]
