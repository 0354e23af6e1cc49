"""What a pause would hold back and a resumption would do, as readable diffs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rota.service.dry_runs import dry_run_pause, dry_run_resume
from tests.cli.conftest import Run, dispatch_and_work, lines_of, open_database

pytestmark = pytest.mark.usefixtures("report")


def test_a_pause_tells_what_it_would_hold_and_leave_out(run: Run) -> None:
    run("schedules", "plan", "report-7", "--until", "2026-01-14T09:00")
    shown = lines_of(run("schedules", "pause", "report-7", "--dry-run").out)
    assert shown[:5] == [
        "report-7: active -> paused",
        "",
        "  LOCAL                     UTC                    VERSION   PERIOD           WHY",
        "  ─",
        "kept: planned already; each is held when it falls due during the pause",
    ]
    assert shown[5].endswith("planned already; held when it falls due, and decided on resume")
    assert shown[7] == "skipped: what falls due first, as long as the pause lasts"
    assert shown[8].startswith("  2026-01-15 09:00 -05:00")
    assert shown[8].endswith("skipped on resume, unless that says --apply-overdue")
    assert shown[-1] == "This was a dry run: nothing was written."
    assert run("schedules", "show", "report-7", "--json").wire["status"] == "active"


def test_a_resumption_tells_what_becomes_of_the_pause(
    run: Run, database: Path, set_time: Callable[[str], None]
) -> None:
    run("schedules", "plan", "report-7", "--until", "2026-01-14T09:00")
    run("schedules", "pause", "report-7")
    set_time("2026-01-16T15:00:00Z")
    dispatch_and_work(database)
    skipped = lines_of(run("schedules", "resume", "report-7", "--dry-run").out)
    assert skipped[0] == "report-7: paused -> active"
    assert [line.split("   ")[-1].strip() for line in skipped if "pause" in line][1:] == [
        "fell due during the pause",
        "2 of them, all before 2026-01-17T14:00:00Z: fell due during the pause",
    ]
    assert "Nothing is kept." in skipped
    applied = lines_of(run("schedules", "resume", "report-7", "--apply-overdue", "--dry-run").out)
    assert applied[4] == "kept: admitted at once, or planned for later"
    assert applied[5].startswith("  2026-01-16 09:00 -05:00")
    assert any(line.endswith("late, and a newer one is due, which runs in its place") for line in applied)
    assert run("schedules", "show", "report-7", "--json").wire["status"] == "paused"


def test_the_documents_are_those_of_the_use_cases(run: Run, database: Path) -> None:
    context = open_database(database)
    assert run("schedules", "pause", "report-7", "--dry-run", "--json").wire == dry_run_pause(
        context, "report-7"
    )
    run("schedules", "pause", "report-7")
    resumed = dry_run_resume(context, "report-7", apply_overdue=True)
    words = ["schedules", "resume", "report-7", "--apply-overdue", "--dry-run", "--json"]
    assert run(*words).wire == resumed
    context.store.close()


def test_what_is_so_already_says_that_nothing_changes(run: Run) -> None:
    assert (
        run("schedules", "resume", "report-7", "--dry-run").out.splitlines()[0] == "report-7: nothing changes"
    )


def test_what_has_ended_is_refused(run: Run) -> None:
    run("schedules", "end", "report-7")
    for word in ("pause", "resume"):
        refused = run("schedules", word, "report-7", "--dry-run")
        assert (refused.code, len(refused.problems)) == (4, 1)


def test_a_pause_says_whether_it_did_anything(run: Run) -> None:
    assert run("schedules", "pause", "report-7").out.startswith("Paused.\n")
    assert run("schedules", "pause", "report-7").out.startswith("Already paused.\n")
    assert run("schedules", "resume", "report-7").out.startswith("Resumed.\n")
    assert run("schedules", "resume", "report-7").out.startswith("Already active.\n")
    assert run("schedules", "end", "report-7", "--reason", "the contract is over").out.startswith(
        "Ended (the contract is over).\n"
    )
    assert run("schedules", "end", "report-7").out.startswith("It had ended already.\n")


def test_what_is_paused_says_since_when_and_what_it_holds(
    run: Run, database: Path, set_time: Callable[[str], None]
) -> None:
    run("schedules", "plan", "report-7", "--until", "2026-01-14T09:00")
    run("schedules", "pause", "report-7", "--actor", "ann", "--reason", "holiday")
    set_time("2026-01-14T15:00:00Z")
    dispatch_and_work(database)
    paused = "paused since 2026-01-14T10:00:00Z by ann (holiday)"
    for words, line in (("show", paused), ("upcoming", f"report-7: {paused}")):
        shown = run("schedules", words, "report-7").out.splitlines()
        assert line in shown
        held = shown.index("held: fell due during the pause, and decided on resume")
        assert shown[held + 1].startswith("  2026-01-14 09:00 -05:00")
    resumed = run("schedules", "resume", "report-7").out.splitlines()
    place = resumed.index("held until now: these do not run")
    assert resumed[place + 1].endswith("fell due during the pause")
