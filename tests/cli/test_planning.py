"""`rota schedules plan`, `skip`, `move`, `run` and `backfill`, and `rota runs replay`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rota.service import planning
from rota.service.backfill import backfill
from tests.cli.conftest import Run, dispatch_and_work, lines_of, open_database

PLAN = ["schedules", "plan", "report-7", "--until", "2026-01-15T09:00"]
DONE = "report-7.1.20260113T140000Z"

pytestmark = pytest.mark.usefixtures("report")


def test_occurrences_are_planned_up_to_a_local_time(run: Run) -> None:
    assert lines_of(run(*PLAN).out) == [
        "report-7: planned until 2026-01-15 09:00 -05:00 (2026-01-15T14:00:00Z): 2 created, 0 there already",
        "LOCAL                     UTC                    PERIOD           RUN",
        "─",
        "2026-01-14 09:00 -05:00   2026-01-14T14:00:00Z   day:2026-01-14   report-7.1.20260114T140000Z",
        "2026-01-15 09:00 -05:00   2026-01-15T14:00:00Z   day:2026-01-15   report-7.1.20260115T140000Z",
    ]
    assert run(*PLAN).out == (
        "report-7: planned until 2026-01-15 09:00 -05:00 (2026-01-15T14:00:00Z): 0 created, 2 there already\n"
    )


def test_a_dry_plan_writes_nothing(run: Run, database: Path) -> None:
    shown = lines_of(run(*PLAN, "--dry-run").out)
    assert shown[0].endswith(": 2 would be created, 0 there already")
    assert shown[-1] == "This was a dry run: nothing was written."
    told = run(*PLAN, "--dry-run", "--json").wire
    context = open_database(database)
    assert told == planning.plan_occurrences(context, "report-7", until="2026-01-15T14:00:00Z", dry_run=True)
    context.store.close()
    assert len(run("runs", "list", "--json").items) == 1


def test_a_long_plan_is_cut_and_counted(run: Run) -> None:
    shown = lines_of(run("schedules", "plan", "report-7", "--until", "2026-02-01T00:00").out)
    assert ": 18 created," in shown[0]
    assert (len(shown), shown[-1]) == (3 + 10 + 1, "and 8 more")


def test_what_is_not_planned_since_its_period_is_used_is_told(run: Run) -> None:
    run("schedules", "move", "report-7", "2026-01-15T09:00", "--to", "2026-01-15T11:00")
    run("schedules", "edit", "report-7", "--timezone", "Europe/London")
    shown = lines_of(run(*PLAN).out)
    assert shown[0].endswith(": 0 created, 0 there already")
    assert "suppressed: not planned, since a run uses their period" in shown
    assert shown[-1].endswith(
        "day:2026-01-15 is used by run report-7.1.20260115T140000Z; it would be a double"
    )


@pytest.mark.parametrize(
    "occurrence",
    ["2026-01-15T09:00", "2026-01-15T14:00:00Z", "2026-01-15T09:00:00-05:00", "20260115T140000Z"],
)
def test_one_occurrence_is_skipped_by_its_local_time_or_its_instant(run: Run, occurrence: str) -> None:
    ended = run("schedules", "skip", "report-7", occurrence, "--reason", "holiday")
    assert ended.out == (
        "report-7: 2026-01-15 09:00 -05:00 (2026-01-15T14:00:00Z, version 1) is skipped; "
        "its period day:2026-01-15 stays used.\n"
    )
    assert run("schedules", "history", "report-7", "--json").items[0]["reason"] == "holiday"
    assert run("runs", "show", "report-7.1.20260115T140000Z", "--json").wire["reason"] == "on_request"


def test_one_occurrence_is_moved(run: Run) -> None:
    moved = ["schedules", "move", "report-7", "2026-01-15T09:00", "--to", "2026-01-15T11:00"]
    assert lines_of(run(*moved).out) == [
        (
            "report-7: 2026-01-15 09:00 -05:00 (2026-01-15T14:00:00Z, version 1) "
            "falls due at 2026-01-15 11:00 -05:00 (2026-01-15T16:00:00Z)."
        ),
        "It is planned as run report-7.1.20260115T140000Z.",
    ]
    assert run(*moved, "--json").wire["due_at"] == "2026-01-15T16:00:00Z"


def test_upcoming_and_show_tell_what_was_planned_moved_skipped_and_waits(run: Run) -> None:
    run(*PLAN)
    run("schedules", "move", "report-7", "2026-01-15T09:00", "--to", "2026-01-15T11:00")
    run("schedules", "skip", "report-7", "2026-01-16T09:00")
    run(
        "schedules",
        "edit",
        "report-7",
        "--timezone",
        "Europe/London",
        "--effective-from",
        "2026-01-18T10:00:00Z",
    )
    upcoming = run("schedules", "upcoming", "report-7", "--count", "3").out
    assert lines_of(upcoming) == [
        "report-7: version 2 takes over at 2026-01-18T10:00:00Z",
        "  LOCAL                     UTC                    VERSION   PERIOD           WHY",
        "  ─",
        "next: what falls due first",
        "  2026-01-14 09:00 -05:00   2026-01-14T14:00:00Z   1         day:2026-01-14   planned",
        (
            "  2026-01-15 09:00 -05:00   2026-01-15T14:00:00Z   1         day:2026-01-15   "
            "planned; moved: falls due at 2026-01-15 11:00 -05:00 (2026-01-15T16:00:00Z)"
        ),
        "  2026-01-17 09:00 -05:00   2026-01-17T14:00:00Z   1         day:2026-01-17",
        "",
        "skipped: these do not run",
        (
            "  2026-01-16 09:00 -05:00   2026-01-16T14:00:00Z   1         day:2026-01-16   "
            "skipped on request; its period stays used"
        ),
    ]
    shown = run("schedules", "show", "report-7").out
    assert "pending     version 2 takes over at 2026-01-18T10:00:00Z\n" in shown
    assert shown.endswith(upcoming.partition("\n")[2])
    assert len(lines_of(run("schedules", "upcoming", "report-7", "--count", "30").out)) > 30


def test_a_schedule_without_a_future_says_so(run: Run) -> None:
    run("schedules", "end", "report-7")
    assert run("schedules", "upcoming", "report-7").out == "Nothing comes: it has ended.\n"


def test_a_run_is_asked_for_once_with_a_key(run: Run) -> None:
    first = run("schedules", "run", "report-7", "--key", "k")
    again = run("schedules", "run", "report-7", "--idempotency-key", "k")
    assert (first.code, again.code) == (0, 0)
    assert first.out.splitlines()[0] == "Queued."
    assert again.out.splitlines()[0] == "It was asked for already, with this key."
    assert first.out.splitlines()[1:] == again.out.splitlines()[1:]
    assert len(run("runs", "list", "--origin", "manual", "--json").items) == 1
    other = run("schedules", "create", "--id", "x", "--job", "report", "--timezone", "UTC", "--every", "PT1H")
    assert other.code == 0
    used = run("schedules", "run", "x", "--key", "k")
    assert (used.code, used.problems) == (
        4,
        ["rota: The --idempotency-key 'k' was used with another request; choose a new key."],
    )


def test_a_backfill_tells_what_it_creates_and_what_it_leaves_out(run: Run, database: Path) -> None:
    words = [
        "schedules",
        "backfill",
        "report-7",
        "--from",
        "2026-01-11T00:00",
        "--until",
        "2026-01-13T20:00:00Z",
    ]
    dry = lines_of(run(*words, "--spacing", "PT1M", "--dry-run").out)
    assert dry == [
        (
            "report-7: backfill from 2026-01-11 00:00 -05:00 (2026-01-11T05:00:00Z) "
            "until 2026-01-13 15:00 -05:00 (2026-01-13T20:00:00Z), by the rule of version 1"
        ),
        "2 would be created; left out: 1 whose period a run uses, 0 that admission still owes",
        "LOCAL                     UTC                    DUE AT                 PERIOD           RUN",
        "─",
        (
            "2026-01-11 09:00 -05:00   2026-01-11T14:00:00Z   2026-01-14T10:00:01Z   day:2026-01-11   "
            "report-7.1.20260111T140000Z"
        ),
        (
            "2026-01-12 09:00 -05:00   2026-01-12T14:00:00Z   2026-01-14T10:01:01Z   day:2026-01-12   "
            "report-7.1.20260112T140000Z"
        ),
        "This was a dry run: nothing was written.",
    ]
    context = open_database(database)
    expected = backfill(
        context, "report-7", from_="2026-01-11T05:00:00Z", until="2026-01-13T20:00:00Z", dry_run=True
    )
    assert run(*words, "--dry-run", "--json").wire == expected
    context.store.close()
    assert "2 created; left out: 1" in run(*words).out
    assert "0 created; left out: 3" in run(*words).out


def test_a_run_that_ended_is_replayed_with_a_reason(run: Run) -> None:
    replayed = run("runs", "replay", DONE, "--reason", "mail was down", "--actor", "ann")
    assert replayed.code == 0
    assert replayed.out.splitlines()[0] == "Queued."
    assert f"replay of     {DONE}\n" in replayed.out
    event = run("schedules", "history", "report-7", "--json").items[0]
    assert (event["action"], event["actor"], event["reason"]) == ("run.replay", "ann", "mail was down")
    assert run("runs", "replay", f"{DONE}.r1", "--reason", "again").code == 4


def test_a_run_tells_which_rule_made_it(run: Run, database: Path, set_time: Callable[[str], None]) -> None:
    run("schedules", "edit", "report-7", "--timezone", "Europe/London")
    set_time("2026-01-14T14:00:00Z")
    dispatch_and_work(database)
    shown = run("runs", "show", "report-7.1.20260114T140000Z").out
    assert [
        line for line in lines_of(shown) if line.startswith(("version", "its ", "carried", "planned"))
    ] == [
        "planned at    2026-01-14T10:00:00Z",
        "version       1: cron 0 9 * * * in America/New_York",
        "its window    from 2026-01-12T15:00:01Z until 2026-01-14T10:00:01Z",
        'its params    {"of": "sales"}',
        "carried by    version 2: past the window, so that the period did not go without a run",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["plan", "report-7"], 2, "--until: Give it;"),
        (["plan", "report-7", "--until", "2026-01-01T00:00:00Z"], 2, "--until: This time has passed"),
        (["plan", "report-7", "--until", "soon"], 2, "--until: "),
        (["skip", "report-7", "2026-01-15T10:00"], 3, "There is no occurrence '2026-01-15T15:00:00Z'."),
        (["skip", "report-7", "tomorrow"], 2, "OCCURRENCE: "),
        (["skip", "report-7", "2026-01-13T09:00"], 4, "The occurrence is succeeded"),
        (
            ["move", "report-7", "2026-01-15T09:00", "--to", "2026-01-01T00:00"],
            2,
            "--to: This time has passed",
        ),
        (["run", "missing"], 3, "There is no schedule 'missing'."),
        (["run", "report-7", "--key", ""], 2, "--idempotency-key: Give 1 to 255"),
        (
            ["backfill", "report-7", "--from", "2026-01-01T00:00", "--until", "2027-01-01T00:00"],
            2,
            "--until: A back",
        ),
        (["backfill", "report-7", "--from", "x", "--until", "2026-01-13T00:00"], 2, "--from: "),
        (
            [*("backfill", "report-7", "--from", "2026-01-13T00:00", "--until", "2026-01-12T00:00")],
            2,
            "--from: It lies after --until",
        ),
        (
            [
                *("backfill", "report-7", "--from", "2026-01-11T00:00", "--until", "2026-01-12T00:00"),
                *("--spacing", "fast"),
            ],
            2,
            "--spacing: ",
        ),
    ],
)
def test_what_is_refused_has_one_line(run: Run, arguments: list[str], code: int, line: str) -> None:
    ended = run("schedules", *arguments)
    assert (ended.code, len(ended.problems), ended.out) == (code, 1, ""), ended.err
    assert ended.problems[0].startswith(f"rota: {line}")


def test_a_replay_has_to_have_a_reason(run: Run) -> None:
    assert run("runs", "replay", DONE).code == 2
    assert run("runs", "replay", DONE, "--reason", "").problems == [
        "rota: --reason: Give 1 to 1000 characters."
    ]
    assert run("runs", "replay", "missing", "--reason", "x").code == 3


def test_a_moved_run_is_listed_with_when_it_falls_due(run: Run) -> None:
    run("schedules", "plan", "report-7", "--until", "2026-01-15T09:00")
    assert "DUE AT" not in run("runs", "list", "--state", "planned").out
    run("schedules", "move", "report-7", "2026-01-14T09:00", "--to", "2026-01-16T12:00")
    listed = run("runs", "list", "--state", "planned").out.splitlines()
    assert "DUE AT" in listed[0]
    assert any("2026-01-14T14:00:00Z   2026-01-16T17:00:00Z" in line for line in listed)
    following = run("schedules", "upcoming", "report-7", "--count", "3").out.splitlines()
    rows = [line.split("   ")[1].strip() for line in following if line.startswith("  2026")]
    assert rows == ["2026-01-15T14:00:00Z", "2026-01-16T14:00:00Z", "2026-01-14T14:00:00Z"]


def test_an_occurrence_that_is_no_moment_is_refused_with_both_forms(run: Run) -> None:
    for words in ("next", "2026-01-14T25:00:00Z"):
        refused = run("schedules", "skip", "report-7", words)
        assert refused.code == 2
        assert "give an instant (2026-01-14T14:00:00Z) or a local time in the schedule's zone" in refused.err
