"""Real processes on PostgreSQL: one that does everything, and one for each part, from an empty database to a result."""

from pathlib import Path
from typing import cast

import psycopg
import pytest

from tests.cli.processes import Process, request, set_time, url_in, wait_for_state, wait_until
from tests.postgresql import Databases

pytestmark = pytest.mark.slow

SCHEDULE = {
    "id": "report",
    "job": "echo",
    "timezone": "Europe/London",
    "recurrence": {"cron": "0 14 * * *"},
    "params": {"report": "sales", "grüße": "🕐"},
}
RUN = "report.1.20260110T140000Z"


@pytest.fixture
def address(postgresql: Databases) -> str:
    """An empty database: the first process makes its tables."""
    return postgresql.make(migrated=False)


def test_up_makes_the_tables_and_runs_what_falls_due(address: str, tmp_path: Path) -> None:
    with Process("up", "--database", address, "--port", "0", cwd=tmp_path) as process:
        url = url_in(process.read_line())
        assert request(url, "/health/ready")[0] == 200
        assert request(url, "/schedules", SCHEDULE)[0] == 201
        set_time(tmp_path / "now", "2026-01-10T14:00:01Z")
        run = wait_for_state(url, RUN, "succeeded", log=process.log)
        assert run["result"] == SCHEDULE["params"]
        assert process.stop() == 0
    with psycopg.connect(address) as connection:
        held = connection.execute("SELECT count(*) FROM partitions WHERE owner IS NOT NULL").fetchone()
    assert held == (0,), "given back at the end"


def test_processes_of_their_own_share_a_database_by_the_environment(address: str, tmp_path: Path) -> None:
    shared = {"ROTA_DATABASE_URL": address.replace("postgresql://", "postgres://"), "ROTA_PARTITIONS": "4"}
    with (
        Process("serve", "--port", "0", cwd=tmp_path, **shared) as server,
        Process("dispatch", cwd=tmp_path, **shared) as dispatcher,
        Process("work", cwd=tmp_path, **shared) as worker,
    ):
        url = url_in(server.read_line())
        wait_until_there_are_jobs(url, worker)
        assert request(url, "/schedules", SCHEDULE)[0] == 201
        set_time(tmp_path / "now", "2026-01-10T14:00:01Z")
        wait_for_state(url, RUN, "succeeded", log=dispatcher.log)
        assert [process.stop() for process in (worker, dispatcher, server)] == [0, 0, 0]


def wait_until_there_are_jobs(url: str, worker: Process) -> None:
    wait_until(lambda: bool(cast("list[object]", request(url, "/jobs")[1]["items"])), log=worker.log)
