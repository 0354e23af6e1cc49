"""Schedules whose runs may not overlap, with a worker that takes longer than their interval."""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from rota.dispatch.dispatcher import PASSED_OVER, Dispatcher
from rota.domain.admission import Skip
from rota.domain.edit_form import parse_edit
from rota.domain.identity import RunId
from rota.domain.json_text import load_json
from rota.domain.run import Run, RunState
from rota.service.context import Context
from rota.service.editing import edit_schedule
from rota.service.jobs import put_job
from rota.service.planning import move_occurrence, plan_occurrences
from rota.service.requested import request_run
from rota.service.runs import cancel_run
from rota.service.schedules import end_schedule, pause_schedule, resume_schedule
from rota.testing.clock import ManualClock
from tests.contract.builders import failure, success
from tests.dispatch.conftest import START, dispatcher_on, ledger, save, skips, work_off

MINUTE = timedelta(minutes=1)
ID = "report-7"


def at(minute: int) -> RunId:
    return RunId(f"{ID}.1.20250610T08{minute:02d}00Z")


@dataclass(slots=True, kw_only=True)
class Scene:
    """A schedule of every minute, a dispatcher, and a worker that is done when it is told to be."""

    context: Context
    clock: ManualClock
    dispatcher: Dispatcher
    begun: list[tuple[RunId, int]] = field(default_factory=list)

    def pass_minutes(self, minutes: int) -> None:
        for _ in range(minutes):
            work_off(self.dispatcher, self.clock.now() + MINUTE)
            self.start()

    def start(self) -> None:
        """Opens all that there is."""
        store, now = self.context.store, self.clock.now()
        intents = store.read_intents(["sales_report"], now=now, limit=100)
        opened = store.commit_openings("slow", intents, now=now)
        self.begun += [(it.run.run_id, it.run.attempt) for it in opened if it is not None]

    def finish(self) -> None:
        """Ends what was begun first."""
        run_id, attempt = self.begun.pop(0)
        done = success(run_id, at=self.clock.now(), attempt=attempt)
        assert self.context.store.commit_settlements([done]) == [True]

    def states(self) -> dict[str, str]:
        runs = [entry for entry in ledger(self.context, ID) if isinstance(entry, Run)]
        return {run.run_id: run.state.value for run in reversed(runs)}

    def notes(self) -> list[tuple[str, int, str | None]]:
        skipped = [entry for entry in ledger(self.context, ID) if isinstance(entry, Skip)]
        return [(skip.reason, skip.count, skip.note) for skip in reversed(skipped)]


@pytest.fixture
def scene(context: Context, clock: ManualClock) -> Scene:
    put_job(context, "sales_report", {"lease": "PT1H"})  # a worker that is slow, and not lost
    return Scene(context=context, clock=clock, dispatcher=dispatcher_on(context))


def saved(scene: Scene, overlap: str) -> Scene:
    overdue = {"policy": "catch_up_all"}
    save(scene.context, ID, "* * * * *", overlap=overlap, overdue=overdue)
    return scene


def test_under_skip_what_falls_due_while_a_run_is_open_is_skipped_and_names_it(scene: Scene) -> None:
    saved(scene, "skip").pass_minutes(4)
    assert scene.states() == {at(1): "running"}
    assert scene.notes() == [("overlap", 3, f"run {at(1)} is open")]

    scene.finish()
    scene.pass_minutes(2)
    assert scene.states() == {at(1): "succeeded", at(5): "running"}
    assert scene.notes()[1:] == [("overlap", 1, f"run {at(5)} is open")]


def test_under_queue_one_waits_and_is_queued_by_the_end_of_the_one_before(scene: Scene) -> None:
    saved(scene, "queue").pass_minutes(4)
    assert scene.states() == {at(1): "running", at(2): "waiting"}
    assert scene.notes() == [("overlap", 2, f"run {at(1)} is open, and run {at(2)} waits for it")]

    scene.finish()
    assert scene.states() == {at(1): "succeeded", at(2): "queued"}
    scene.start()
    scene.pass_minutes(1)
    assert scene.states() == {at(1): "succeeded", at(2): "running", at(5): "waiting"}


def test_under_allow_each_runs_beside_the_others(scene: Scene) -> None:
    saved(scene, "allow").pass_minutes(4)
    assert scene.states() == {at(minute): "running" for minute in (1, 2, 3, 4)}
    assert scene.notes() == []


