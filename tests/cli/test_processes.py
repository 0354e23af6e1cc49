"""`rota up`, `serve`, `dispatch`, `work` as real processes: they announce, work, drain, and end as asked."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import open_database
from tests.cli.processes import Process, request, set_time, url_in, wait_for_state, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("database")]

AT_HALF_PAST = {
    "id": "once",
    "job": "echo",
    "timezone": "Europe/Berlin",
    "recurrence": {"at": "2026-01-10T13:30"},
    "params": {"of": "today"},
}
RUN_ID = "once.1.20260110T123000Z"

JOBS = """
from rota.application import Rota

app = Rota()

@app.job("wait")
def wait(context):
    print("started", flush=True)
    with open("gate") as gate:
        return {"said": gate.read()}
"""


def is_released(database: Path) -> bool:
    """Nobody holds a partition."""
    context = open_database(database)
    try:
        return all(state.owner is None for state in context.store.list_partitions())
    finally:
        context.store.close()


def wait_for_job(url: str, name: str, *, log: Path) -> None:
    """Until a worker has made its job known."""
    wait_until(lambda: request(url, f"/jobs/{name}")[0] == 200, log=log)


def test_up_serves_dispatches_works_and_drains(tmp_path: Path, database: Path) -> None:
    with Process("up", "--port", "0", cwd=tmp_path) as up:
        url = url_in(up.read_line())
        status, schedule = request(url, "/schedules", AT_HALF_PAST)
        assert (status, schedule["next_due"]) == (201, "2026-01-10T12:30:00Z")
        set_time(tmp_path / "now", "2026-01-10T12:30:01Z")
        run = wait_for_state(url, RUN_ID, "succeeded", log=up.log)
        assert run["result"] == {"of": "today"}
        status, ready = request(url, "/health/ready")
        assert (status, ready["warnings"]) == (200, [])
        assert up.stop(signal.SIGTERM) == 0
        assert up.read_line() == ""
    assert is_released(database)


def test_serve_dispatch_and_work_are_three_processes(tmp_path: Path, database: Path) -> None:
    (tmp_path / "user_jobs.py").write_text(JOBS)
    os.mkfifo(tmp_path / "gate")
    with (
        Process("serve", "--port", "0", cwd=tmp_path) as serve,
        Process("dispatch", cwd=tmp_path) as dispatch,
        Process("work", "user_jobs:app", "--concurrency", "2", cwd=tmp_path) as work,
    ):
        url = url_in(serve.read_line())
        work.wait_for_log("worker.start")
        wait_for_job(url, "wait", log=work.log)
        assert request(url, "/schedules", AT_HALF_PAST | {"job": "wait"})[0] == 201
        set_time(tmp_path / "now", "2026-01-10T12:30:01Z")
        assert work.read_line() == "started"
        assert dispatch.stop(signal.SIGINT) == 0
        assert is_released(database)
        work.send(signal.SIGTERM)  # while the handler runs: it may finish
        (tmp_path / "gate").write_text("go on")
        assert work.wait() == 0
        run = wait_for_state(url, RUN_ID, "succeeded", log=work.log)
        assert run["result"] == {"said": "go on"}
        assert serve.stop(signal.SIGINT) == 0


def test_a_signal_a_second_after_the_first_ends_the_process_at_once(tmp_path: Path) -> None:
    (tmp_path / "user_jobs.py").write_text(JOBS)
    os.mkfifo(tmp_path / "gate")  # nobody writes to it: the handler never returns
    with Process("up", "--app", "user_jobs:app", "--port", "0", cwd=tmp_path) as up:
        url = url_in(up.read_line())
        assert request(url, "/schedules", AT_HALF_PAST | {"job": "wait"})[0] == 201
        set_time(tmp_path / "now", "2026-01-10T12:30:01Z")
        assert up.read_line() == "started"
        up.send(signal.SIGTERM)
        up.wait_for_log("process.stopping")
        # Within a second it counts as the first one.
        wait_until(lambda: up.has_ended_after(signal.SIGTERM), log=up.log)
        assert up.wait() == 128 + signal.SIGTERM


@pytest.mark.parametrize("arguments", [[], ["user_jobs:app"]])
def test_a_worker_without_an_application_says_that_it_works_echo_alone(
    tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "user_jobs.py").write_text(JOBS)
    with Process("work", *arguments, cwd=tmp_path) as work:
        work.wait_for_log("worker.start")
        assert work.stop() == 0
        said = [line for line in work.log.read_text().splitlines() if line.startswith("rota: ")]
        assert len(said) == (0 if arguments else 1)
        assert all("only the job echo is worked" in line for line in said)


def test_a_taken_port_is_one_line_and_opens_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Process("up", "--port", str(port), "--database", "new.db", cwd=tmp_path) as up:
            assert up.wait() == 1
            (line,) = up.log.read_text().splitlines()
            assert line.startswith(f"rota: --port: Something listens on 127.0.0.1:{port} already;")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["preview", "--cron", "0 9 * * *", "--timezone", "UTC", "--json"]]
)
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "rota", *arguments],
        cwd=tmp_path,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_ctrl_c_ends_a_command_that_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "definition")
    with Process("jobs", "put", "sales", "--file", "definition", cwd=tmp_path) as put:
        # Opening returns once the command has opened the other end, and waits for what to read.
        with (tmp_path / "definition").open("wb"):
            assert put.stop(signal.SIGINT) == 130
        assert put.log.read_text() == ""
