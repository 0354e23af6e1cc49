"""The worker in sh and curl on the page about the protocol works, as it stands there, on a real server."""

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rota.domain.identity import RunId
from rota.domain.job import RetryPolicy
from rota.domain.run import RunState
from tests.worker.proxies import behind_a_proxy
from tests.worker.scene import Scene
from tests.worker.served import Served

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/worker-protocol.md"
LINES_MAX = 45
DEADLINE_SECONDS = 30
ONE_TRY = RetryPolicy(max_attempts=1)


def script() -> str:
    [block] = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    return str(block)


class ShellWorker:
    """The page's worker of the job `report`, whose command is the given script."""

    def __init__(self, scene: Scene, url: str, folder: Path, command: str) -> None:
        if shutil.which("curl") is None:
            pytest.fail(
                "curl is not installed, so the page's example cannot be shown to work: apt-get install curl"
            )
        (folder / "worker.sh").write_text(script())
        report = folder / "report.sh"
        report.write_text(f"#!/bin/sh\n{command}\n")
        report.chmod(0o755)
        self.scene = scene
        self.errors = folder / "errors"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                ["sh", str(folder / "worker.sh"), url, "report", str(report)],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )

    def wait_until(self, run_id: RunId, is_reached: Callable[[RunState], bool]) -> None:
        pause = threading.Event()
        for _ in range(DEADLINE_SECONDS * 50):
            if is_reached(self.scene.run(run_id).state):
                return
            pause.wait(0.02)
        pytest.fail(f"the run is {self.scene.run(run_id).state} still; {self.errors.read_text()}")


Begin = Callable[[str], ShellWorker]


@pytest.fixture
def scene(server: Served) -> Iterator[Scene]:
    scene = Scene(server=server)
    scene.app.declare("report", retry=ONE_TRY)
    yield scene
    scene.close()


@pytest.fixture
def begin(scene: Scene, server: Served, tmp_path: Path) -> Iterator[Begin]:
    begun: list[ShellWorker] = []

    def start(command: str) -> ShellWorker:
        begun.append(ShellWorker(scene, server.url, tmp_path, command))
        return begun[-1]

    yield start
    for worker in begun:
        # With its curl, which would claim what the next test queues.
        with suppress(ProcessLookupError):
            os.killpg(worker.process.pid, signal.SIGKILL)
        worker.process.wait()


def is_over(state: RunState) -> bool:
    return state in {RunState.SUCCEEDED, RunState.FAILED}


def test_the_worker_does_what_is_due_and_reports_it(scene: Scene, begin: Begin) -> None:
    worker = begin("cat")
    for customer in ("acme", 'o"run_id":"x\\'):
        run_id = scene.queue("report", customer=customer)
        worker.wait_until(run_id, is_over)
        detail = scene.detail(run_id)
        assert detail.run.state is RunState.SUCCEEDED, detail.run.error
        [shown] = [scene.app.get_run(run_id)]
        result = shown["result"]
        assert isinstance(result, dict)
        assert (result["run_id"], result["params"]) == (run_id, {"customer": customer})
        assert detail.attempts[0].worker.startswith("report@")


@pytest.mark.parametrize(
    ("command", "error"),
    [("exit 3", "exit code 3"), ("echo no JSON", "exit code 0"), ("echo '\"a\"'; exit 1", "exit code 1")],
)
def test_what_fails_is_reported_as_failed(scene: Scene, begin: Begin, command: str, error: str) -> None:
    run_id = scene.queue("report")
    begin(command).wait_until(run_id, is_over)
    run = scene.run(run_id)
    assert (run.state, run.error) == (RunState.FAILED, error)


def test_a_command_that_writes_nothing_succeeds_without_a_result(scene: Scene, begin: Begin) -> None:
    run_id = scene.queue("report")
    begin("true").wait_until(run_id, is_over)
    assert (scene.run(run_id).state, scene.detail(run_id).result) == (RunState.SUCCEEDED, None)


def test_work_that_was_done_stays_done_whatever_a_proxy_says(
    scene: Scene, server: Served, tmp_path: Path
) -> None:
    run_id = scene.queue("report")
    with behind_a_proxy(server, 404, times=2) as url:
        worker = ShellWorker(scene, url, tmp_path, "echo 7")
        worker.wait_until(run_id, is_over)
        os.killpg(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
    assert (scene.run(run_id).state, scene.detail(run_id).result) == (RunState.SUCCEEDED, "7")


def test_it_finishes_what_it_has_when_it_is_told_to_stop(scene: Scene, begin: Begin, tmp_path: Path) -> None:
    run_id = scene.queue("report")
    worker = begin(f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo 7")
    worker.wait_until(run_id, lambda state: state is RunState.RUNNING)
    worker.process.send_signal(signal.SIGTERM)
    (tmp_path / "go").touch()
    assert worker.process.wait(DEADLINE_SECONDS) == 0
    assert (scene.run(run_id).state, scene.detail(run_id).result) == (RunState.SUCCEEDED, "7")


def test_a_cancelled_command_is_stopped_by_the_next_heartbeat(scene: Scene, begin: Begin) -> None:
    run_id = scene.queue("report")
    worker = begin("exec sleep 60")
    worker.wait_until(run_id, lambda state: state is RunState.RUNNING)
    scene.app.cancel_run(run_id)
    worker.wait_until(run_id, lambda state: state is RunState.CANCELLED)


def test_of_a_worker_that_was_killed_no_heartbeats_go_on_without_its_command(
    scene: Scene, begin: Begin, tmp_path: Path
) -> None:
    run_id = scene.queue("report")
    worker = begin(f"until [ -e {tmp_path}/go ]; do sleep 0.05; done")
    worker.wait_until(run_id, lambda state: state is RunState.RUNNING)
    worker.process.kill()
    worker.process.wait()
    (tmp_path / "go").touch()
    # Whatever it started is in its group, which is gone once nothing of it goes on.
    pause = threading.Event()
    for _ in range(DEADLINE_SECONDS * 10):
        try:
            os.killpg(worker.process.pid, 0)
        except ProcessLookupError:
            break
        pause.wait(0.1)
    else:
        pytest.fail("something of it goes on")
    assert scene.run(run_id).state is RunState.RUNNING


def test_it_is_as_short_as_the_page_says() -> None:
    lines = [line for line in script().splitlines() if line.strip()]
    assert len(lines) <= LINES_MAX
