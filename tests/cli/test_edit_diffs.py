"""What an edit would do, as a diff that a person can decide by; and in short what it did."""

from collections.abc import Callable

import pytest

from tests.cli.conftest import Run, lines_of

EDIT = ["schedules", "edit", "report-7"]
DRY = [*EDIT, "--dry-run"]

pytestmark = pytest.mark.usefixtures("report")


def test_a_move_to_the_east_is_told_with_what_is_carried(run: Run) -> None:
    ended = run(*DRY, "--timezone", "Europe/London")
    assert (ended.code, ended.err) == (0, "")
    assert lines_of(ended.out) == [
        "report-7: version 1 -> 2, takes over 2026-01-14T10:00:01Z (keep_period)",
        "- timezone: America/New_York",
        "+ timezone: Europe/London",
        "",
        "  LOCAL                     UTC                    VERSION   PERIOD           WHY",
        "  ─",
        "carried: still run by the old rule, since the new one would miss their period",
        (
            "  2026-01-14 09:00 -05:00   2026-01-14T14:00:00Z   1         day:2026-01-14   "
            "version 2's occurrence of that day lies before it takes over; version 1 still runs it"
        ),
        "",
        "next: what falls due first",
        "  2026-01-14 09:00 -05:00   2026-01-14T14:00:00Z   1         day:2026-01-14   planned; carried by version 2",
        "  2026-01-15 09:00 +00:00   2026-01-15T09:00:00Z   2         day:2026-01-15",
        "  2026-01-16 09:00 +00:00   2026-01-16T09:00:00Z   2         day:2026-01-16",
        "  2026-01-17 09:00 +00:00   2026-01-17T09:00:00Z   2         day:2026-01-17",
        "  2026-01-18 09:00 +00:00   2026-01-18T09:00:00Z   2         day:2026-01-18",
        "",
        "Nothing is kept, suppressed or skipped.",
        "This was a dry run: nothing was written.",
        "Do it with --expect-version 1: that refuses where somebody has edited it meanwhile.",
    ]


def test_the_edit_itself_is_told_in_short(run: Run) -> None:
    ended = run(*EDIT, "--timezone", "Europe/London")
    assert lines_of(ended.out) == [
        "report-7: version 1 -> 2, takes over 2026-01-14T10:00:01Z (keep_period)",
        "- timezone: America/New_York",
        "+ timezone: Europe/London",
        "",
        "  LOCAL                     UTC                    VERSION   PERIOD           WHY",
        "  ─",
        "carried: still run by the old rule, since the new one would miss their period",
        (
            "  2026-01-14 09:00 -05:00   2026-01-14T14:00:00Z   1         day:2026-01-14   "
            "version 2's occurrence of that day lies before it takes over; version 1 still runs it"
        ),
        "",
        "next: what falls due first",
        "  2026-01-14 09:00 -05:00   2026-01-14T14:00:00Z   1         day:2026-01-14   planned; carried by version 2",
        "  2026-01-15 09:00 +00:00   2026-01-15T09:00:00Z   2         day:2026-01-15",
        "  2026-01-16 09:00 +00:00   2026-01-16T09:00:00Z   2         day:2026-01-16",
    ]


def test_what_was_planned_moved_and_skipped_is_told_with_what_it_suppresses(run: Run) -> None:
    run("schedules", "plan", "report-7", "--until", "2026-01-14T09:00")
    run("schedules", "move", "report-7", "2026-01-15T09:00", "--to", "2026-01-15T11:00")
    run("schedules", "skip", "report-7", "2026-01-16T09:00")
    shown = lines_of(run(*DRY, "--timezone", "Europe/London").out)
    wheres = {
        title: shown.index(title) for title in shown if title.startswith(("kept", "supp", "skip", "next"))
    }
    kept, suppressed, skipped, following = wheres.values()
    assert [line.split("   ")[-1] for line in shown[kept + 1 : suppressed - 1]] == [
        "planned already, and stays version 1's",
        "planned already, and stays version 1's; moved: falls due at 2026-01-15 11:00 -05:00 (2026-01-15T16:00:00Z)",
    ]
    assert [line.split("   ")[-1] for line in shown[suppressed + 1 : skipped - 1]] == [
        "day:2026-01-15 is used by run report-7.1.20260115T140000Z; it would be a double",
        (
            "day:2026-01-16 is used by run report-7.1.20260116T140000Z, which was skipped on request; "
            "it is not brought back"
        ),
    ]
    assert shown[skipped + 1].endswith("skipped on request; its period stays used")
    assert "Nothing is carried." in shown[following:]


