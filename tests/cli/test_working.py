"""`rota work` over HTTP, and as several processes that are started anew when they die."""

import os
import re
import signal
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from rota.cli.supervising import Child
from rota.domain.backoff import Backoff
from tests.cli.conftest import Run
from tests.cli.processes import Process, request, set_time, url_in, wait_for_state, wait_until

AT_HALF_PAST = {
    "id": "report",
    "job": "wait",
    "timezone": "UTC",
    "recurrence": {"at": "2026-01-10T12:30:00Z"},
}
RUN_ID = "report.1.20260110T123000Z"
JOBS = """
import sys
from pathlib import Path
from rota import Rota

app = Rota()

@app.job("wait")
def wait(context):
    sys.stdout.write("started\\n")
    sys.stdout.flush()
    return {"said": Path("gate").read_text()}
"""


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_a_worker_over_http_needs_no_database_and_drains(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "user_jobs.py").write_text(JOBS)
    os.mkfifo(elsewhere / "gate")
    with Process("up", "--port", "0", cwd=tmp_path) as up:
        url = url_in(up.read_line())
        unusable = {"ROTA_DATABASE_URL": "sqlite:////nowhere/rota.db"}
        with Process("work", "--app", "user_jobs:app", "--url", url, cwd=elsewhere, **unusable) as work:
            wait_until(lambda: request(url, "/jobs/wait")[0] == 200, log=work.log)
            assert request(url, "/schedules", AT_HALF_PAST)[0] == 201
            set_time(tmp_path / "now", "2026-01-10T12:30:01Z")
            assert work.read_line() == "started"
            work.send(signal.SIGTERM)
            (elsewhere / "gate").write_text("go on")
            assert work.wait() == 0
            assert wait_for_state(url, RUN_ID, "succeeded", log=work.log)["result"] == {"said": "go on"}
        assert up.stop() == 0


def pids_in(log: str) -> list[int]:
    return [int(pid) for pid in re.findall(r"child\.start.*?pid=(\d+)", log)]


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_several_processes_work_and_one_that_dies_is_started_anew(tmp_path: Path) -> None:
    (tmp_path / "user_jobs.py").write_text(JOBS)
    os.mkfifo(tmp_path / "gate")
    with (
        Process("up", "--port", "0", cwd=tmp_path) as up,
        Process("work", "user_jobs:app", "--processes", "2", cwd=tmp_path) as work,
    ):
        url = url_in(up.read_line())
        wait_until(lambda: work.log.read_text().count("worker.start") == 2, log=work.log)
        dead = pids_in(work.log.read_text())[0]
        os.kill(dead, signal.SIGKILL)
        wait_until(lambda: len(pids_in(work.log.read_text())) == 3, log=work.log)
        wait_until(lambda: work.log.read_text().count("worker.start") == 3, log=work.log)
        assert request(url, "/schedules", AT_HALF_PAST)[0] == 201
        set_time(tmp_path / "now", "2026-01-10T12:30:01Z")
        assert work.read_line() == "started"
        work.send(signal.SIGTERM)
        (tmp_path / "gate").write_text("go on")
        assert work.wait() == 0
        assert work.log.read_text().count("worker.stop") == 2
        assert wait_for_state(url, RUN_ID, "succeeded", log=work.log)["result"] == {"said": "go on"}
        for pid in pids_in(work.log.read_text()):
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
        assert up.stop() == 0


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_processes_drain_and_end_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    (tmp_path / "user_jobs.py").write_text(JOBS)
    os.mkfifo(tmp_path / "gate")
    with (
        Process("up", "--port", "0", cwd=tmp_path) as up,
        Process("work", "user_jobs:app", "--processes", "2", cwd=tmp_path) as work,
    ):
        url = url_in(up.read_line())
        wait_until(lambda: work.log.read_text().count("worker.start") == 2, log=work.log)
        assert request(url, "/schedules", AT_HALF_PAST)[0] == 201
        set_time(tmp_path / "now", "2026-01-10T12:30:01Z")
        assert work.read_line() == "started"
        assert work.stop(signal.SIGKILL) == -signal.SIGKILL
        # The one without work ends at once, the other one when its handler has.
        wait_until(lambda: work.log.read_text().count("worker.stop") == 1, log=work.log)
        (tmp_path / "gate").write_text("go on")
        wait_until(lambda: work.log.read_text().count("worker.stop") == 2, log=work.log)
        run = wait_for_state(url, RUN_ID, "succeeded", log=work.log)
        assert (run["attempt"], run["result"]) == (1, {"said": "go on"})
        for pid in pids_in(work.log.read_text()):
            wait_until(lambda pid=pid: not is_alive(pid), log=work.log)  # type: ignore[misc]  # bound early
        assert up.stop() == 0


def is_alive(pid: int) -> bool:
    """Whether it runs; one that nobody waits for is none that does."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


class Pauses(Backoff):
    """None, but counted."""

    def delay_after(self, failures: int, *, seed: str) -> timedelta:
        COUNTED.append(failures)
        if len(COUNTED) == 3:
            STOP.set()
        return timedelta(0)


COUNTED: list[int] = []
STOP = threading.Event()


def test_pauses_grow_while_a_process_dies_at_once() -> None:
    COUNTED.clear()
    STOP.clear()
    child = Child([sys.executable, "-c", "raise SystemExit(3)"], name="worker 0", pauses=Pauses())
    child.run(STOP, threading.Event())
    assert COUNTED == [1, 2, 3]


def test_a_process_that_lived_for_long_has_a_short_pause_again() -> None:
    COUNTED.clear()
    STOP.clear()
    times = iter([0.0, 1.0, 1.0, 2.0, 2.0, 62.0])
    child = Child([sys.executable, "-c", ""], name="worker 0", pauses=Pauses(), seconds=lambda: next(times))
    child.run(STOP, threading.Event())
    assert COUNTED == [1, 2, 1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["--database", "a.db", "--url", "http://127.0.0.1:1"],
            "--url: A worker has either a database or a server",
        ),
        (["--processes", "0"], "--processes: Give a whole number from 1 to 256."),
        (["--processes", "257"], "--processes: Give a whole number from 1 to 256."),
        (["--url", "rota.example"], "The server's URL 'rota.example' is none"),
    ],
)
def test_what_cannot_be_asked_of_a_worker_is_one_line(run: Run, arguments: list[str], says: str) -> None:
    ended = run("work", *arguments)
    assert ended.code == 2
    assert says in ended.problems[-1]
