"""The story: two weeks of a sales report, nearly every day with something that goes wrong in production."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from rota.config import Settings
from rota.demo.checks import check_all, conclude, print_rows
from rota.demo.mailbox import Mailbox
from rota.demo.shop import make_shop
from rota.demo.stage import LEASE, Process, Stage, wait_for
from rota.demo.telling import say, say_run, say_scene
from rota.store.port import Intent, Store
from rota.wiring import open_store

SCHEDULE = "report-ny"
SAVED_AT = datetime(2026, 1, 8, 23, 0, tzinfo=UTC)
"""Thursday, 18:00 in New York."""

NINE_LOCAL_IN_UTC = 14
"""09:00 in New York is 14:00 UTC in January."""

LEASES_EXPIRED = LEASE + timedelta(seconds=5)
MINUTE = timedelta(minutes=1)


@dataclass(kw_only=True)
class Story:
    """What the scenes share and what the checks at the end look at."""

    stage: Stage
    mailbox: Mailbox
    store: Store
    dispatcher: Process
    worker: Process
    killed_before_commit_left: int = -1
    killed_after_commit_left: int = -1
    frozen_owns: int = -1
    duplicate_opened: list[object] = field(default_factory=list)
    mails_at_pause: list[str] = field(default_factory=list)


def nine_on(day: int) -> datetime:
    """09:00 in New York on that day of January 2026."""
    return datetime(2026, 1, day, NINE_LOCAL_IN_UTC, tzinfo=UTC)


def run_id(day: int) -> str:
    return f"{SCHEDULE}.1.{nine_on(day):%Y%m%dT%H%M%SZ}"


def tell(folder: Path) -> int:
    """Plays the story in `folder`; 0 where all checks hold, else 1."""
    make_shop(folder / "shop.db", first=date(2026, 1, 1), days=31)
    with Mailbox() as mailbox:
        stage = Stage(folder, smtp_port=mailbox.port, now=SAVED_AT)
        store = open_store(Settings(database_url=str(stage.database), partitions=4))
        try:
            story = set_the_stage(stage, mailbox, store)
            for scene in SCENES:
                scene(story)
            stage.stop()
            print_rows(story.store, SCHEDULE, mailbox)
            return conclude(check_all(story))
        finally:
            stage.stop()
            store.close()


def set_the_stage(stage: Stage, mailbox: Mailbox, store: Store) -> Story:
    say_scene("A customer's wish is saved: a sales report, weekdays at 09:00 in New York")
    stage.start_api()
    worker = stage.start_worker("worker-1")
    wait_for(lambda: store.get_job("sales_report"), "the worker's job")
    dispatcher = stage.start_dispatcher("dispatcher-1")
    answer = stage.ask(
        "POST",
        "/schedules",
        {
            "id": SCHEDULE,
            "job": "sales_report",
            "timezone": "America/New_York",
            "recurrence": {"cron": "0 9 * * 1-5"},
            "params": {"recipient": "owner@example.com"},
            "labels": {"customer": "acme"},
        },
    )
    say(f"POST /schedules -> {answer['id']}, version {answer['version']}, next due {answer['next_due']}")
    return Story(stage=stage, mailbox=mailbox, store=store, dispatcher=dispatcher, worker=worker)


def friday_all_goes_well(story: Story) -> None:
    say_scene("Friday 9: 09:00 comes; one run, with progress, a mail and a result")
    story.stage.set_clock(nine_on(9))
    say_run(story.stage.wait_for_run(run_id(9), "succeeded"))
    say(f"mail {story.mailbox.ids()[-1]}")


def monday_killed_before_the_commit(story: Story) -> None:
    say_scene("Monday 12: the dispatcher is killed (SIGKILL) after reading what is due, before committing")
    story.killed_before_commit_left = kill_and_restart(story, day=12, moment="before")


def tuesday_killed_after_the_commit(story: Story) -> None:
    say_scene("Tuesday 13: the dispatcher is killed just after committing, before it learns of it")
    story.killed_after_commit_left = kill_and_restart(story, day=13, moment="after")


def wednesday_two_dispatchers(story: Story) -> None:
    say_scene(
        "Wednesday 14: the dispatcher freezes (SIGSTOP), another takes over, the frozen one wakes: two at once"
    )
    stage = story.stage
    frozen = story.dispatcher
    held = {state.partition: (state.owner, state.epoch) for state in story.store.list_partitions()}
    owner = held[0][0]
    before = nine_on(14) - LEASES_EXPIRED - timedelta(seconds=5)
    stage.set_clock(before)
    wait_for(lambda: renewed_at(story.store, before), "the dispatcher to renew its leases")
    frozen.freeze()
    second = stage.start_dispatcher("dispatcher-second")
    stage.set_clock(before + LEASES_EXPIRED)
    wait_for(lambda: taken_over_from(story.store, owner), "the take-over")
    frozen.thaw()
    stage.set_clock(nine_on(14))
    say_run(stage.wait_for_run(run_id(14), "succeeded"))
    # It may have its share again by now, as one that comes; of what it had it has nothing.
    story.frozen_owns = sum(
        held[state.partition] == (state.owner, state.epoch) for state in story.store.list_partitions()
    )
    say(f"both run; partitions that the frozen one still owns as before: {story.frozen_owns}")
    story.dispatcher = second
    retire(story, frozen)


def thursday_delivered_twice(story: Story) -> None:
    say_scene("Thursday 15: the same delivery is handed over twice")
    stage, store = story.stage, story.store
    retire(story, story.worker)
    stage.set_clock(nine_on(15))
    copies: list[Intent] = wait_for(
        lambda: store.read_intents(["sales_report"], now=nine_on(15), limit=2) or None, "the delivery"
    )
    story.worker = stage.start_worker("worker-2")
    say_run(stage.wait_for_run(run_id(15), "succeeded"))
    story.duplicate_opened = list(store.commit_openings("a-second-worker", copies, now=stage.now))
    opened = "nothing" if story.duplicate_opened == [None] else "another attempt"
    say(f"the second hand-over of {copies[0].run_id}, attempt {copies[0].attempt}, opens {opened}")


def friday_an_attempt_fails(story: Story) -> None:
    say_scene("Friday 16: the mail server refuses; the attempt fails and a retry finishes the same run")
    stage = story.stage
    story.mailbox.refuse_next()
    stage.set_clock(nine_on(16))
    run = wait_for(lambda: failed_once(stage.run(run_id(16))), "the first attempt to fail")
    say(f"attempt 1: {run['error']}; the next one is due at {run['available_at']}")
    stage.set_clock(nine_on(16) + MINUTE)
    say_run(stage.wait_for_run(run_id(16), "succeeded"))


def monday_paused_after_the_mail(story: Story) -> None:
    say_scene("Monday 19: the report is sent; then the customer pauses. Pausing unsends nothing")
    stage = story.stage
    stage.set_clock(nine_on(19))
    say_run(stage.wait_for_run(run_id(19), "succeeded"))
    story.mails_at_pause = story.mailbox.ids()
    stage.set_clock(nine_on(19) + timedelta(hours=1))
    answer = stage.ask("POST", f"/schedules/{SCHEDULE}/pause", {"reason": "on holiday"})
    say(f"POST /pause -> {answer['status']}; mails received so far: {len(story.mails_at_pause)}")
    stage.set_clock(nine_on(20) + timedelta(hours=1))
    answer = stage.ask("POST", f"/schedules/{SCHEDULE}/resume", {"reason": "back again"})
    say(f"Tuesday 20 passes; POST /resume at 10:00 -> {answer['status']}")
    stage.set_clock(nine_on(21))
    say_run(stage.wait_for_run(run_id(21), "succeeded"))


SCENES: list[Callable[[Story], None]] = [
    friday_all_goes_well,
    monday_killed_before_the_commit,
    tuesday_killed_after_the_commit,
    wednesday_two_dispatchers,
    thursday_delivered_twice,
    friday_an_attempt_fails,
    monday_paused_after_the_mail,
]


def kill_and_restart(story: Story, *, day: int, moment: str) -> int:
    """Kills a dispatcher around its commit and starts another; how many runs of the day the killed one left."""
    stage = story.stage
    retire(story, story.dispatcher)
    halting = stage.start_halting_dispatcher(f"dispatcher-killed-{day}", moment)
    stage.set_clock(nine_on(day))
    stage.wait_until_halted(halting)
    halting.kill()
    stage.forget(halting)
    left = 0 if stage.run(run_id(day)) is None else 1
    say(f"killed; runs of today in the file: {left}. A new dispatcher starts.")
    story.dispatcher = stage.start_dispatcher(f"dispatcher-restarted-{day}")
    stage.set_clock(nine_on(day) + LEASES_EXPIRED)
    say_run(stage.wait_for_run(run_id(day), "succeeded"))
    return left


def retire(story: Story, process: Process) -> None:
    process.stop()
    story.stage.forget(process)


def renewed_at(store: Store, instant: datetime) -> bool | None:
    """True once every lease was renewed at `instant`: its holder does nothing but look until the clock moves."""
    return all(state.expires_at == instant + LEASE for state in store.list_partitions()) or None


def taken_over_from(store: Store, owner: str | None) -> bool | None:
    return all(state.owner not in {None, owner} for state in store.list_partitions()) or None


def failed_once(run: dict[str, object] | None) -> dict[str, object] | None:
    return run if run is not None and run["attempt"] == 1 and run["error"] is not None else None
