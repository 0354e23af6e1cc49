"""The body of a Celery task: what it does with a message, and that it needs nothing of Celery to be imported."""

import subprocess
import sys
from datetime import timedelta

import pytest
from celery import Celery

from rota import Moot, Rota, RunContext
from rota.contrib.celery import rota_task
from rota.domain.errors import InvalidRequest
from rota.domain.identity import RunId
from rota.domain.job import RetryPolicy
from rota.domain.run import AttemptOutcome, RunState
from rota.domain.sink import CelerySink
from tests.worker.scene import Scene


def queue(scene: Scene) -> dict[str, object]:
    """The message of a run that goes to Celery."""
    retry = RetryPolicy(max_attempts=2, initial_delay=timedelta(0), jitter=0)
    scene.app.declare("report", sink=CelerySink(task="reports.daily"), retry=retry)
    scene.app.register_jobs()
    return {"run_id": scene.queue("report", customer="acme"), "attempt": 1, "job": "report"}


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_celery_task_does_the_runs_work(scene: Scene) -> None:
    message = queue(scene)
    celery_app = Celery("reports", broker="memory://")

    @celery_app.task(name="reports.daily")  # type: ignore[untyped-decorator]  # Celery brings no types
    @rota_task(scene.app)
    def daily(ctx: RunContext) -> dict[str, object]:
        """Sales of one day."""
        return {"for": ctx.params["customer"], "attempt": ctx.attempt}

    assert daily.__doc__ == "Sales of one day."
    assert daily.apply(args=[message]).get() == {"for": "acme", "attempt": 1}
    detail = scene.detail(RunId(str(message["run_id"])))
    assert (detail.run.state, detail.result) == (RunState.SUCCEEDED, '{"attempt":1,"for":"acme"}')


def test_a_message_that_comes_twice_is_worked_one_time(scene: Scene) -> None:
    message = queue(scene)
    calls: list[str] = []
    work = rota_task(scene.app)(lambda ctx: calls.append(ctx.run_id))
    assert [work(message), work(message)] == [None, None]
    assert calls == [message["run_id"]]


def test_what_a_task_raises_fails_the_attempt_and_is_told_to_celery(scene: Scene) -> None:
    message = queue(scene)

    def fail(ctx: RunContext) -> None:
        raise ValueError("no data")

    with pytest.raises(ValueError, match="no data"):
        rota_task(scene.app)(fail)(message)
    detail = scene.detail(RunId(str(message["run_id"])))
    assert [attempt.outcome for attempt in detail.attempts] == [AttemptOutcome.FAILED]
    # The further attempt is Rota's, by a further message.
    assert detail.run.state is RunState.QUEUED


def test_a_moot_run_is_no_result_of_the_task(scene: Scene) -> None:
    message = queue(scene)
    assert rota_task(scene.app)(lambda ctx: Moot("confirmed already"))(message) is None
    assert scene.run(RunId(str(message["run_id"]))).reason == "confirmed already"


def test_a_run_that_was_asked_to_stop_ends_the_task_in_peace(scene: Scene) -> None:
    message = queue(scene)

    def heed(ctx: RunContext) -> None:
        scene.app.cancel_run(ctx.run_id)
        ctx._signals.request_cancel()  # as a heartbeat does
        ctx.raise_if_cancelled()

    assert rota_task(scene.app)(heed)(message) is None
    assert scene.run(RunId(str(message["run_id"]))).state is RunState.CANCELLED


def test_a_run_that_was_asked_to_stop_before_is_not_worked(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = queue(scene)
    scene.ask_to_stop_ahead(monkeypatch)
    calls: list[str] = []
    assert rota_task(scene.app)(lambda ctx: calls.append(ctx.run_id))(message) is None
    assert calls == []
    assert scene.run(RunId(str(message["run_id"]))).state is RunState.CANCELLED


def test_a_task_of_a_job_gives_back_what_is_another_ones_whatever_the_message_says(scene: Scene) -> None:
    message = queue(scene) | {"job": "refund"}
    calls: list[str] = []
    work = rota_task(scene.app, job="refund")(lambda ctx: calls.append(ctx.run_id))
    with pytest.raises(InvalidRequest, match="It is of the job 'report', and this task does 'refund'"):
        work(message)
    detail = scene.detail(RunId(str(message["run_id"])))
    assert (calls, detail.run.state) == ([], RunState.QUEUED)
    assert [attempt.outcome for attempt in detail.attempts] == [AttemptOutcome.INTERRUPTED]
    rota_task(scene.app, job="report")(lambda ctx: calls.append(ctx.run_id))(message | {"attempt": 2})
    assert calls == [message["run_id"]]


def test_an_async_function_is_refused() -> None:
    async def daily(ctx: RunContext) -> None: ...

    with pytest.raises(TypeError, match="Celery awaits nothing: write 'daily' as a plain def"):
        rota_task(Rota(":memory:"))(daily)


@pytest.mark.parametrize("module", ["rota.contrib.celery", "rota.contrib.sqs"])
def test_nothing_of_it_is_loaded_with_rota(module: str) -> None:
    code = (
        f"import sys, rota.application, {module}\n"
        "assert not {'celery', 'kombu', 'boto3', 'botocore', 'urllib3'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
