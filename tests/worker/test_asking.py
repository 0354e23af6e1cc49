"""What a worker asks for: jobs with a handler, each within its own concurrency, now and then a backlog first."""

from collections.abc import Sequence
from datetime import datetime

import pytest

from rota.domain.errors import Conflict, InvalidRequest
from rota.domain.job import Job
from rota.domain.run import RunState
from rota.domain.sink import CelerySink, SqsSink, WebhookSink, WorkerSink
from rota.store.memory import MemoryStore
from rota.store.port import OpenedAttempt, Wanted
from rota.worker.context import RunContext
from rota.worker.registry import Registry
from tests.worker.scene import Gate, Scene

WEBHOOK = WebhookSink(url="https://shop.example/due")
QUEUE = SqsSink(queue_url="https://sqs.example/1/reports")


class AskedStore(MemoryStore):
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[dict[str, int | None], bool]] = []

    def commit_claims(
        self,
        worker: str,
        wanted: Sequence[Wanted],
        *,
        now: datetime,
        limit: int,
        backlog_first: bool = False,
    ) -> list[OpenedAttempt]:
        self.asked.append(({each.job: each.limit for each in wanted}, backlog_first))
        return super().commit_claims(worker, wanted, now=now, limit=limit, backlog_first=backlog_first)


def test_a_job_has_no_more_attempts_open_than_its_concurrency(any_scene: Scene) -> None:
    gate = Gate()
    any_scene.app.job("heavy", concurrency=1)(lambda ctx: gate.pass_through())
    any_scene.app.job("light")(lambda ctx: gate.pass_through())
    runs = [any_scene.queue(job) for job in ("heavy", "heavy", "light", "light")]
    worker = any_scene.worker(concurrency=4)
    for _ in range(3):  # a store may take two elements a call
        report = worker.step(any_scene.now)
    assert (report.opened, report.running) == (0, 3)
    assert any_scene.run(runs[1]).state is RunState.QUEUED
    gate.open()
    any_scene.step_until(
        worker, lambda: all(any_scene.run(run_id).state is RunState.SUCCEEDED for run_id in runs)
    )


def test_a_handler_that_outlives_its_attempt_counts_against_its_jobs_concurrency() -> None:
    scene, gate = Scene(AskedStore()), Gate()
    scene.app.job("heavy", concurrency=1)(lambda ctx: gate.pass_through())
    scene.queue("heavy")
    worker = scene.worker()
    worker.step(scene.now)
    gate.wait_arrived()
    worker.interrupt(scene.now)
    worker._is_stopping = False
    worker.step(scene.now)
    store = scene.store
    assert isinstance(store, AskedStore)
    assert store.asked[0][0] == {"echo": None, "heavy": 1}
    assert store.asked[-1][0] == {"echo": None}
    gate.open()
    scene.close()


def test_every_fourth_claim_asks_for_a_backlog_first() -> None:
    scene = Scene(AskedStore())
    worker = scene.worker(inline=True)
    for _ in range(8):
        worker.step(scene.now)
    assert isinstance(scene.store, AskedStore)
    assert [backlog_first for _, backlog_first in scene.store.asked] == [False, False, False, True] * 2


def test_a_declared_job_is_made_known_and_not_claimed(any_scene: Scene) -> None:
    any_scene.app.declare("notify", sink=WEBHOOK, priority=7, max_running=3, description="Tells the shop.")
    run_id = any_scene.queue("notify")
    any_scene.worker(inline=True).step(any_scene.now)
    job = any_scene.store.get_job("notify")
    assert job is not None
    assert (job.sink, job.priority, job.max_running, job.description) == (WEBHOOK, 7, 3, "Tells the shop.")
    assert any_scene.run(run_id).state is RunState.QUEUED


def test_a_job_of_a_queue_may_have_a_handler_that_no_worker_claims_for(scene: Scene) -> None:
    called: list[RunContext] = []
    scene.app.job("report", sink=QUEUE)(called.append)
    run_id = scene.queue("report")
    scene.worker(inline=True).step(scene.now)
    assert called == []
    assert scene.run(run_id).state is RunState.QUEUED
    assert scene.app.registry.get("report") is not None


@pytest.mark.parametrize(
    ("sink", "where"), [(WEBHOOK, "a webhook"), (CelerySink(task="reports.daily"), "Celery")]
)
def test_a_handler_that_nobody_would_call_is_refused_with_what_to_write(
    sink: WebhookSink | CelerySink, where: str
) -> None:
    with pytest.raises(TypeError, match=rf"are sent to {where}, .* app.declare\('notify', sink=...\)"):
        Registry().job("notify", sink=sink)(lambda ctx: None)


def test_a_name_is_registered_or_declared_and_not_both() -> None:
    registry = Registry()
    registry.declare("notify", sink=WEBHOOK)
    with pytest.raises(Conflict, match="'notify' is declared already"):
        registry.job("notify")(lambda ctx: None)
    with pytest.raises(Conflict, match="'notify' is declared already"):
        registry.declare("notify")
    registry.job("report")(lambda ctx: None)
    with pytest.raises(Conflict, match="'report' has a handler already"):
        registry.declare("report")


def test_a_declared_job_takes_the_defaults_and_is_checked() -> None:
    registry = Registry()
    assert registry.declare("elsewhere") == Job(name="elsewhere")
    assert isinstance(registry.declare("fetched", sink=WorkerSink()).sink, WorkerSink)
    with pytest.raises(InvalidRequest, match="priority"):
        registry.declare("other", priority=10)
    with pytest.raises(TypeError, match="Give sink as WorkerSink or WebhookSink or CelerySink or SqsSink"):
        registry.declare("other", sink="webhook")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(TypeError, match="A job has no 'guard'"):
        registry.declare("other", guard=lambda ctx: None)  # type: ignore[call-arg]  # the same
    assert [job.name for job in registry.jobs()] == ["elsewhere", "fetched"]


@pytest.mark.parametrize(
    ("concurrency", "error"),
    [(0, ValueError), (1_001, ValueError), (True, TypeError), ("2", TypeError)],
)
def test_a_concurrency_that_cannot_be_is_refused(concurrency: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="concurrency"):
        Registry().job("heavy", concurrency=concurrency)(lambda ctx: None)