def test_a_run_keeps_its_place_through_its_attempts(scene: Scene) -> None:
    saved(scene, "skip").pass_minutes(1)
    run_id, attempt = scene.begun.pop()
    now = scene.clock.now()
    again = failure(run_id, at=now, retry_at=now + 90 * MINUTE / 60, attempt=attempt)
    assert scene.context.store.commit_settlements([again]) == [True]
    work_off(scene.dispatcher, now + MINUTE)
    assert scene.states() == {at(1): "queued"}
    assert scene.notes() == [("overlap", 1, f"run {at(1)} is open")]


@pytest.mark.parametrize("is_begun", [True, False])
def test_the_open_run_that_is_cancelled_gives_way_to_the_one_that_waits(scene: Scene, is_begun: bool) -> None:
    saved(scene, "queue")
    for _ in range(2):
        work_off(scene.dispatcher, scene.clock.now() + MINUTE)
    if is_begun:
        scene.start()
    cancel_run(scene.context, at(1))
    if is_begun:
        assert scene.states() == {at(1): "running", at(2): "waiting"}  # until its worker has heard of it
        scene.finish()
        assert scene.states() == {at(1): "succeeded", at(2): "queued"}
    else:
        assert scene.states() == {at(1): "cancelled", at(2): "queued"}


def test_the_waiting_run_that_is_cancelled_leaves_its_place_to_the_next(scene: Scene) -> None:
    saved(scene, "queue").pass_minutes(2)
    cancel_run(scene.context, at(2))
    scene.pass_minutes(1)
    assert scene.states() == {at(1): "running", at(2): "cancelled", at(3): "waiting"}
    scene.finish()
    assert scene.states()[at(3)] == "queued"


def test_what_waits_when_its_schedule_ends_runs_all_the_same(scene: Scene) -> None:
    saved(scene, "queue").pass_minutes(2)
    end_schedule(scene.context, ID)
    scene.pass_minutes(2)
    assert scene.states() == {at(1): "running", at(2): "waiting"}
    scene.finish()
    assert scene.states() == {at(1): "succeeded", at(2): "queued"}


def test_a_pause_keeps_no_waiting_run_from_its_turn(scene: Scene) -> None:
    saved(scene, "queue").pass_minutes(2)
    pause_schedule(scene.context, ID)
    scene.finish()
    assert scene.states() == {at(1): "succeeded", at(2): "queued"}


def test_what_a_resumption_finds_owed_meets_the_run_that_is_open(scene: Scene) -> None:
    saved(scene, "skip").pass_minutes(1)
    pause_schedule(scene.context, ID)
    scene.pass_minutes(3)
    resume_schedule(scene.context, ID, apply_overdue=True)
    work_off(scene.dispatcher, scene.clock.now())
    assert scene.states() == {at(1): "running"}
    assert skips(scene.context, ID) == [("overlap", 3)]


def test_what_is_asked_for_neither_waits_nor_stands_in_the_way(scene: Scene) -> None:
    saved(scene, "skip").pass_minutes(1)
    _, asked = request_run(scene.context, ID)
    scene.start()
    assert scene.states()[str(asked["run_id"])] == "running"
    scene.begun.sort(key=lambda begun: begun[0] != at(1))
    scene.finish()
    scene.pass_minutes(1)
    assert scene.states()[at(2)] == "running"


def test_a_planned_run_meets_the_run_that_is_open(scene: Scene) -> None:
    saved(scene, "skip")
    plan_occurrences(scene.context, ID, until="2025-06-10T08:03:00Z")
    scene.pass_minutes(2)
    assert scene.states() == {at(1): "running", at(2): "skipped", at(3): "planned"}
    scene.finish()
    scene.pass_minutes(1)
    assert scene.states() == {at(1): "succeeded", at(2): "skipped", at(3): "running"}
    [skipped] = [it for it in ledger(scene.context, ID) if isinstance(it, Run) and it.run_id == at(2)]
    assert skipped.reason == "overlap"


def test_planned_runs_that_fall_due_together_take_the_places_one_after_the_other(scene: Scene) -> None:
    saved(scene, "queue")
    plan_occurrences(scene.context, ID, until="2025-06-10T08:03:00Z")
    for minute in (1, 2):
        move_occurrence(
            scene.context, ID, scheduled_at=f"2025-06-10T08:0{minute}:00Z", to="2025-06-10T08:03:00Z"
        )
    work_off(scene.dispatcher, START + 3 * MINUTE)
    assert scene.states() == {at(1): "queued", at(2): "waiting", at(3): "skipped"}


