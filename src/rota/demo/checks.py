"""What must hold when the story has ended, judged from the stored rows and the mails that really arrived."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from rota.demo.mailbox import Mailbox
from rota.demo.telling import say, say_scene
from rota.domain.admission import Skip
from rota.domain.identity import RunId, ScheduleId
from rota.domain.instants import format_instant
from rota.domain.run import Run, RunDetail, RunState
from rota.store.port import Store
from rota.zones import load_zone

if TYPE_CHECKING:
    from rota.demo.story import Story

FIRST, LAST = date(2026, 1, 9), date(2026, 1, 21)
PAUSED = date(2026, 1, 20)
RETRIED = RunId("report-ny.1.20260116T140000Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    promise: str
    holds: bool


def weekdays_at_nine() -> list[datetime]:
    """The instants that the rule names, computed here in the plainest way: what the ledger is checked against."""
    zone = load_zone("America/New_York")
    days = [FIRST + timedelta(days=number) for number in range((LAST - FIRST).days + 1)]
    noon = {day: datetime.fromisoformat(f"{day}T12:00:00+00:00") for day in days}
    offsets = {day: zone.segment_at(noon[day]).offset for day in days}
    return [noon[day] - timedelta(hours=3) - offsets[day] for day in days if day.isoweekday() <= 5]


def ledger(store: Store, schedule: str) -> list[Run | Skip]:
    """Oldest first."""
    return store.list_ledger(ScheduleId(schedule), before=None, limit=1000)[::-1]


def details(store: Store, schedule: str) -> Iterator[RunDetail]:
    for entry in ledger(store, schedule):
        if isinstance(entry, Run) and (detail := store.get_run(entry.run_id)) is not None:
            yield detail


def check_all(story: "Story") -> list[Check]:
    entries = ledger(story.store, "report-ny")
    runs = [entry for entry in entries if isinstance(entry, Run)]
    skips = [entry for entry in entries if isinstance(entry, Skip)]
    return [*_check_ledger(story, runs, skips), *_check_crashes(story), *_check_deliveries(story, runs)]


def _check_ledger(story: "Story", runs: list[Run], skips: list[Skip]) -> list[Check]:
    told = Counter([run.scheduled_at for run in runs] + [skip.from_ for skip in skips])
    mails = story.mailbox.ids()
    paused = [(skip.reason, skip.count, skip.from_.date()) for skip in skips]
    return [
        Check(
            promise="every weekday 09:00 in New York has one outcome: a run, or a skip with its reason",
            holds=told == Counter(weekdays_at_nine()),
        ),
        Check(promise="every run succeeded", holds=all(run.state is RunState.SUCCEEDED for run in runs)),
        Check(
            promise="one mail for each run, with the run's Message-ID",
            holds=sorted(mails) == sorted(f"<{run.run_id}@rota.local>" for run in runs),
        ),
        Check(
            promise="pausing unsent nothing, and the day that fell into the pause is skipped as paused",
            holds=mails[: len(story.mails_at_pause)] == story.mails_at_pause
            and paused == [("paused", 1, PAUSED)],
        ),
    ]


def _check_crashes(story: "Story") -> list[Check]:
    return [
        Check(
            promise="killed before the commit: nothing half written was left",
            holds=story.killed_before_commit_left == 0,
        ),
        Check(
            promise="killed after the commit: the run was there, and stayed the only one",
            holds=story.killed_after_commit_left == 1,
        ),
        Check(
            promise="the dispatcher that woke up owned nothing any more",
            holds=story.frozen_owns == 0,
        ),
    ]


def _check_deliveries(story: "Story", runs: list[Run]) -> list[Check]:
    attempts = {detail.run.run_id: len(detail.attempts) for detail in details(story.store, "report-ny")}
    retried = attempts.pop(RETRIED, 0)
    tomorrow = story.stage.now + timedelta(days=1)
    return [
        Check(
            promise="the delivery that was handed over twice opened nothing the second time",
            holds=story.duplicate_opened == [None],
        ),
        Check(
            promise="the refused mail cost a second attempt of the same run, and no other run has two",
            holds=story.mailbox.refusals == 1 and retried == 2 and set(attempts.values()) == {1},
        ),
        Check(
            promise="no delivery intent is left over",
            holds=story.store.read_intents(["sales_report"], now=tomorrow, limit=10) == [],
        ),
        Check(
            promise="each run's HTML and CSV report are there",
            holds=all(
                (story.stage.folder / f"{run.run_id}.{kind}").stat().st_size > 0
                for run in runs
                for kind in ("html", "csv")
            ),
        ),
    ]


def print_rows(store: Store, schedule: str, mailbox: Mailbox) -> None:
    """The rows as they are stored."""
    say_scene("What is stored")
    record = store.get_schedule(ScheduleId(schedule))
    if record is not None:
        row = record.schedule
        due = "-" if row.cursor.due_at is None else format_instant(row.cursor.due_at)
        say(f"schedule  {row.schedule_id}  {row.status}  version {row.cursor.version}  next due {due}")
    for entry in ledger(store, schedule):
        if isinstance(entry, Skip):
            say(f"skip      {format_instant(entry.from_)}  {entry.reason}  count {entry.count}")
            continue
        say(f"run       {entry.run_id}  {entry.period_key}  {entry.state}  attempt {entry.attempt}")
        detail = store.get_run(entry.run_id)
        for attempt in detail.attempts if detail is not None else ():
            say(f"  attempt {attempt.number}  {attempt.worker}  {attempt.outcome}  {attempt.error or ''}")
    for state in store.list_partitions():
        say(
            f"partition {state.partition}  epoch {state.epoch}  owner {state.owner or 'nobody (all have stopped)'}"
        )
    for identity in mailbox.ids():
        say(f"mail      {identity}")


def conclude(checks: list[Check]) -> int:
    """Tells each; 0 where all hold, else 1."""
    say_scene("What must hold")
    for check in checks:
        say(f"{'ok  ' if check.holds else 'FAIL'} {check.promise}")
    failed = sum(not check.holds for check in checks)
    say(f"{len(checks) - failed} of {len(checks)} checks hold.")
    return 1 if failed else 0
