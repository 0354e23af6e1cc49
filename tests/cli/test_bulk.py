"""`rota runs cancel` and `replay` by a filter, and `rota deliveries`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rota.service import bulk
from tests.api.conftest import let_die
from tests.cli.conftest import Run, dispatch_and_work, open_database

HOURLY = ["--timezone", "Europe/Berlin", "--every", "PT1H", "--overdue", "catch_up_all"]
SINK = {"sink": {"type": "webhook", "url": "https://shop.example/hooks"}}
WHY = ["--reason", "the mail server was down"]

pytestmark = pytest.mark.usefixtures("with_job")


@pytest.fixture
def three_runs(with_job: None, run: Run, database: Path, set_time: Callable[[str], None]) -> None:
    """Three runs of `report` that have succeeded, and three of a job that nobody works, which wait."""
    run("jobs", "put", "idle", "--file", "-", stdin=json.dumps(SINK).encode())
    run("schedules", "create", "--id", "x", "--job", "report", *HOURLY)
    run("schedules", "create", "--id", "y", "--job", "idle", *HOURLY, "--label", "customer=acme")
    set_time("2026-01-10T15:00:00Z")
    for _ in range(3):
        dispatch_and_work(database)
    assert states_of(run) == {"succeeded": 3, "queued": 3}


def states_of(run: Run) -> dict[str, int]:
    states = [str(item["state"]) for item in run("runs", "list", "--json").items]
    return {state: states.count(state) for state in states}


def test_the_open_runs_that_a_filter_finds_are_cancelled_after_a_dry_run(run: Run, three_runs: None) -> None:
    filters = ["--label", "customer=acme", "--from", "2026-01-10T14:00:00Z"]
    foretold = run("runs", "cancel", *filters, "--dry-run")
    assert foretold.out.splitlines() == [
        "2 would be cancelled, 0 would be asked to stop",
        "This was a dry run: nothing was written.",
    ]
    assert states_of(run) == {"succeeded": 3, "queued": 3}
    ended = run("runs", "cancel", *filters, "--actor", "ops", "--reason", "not needed")
    assert ended.out.splitlines() == ["2 cancelled, 0 asked to stop"]
    assert states_of(run) == {"succeeded": 3, "queued": 1, "cancelled": 2}
    event = run("schedules", "history", "y", "--json").items[0]
    assert (event["action"], event["actor"], event["reason"]) == ("run.cancel", "ops", "not needed")


def test_what_one_command_does_is_bounded_and_it_says_how_to_go_on(
    run: Run, three_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "RUNS_PER_REQUEST_MAX", 2)
    assert run("runs", "cancel", "--job", "idle").out.splitlines() == [
        "2 cancelled, 0 asked to stop",
        "There are more: say it again.",
    ]
    first = run("runs", "replay", "--job", "report", *WHY).out.splitlines()
    assert first[0] == "2 queued, 0 left out: they were replayed already"
    assert first[1].startswith("There are more: say it again with --cursor ")
    cursor = first[1].rpartition(" ")[2]
    rest = run("runs", "replay", "--job", "report", "--cursor", cursor, *WHY, "--json").wire
    assert (rest["replayed"], rest["is_complete"]) == (1, True)


def test_runs_are_replayed_by_a_filter_and_a_key_makes_it_safe_to_repeat(run: Run, three_runs: None) -> None:
    filters = ["--schedule", "x", "--state", "succeeded", "--until", "2026-01-10T15:00:00Z", *WHY]
    assert run("runs", "replay", *filters, "--dry-run").out.splitlines()[0].startswith("2 would be queued")
    made = run("runs", "replay", *filters, "--idempotency-key", "k", "--json")
    assert made.wire["replayed"] == 2
    assert run("runs", "replay", *filters, "--idempotency-key", "k", "--json").wire == made.wire
    assert [item["state"] for item in run("runs", "list", "--origin", "replay", "--json").items] == [
        "queued"
    ] * 2


def test_one_run_is_replayed_and_cancelled_as_before(run: Run, three_runs: None) -> None:
    made = run("runs", "replay", "x.1.20260110T130000Z", *WHY, "--json").wire
    assert made["run_id"] == "x.1.20260110T130000Z.r1"
    assert run("runs", "cancel", "x.1.20260110T130000Z.r1", "--json").wire["state"] == "cancelled"


def test_dead_deliveries_are_listed_and_redriven(run: Run, three_runs: None, database: Path) -> None:
    context = open_database(database)
    let_die(context, "idle")
    context.store.close()
    dead = [f"y.1.20260110T{hour}0000Z" for hour in (13, 14, 15)]
    assert [item["run_id"] for item in run("deliveries", "list", "--state", "dead", "--json").items] == dead
    listed = run("deliveries", "list", "--job", "idle").out
    assert all(run_id in listed for run_id in dead)
    assert "503 Service Unavailable" in listed
    assert "delivery error  503 Service Unavailable" in run("runs", "show", dead[0]).out
    assert "retrying" in run("deliveries", "redrive", dead[0], "--reason", "it is back").out
    assert (
        run("deliveries", "redrive", "--state", "dead", "--dry-run").out.splitlines()[0]
        == "2 would be redriven"
    )
    assert run("deliveries", "redrive", "--schedule", "y").out == "2 redriven\n"
    assert run("deliveries", "list", "--state", "dead", "--json").items == []
    event = run("schedules", "history", "y", "--json").items[-1]
    assert event["action"] == "schedule.create"


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["runs", "cancel"], 2, "rota: RUN-ID: Give the id of a run, or a filter"),
        (
            ["runs", "cancel", "x.1", "--job", "report"],
            2,
            "rota: RUN-ID: Give the id of a run or a filter, not",
        ),
        (["runs", "cancel", "x.1", "--dry-run"], 2, "rota: --dry-run: "),
        (["runs", "cancel", "--state", "failed"], 2, "rota: --state: Only open runs"),
        (["runs", "cancel", "--from", "today"], 2, "rota: --from: "),
        (["runs", "replay", "--job", "report"], 2, "rota: "),
        (["runs", "replay", "--job", "report", "--cursor", "x", *WHY], 2, "rota: --cursor: "),
        (["runs", "replay", "--state", "queued", *WHY], 2, "rota: --state: Only what has ended"),
        (
            ["runs", "list", "--from", "2026-01-10T14:00:00Z", "--until", "2026-01-10T14:00:00Z"],
            2,
            "rota: --until: It lies not after --from",
        ),
        (["deliveries", "redrive"], 2, "rota: RUN-ID: "),
        (["deliveries", "redrive", "x.1", "--job", "report"], 2, "rota: RUN-ID: "),
        (["deliveries", "redrive", "x.1", "--dry-run"], 2, "rota: --dry-run: "),
        (["deliveries", "redrive", "--state", "sent"], 2, "rota: --state: Only what is dead"),
        (["deliveries", "redrive", "x.1"], 3, "rota: There is no delivery 'x.1'."),
        (["deliveries", "list", "--state", "lost"], 2, "rota: --state: Give one of sending, "),
    ],
)
def test_what_is_refused_says_why(run: Run, arguments: list[str], code: int, line: str) -> None:
    ended = run(*arguments)
    assert (ended.code, len(ended.problems)) == (code, 1)
    assert ended.problems[0].startswith(line)
