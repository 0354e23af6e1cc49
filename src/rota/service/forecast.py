"""What a schedule will do, as things stand or as they would after a change: the same for `upcoming` and every dry run.

What was decided before its time (planned, held, skipped on request, carried) is merged with what the rules name from
now on, each instant by the version whose window it lies in. Of the named ones those whose period is used are told
apart: they would be suppressed.

Where a version waits to take over, its runs and its forerunner's are not all there yet. What the forerunner will have
run by then is foreseen, so that what the new version will carry and suppress is told before it happens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import itemgetter

from rota.domain.activation import Activation, occurrences_at_stake, plan_activation, stake_probes
from rota.domain.admission import run_of, used_note
from rota.domain.cadence import Cadence, Occurrence, SkippedLocal
from rota.domain.identity import ScheduleId
from rota.domain.key_uses import PERIOD_REACH, KeyProbe, KeyUse, Uses, is_user, period_end, probe_of
from rota.domain.period import period_key
from rota.domain.run import Run, RunState
from rota.domain.schedule import Schedule, Version, next_named
from rota.domain.zone import Fold, Gap, Unambiguous, resolve_local_time
from rota.service.context import Context
from rota.service.representation import Wire, expected_run_to_wire, named_to_wire, skipped_local_to_wire
from rota.store.port import ScheduleRecord, read_uses

AHEAD_READ_MAX = 1_000
"""Of the runs that exist ahead of their time, so many are looked at: the soonest."""

LOOKED_AT_MAX = 1_000
"""Named instants looked at, where very many of them are suppressed or planned."""

GAPS_SHOWN_MAX = 20
PROBED_AT_ONCE = 50
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reign:
    """A version and its cadence: it names what lies in its window."""

    version: Version
    cadence: Cadence


@dataclass(slots=True, kw_only=True)
class Forecast:
    """Entries in wire form, soonest first."""

    next: list[Wire] = field(default_factory=list)
    suppressed: list[Wire] = field(default_factory=list)
    skipped: list[Wire] = field(default_factory=list)
    """On request, or because a gap swallows the local time."""
    carried: list[Run] = field(default_factory=list)
    """What the version that waits will carry when it takes over."""

    def add(self, later: "Forecast") -> None:
        """One that begins later; what both have is there once."""
        for mine, its in (
            (self.next, later.next),
            (self.suppressed, later.suppressed),
            (self.skipped, later.skipped),
        ):
            mine += [entry for entry in its if entry not in mine]
        self.carried += [run for run in later.carried if run not in self.carried]


def reigns_of(context: Context, record: ScheduleRecord) -> list[Reign]:
    """The version that owns the cursor, and the one that waits to take over. Raises `ZoneRulesDiffer`."""
    return [
        Reign(version=version, cadence=context.cadences.of_version(version)) for version in record.versions
    ]


def forecast(
    context: Context,
    schedule: Schedule,
    reigns: Sequence[Reign],
    *,
    after: datetime,
    cursor: datetime | None,
    count: int,
    carried: Sequence[Run] = (),
    owed: Sequence[Run] = (),
    dropped: Sequence[Run] = (),
    now: datetime | None = None,
) -> Forecast:
    """The next `count` after `after`, by when they fall due, and what is left out on the way to them.

    `cursor` is the first instant that has no outcome yet; `carried` are runs that a change would create, `owed` those
    that admission would; `dropped` are planned runs that it would skip, as they are then.
    `now` is given where `after` is a later instant.
    """
    seen, schedule_id = Forecast(), schedule.schedule_id
    expected = [*carried, *owed]
    if len(reigns) > 1:
        before, new = reigns
        since = (after if now is None else now) - before.version.delay
        expected += _expected_by(schedule, before, new, after=since if cursor is None else max(since, cursor))
        activation = activation_then(context, schedule, before, new, expected=expected, dropped=dropped)
        seen.carried = list(activation.carried)
        expected += seen.carried
    ahead = [
        *carried,
        *context.store.list_ahead(schedule_id, from_=after + timedelta(microseconds=1), limit=AHEAD_READ_MAX),
    ]
    named = _named(reigns, after=after, cursor=cursor)
    with_uses = _with_uses(context, named, schedule_id, expected=expected, dropped=dropped)
    unplanned, last = _sort_out(seen, with_uses, count=count)
    versions = [reign.version for reign in reigns]
    decided = _entries_of(context, ahead, seen.carried, versions, after=after)
    entries = sorted([*decided, *unplanned], key=itemgetter(0, 1))
    seen.next = [wire for _, _, wire in entries[:count]]
    until = max(filter(None, [last, *(due for due, run_id, _ in entries[:count] if run_id)]), default=after)
    seen.skipped += [
        *(
            {**ahead_to_wire(context, run, versions), "reason": run.reason}
            for run in ahead
            if run.state is RunState.SKIPPED and run.scheduled_at <= until
        ),
        *(skipped_local_to_wire(local) for local in _gaps(reigns, after=after, until=until)),
    ]
    return seen


def _sort_out(
    seen: Forecast, named: Iterator[tuple[Version, Occurrence, KeyUse | None]], *, count: int
) -> tuple[list[tuple[datetime, str, Wire]], datetime | None]:
    """The first `count` that will be admitted, each with its place in order, and the last instant looked at.

    What is suppressed, or was cancelled before its time, goes into `seen`.
    """
    admitted: list[tuple[datetime, str, Wire]] = []
    last: datetime | None = None
    for version, occurrence, use in named:
        if len(admitted) == count:
            break
        last = occurrence.scheduled_at
        wire = named_to_wire(version, occurrence)
        if use is None:
            admitted.append((last + version.delay, "", wire))
        elif use.run_id != probe_of(version, occurrence).run_id:
            seen.suppressed.append({**wire, "note": used_note(version, occurrence, use)})
        elif use.state is RunState.CANCELLED:
            seen.skipped.append(
                {**wire, "state": use.state.value, "run_id": use.run_id, "reason": "cancelled"}
            )
    return admitted, last


def _entries_of(
    context: Context,
    ahead: Sequence[Run],
    foreseen: Sequence[Run],
    versions: Sequence[Version],
    *,
    after: datetime,
) -> list[tuple[datetime, str, Wire]]:
    """Each with its place in order; those foreseen are not there yet, even if the change were made."""
    return [
        *(
            (run.due_at, run.run_id, ahead_to_wire(context, run, versions))
            for run in ahead
            if run.state is not RunState.SKIPPED and run.due_at > after
        ),
        *(
            (
                run.due_at,
                run.run_id,
                {**ahead_to_wire(context, run, versions), "state": "named", "run_id": None},
            )
            for run in foreseen
            if run.due_at > after
        ),
    ]


def ahead_to_wire(context: Context, run: Run, versions: Sequence[Version]) -> Wire:
    """A run that exists ahead of its time, or would; `versions` are at hand, others are read where it matters."""
    own = next((version for version in versions if version.number == run.version), None)
    if own is None and run.due_at != run.scheduled_at and run.origin != "backfill":
        own = context.store.get_version(run.schedule_id, run.version)
    return expected_run_to_wire(run, own)


def _named(
    reigns: Sequence[Reign], *, after: datetime, cursor: datetime | None
) -> Iterator[tuple[Version, Occurrence]]:
    """What has no outcome yet and falls due after `after`."""
    for reign in reigns:
        position = after - reign.version.delay
        if cursor is not None:
            position = max(position, cursor - timedelta(seconds=1))
        for _ in range(LOOKED_AT_MAX):
            occurrence = next_named(reign.version, reign.cadence, position)
            if occurrence is None:
                break
            yield reign.version, occurrence
            position = occurrence.scheduled_at


def _with_uses(
    context: Context,
    named: Iterator[tuple[Version, Occurrence]],
    schedule_id: ScheduleId,
    *,
    expected: Sequence[Run],
    dropped: Sequence[Run],
) -> Iterator[tuple[Version, Occurrence, KeyUse | None]]:
    """Each with the run that uses its period, looked up some at a time."""
    while chunk := [pair for pair, _ in zip(named, range(PROBED_AT_ONCE), strict=False)]:
        probes = [probe_of(version, occurrence) for version, occurrence in chunk]
        uses = uses_then(context, schedule_id, probes, expected=expected, dropped=dropped)
        for (version, occurrence), probe in zip(chunk, probes, strict=True):
            yield version, occurrence, uses.get(probe.run_id)


def uses_then(
    context: Context,
    schedule_id: ScheduleId,
    probes: Sequence[KeyProbe],
    *,
    expected: Sequence[Run],
    dropped: Sequence[Run] = (),
) -> Uses:
    """What the probes will find when the expected runs are there and the dropped ones are skipped."""
    skipped = {run.run_id: run for run in dropped}
    uses = read_uses(context.store, schedule_id, probes)
    for probe in probes:
        use = uses[probe.run_id]
        if use is not None and use.run_id in skipped:
            run = skipped[use.run_id]
            is_own = run.run_id == probe.run_id
            use = KeyUse(run_id=run.run_id, state=run.state, reason=run.reason) if is_own else None
        uses[probe.run_id] = use or _use_by_other(expected, probe)
    return uses


def _use_by_other(runs: Sequence[Run], probe: KeyProbe) -> KeyUse | None:
    """The use by one of these runs that is not the asked one itself: that is merely expected, not there."""
    for run in runs:
        if run.run_id != probe.run_id and is_user(probe, run):
            return KeyUse(run_id=run.run_id, state=run.state, reason=run.reason)
    return None


def _expected_by(schedule: Schedule, before: Reign, new: Reign, *, after: datetime) -> list[Run]:
    """The runs that the version before will have made at the boundary: the first of each of the new one's periods, as
    far back as those reach.
    """
    boundary, period = new.version.effective_from, new.version.period
    first_of: dict[str, Occurrence] = {}
    position = max(after, boundary - PERIOD_REACH[period]) - _SECOND
    while (occurrence := next_named(before.version, before.cadence, position)) is not None:
        first_of.setdefault(period_key(period, occurrence), occurrence)
        position = max(occurrence.scheduled_at, _end_of_period(new, before, occurrence) - _SECOND)
    return [run_of(schedule, before.version, occurrence) for occurrence in first_of.values()]


def _end_of_period(new: Reign, before: Reign, occurrence: Occurrence) -> datetime:
    """When the clocks of the version before first show a time past the new one's period; thus nothing of the next
    period is passed over. The occurrence itself where there is nothing to be gained.
    """
    is_twofold = before.cadence.fold == "both"  # Second passes in the same period have keys of their own.
    if new.version.period in ("instant", "once") or is_twofold:
        return occurrence.scheduled_at
    match resolve_local_time(before.cadence.zone, period_end(new.version.period, occurrence.named_local)):
        case Unambiguous(instant=instant) | Fold(first=instant) | Gap(starts_at=instant):
            return instant


def activation_then(
    context: Context,
    schedule: Schedule,
    before: Reign,
    new: Reign,
    *,
    expected: Sequence[Run],
    dropped: Sequence[Run],
) -> Activation:
    """How the version that waits will take over, if nothing but what is expected happens until then."""
    at_stake = occurrences_at_stake(before.version, before.cadence, new.version, new.cadence)
    probes = stake_probes(before.version, new.version, at_stake)
    uses = uses_then(context, schedule.schedule_id, probes, expected=expected, dropped=dropped)
    return plan_activation(
        schedule,
        before.version,
        new.version,
        new.cadence,
        at_stake=at_stake,
        uses=uses,
        last_run_at=None,
        now=new.version.effective_from,
    )


def _gaps(reigns: Sequence[Reign], *, after: datetime, until: datetime) -> list[SkippedLocal]:
    """Local times in gaps, each by the version in whose window the gap lies."""
    gaps: list[SkippedLocal] = []
    for reign in reigns:
        window_until = reign.version.effective_until
        end = until if window_until is None else min(until, window_until - timedelta(seconds=1))
        start = max(after, reign.version.effective_from - timedelta(seconds=1))
        if start < end:
            gaps += reign.cadence.skipped_in_gaps(after=start, until=end, limit=GAPS_SHOWN_MAX)
    return gaps
