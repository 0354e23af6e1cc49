"""`rota schedules`: what is asked for by options, and the wire form as the answer."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rota.service import occurrences
from rota.service import schedules as use_cases
from rota.service.paging import encode_cursor
from tests.cli.conftest import Run, dispatch_and_work, open_database

NINE = ["--job", "report", "--timezone", "America/New_York", "--cron", "0 9 * * 1-5"]

pytestmark = pytest.mark.usefixtures("with_job")


def test_the_document_is_the_schedule_as_the_use_case_shows_it(run: Run, database: Path) -> None:
    created = run("schedules", "create", "--id", "report-7", *NINE, "--json")
    shown = run("schedules", "show", "report-7", "--json")
    context = open_database(database)
    assert created.code == shown.code == 0
    assert created.wire == shown.wire == use_cases.show_schedule(context, "report-7")
    context.store.close()


def test_every_option_reaches_the_definition(run: Run) -> None:
    ended = run(
        *("schedules", "create", "--id", "report-7", *NINE, "--json", "--actor", "operator"),
        *("--gap", "forward", "--fold", "second", "--period", "day", "--overdue", "expire:PT5M"),
        *("--params", '{"report": ["sales", "é"]}', "--label", "customer=acme", "--label", "region=eu=1"),
        *(
            "--starts-at",
            "2026-02-01T00:00:00Z",
            "--ends-at",
            "2026-03-01T00:00:00Z",
            "--max-occurrences",
            "3",
        ),
    )
    assert ended.code == 0, ended.err
    expected = {
        "gap": "forward",
        "fold": "second",
        "period": "day",
        "overdue": {"policy": "expire", "deadline": "PT5M"},
        "params": {"report": ["sales", "é"]},
        "labels": {"customer": "acme", "region": "eu=1"},
        "starts_at": "2026-02-01T00:00:00Z",
        "ends_at": "2026-03-01T00:00:00Z",
        "max_occurrences": 3,
        "recurrence": {"cron": "0 9 * * 1-5"},
    }
    assert {name: ended.wire[name] for name in expected} == expected
    assert run("schedules", "history", "report-7", "--json").items[0]["actor"] == "operator"


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("latest_only", {"policy": "latest_only", "grace": "PT1M"}),
        ("latest_only:PT5M", {"policy": "latest_only", "grace": "PT5M"}),
        ("expire:PT5M", {"policy": "expire", "deadline": "PT5M"}),
        ("catch_up_all", {"policy": "catch_up_all", "max_age": None}),
        ("catch_up_all:PT1H", {"policy": "catch_up_all", "max_age": "PT1H"}),
    ],
)
def test_an_overdue_policy_is_written_with_its_limit(
    run: Run, text: str, policy: dict[str, str | None]
) -> None:
    assert run("schedules", "create", *NINE, "--overdue", text, "--json").wire["overdue"] == policy


def test_a_definition_comes_from_a_file_or_from_standard_input(run: Run, tmp_path: Path) -> None:
    body = {"job": "report", "timezone": "UTC", "recurrence": {"every": "PT15M"}, "params": {"of": "file"}}
    (tmp_path / "definition.json").write_text(json.dumps(body))
    from_file = run("schedules", "create", "--file", "definition.json", "--json")
    from_stdin = run("schedules", "create", "--file", "-", "--json", stdin=json.dumps(body).encode())
    assert from_file.wire["params"] == from_stdin.wire["params"] == {"of": "file"}


def test_a_repeated_creation_makes_one_schedule(run: Run) -> None:
    first = run("schedules", "create", *NINE, "--idempotency-key", "k-1", "--json")
    again = run("schedules", "create", *NINE, "--idempotency-key", "k-1", "--json")
    assert first.wire == again.wire
    assert len(run("schedules", "list", "--json").items) == 1
    named = run("schedules", "create", "--id", "named", *NINE)
    named_again = run("schedules", "create", "--id", "named", *NINE)
    assert (named.out.splitlines()[0], named_again.out.splitlines()[0]) == ("Created.", "It existed already.")


def test_lists_are_filtered(run: Run) -> None:
    run("schedules", "create", "--id", "one", *NINE, "--label", "customer=acme")
    run("schedules", "create", "--id", "two", *NINE, "--label", "customer=other")
    run("schedules", "pause", "two")
    assert [item["id"] for item in run("schedules", "list", "--label", "customer=acme", "--json").items] == [
        "one"
    ]
    assert [item["id"] for item in run("schedules", "list", "--status", "paused", "--json").items] == ["two"]
    assert run("schedules", "list", "--job", "other", "--json").items == []


def test_pages_have_the_cursors_of_the_api(run: Run) -> None:
    for id_ in ("a", "b", "c"):
        run("schedules", "create", "--id", id_, *NINE)
    first = run("schedules", "list", "--limit", "2", "--json").wire
    assert first["next_cursor"] == encode_cursor({"after": "b"})
    second = run("schedules", "list", "--limit", "2", "--cursor", str(first["next_cursor"]), "--json")
    assert [item["id"] for item in second.items] == ["c"]
    assert second.wire["next_cursor"] is None
    everything = run("schedules", "list", "--limit", "1", "--all", "--json")
    assert [item["id"] for item in everything.items] == ["a", "b", "c"]
    assert everything.wire["next_cursor"] is None
    assert f"--cursor {first['next_cursor']}" in run("schedules", "list", "--limit", "2").out


def test_pause_resume_and_end(run: Run) -> None:
    run("schedules", "create", "--id", "report-7", *NINE)
    paused = run("schedules", "pause", "report-7", "--actor", "operator", "--reason", "holidays", "--json")
    assert paused.wire["status"] == "paused"
    assert run("schedules", "resume", "report-7", "--apply-overdue", "--json").wire["status"] == "active"
    assert run("schedules", "end", "report-7", "--json").wire["status"] == "ended"
    refused = run("schedules", "resume", "report-7")
    assert (refused.code, len(refused.problems)) == (4, 1)
    events = run("schedules", "history", "report-7", "--json").items
    assert [event["action"] for event in events][::-1] == [
        "schedule.create",
        "schedule.pause",
        "schedule.resume",
        "schedule.end",
    ]
    assert (events[2]["actor"], events[2]["reason"]) == ("operator", "holidays")
    assert "holidays" in run("schedules", "history", "report-7").out


def test_tables_show_local_time_and_utc(run: Run) -> None:
    shown = run("schedules", "create", "--id", "report-7", *NINE, "--label", "customer=acme").out
    assert "2026-01-12 09:00 -05:00" in shown
    assert "2026-01-12T14:00:00Z" in shown
    assert "customer=acme" in shown
    listed = run("schedules", "list").out
    assert "2026-01-12 09:00 -05:00" in listed
    assert "cron 0 9 * * 1-5" in listed
    upcoming = run("schedules", "upcoming", "report-7", "--count", "2").out
    assert "day:2026-01-13" in upcoming
    assert "day:2026-01-14" not in upcoming


def test_upcoming_is_the_answer_of_the_use_case(run: Run, database: Path) -> None:
    run("schedules", "create", "--id", "report-7", *NINE)
    context = open_database(database)
    expected = occurrences.list_upcoming(context, "report-7", count=10)
    context.store.close()
    assert run("schedules", "upcoming", "report-7", "--json").wire == expected


def test_no_text_of_a_schedule_can_steer_the_terminal(run: Run) -> None:
    ended = run("schedules", "create", "--id", "x", *NINE, "--label", "customer=[red]\x1b[2Jacme\n:smile:")
    assert ended.code == 0, ended.err
    assert "customer=[red]\\x1b[2Jacme" in ended.out
    assert ":smile:" in ended.out
    assert "\x1b" not in ended.out


@pytest.mark.parametrize(
    ("arguments", "code", "fields"),
    [
        (["create"], 2, {"--job", "--timezone", "--cron, --at, --rrule or --every"}),
        (["create", *NINE, "--at", "2026-02-01T09:00"], 2, {"--cron, --at, --rrule or --every"}),
        (["create", *NINE, "--params", "{"], 2, {"--params"}),
        (["create", *NINE, "--params", "[]"], 2, {"--params"}),
        (["create", *NINE, "--params", '{"a": NaN}'], 2, {"--params"}),
        (["create", *NINE, "--label", "acme"], 2, {"--label"}),
        (["create", *NINE, "--label", "a=1", "--label", "a=2"], 2, {"--label"}),
        (["create", *NINE, "--overdue", "expire"], 2, {"--overdue"}),
        (["create", *NINE, "--overdue", "never:PT1M"], 2, {"--overdue"}),
        (["create", *NINE, "--max-occurrences", "0"], 2, {"--max-occurrences"}),
        (["create", *NINE, "--file", "-"], 2, {"--file"}),
        (["create", "--file", "missing.json"], 2, {"--file"}),
        (["create", "--file", "now"], 2, {"--file"}),
        (["list", "--limit", "0"], 2, {"--limit"}),
        (["list", "--limit", "201"], 2, {"--limit"}),
        (["list", "--cursor", "nonsense"], 2, {"--cursor"}),
        (["list", "--status", "asleep"], 2, {"--status"}),
        (["list", "--label", "acme"], 2, {"--label"}),
        (["pause", "x", "--reason", ""], 2, {"--reason"}),
        (["show", "missing"], 3, {"There is no schedule 'missing'."}),
        (["occurrences", "Not An Id"], 3, {"There is no schedule 'Not An Id'."}),
    ],
)
def test_what_is_refused_has_a_line_for_each_option(
    run: Run, arguments: list[str], code: int, fields: set[str]
) -> None:
    ended = run("schedules", *arguments)
    assert ended.code == code
    assert {line.split(": ")[1] for line in ended.problems} == fields
    assert ended.out == ""


def test_a_taken_id_and_a_used_key_are_conflicts(run: Run) -> None:
    run("schedules", "create", "--id", "x", *NINE, "--idempotency-key", "k")
    taken = run("schedules", "create", "--id", "x", "--job", "report", "--timezone", "UTC", "--every", "PT1H")
    used = run(
        *("schedules", "create", "--job", "report", "--timezone", "UTC", "--every", "PT1H"),
        *("--idempotency-key", "k"),
    )
    assert (taken.code, len(taken.problems)) == (4, 1)
    assert (used.code, len(used.problems)) == (4, 1)


def test_occurrences_show_runs_and_skips(run: Run, database: Path, set_time: Callable[[str], None]) -> None:
    run("schedules", "create", "--id", "x", *NINE[:4], "--every", "PT1H", "--overdue", "latest_only")
    set_time("2026-01-10T15:00:00Z")
    dispatch_and_work(database)
    ledger = run("schedules", "occurrences", "x", "--json").items
    assert [entry["kind"] for entry in ledger] == ["run", "skip"]
    table = run("schedules", "occurrences", "x").out
    assert "x.1.20260110T150000Z" in table
    assert "superseded" in table
    assert [
        entry["kind"] for entry in run("schedules", "occurrences", "x", "--limit", "1", "--json").items
    ] == ["run"]
