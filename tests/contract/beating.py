"""Ordinary schedules of many kinds, their beats, and short names for the calls of set-based admission."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from rota.domain.beat import Beat, BeatKey, beat_of
from rota.domain.cadence import Cadence, Fold, Gap
from rota.domain.job import Job
from rota.domain.overdue import CatchUpAll, Expire, OverduePolicy
from rota.domain.period import Period
from rota.domain.recurrence import Cron, Recurrence
from rota.store.port import BeatsOutcome, Fence, NewSchedule, RunFilter, Store
from rota.zones import load_zone
from tests.contract.builders import (
    DAY,
    MADE_AT,
    MINUTE,
    NINE,
    definition,
    new_schedule,
)
from tests.contract.steps import (
    contents,
    deliveries,
    fence_of,
)

LONG_AGO = NINE - 1000 * DAY
MICROSECOND = timedelta(microseconds=1)
EACH = 100
JOBS = ["sales_report", "strict", "lax"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A schedule that stands at `at` and is ordinary there."""

    recurrence: Recurrence
    at: datetime
    timezone: str = "UTC"
    gap: Gap = "skip"
    fold: Fold = "first"
    period: Period = "instant"
    series: int = 1
    overdue: OverduePolicy | None = None
    job: str = "sales_report"
    partition: int = 0
    ends_at: datetime | None = None
    last: datetime | None = None
    late: timedelta = timedelta(0)
    """How long after the instant it is looked at."""


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


NINE_DAILY = Cron(expression="0 9 * * *")
HALF_PAST_TWO = Cron(expression="30 2 * * *")
ROME = "Europe/Rome"


DAILY_CASE = Case(recurrence=NINE_DAILY, at=NINE, period="day")


def cadence_of(new: NewSchedule) -> Cadence:
    version = new.first.version
    zone = load_zone(version.definition.timezone)
    return Cadence(version.definition.recurrence, zone, gap=version.definition.gap, fold=version.fold)


def made_of(case: Case, id_: str = "report-7") -> NewSchedule:
    of = replace(
        definition(case.recurrence, timezone=case.timezone, gap=case.gap, overdue=case.overdue),
        ends_at=case.ends_at,
    )
    new = new_schedule(id_, due=case.at, of=of, job=case.job, partition=case.partition)
    version = replace(
        new.first.version,
        fold=case.fold,
        period=case.period,
        series=case.series,
        last_scheduled_at=case.last,
        cadence_id=f"{case.recurrence} {case.timezone} {case.gap} {case.fold}",
    )
    return replace(new, first=replace(new.first, version=version))


def beats_of(new: NewSchedule, *instants: datetime, now: datetime = NINE) -> list[Beat]:
    """The beats of the schedule's first version at these instants."""
    version = new.first.version
    keys = [
        BeatKey(
            cadence_id=version.cadence_id, period=version.period, series=version.series, scheduled_at=instant
        )
        for instant in instants
    ]
    beats = [beat_of(key, cadence_of(new), now=now) for key in keys]
    return [beat for beat in beats if beat is not None]


def beat(
    store: Store,
    beats: Sequence[Beat],
    *,
    fences: Sequence[Fence] | None = None,
    after: datetime = LONG_AGO,
    now: datetime = NINE,
    each: int = EACH,
) -> BeatsOutcome:
    fences = [fence_of(store, 0)] if fences is None else fences
    return store.commit_beats(fences, beats, after=after, now=now, each=each)


def read_keys(
    store: Store,
    partitions: Sequence[int] = (0,),
    *,
    after: datetime = LONG_AGO,
    now: datetime = NINE,
    each: int = EACH,
    excluding: Sequence[str] = (),
) -> list[BeatKey]:
    return store.read_beats(partitions, after=after, now=now, each=each, excluding=excluding)


def all_of(store: Store) -> dict[str, object]:
    """What is stored, the runs of all schedules and every intent among it."""
    runs = store.list_runs(RunFilter(), before=None, limit=1000)
    return {**contents(store), "runs": runs, "intents": deliveries(store, *JOBS)}


def strict_and_lax_jobs(store: Store) -> None:
    store.commit_job(Job(name="strict", overdue=Expire(deadline=MINUTE)), now=MADE_AT)
    store.commit_job(Job(name="lax", overdue=CatchUpAll()), now=MADE_AT)


def daily_at(minutes: int, id_: str = "report-7", *, partition: int = 0) -> NewSchedule:
    """A schedule that stands that many minutes from nine, and daily from then on."""
    instant = NINE + minutes * MINUTE
    recurrence = Cron(expression=f"{instant.minute} {instant.hour} * * *")
    return made_of(Case(recurrence=recurrence, at=instant, partition=partition), id_)


def assert_left(
    store: Store, new: NewSchedule, *, now: datetime = NINE, beats: Sequence[Beat] | None = None
) -> None:
    """Its beat admits nothing, and leaves everything as it is."""
    beats = beats_of(new, NINE, now=now) if beats is None else beats
    assert beats != []
    fences, before = [fence_of(store, 0)], all_of(store)
    assert beat(store, beats, fences=fences, now=now) == BeatsOutcome()
    assert all_of(store) == before
