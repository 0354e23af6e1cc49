"""The attempt of a message: opened by whoever has the message, kept by heartbeats, settled at the end of a block."""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import pytest

from rota import CancelledRun, Moot
from rota.domain.backoff import Backoff
from rota.domain.errors import InvalidRequest
from rota.domain.identity import RunId
from rota.domain.job import RetryPolicy
from rota.domain.run import AttemptOutcome, Progress, RunState
from rota.domain.settlement import Settlement
from rota.domain.sink import SqsSink
from rota.store.memory import MemoryStore
from rota.store.port import Fence, StoreUnavailable
from rota.testing.clock import ManualClock
from rota.worker import session
from rota.worker.session import AttemptSession, open_session
from tests.worker.scene import DEADLINE_SECONDS, Scene

LEASE = timedelta(seconds=30)
RETRY = RetryPolicy(max_attempts=2, initial_delay=timedelta(0), jitter=0)
NO_PAUSE = Backoff(initial_delay=timedelta(0), max_delay=timedelta(0), jitter=0)


class SteppingClock(ManualClock):
    """Its waits end when they are woken, and when the clock was moved past them."""

    def __init__(self, now: datetime) -> None:
        super().__init__(now)
        self.moved = threading.Condition()

    def pass_(self, delta: timedelta) -> None:
        with self.moved:
            self.advance(delta)
            self.moved.notify_all()

    def wait(self, wake: threading.Event, seconds: float) -> None:
        until = self.now() + timedelta(seconds=seconds)
        with self.moved:
            while not wake.is_set() and self.now() < until:
                self.moved.wait(0.01)  # it may be woken by its event too, which nobody tells the condition