def test_members_are_told_one_by_one(run: Run) -> None:
    told = lines_of(
        run(
            *DRY, "--params", '{"of": "stock", "to": {"name": "Ann"}}', "--label", "region=eu",
            *("--unset", "label.customer", "--overdue", "expire:PT5M", "--ends-at", "2027-01-01T00:00:00Z"),
        ).out
    )  # fmt: skip
    assert [line for line in told if line.startswith(("- ", "+ "))] == [
        "- overdue: as the job says",
        "+ overdue: expire PT5M",
        "+ ends_at: 2027-01-01T00:00:00Z",
        "- params.of: sales",
        "+ params.of: stock",
        '+ params.to: {"name": "Ann"}',
        "- labels.customer: acme",
        "+ labels.region: eu",
    ]


def test_labels_alone_make_no_version(run: Run) -> None:
    ended = run(*EDIT, "--label", "region=eu")
    assert lines_of(ended.out) == ["report-7: version 1 stays", "+ labels.region: eu"]


def test_an_edit_that_changes_nothing_says_so(run: Run) -> None:
    assert lines_of(run(*EDIT, "--gap", "skip").out) == ["report-7: nothing changes"]
    assert lines_of(run(*DRY, "--gap", "skip").out) == [
        "report-7: nothing changes",
        "This was a dry run: nothing was written.",
    ]
    assert len(run("schedules", "versions", "report-7", "--json").items) == 1


def test_a_fresh_series_of_periods_is_told_by_its_boundary(run: Run) -> None:
    told = lines_of(run(*DRY, "--timezone", "Europe/London", "--boundary", "now").out)
    assert told[0] == "report-7: version 1 -> 2, takes over 2026-01-14T10:00:01Z (now)"
    assert not any(line.startswith("carried") for line in told)
    assert any("day:2026-01-15#2" in line for line in told)


def test_what_a_version_will_carry_is_told_before_it_takes_over(run: Run) -> None:
    told = run(*DRY, "--timezone", "Europe/London", "--effective-from", "2026-01-20T10:00:00Z").out
    head, *rest = lines_of(told)
    assert head == (
        "report-7: version 1 -> 2, takes over 2026-01-20T10:00:00Z (keep_period); it waits until then"
    )
    carried = rest[
        rest.index("carried: still run by the old rule, since the new one would miss their period") + 1
    ]
    assert carried.startswith("  2026-01-20 09:00 -05:00   2026-01-20T14:00:00Z   1         day:2026-01-20")
    assert any(line.startswith("  2026-01-14 09:00 -05:00") for line in rest)
    assert any(line.startswith("  2026-01-21 09:00 +00:00") for line in rest)


def test_what_a_version_will_suppress_is_told_before_it_takes_over(run: Run) -> None:
    run(*EDIT, "--timezone", "Europe/London", "--boundary", "now")
    told = run(*DRY, "--timezone", "America/New_York", "--effective-from", "2026-01-20T10:00:00Z").out
    assert "day:2026-01-20 is used by run report-7.2.20260120T090000Z; it would be a double" in told


def test_what_is_owed_comes_first(run: Run, set_time: Callable[[str], None]) -> None:
    set_time("2026-01-16T20:00:00Z")
    told = lines_of(run(*DRY, "--timezone", "Europe/London").out)
    assert told[0].endswith("; it waits until version 1 has decided what it owes from before that")
    assert any("fell due before; admitted at once, as version 1's" in line for line in told)
    assert any("2 of them, all before 2026-01-16T14:00:00Z: late, and a newer one" in line for line in told)


def test_columns_are_left_out_and_the_reason_is_wrapped_in_a_narrow_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.cli.output.terminal_width", lambda: 80)
    shown = lines_of(run(*DRY, "--timezone", "Europe/London").out)
    assert shown[4].split() == ["LOCAL", "VERSION", "PERIOD", "WHY"]
    table = [line for line in shown if line.startswith("  ")]
    assert max(len(line) for line in table) <= 80


def test_a_planned_run_of_the_same_instant_is_told_once(run: Run) -> None:
    run("schedules", "plan", "report-7", "--until", "2026-01-15T09:00")
    told = lines_of(run(*DRY, "--params", '{"of": "stock"}').out)
    rows = [line for line in told if "2026-01-15T14:00:00Z" in line]
    assert rows[0].endswith("   planned; keeps version 1 and its params")
    assert not any(line.startswith("suppressed") for line in told)
    assert "Nothing is carried, suppressed or skipped." in told
