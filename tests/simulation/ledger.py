"""The judge of a schedule's ledger: what was stored is compared with what the rules name, by a walk of its own.

It may be asked at any moment of a life. Everything before the cursor has exactly one outcome (I4), every run is of a
version that owns its instant or was decided ahead (I8), windows touch, and the cursor stands where its version says.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

from rota.domain.admission import Skip
from rota.domain.identity import ScheduleId
from rota.domain.recurrence import Cron
from rota.domain.run import Run, RunState
from rota.domain.schedule import ScheduleStatus, Version
from rota.store.port import RunFilter, ScheduleRecord, Store
from tests.simulation.rules import Named, Rule, key_text, period_of

ALL = 100_000
LATE = datetime.fromisoformat("2200-01-01T00:00:00+00:00")

WAITING_WHERE = {
    ScheduleStatus.ACTIVE: {RunState.HELD},
    ScheduleStatus.ENDED: {RunState.HELD, RunState.PLANNED},
}
"""Runs that are still to be decided by the dispatcher, by their schedule's status."""

ZoneOf = Callable[[Version], ZoneInfo]
"""The zone as the version was computed with it."""


def pinned_zone(version: Version) -> ZoneInfo:
    return ZoneInfo(version.definition.timezone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Everything that is stored of a schedule."""

    record: ScheduleRecord
    versions: dict[int, Version]
    runs: dict[str, Run]
    skips: list[Skip]
    zone_of: ZoneOf

    @property
    def occurrences(self) -> list[Run]:
        """The runs of instants that the rules name: those on request and replays are of none."""
        return [run for run in self.runs.values() if run.origin in ("schedule", "backfill")]

    @property
    def latest(self) -> int:
        return self.record.schedule.latest_version

    def rule(self, number: int) -> Rule:
        version = self.versions[number]
        recurrence = version.definition.recurrence
        assert isinstance(recurrence, Cron)
        return Rule(cron=recurrence.expression, zone=self.zone_of(version), fold=version.fold)

    def counts(self, run: Run, *, under: int) -> bool:
        """Whether the run uses a period of that version at all: none does that was over when its keys began anew."""
        counts_from = self.versions[under].counts_from
        return counts_from is None or max(run.scheduled_at, run.due_at) >= counts_from

    def period_under(self, number: int, run: Run | Named) -> Hashable:
        """The period of a run, or of what a rule names, as that version tells periods."""
        local, instant = (
            (run.named_local, run.scheduled_at) if isinstance(run, Run) else (run.local, run.instant)
        )
        period = self.versions[number].period
        return period_of(period, local, instant, second_pass=run.second_pass)


def read_ledger(store: Store, id_: str, *, zone_of: ZoneOf = pinned_zone) -> Ledger:
    record = store.get_schedule(ScheduleId(id_))
    assert record is not None
    entries = store.list_ledger(record.schedule.schedule_id, before=None, limit=ALL)
    versions = store.list_versions(record.schedule.schedule_id, before=None, limit=ALL)
    return Ledger(
        record=record,
        versions={version.number: version for version in versions},
        runs={entry.run_id: entry for entry in entries if isinstance(entry, Run)},
        skips=[entry for entry in entries if isinstance(entry, Skip)],
        zone_of=zone_of,
    )


def judge(ledger: Ledger) -> None:
    """Everything that has to be true of a schedule at any moment, whatever was killed, late or refused."""
    assert ledger.record.schedule.status is not ScheduleStatus.ERROR, ledger.record.schedule.status_reason
    check_windows(ledger)
    check_series(ledger)
    check_cursor(ledger)
    check_outcomes(ledger)
    check_runs(ledger)
    check_suppressions(ledger)


def check_windows(ledger: Ledger) -> None:
    """Numbers without a hole; windows that touch, but for the empty ones of versions that never governed."""
    assert sorted(ledger.versions) == list(range(1, ledger.latest + 1))
    governing = [
        version
        for _, version in sorted(ledger.versions.items())
        if version.effective_from != version.effective_until
    ]
    for before, after in pairwise(governing):
        assert before.effective_until == after.effective_from, (before, after)
    assert all(version.effective_from < (version.effective_until or LATE) for version in governing)
    if ledger.record.schedule.status is not ScheduleStatus.ENDED:
        last = governing[-1]
        assert (last.number, last.effective_until) == (ledger.latest, None)


def check_series(ledger: Ledger) -> None:
    """Keys begin anew where that was asked for, and go on else."""
    series, counts_from = 1, None
    for number, version in sorted(ledger.versions.items()):
        began = (number, version.effective_from) if version.boundary == "now" else (series, counts_from)
        assert (version.series, version.counts_from) == began, version
        if version.effective_from != version.effective_until:
            series, counts_from = began


def check_cursor(ledger: Ledger) -> None:
    """It stands at an instant that its version names in its window, or at the end of that; and it is due before, as
    long as runs wait to be released or dropped."""
    cursor, status = ledger.record.schedule.cursor, ledger.record.schedule.status
    waiting = {run.state for run in ledger.runs.values()} & WAITING_WHERE.get(status, set())
    due_at, scheduled_at = cursor.due_at, cursor.scheduled_at
    is_looked_at = due_at is not None and (scheduled_at is None or due_at < scheduled_at)
    assert is_looked_at or not waiting, f"{waiting} are forgotten"
    owner = ledger.versions[cursor.version]
    for number in range(cursor.version + 1, ledger.latest):
        version = ledger.versions[number]
        assert version.effective_from == version.effective_until, "it was passed over"
    if scheduled_at is None:
        assert status is ScheduleStatus.ENDED
        return
    is_named = ledger.rule(cursor.version).at(scheduled_at) is not None
    is_inside = owner.effective_from <= scheduled_at < (owner.effective_until or LATE)
    assert (is_named and is_inside) or scheduled_at == owner.effective_until


def check_outcomes(ledger: Ledger) -> None:
    """I4: of what each version named in its window, up to the cursor, every instant has one outcome, and nothing
    else has one."""
    cursor = ledger.record.schedule.cursor
    skipped = {number: Counter[datetime]() for number in ledger.versions}
    for skip in ledger.skips:
        inside = [named.instant for named in ledger.rule(skip.version).between(skip.from_, skip.until)]
        assert (len(inside), inside[:1]) == (skip.count, [skip.from_]), skip
        skipped[skip.version].update(inside)
    for number, version in ledger.versions.items():
        end = _decided_until(version, cursor.version, cursor.scheduled_at)
        expected = Counter(
            named.instant for named in ledger.rule(number).between(version.effective_from, end)
        )
        ran = Counter(
            run.scheduled_at
            for run in ledger.runs.values()
            if run.version == number
            and run.origin == "schedule"
            and version.effective_from <= run.scheduled_at < end
        )
        assert ran + skipped[number] == expected, (version.schedule_id, number)


def _decided_until(version: Version, owner: int, cursor: datetime | None) -> datetime:
    """Up to where the version's instants have their outcomes; its begin where it has not governed."""
    if version.number > owner:
        return version.effective_from
    if version.number == owner and cursor is not None:
        return cursor
    assert version.effective_until is not None
    return version.effective_until


def check_runs(ledger: Ledger) -> None:
    """I1, I8: named by its version's rule, and in its version's window unless it was decided before that closed."""
    for run in ledger.occurrences:
        version = ledger.versions[run.version]
        named = ledger.rule(run.version).at(run.scheduled_at)
        assert named is not None, run.run_id
        assert (run.named_local, run.second_pass) == (named.local, named.second_pass), run.run_id
        key = key_text(
            version.period,
            named.local,
            named.instant,
            second_pass=named.second_pass,
            series=version.series,
        )
        assert run.period_key == key, run.run_id
        is_owned = version.effective_from <= run.scheduled_at < (version.effective_until or LATE)
        assert is_owned or run.planned_at is not None, f"{run.run_id} is outside its version's window"
        if run.carried_by is not None:
            assert run.version < run.carried_by
            assert ledger.versions[run.carried_by].effective_from <= run.scheduled_at


def check_suppressions(ledger: Ledger) -> None:
    """What did not run because its period was used names a run of that period."""
    for skip in ledger.skips:
        if skip.reason != "period_used":
            continue
        found = re.fullmatch(r"\S+ is used by run ([^\s,]+)(, which was .+)?", skip.note or "")
        assert found is not None, skip
        user = ledger.runs[found[1]]
        assert ledger.counts(user, under=skip.version), (skip, user)
        for named in ledger.rule(skip.version).between(skip.from_, skip.until):
            same = ledger.period_under(skip.version, named) == ledger.period_under(skip.version, user)
            assert same, (skip, user)


def check_intents(store: Store, jobs: Iterable[str]) -> None:
    """Each queued run has the delivery intent of its next attempt, and nothing else has one."""
    queued = store.list_runs(RunFilter(state=RunState.QUEUED), before=None, limit=ALL)
    intents = store.read_intents(list(jobs), now=LATE, limit=ALL)
    expected = sorted((run.run_id, run.attempt + 1) for run in queued)
    assert sorted((intent.run_id, intent.attempt) for intent in intents) == expected


def uses_its_period(run: Run) -> bool:
    """A run in any state, but for one that was skipped without being asked for."""
    return run.origin in ("schedule", "backfill") and (
        run.state is not RunState.SKIPPED or run.reason == "on_request"
    )


def check_days(ledger: Ledger) -> None:
    """I2, I9: of a daily rule that only moved, every day from the first to the last one has exactly one run."""
    days = Counter(_day(run) for run in ledger.occurrences if uses_its_period(run))
    assert max(days.values(), default=1) == 1, "a day has two runs"
    by_itself = [_day(run) for run in ledger.occurrences if run.origin == "schedule"]
    if by_itself:
        lost = set(range(min(by_itself), max(by_itself) + 1)) - set(days)
        assert not lost, f"lost: {[date.fromordinal(day).isoformat() for day in sorted(lost)]}"


def _day(run: Run) -> int:
    return run.named_local.toordinal()