class PatientClock(ManualClock):
    """A scene's, whose waits end when they are woken and not before: no heartbeat comes of itself."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene.now)
        self._scene = scene

    def now(self) -> datetime:
        return self._scene.now

    def wait(self, wake: threading.Event, seconds: float) -> None:
        assert wake.wait(DEADLINE_SECONDS), f"nothing came after {seconds} s or later"


def queue(scene: Scene, **settings: object) -> dict[str, object]:
    """The message of a run that is sent to a queue."""
    sink = SqsSink(queue_url="https://sqs.example/1/reports")
    scene.app.declare("report", sink=sink, lease=LEASE, retry=RETRY, **settings)  # type: ignore[arg-type]  # of a job
    scene.app.register_jobs()
    run_id = scene.queue("report", customer="acme")
    return {"run_id": run_id, "attempt": 1, "job": "report", "params_ref": "/schedules/report-1/versions/1"}


def opened(scene: Scene, message: object) -> AttemptSession:
    attempt = open_session(scene.gateway, message, worker="consumer", clock=PatientClock(scene))
    assert attempt is not None
    return attempt


def run_id_of(message: dict[str, object]) -> RunId:
    return RunId(str(message["run_id"]))


def test_a_message_opens_its_attempt_and_the_block_settles_it(any_scene: Scene) -> None:
    message = queue(any_scene)
    attempt = opened(any_scene, message)
    with attempt as ctx:
        assert (ctx.attempt, ctx.params) == (1, {"customer": "acme"})
        assert any_scene.run(run_id_of(message)).state is RunState.RUNNING
        ctx.progress(0.5, "half")
        attempt.result = {"rows": ctx.once("count", lambda: 3)}
    detail = any_scene.detail(run_id_of(message))
    assert (detail.run.state, detail.result) == (RunState.SUCCEEDED, '{"rows":3}')
    assert detail.run.progress == Progress(fraction=0.5, message="half")
    assert detail.attempts[0].worker == "consumer"


def test_a_duplicate_of_a_message_opens_nothing(any_scene: Scene) -> None:
    message = queue(any_scene)
    with opened(any_scene, message):
        assert open_session(any_scene.gateway, message, worker="other", clock=any_scene.clock) is None
    assert open_session(any_scene.gateway, message, worker="other", clock=any_scene.clock) is None
    assert len(any_scene.detail(run_id_of(message)).attempts) == 1


def test_what_is_raised_fails_the_attempt_and_leaves_the_block(any_scene: Scene) -> None:
    message = queue(any_scene)
    with pytest.raises(ValueError, match="no data"), opened(any_scene, message):
        raise ValueError("no data")
    run = any_scene.run(run_id_of(message))
    assert (run.state, run.error) == (RunState.QUEUED, "ValueError: no data")
    again = opened(any_scene, message | {"attempt": 2})
    with again:
        again.result = Moot("nothing to report")
    assert any_scene.run(run_id_of(message)).state is RunState.MOOT


def test_a_run_that_was_asked_to_stop_is_cancelled_and_nothing_leaves_the_block(scene: Scene) -> None:
    message = queue(scene)
    with opened(scene, message) as ctx:
        scene.app.cancel_run(ctx.run_id)
        raise CancelledRun("as asked")
    assert scene.run(run_id_of(message)).state is RunState.CANCELLED


def test_a_run_that_was_asked_to_stop_before_is_settled_as_cancelled_and_not_worked(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = queue(scene)
    scene.ask_to_stop_ahead(monkeypatch)
    assert open_session(scene.gateway, message, worker="consumer", clock=scene.clock) is None
    assert scene.run(run_id_of(message)).state is RunState.CANCELLED


def test_one_that_is_given_back_costs_its_run_no_try(any_scene: Scene) -> None:
    message = queue(any_scene)
    opened(any_scene, message).give_back("no place")
    detail = any_scene.detail(run_id_of(message))
    assert (detail.run.state, detail.run.error) == (RunState.QUEUED, "no place")
    assert [row.outcome for row in detail.attempts] == [AttemptOutcome.INTERRUPTED]


def test_heartbeats_keep_the_lease_and_bring_the_request_to_stop() -> None:
    scene = Scene()
    message = queue(scene)
    clock = SteppingClock(scene.now)
    attempt = open_session(scene.gateway, message, worker="consumer", clock=clock)
    assert attempt is not None
    with attempt as ctx:
        scene.app.cancel_run(ctx.run_id)
        clock.pass_(LEASE / 3)
        assert wait_until(lambda: ctx.is_cancelled)
        row = scene.detail(run_id_of(message)).attempts[0]
        assert row.lease_expires_at == clock.now() + LEASE


def test_an_attempt_that_runs_too_long_is_settled_while_its_block_goes_on() -> None:
    scene = Scene()
    message = queue(scene, timeout=timedelta(seconds=5))
    clock = SteppingClock(scene.now)
    attempt = open_session(scene.gateway, message, worker="consumer", clock=clock)
    assert attempt is not None
    with attempt as ctx:
        clock.pass_(timedelta(seconds=5))
        assert wait_until(lambda: scene.run(run_id_of(message)).state is RunState.QUEUED)
        assert ctx.is_cancelled
        attempt.result = "too late"
    detail = scene.detail(run_id_of(message))
    assert [row.outcome for row in detail.attempts] == [AttemptOutcome.TIMED_OUT]
    assert detail.result is None


# I6
def test_a_block_that_outlived_its_lease_settles_nothing(any_scene: Scene) -> None:
    message = queue(any_scene)
    attempt = opened(any_scene, message)
    with attempt:
        any_scene.clock.advance(LEASE)
        assert any_scene.world.dispatcher.step(any_scene.now).recovered == 1
        successor = opened(any_scene, message | {"attempt": 2})
        attempt.result = "too late"
    with successor:
        successor.result = "in time"
    detail = any_scene.detail(run_id_of(message))
    assert detail.result == '"in time"'
    assert [row.outcome for row in detail.attempts] == [AttemptOutcome.LOST, AttemptOutcome.SUCCEEDED]


class AwayStore(MemoryStore):
    """Cannot be reached for the next few settlements."""

    away = 0

    def commit_settlements(
        self, settlements: Sequence[Settlement], *, fences: Sequence[Fence] = ()
    ) -> list[bool]:
        if self.away:
            self.away -= 1
            raise StoreUnavailable("The database is restarting.")
        return super().commit_settlements(settlements, fences=fences)


@pytest.mark.parametrize(
    ("away", "state"),
    [(session.SETTLE_TRIES - 1, RunState.SUCCEEDED), (session.SETTLE_TRIES, RunState.RUNNING)],
)
def test_an_end_is_reported_when_rota_is_back_and_left_to_the_lease_when_it_stays_away(
    monkeypatch: pytest.MonkeyPatch, away: int, state: RunState
) -> None:
    monkeypatch.setattr(session, "BETWEEN_TRIES", NO_PAUSE)
    store = AwayStore()
    scene = Scene(store)
    message = queue(scene)
    store.away = away
    with opened(scene, message):
        pass
    assert scene.run(run_id_of(message)).state is state


@pytest.mark.parametrize(
    "message", [None, "report-1", [], {}, {"run_id": 7, "attempt": 1}, {"run_id": "r", "attempt": 0}]
)
def test_what_is_no_message_is_refused(scene: Scene, message: object) -> None:
    with pytest.raises(InvalidRequest):
        open_session(scene.gateway, message, worker="consumer", clock=scene.clock)


def test_an_application_opens_attempts_without_a_worker() -> None:
    scene = Scene()
    message = queue(scene)
    attempt = scene.app.open_attempt(message)
    assert attempt is not None
    with attempt:
        attempt.result = "done"
    assert scene.run(run_id_of(message)).state is RunState.SUCCEEDED
    assert scene.app.open_attempt(message) is None


def wait_until(is_reached: Callable[[], bool]) -> bool:
    """Looks until it is so, as long as a test may take."""
    pause = threading.Event()
    for _ in range(int(DEADLINE_SECONDS * 100)):
        if is_reached():
            return True
        pause.wait(0.01)
    return False
