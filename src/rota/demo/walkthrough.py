"""The story of an edit: a daily report moves to another zone while a dispatcher still decides by the old definition."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from rota.application import Rota
from rota.clock import FileClock
from rota.config import Settings
from rota.demo.checks import conclude
from rota.demo.decisions import Decision, decision_from, place_of, say_decision
from rota.demo.halting import ANSWERED
from rota.demo.mailbox import Mailbox
from rota.demo.shop import make_shop
from rota.demo.stage import LEASE, Process, Stage, StageBroken, wait_for
from rota.demo.telling import say, say_rows, say_run, say_scene
from rota.demo.walks import MOMENTS, Life, live, say_lives, walks
from rota.demo.walkthrough_checks import Evidence, Refusal, check_walkthrough
from rota.domain.errors import NotFound
from rota.domain.identity import ScheduleId
from rota.domain.instants import format_instant
from rota.service.representation import Wire
from rota.store.port import AdmissionOutcome, ScheduleRecord, Store
from rota.wiring import open_store

REPORT = ScheduleId("report-7")
NEW_YORK, LONDON = "America/New_York", "Europe/London"
SAVED_AT = datetime(2026, 1, 12, 20, 0, tzinfo=UTC)
"""Monday, 15:00 in New York: that day's report is past."""

TODAY = datetime(2026, 1, 13, 14, 0, tzinfo=UTC)
"""Tuesday, 09:00 in New York."""

EDITED_AT = TODAY + timedelta(minutes=30)
TAKEN_OVER_AT = EDITED_AT + LEASE + timedelta(seconds=5)
TOMORROW = datetime(2026, 1, 14, 14, 0, tzinfo=UTC)
"""Wednesday, 09:00 in New York: it exists before the edit."""

TOMORROW_IN_LONDON = datetime(2026, 1, 14, 9, 0, tzinfo=UTC)
NEXT_IN_LONDON = datetime(2026, 1, 15, 9, 0, tzinfo=UTC)
"""Thursday, 09:00 in London: the first that the new version computes."""

