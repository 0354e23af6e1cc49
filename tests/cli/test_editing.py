"""`rota schedules edit`: what its options ask for, and what is refused."""

import json
from pathlib import Path

import pytest

from rota.domain.edit_form import parse_edit
from rota.service import schedules as use_cases
from rota.service.dry_runs import dry_run_edit
from tests.cli.conftest import Run, open_database

EDIT = ["schedules", "edit", "report-7"]
DRY = [*EDIT, "--dry-run"]

pytestmark = pytest.mark.usefixtures("report")


def test_a_dry_run_writes_nothing_and_its_document_is_the_use_cases(run: Run, database: Path) -> None:
    before = run("schedules", "show", "report-7", "--json").wire
    told = run(*DRY, "--timezone", "Europe/London", "--json").wire
    context = open_database(database)
    assert told == dry_run_edit(context, "report-7", parse_edit({"timezone": "Europe/London"}))
    context.store.close()
    assert run("schedules", "show", "report-7", "--json").wire == before


def test_the_document_of_an_edit_is_the_schedule(run: Run, database: Path) -> None:
    ended = run(*EDIT, "--cron", "30 9 * * *", "--json")
    context = open_database(database)
    assert ended.wire == use_cases.show_schedule(context, "report-7")
    context.store.close()
    assert (ended.wire["version"], ended.wire["recurrence"]) == (2, {"cron": "30 9 * * *"})


def test_only_what_is_given_changes(run: Run) -> None:
    before = run("schedules", "show", "report-7", "--json").wire
    after = run(*EDIT, "--gap", "forward", "--json").wire
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"gap", "version", "latest_version", "effective_from", "updated_at"}


def test_every_option_reaches_the_patch(run: Run) -> None:
    options = {
        "--timezone": ("Asia/Tokyo", "timezone", "Asia/Tokyo"),
        "--rrule": (r"DTSTART:20260105T090000\nRRULE:FREQ=DAILY", "recurrence", None),
        "--gap": ("forward", "gap", "forward"),
        "--fold": ("second", "fold", "second"),
        "--period": ("day", "period", "day"),
        "--overdue": ("expire:PT5M", "overdue", {"policy": "expire", "deadline": "PT5M"}),
        "--params": ('{"to": 1}', "params", {"of": "sales", "to": 1}),
        "--label": ("region=eu", "labels", {"customer": "acme", "region": "eu"}),
        "--starts-at": ("2026-02-01T00:00:00Z", "starts_at", "2026-02-01T00:00:00Z"),
        "--ends-at": ("2026-03-01T00:00:00Z", "ends_at", "2026-03-01T00:00:00Z"),
        "--max-occurrences": ("9", "max_occurrences", 9),
    }
    given = [word for option, (text, _, _) in options.items() for word in (option, text)]
    after = run(*EDIT, *given, "--json").wire
    for option, (_, name, value) in options.items():
        assert after[name] == value or option == "--rrule"
    assert "rrule" in str(after["recurrence"])


def test_a_member_is_set_back_to_its_default(run: Run) -> None:
    run(*EDIT, "--overdue", "expire:PT5M", "--fold", "second", "--ends-at", "2027-01-01T00:00:00Z")
    after = run(
        *EDIT, *(f"--unset={name}" for name in ("overdue", "fold", "ends-at", "params.of")), "--json"
    ).wire
    assert after["asked"] == {"fold": "auto", "period": "auto", "overdue": None}
    assert (after["ends_at"], after["params"]) == (None, {})
    assert run(*EDIT, "--unset", "labels", "--json").wire["labels"] == {}


def test_a_version_that_waits_is_replaced_only_on_request(run: Run) -> None:
    assert run(*EDIT, "--cron", "30 9 * * *", "--effective-from", "2026-01-20T10:00:00Z").code == 0
    refused = run(*EDIT, "--cron", "45 9 * * *")
    assert (refused.code, len(refused.problems)) == (4, 1)
    assert refused.problems[0].startswith("rota: Version 2 has not taken over yet")
    assert "wait for it, or give --replace-pending" in refused.problems[0]
    replaced = run(*EDIT, "--cron", "45 9 * * *", "--replace-pending")
    assert replaced.out.splitlines()[:4] == [
        (
            "report-7: version 1 -> 3, takes over 2026-01-20T10:00:00Z (keep_period); it waits until then; "
            "replaces version 2, which waits"
        ),
        "members are compared with version 2, which waits",
        "- recurrence: cron 30 9 * * *",
        "+ recurrence: cron 45 9 * * *",
    ]
    unchanged = run(*DRY, "--cron", "45 9 * * *")
    assert unchanged.out.splitlines()[0] == "report-7: nothing changes against version 3, which waits"


