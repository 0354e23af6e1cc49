"""`rota schedules versions` and `history`."""

import pytest

from rota.service.paging import encode_cursor
from tests.cli.conftest import Run, lines_of

pytestmark = pytest.mark.usefixtures("report")


@pytest.fixture
def edited(report: None, run: Run) -> None:
    """Moved to London; then a version that was to wait was replaced by one that waits."""
    edit = ["schedules", "edit", "report-7"]
    run(*edit, "--timezone", "Europe/London", "--actor", "ann", "--reason", "moved office")
    run(*edit, "--cron", "30 9 * * *", "--effective-from", "2026-02-01T00:00:00Z")
    run(*edit, "--cron", "45 9 * * *", "--effective-from", "2026-03-01T00:00:00Z", "--replace-pending")


@pytest.mark.usefixtures("edited")
def test_versions_are_listed_with_window_rule_and_maker(run: Run) -> None:
    head, _, *rows = lines_of(run("schedules", "versions", "report-7").out)
    assert head.split("   ")[0] == "VERSION"
    cells = [[cell.strip() for cell in row.split("   ") if cell.strip()] for row in rows]
    assert [row[:3] for row in cells] == [
        ["4", "waits", "2026-03-01T00:00:00Z"],
        ["3", "replaced", "2026-02-01T00:00:00Z"],
        ["2", "governs until 2026-03-01T00:00:00Z", "2026-01-14T10:00:01Z"],
        ["1", "past", "2026-01-12T15:00:01Z"],
    ]
    assert cells[2][3:7] == ["2026-03-01T00:00:00Z", "keep_period", "cron 0 9 * * *", "Europe/London"]
    assert cells[2][8:] == ["ann", "moved office"]


@pytest.mark.usefixtures("edited")
def test_versions_have_pages(run: Run) -> None:
    first = run("schedules", "versions", "report-7", "--limit", "3", "--json").wire
    assert first["next_cursor"] == encode_cursor({"before": 2})
    rest = run("schedules", "versions", "report-7", "--cursor", str(first["next_cursor"]), "--json")
    assert [item["version"] for item in rest.items] == [1]
    assert run("schedules", "versions", "report-7", "--cursor", "nonsense").code == 2
    assert run("schedules", "versions", "missing").code == 3


@pytest.mark.usefixtures("edited")
def test_the_history_tells_what_an_edit_changed_and_when_it_takes_over(run: Run) -> None:
    shown = [line.strip() for line in lines_of(run("schedules", "history", "report-7").out)]
    place = next(place for place, line in enumerate(shown) if "moved office" in line)
    assert shown[place].endswith("version 2, takes over 2026-01-14T10:00:01Z (keep_period)")
    assert shown[place + 1 : place + 4] == [
        "- timezone: America/New_York",
        "+ timezone: Europe/London",
        "carried: report-7.1.20260114T140000Z",
    ]
    assert "version 3 had not taken over yet" in shown


def test_the_history_tells_what_was_done_to_occurrences(run: Run) -> None:
    run("schedules", "move", "report-7", "2026-01-15T09:00", "--to", "2026-01-15T11:00")
    run("schedules", "pause", "report-7")
    run("schedules", "resume", "report-7", "--apply-overdue")
    shown = run("schedules", "history", "report-7").out
    assert "due at: 2026-01-15T14:00:00Z -> 2026-01-15T16:00:00Z" in shown
    assert "apply overdue: yes" in shown


def test_a_version_that_waits_where_nothing_is_due_before_does_not_govern(run: Run) -> None:
    run(
        "schedules", "create", "--id", "weekly", "--job", "report", "--timezone", "UTC", "--cron", "0 9 * * 1"
    )
    edit = ["schedules", "edit", "weekly", "--cron", "0 9 * * 2", "--effective-from", "2026-01-17T00:00:00Z"]
    assert run(*edit).code == 0
    shown = run("schedules", "show", "weekly").out.splitlines()
    assert "version 2 waits until 2026-01-17T00:00:00Z (keep_period)" in shown
    rows = lines_of(run("schedules", "versions", "weekly").out)[2:]
    states = [[cell for cell in row.split("   ") if cell][1].strip() for row in rows]
    assert states == ["waits", "governs until 2026-01-17T00:00:00Z"]


def test_the_version_that_waits_is_shown_by_what_it_changes(run: Run) -> None:
    edit = ["schedules", "edit", "report-7", "--timezone", "Europe/London", "--params", '{"of": null}']
    assert run(*edit, "--effective-from", "2026-02-01T00:00:00Z").code == 0
    shown = run("schedules", "show", "report-7").out.splitlines()
    place = shown.index("version 2 waits until 2026-02-01T00:00:00Z (keep_period)")
    assert shown[place + 1 : place + 4] == [
        "- timezone: America/New_York",
        "+ timezone: Europe/London",
        "- params.of: sales",
    ]