SMALL_EDITS: tuple[tuple[str, dict[str, object]], ...] = (
    ("nine is early enough", {"recurrence": {"cron": "0 9 * * *"}}),
    ("the whole team reads it", {"params": {"recipient": "team@example.com"}}),
    ("nobody reads it in the afternoon", {"overdue": {"policy": "expire", "deadline": "PT3H"}}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walkthrough:
    """What the scenes share."""

    stage: Stage
    mailbox: Mailbox
    store: Store
    app: Rota


def tell(folder: Path) -> int:
    """Plays the story in `folder`; 0 where all checks hold, else 1."""
    make_shop(folder / "shop.db", first=date(2026, 1, 1), days=31)
    with Mailbox() as mailbox:
        stage = Stage(folder, smtp_port=mailbox.port, now=SAVED_AT)
        store = open_store(Settings(database_url=str(stage.database)))
        try:
            app = Rota(settings=Settings(partitions=4), store=store, clock=FileClock(stage.clock_file))
            evidence = play(Walkthrough(stage=stage, mailbox=mailbox, store=store, app=app))
            return conclude(check_walkthrough(evidence))
        finally:
            stage.stop()
            store.close()


def play(story: Walkthrough) -> Evidence:
    """The scenes, each of which gives what the checks look at."""
    say(
        "Simulated: the clock, which is a file that all processes read; where the first dispatcher stands still; and"
    )
    say(
        "what is said to be in memory. All else is real: processes, signals, the SQLite file, commands, mails."
    )
    make_three_small_edits(story)
    planned = plan_tomorrow(story)
    told = try_the_edit(story)
    old, by_revision = refuse_the_old_definition(story)
    by_epoch = refuse_the_lost_lease(story, old)
    tell_where_it_stands(story)
    let_two_days_pass(story)
    story.stage.stop()
    return Evidence(
        planned=planned,
        told=told,
        by_revision=by_revision,
        by_epoch=by_epoch,
        versions=story.app.versions(REPORT)[::-1],
        entries=list(story.app.iterate_occurrences(REPORT))[::-1],
        mails=story.mailbox.ids(),
        lives=walk_in_memory(),
    )


def make_three_small_edits(story: Walkthrough) -> None:
    say_scene("Monday 12 January: a daily sales report in New York is saved, and edited three times")
    story.stage.start_worker("worker")
    wait_for(lambda: story.store.get_job("sales_report"), "the worker's job")
    story.app.create_schedule(
        id=REPORT,
        job="sales_report",
        timezone=NEW_YORK,
        recurrence={"cron": "30 8 * * *"},
        params={"recipient": "owner@example.com"},
        actor="ops",
        reason="a customer's wish",
    )
    for number, (reason, patch) in enumerate(SMALL_EDITS, start=1):
        story.stage.set_clock(SAVED_AT + timedelta(minutes=10 * number))
        story.app.edit(REPORT, actor="ops", reason=reason, **patch)  # type: ignore[arg-type]  # fields by name
    story.stage.command("schedules", "versions", REPORT)


def plan_tomorrow(story: Walkthrough) -> Wire:
    say_scene(
        "Tuesday 13, 09:30 in New York: no dispatcher ran at nine, so today's is owed; tomorrow's is created ahead"
    )
    story.stage.set_clock(EDITED_AT)
    story.stage.command("schedules", "plan", REPORT, "--until", "2026-01-14T09:00")
    planned = story.app.get_run(run_id(4, TOMORROW))
    say_occurrence(planned)
    return planned


def try_the_edit(story: Walkthrough) -> Wire:
    say_scene("The team has moved to London: what would the edit do?")
    story.stage.command("schedules", "edit", REPORT, "--timezone", LONDON, "--dry-run")
    return story.app.edit(REPORT, timezone=LONDON, dry_run=True)


def refuse_the_old_definition(story: Walkthrough) -> tuple[Process, Refusal]:
    say_scene(
        "Two dispatchers run; the first has read version 4, decides by it, and stands still before its commit"
    )
    stage = story.stage
    old = stage.start_halting_dispatcher("dispatcher-1", "between")
    decision = decision_from(stage.wait_until_halted(old))
    latest = read(story).schedule.latest_version
    say_decision(decision)
    stage.start_dispatcher("dispatcher-2")
    say_scene("Now the edit is made: version 5")
    stage.command(
        *("schedules", "edit", REPORT, "--timezone", LONDON, "--expect-version", "4"),
        *("--actor", "ops", "--reason", "the team has moved to London"),
    )
    say_scene("The first dispatcher goes on, and commits what it decided by version 4")
    return old, go_on(story, old, decision, latest_version=latest)


def refuse_the_lost_lease(story: Walkthrough, old: Process) -> Refusal:
    say_scene("It reads again and decides anew, and stands still once more: now until its lease is over")
    stage = story.stage
    decision = decision_from(stage.wait_until_halted(old))
    latest = read(story).schedule.latest_version
    say_decision(decision)
    stage.set_clock(TAKEN_OVER_AT)
    wait_for(lambda: read(story).version.number == 5 or None, "the second dispatcher to take over")
    say(
        "\nThe second dispatcher has taken its partitions over, admitted what was owed and activated version 5:"
    )
    say_run(wait_for_run(story, run_id(4, TODAY)))
    say_scene("The first one goes on, and commits under the epoch that it had")
    return go_on(story, old, decision, latest_version=latest)


def go_on(story: Walkthrough, process: Process, decision: Decision, *, latest_version: int) -> Refusal:
    """Lets the dispatcher commit; what it expected, what there is, and what the store answers."""
    record, runs = read(story), runs_there(story)
    epoch = story.store.list_partitions()[decision.partition].epoch
    process.go_on()
    answer = process.wait_for_line(ANSWERED).rpartition(" ")[2]
    refusal = Refusal(
        decision=decision,
        latest_version=latest_version,
        revision=record.schedule.revision,
        cursor=place_of(record.schedule.cursor),
        epoch=epoch,
        boundary=format_instant(record.latest.effective_from),
        answer=answer,
        is_unchanged=(read(story), runs_there(story)) == (record, runs),
    )
    say_refusal(refusal)
    if answer == AdmissionOutcome.ADMITTED:
        raise StageBroken(f"The store accepted what was decided at revision {decision.revision}, too late.")
    return refusal


def say_refusal(refusal: Refusal) -> None:
    decision = refusal.decision
    say_rows(
        [
            ("", "it expected", "there is"),
            ("epoch", decision.epoch, refusal.epoch),
            ("revision", decision.revision, refusal.revision),
            ("cursor", decision.read, refusal.cursor),
        ]
    )
    say(f"version 5 begins at {refusal.boundary}, the boundary")
    written = "nothing was written" if refusal.is_unchanged else "SOMETHING WAS WRITTEN"
    say(f"the store answers: {refusal.answer}; {written}")


def tell_where_it_stands(story: Walkthrough) -> None:
    say_scene("Where it stands: tomorrow's is as it was, and the next one is version 5's")
    version = read(story).version
    say(f"version {version.number} governs since {format_instant(version.effective_from)}, the boundary")
    story.stage.command("schedules", "upcoming", REPORT, "--count", "3")


def let_two_days_pass(story: Walkthrough) -> None:
    say_scene("Wednesday 14 and Thursday 15 come, with both dispatchers")
    story.stage.set_clock(TOMORROW_IN_LONDON)
    skip = wait_for(lambda: newest(story, "skip"), "the suppressed instant")
    say(f"skip  {skip['from']}  version {skip['version']}  {skip['reason']}: {skip['note']}")
    for number, instant in ((4, TOMORROW), (5, NEXT_IN_LONDON)):
        story.stage.set_clock(instant)
        run = wait_for_run(story, run_id(number, instant))
        say_occurrence(run)
    say("")
    story.stage.command("schedules", "occurrences", REPORT)


def say_occurrence(run: Wire) -> None:
    say(
        f"run   {run['scheduled_at']}  version {run['version']}  {run['local']} {run['offset']}  "
        f"{run['period_key']}  {run['state']}"
    )


def walk_in_memory() -> tuple[Life, ...]:
    say_scene("The same between other zones. Simulated: in memory, in rota.testing, with a manual clock")
    say(
        "A daily report is edited before, between and after the day's local times in the two zones; instants in UTC."
    )
    lives = tuple(live(walk, moment) for walk in walks() for moment in MOMENTS)
    say_lives(lives)
    return lives


def run_id(version: int, instant: datetime) -> str:
    return f"{REPORT}.{version}.{instant:%Y%m%dT%H%M%SZ}"


def read(story: Walkthrough) -> ScheduleRecord:
    record = story.store.get_schedule(REPORT)
    if record is None:
        raise StageBroken(f"{REPORT} is not stored any more.")
    return record


def runs_there(story: Walkthrough) -> list[object]:
    return [run["run_id"] for run in story.app.runs(schedule=REPORT)]


def newest(story: Walkthrough, kind: str) -> Wire | None:
    return next((entry for entry in story.app.occurrences(REPORT) if entry["kind"] == kind), None)


def wait_for_run(story: Walkthrough, identity: str) -> Wire:
    """The run as soon as it has succeeded."""

    def look() -> Wire | None:
        try:
            run = story.app.get_run(identity)
        except NotFound:
            return None
        return run if run["state"] == "succeeded" else None

    return wait_for(look, f"{identity} to be succeeded")
