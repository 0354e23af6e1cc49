"""`rota runs` and `rota jobs`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rota.service import jobs, runs
from tests.cli.conftest import Run, dispatch_and_work, open_database

HOURLY = ["--job", "report", "--timezone", "Europe/Berlin", "--every", "PT1H", "--params", '{"of": "today"}']
RUN_ID = "x.1.20260110T130000Z"

pytestmark = pytest.mark.usefixtures("with_job")


@pytest.fixture
def done_run(with_job: None, run: Run, database: Path, set_time: Callable[[str], None]) -> str:
    """A run that has succeeded."""
    run("schedules", "create", "--id", "x", *HOURLY, "--label", "customer=acme")
    set_time("2026-01-10T13:00:00Z")
    dispatch_and_work(database)
    return RUN_ID


def test_a_run_is_shown_as_the_use_case_shows_it(run: Run, database: Path, done_run: str) -> None:
    shown = run("runs", "show", done_run, "--json")
    context = open_database(database)
    assert shown.wire == runs.show_run(context, done_run)
    context.store.close()
    assert shown.wire["result"] == {"of": "today"}
    table = run("runs", "show", done_run).out
    assert "2026-01-10 14:00 +01:00" in table
    assert "succeeded" in table
    assert '{"of": "today"}' in table


def test_ids_stay_whole_in_a_terminal_of_eighty_columns(
    run: Run, database: Path, set_time: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule_id = str(run("schedules", "create", *HOURLY, "--json").wire["id"])
    set_time("2026-01-10T13:00:00Z")
    dispatch_and_work(database)
    run_id = str(run("runs", "list", "--json").items[0]["run_id"])
    piped = run("runs", "list").out
    monkeypatch.setattr("rota.cli.output.terminal_width", lambda: 80)
    listings = [
        (run("schedules", "list").out, schedule_id),
        (run("runs", "list").out, run_id),
        (run("schedules", "occurrences", schedule_id).out, run_id),
    ]
    for shown, id_ in listings:
        assert id_ in shown
        assert max(len(line) for line in shown.splitlines()) <= 80
        assert "UTC" not in shown.splitlines()[0].split()
    assert f"  {run_id}\n" in run("runs", "show", run_id).out
    assert "2026-01-10T13:00:00Z" in piped
    for text in (piped, *(shown for shown, _ in listings)):
        assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], [RUN_ID]),
        (["--schedule", "x"], [RUN_ID]),
        (["--schedule", "y"], []),
        (["--state", "succeeded", "--origin", "schedule", "--job", "report"], [RUN_ID]),
        (["--state", "failed"], []),
        (["--label", "customer=acme"], [RUN_ID]),
        (["--label", "customer=other"], []),
    ],
)
@pytest.mark.usefixtures("done_run")
def test_runs_are_filtered(run: Run, options: list[str], found: list[str]) -> None:
    assert [item["run_id"] for item in run("runs", "list", *options, "--json").items] == found
    assert (RUN_ID in run("runs", "list", *options).out) is bool(found)


def test_a_run_that_waits_is_cancelled_and_one_that_ended_is_not(
    run: Run, database: Path, done_run: str, set_time: Callable[[str], None]
) -> None:
    refused = run("runs", "cancel", done_run)
    assert (refused.code, len(refused.problems)) == (4, 1)
    run("jobs", "put", "nobody_has_it")
    run("schedules", "create", "--id", "y", "--job", "nobody_has_it", *HOURLY[2:])
    set_time("2026-01-10T14:00:00Z")
    dispatch_and_work(database)
    waiting = str(run("runs", "list", "--schedule", "y", "--json").items[0]["run_id"])
    assert run("runs", "cancel", waiting, "--reason", "not needed", "--json").wire["state"] == "cancelled"
    assert run("runs", "cancel", waiting).code == 0


def test_a_job_is_created_then_replaced(run: Run, database: Path, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps({"timeout": "PT5M", "description": "Sales."}))
    created = run("jobs", "put", "sales", "--file", "job.json")
    replaced = run("jobs", "put", "sales", "--file", "-", stdin=b'{"lease": "PT10S"}')
    assert (created.out.splitlines()[0], replaced.out.splitlines()[0]) == ("Created.", "Replaced.")
    context = open_database(database)
    assert run("jobs", "show", "sales", "--json").wire == jobs.show_job(context, "sales")
    context.store.close()
    assert run("jobs", "show", "sales", "--json").wire["timeout"] is None
    assert [item["name"] for item in run("jobs", "list", "--json").items] == ["report", "sales"]
    assert "latest_only PT1M" in run("jobs", "list").out


@pytest.mark.parametrize(
    ("arguments", "code", "beginnings"),
    [
        (["runs", "show", "x.1.20260101T000000Z"], 3, ["rota: There is no run"]),
        (["runs", "cancel", "nonsense"], 3, ["rota: There is no run"]),
        (["runs", "list", "--state", "asleep"], 2, ["rota: --state: "]),
        (["runs", "list", "--origin", "elsewhere"], 2, ["rota: --origin: "]),
        (["jobs", "show", "missing"], 3, ["rota: There is no job"]),
        (["jobs", "put", "Bad Name"], 2, ["rota: name: "]),
        (["jobs", "put", "sales", "--file", "-"], 2, ["rota: lease: ", "rota: retries: "]),
    ],
)
def test_what_is_refused_says_why(run: Run, arguments: list[str], code: int, beginnings: list[str]) -> None:
    ended = run(*arguments, stdin=b'{"lease": "PT1S", "retries": 3}')
    assert ended.code == code
    for line, beginning in zip(sorted(ended.problems), beginnings, strict=True):
        assert line.startswith(beginning)