def test_a_moved_run_is_released_from_a_pause_into_its_place(scene: Scene) -> None:
    saved(scene, "queue").pass_minutes(1)
    plan_occurrences(scene.context, ID, until="2025-06-10T08:02:00Z")
    pause_schedule(scene.context, ID)
    scene.pass_minutes(1)
    assert scene.states() == {at(1): "running", at(2): "held"}
    resume_schedule(scene.context, ID, apply_overdue=True)
    work_off(scene.dispatcher, scene.clock.now())
    assert scene.states() == {at(1): "running", at(2): "waiting"}


def test_runs_of_a_version_that_may_not_overlap_keep_their_places_after_an_edit_that_allows_it(
    scene: Scene,
) -> None:
    saved(scene, "queue").pass_minutes(2)
    edit_schedule(scene.context, ID, parse_edit({"overlap": "allow"}))
    scene.pass_minutes(1)
    in_two = f"{ID}.2.20250610T080300Z"
    assert scene.states() == {at(1): "running", at(2): "waiting", in_two: "running"}
    scene.finish()
    assert scene.states()[at(2)] == "queued"

    edit_schedule(scene.context, ID, parse_edit({"overlap": "skip"}))
    scene.pass_minutes(1)
    assert skips(scene.context, ID) == [("overlap", 1)]


def test_a_run_that_ends_between_the_look_and_the_commit_costs_a_moment_and_not_a_poll(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.dispatcher = dispatcher_on(scene.context, poll=timedelta(minutes=1))
    saved(scene, "skip").pass_minutes(1)
    read = scene.context.store.read_due

    def read_and_finish(*args: object, **kwargs: object) -> object:
        rows = read(*args, **kwargs)  # type: ignore[arg-type]  # passed on as they are
        if rows and scene.begun:
            scene.finish()
        return rows

    monkeypatch.setattr(scene.context.store, "read_due", read_and_finish)
    scene.clock.set(START + 2 * MINUTE)
    now = scene.clock.now()
    report = scene.dispatcher.step(now)
    assert (report.admitted, report.wake_at) == (0, now + PASSED_OVER)
    work_off(scene.dispatcher, now + PASSED_OVER)
    assert scene.states() == {at(1): "succeeded", at(2): "queued"}
    assert scene.notes() == []


def test_a_backlog_takes_its_turns_and_is_over_when_the_schedule_is_on_time(scene: Scene) -> None:
    saved(scene, "allow")
    for hours in (1, 2):
        work_off(scene.dispatcher, START + hours * 60 * MINUTE + 30 * MINUTE)
        work_off(scene.dispatcher, scene.clock.now() + MINUTE)
    runs = [entry for entry in reversed(ledger(scene.context, ID)) if isinstance(entry, Run)]
    # 90 were owed, the last of them on time again, and one came on time; then 59 more, and one on time.
    assert [run.turn for run in runs] == [*range(1, 90), 0, 0, *range(1, 59), 0, 0]


def test_the_messages_of_an_edit_keep_the_params_of_the_run_that_waited(scene: Scene) -> None:
    saved(scene, "queue").pass_minutes(2)
    edit_schedule(scene.context, ID, parse_edit({"params": {"region": "north"}}))
    scene.finish()
    [intent] = scene.context.store.read_intents(["sales_report"], now=scene.clock.now(), limit=10)
    [opened] = scene.context.store.commit_openings("slow", [intent], now=scene.clock.now())
    assert opened is not None
    assert (opened.run.run_id, opened.run.state) == (at(2), RunState.RUNNING)
    assert load_json(opened.version.definition.params) == {}


def test_a_backlog_that_ends_by_a_beat_is_over_too(scene: Scene) -> None:
    """The planner takes 25; the one that is left is ordinary, and on time or nearly."""
    saved(scene, "allow")
    work_off(scene.dispatcher, START + 26 * MINUTE)
    work_off(scene.dispatcher, START + 28 * MINUTE)
    runs = [entry for entry in reversed(ledger(scene.context, ID)) if isinstance(entry, Run)]
    assert [run.turn for run in runs] == [*range(1, 26), 0, 1, 0]
