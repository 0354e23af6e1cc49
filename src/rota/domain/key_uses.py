"""Which runs use which periods of a schedule (I2, I9): what is asked of a store, and what it answers.

A run of origin `schedule` or `backfill` uses its period in any state, but where it was skipped automatically: only an
occurrence skipped on request keeps it. Periods are compared under one version's rules; a run of another version counts
by the local time that its own rule named. So a period is asked for as a span of named local times, never by its key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rota.domain.cadence import Occurrence
from rota.domain.identity import RunId, run_id_of
from rota.domain.period import Period, period_key
from rota.domain.run import Run, RunState
from rota.domain.schedule import Version

AROUND = timedelta(days=3)
"""More than any named local time lies from its instant read as UTC: an offset, and a gap as long as a day."""

PERIOD_REACH: dict[Period, timedelta] = {
    "day": timedelta(days=1) + AROUND,
    "week": timedelta(weeks=1) + AROUND,
    "month": timedelta(days=31) + AROUND,
    "instant": timedelta(seconds=1),
    "once": timedelta(seconds=1),
}
"""Two instants further apart than this are never of one period, whatever their zones."""

EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyProbe:
    """Asks for the run with the id `run_id`, in whatever state, or else for the first run that uses the period.

    Its user is scheduled in `[scheduled_from, scheduled_until)`, its named local time lies in
    `[named_from, named_until)`, and where `second_pass` is not None its own is the same. With `counts_from` it is
    scheduled, or falls due, at that instant or later.
    """

    run_id: RunId
    scheduled_from: datetime
    scheduled_until: datetime
    named_from: datetime
    named_until: datetime
    second_pass: bool | None
    counts_from: datetime | None = None


def holds_its_key(state: RunState, reason: str | None) -> bool:
    """An automatic skip frees the key; a skip on request keeps it, and so does every other state (I2)."""
    return state is not RunState.SKIPPED or reason == "on_request"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUse:
    """The run that a probe found."""

    run_id: RunId
    state: RunState
    reason: str | None

    @property
    def frees_its_period(self) -> bool:
        """It was skipped, and not on request: it is an outcome of its own instant, and of nothing else."""
        return not holds_its_key(self.state, self.reason)


Uses = Mapping[RunId, KeyUse | None]
"""What probes found, by the id of the run that each asked for: None where nobody uses the period. What was not looked
up is not there."""


def key_of(version: Version, occurrence: Occurrence) -> str:
    """The period key of the version's occurrence."""
    return period_key(version.period, occurrence, series=version.series)


def probe_of(
    version: Version, occurrence: Occurrence, *, of_version: int | None = None, whole_life: bool = False
) -> KeyProbe:
    """Who uses the occurrence's period as `version` tells periods.

    The occurrence is `version`'s own, or that of another version by its number. `whole_life` counts the runs from
    before the version's series of keys began too.
    """
    local = occurrence.named_local
    named_from, named_until = _span(version.period, local)
    scheduled_from, scheduled_until = EARLIEST, LATEST
    if version.period == "instant":
        scheduled_from = occurrence.scheduled_at
        scheduled_until = scheduled_from + timedelta(seconds=1)
    elif version.period != "once":
        scheduled_from = max(EARLIEST, named_from.replace(tzinfo=UTC) - AROUND)
        scheduled_until = min(LATEST, named_until.replace(tzinfo=UTC) + AROUND)
    number = version.number if of_version is None else of_version
    return KeyProbe(
        run_id=run_id_of(version.schedule_id, number, occurrence.scheduled_at),
        scheduled_from=scheduled_from,
        scheduled_until=scheduled_until,
        named_from=named_from,
        named_until=named_until,
        second_pass=None if version.period in ("instant", "once") else occurrence.second_pass,
        counts_from=None if whole_life else version.counts_from,
    )


def probe_at(version: Version, scheduled_at: datetime) -> KeyProbe:
    """Asks for the version's run of that instant, or else for that of any other version."""
    named_from, named_until = _span("instant", scheduled_at)
    return KeyProbe(
        run_id=run_id_of(version.schedule_id, version.number, scheduled_at),
        scheduled_from=scheduled_at,
        scheduled_until=scheduled_at + timedelta(seconds=1),
        named_from=named_from,
        named_until=named_until,
        second_pass=None,
    )


def is_user(probe: KeyProbe, run: Run) -> bool:
    """Whether the run is one that the probe finds: what a store does by an index."""
    if run.run_id == probe.run_id:
        return True
    return (
        run.origin in ("schedule", "backfill")
        and holds_its_key(run.state, run.reason)
        and probe.scheduled_from <= run.scheduled_at < probe.scheduled_until
        and probe.named_from <= run.named_local < probe.named_until
        and (probe.second_pass is None or run.second_pass is probe.second_pass)
        and (probe.counts_from is None or max(run.scheduled_at, run.due_at) >= probe.counts_from)
    )


def period_end(period: Period, local: datetime) -> datetime:
    """The naive local time at which the period of `local` is over."""
    return _span(period, local)[1]


def _span(period: Period, local: datetime) -> tuple[datetime, datetime]:
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case "day":
            return midnight, midnight + timedelta(days=1)
        case "week":
            monday = midnight - timedelta(days=midnight.weekday())
            return monday, monday + timedelta(weeks=1)
        case "month":
            first = midnight.replace(day=1)
            return first, (first + timedelta(days=31)).replace(day=1)
        case "instant" | "once":
            return EARLIEST.replace(tzinfo=None), LATEST.replace(tzinfo=None)