def test_a_replacement_takes_over_at_once_on_request(run: Run) -> None:
    assert run(*EDIT, "--cron", "30 9 * * *", "--effective-from", "2026-01-20T10:00:00Z").code == 0
    replaced = run(*DRY, "--cron", "45 9 * * *", "--replace-pending", "--at-once")
    assert replaced.out.splitlines()[0] == (
        "report-7: version 1 -> 3, takes over 2026-01-14T10:00:01Z (keep_period); replaces version 2, which waits"
    )


def test_the_instant_of_a_takeover_may_be_a_local_time_of_the_schedule(run: Run) -> None:
    told = run(*DRY, "--timezone", "Europe/London", "--effective-from", "2026-01-20T09:00", "--json").wire
    assert told["effective_from"] == "2026-01-20T14:00:00Z"


def test_a_version_that_is_not_the_expected_one_is_refused(run: Run) -> None:
    assert run(*EDIT, "--gap", "forward", "--expect-version", "1").code == 0
    for words in (EDIT, DRY):
        refused = run(*words, "--gap", "skip", "--expect-version", "1")
        assert refused.code == 4
        assert refused.problems == [
            "rota: The latest version of 'report-7' is 2, not 1: read the schedule again and decide anew."
        ]


def test_a_patch_comes_from_a_file(run: Run) -> None:
    patch = json.dumps({"timezone": "Europe/London", "labels": None}).encode()
    after = run(*EDIT, "--file", "-", "--json", stdin=patch).wire
    assert (after["timezone"], after["labels"]) == ("Europe/London", {})
    wrong = run(*EDIT, "--file", "-", stdin=b'{"recurrence": {"cron": "61 9 * * *"}, "job": "other"}')
    assert (wrong.code, [line.split(": ")[1] for line in wrong.problems]) == (2, ["job"])


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--timezone", "Europe/Lundon"], "--timezone: Unknown zone 'Europe/Lundon'; did you mean"),
        (
            ["--cron", "0 9 * * *", "--every", "PT1H"],
            "--cron, --at, --rrule or --every: Give exactly one of them",
        ),
        (["--boundary", "later"], "--boundary: Give one of keep_period, now."),
        (
            ["--boundary", "now", "--effective-from", "2026-02-01T00:00:00Z"],
            "--boundary: now and --effective-from exclude each other; leave one of them out.",
        ),
        (
            ["--gap", "forward", "--effective-from", "2026-01-01T00:00:00Z"],
            "--effective-from: The new version can take over at 2026-01-14T10:00:01Z or later",
        ),
        (
            ["--gap", "forward", "--effective-from", "soon"],
            "--effective-from: 'soon' is not a local time such as 2026-01-14T09:00; give an instant (",
        ),
        (
            ["--at-once", "--effective-from", "2026-02-01T00:00:00Z"],
            "--at-once: --at-once and --effective-from exclude each other; leave one of them out.",
        ),
        ([], "Say what is to change, such as --cron or --params; `rota schedules edit --help` lists it."),
        (
            ["--unset", "foo"],
            (
                "--unset: 'foo' has no default; give one of labels, ends-at, fold, gap, max-occurrences, overdue, "
                "overlap, params, period, spread, starts-at, label.NAME or params.NAME."
            ),
        ),
        (["--unset", "timezone"], "--unset: 'timezone' has no default; give one of labels, ends-at,"),
        (["--unset", "fold.x"], "--unset: 'fold.x' has no default"),
        (["--unset", "fold", "--fold", "first"], "--unset: 'fold' is given a value as well"),
        (["--unset", "params", "--params", "{}"], "--unset: 'params' is given a value as well"),
        (
            ["--file", "-", "--gap", "skip", "--unset", "fold"],
            "--file: The patch is in the file; leave out --gap, --",
        ),
        (["--params", "[]"], "--params: Give an object"),
        (["--expect-version", "one"], "Invalid value for --expect-version: 'one' is not a whole number."),
    ],
)
def test_what_is_refused_has_one_line(run: Run, options: list[str], line: str) -> None:
    for words in (EDIT, DRY):
        ended = run(*words, *options, stdin=b"{}")
        assert (ended.code, len(ended.problems), ended.out) == (2, 1, "")
        assert ended.problems[0].startswith(f"rota: {line}")


def test_a_one_time_schedule_that_ran_says_what_to_do(run: Run) -> None:
    run(
        "schedules",
        "create",
        "--id",
        "once",
        "--job",
        "report",
        "--timezone",
        "UTC",
        "--at",
        "2026-01-20T09:00",
    )
    run("schedules", "plan", "once", "--until", "2026-01-20T09:00")
    refused = run("schedules", "edit", "once", "--at", "2026-01-21T09:00")
    assert refused.code == 4
    assert "by `rota schedules move once 20260120T090000Z --to TIME`" in refused.problems[0]


def test_there_has_to_be_such_a_schedule(run: Run) -> None:
    assert run("schedules", "edit", "missing", "--gap", "skip").code == 3
