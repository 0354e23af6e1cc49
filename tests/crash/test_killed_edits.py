"""Killed at every statement of an edit and of its activation: no day has two runs, none is lost, and nothing is half
there."""

from pathlib import Path

import pytest

from tests.crash.process import Process, kill_at_every_point, prepared_at
from tests.simulation.ledger import check_days

pytestmark = pytest.mark.slow

ID = "report"
CREATED = "2026-01-12T12:00:00Z"


def create(process: Process) -> None:
    process.create(ID, "0 9 * * *", "America/New_York")


def edit(process: Process) -> None:
    """At noon UTC nine o'clock is over in London, and is to come in New York: that day would be lost."""
    process.edit(ID, timezone="Europe/London", params={"x": 2})


def days_go_on(process: Process, *, first: int) -> None:
    """Another process goes on; whoever asked for the edit and got no answer asks again."""
    ledger = process.ledger(ID)
    carried = [run for run in ledger.runs.values() if run.carried_by is not None]
    if ledger.record.pending is None:
        assert len(carried) == ledger.latest - 1, "an activation without what it carries"
    edit(process)
    process.dispatch("2026-01-15T14:00:00Z", "2026-01-16T14:00:00Z", "2026-01-17T14:00:00Z")
    ledger = process.ledger(ID)
    check_days(ledger)
    assert [
        (run.version, run.named_local.day)
        for run in sorted(ledger.runs.values(), key=lambda run: run.scheduled_at)
    ] == [
        *[(1, day) for day in range(first, 16)],
        (2, 16),
        (2, 17),
    ]
    assert ledger.runs["report.1.20260115T140000Z"].carried_by == 2
    assert ledger.latest == 2


def test_killed_in_an_edit_that_takes_over_at_once_the_day_that_it_carries_runs_once(folder: Path) -> None:
    moments = [CREATED, "2026-01-12T14:00:00Z", "2026-01-13T14:00:00Z", "2026-01-14T14:00:00Z"]
    database = prepared_at(folder, [(CREATED, create), *((moment, Process.dispatch) for moment in moments)])
    killed = kill_at_every_point(
        database,
        edit,
        lambda process: days_go_on(process, first=12),
        at="2026-01-15T12:00:00Z",
        restart="2026-01-15T12:01:00Z",
    )
    assert killed > 12


def test_killed_in_an_edit_behind_which_a_day_would_be_doubled_it_is_suppressed_once(folder: Path) -> None:
    """Nine o'clock has been in London, and is to come in New York."""

    def edit_and_dispatch(process: Process) -> None:
        process.edit(ID, timezone="America/New_York")
        process.dispatch()
        process.dispatch("2026-01-12T14:00:00Z")

    def check(process: Process) -> None:
        process.ledger(ID)
        process.edit(ID, timezone="America/New_York")
        process.dispatch("2026-01-12T14:00:00Z", "2026-01-13T14:00:00Z")
        ledger = process.ledger(ID)
        check_days(ledger)
        assert sorted(ledger.runs) == ["report.1.20260112T090000Z", "report.2.20260113T140000Z"]
        [skip] = ledger.skips
        assert (skip.reason, skip.count) == ("period_used", 1)

    def create_in_london(process: Process) -> None:
        process.create(ID, "0 9 * * *", "Europe/London")

    database = prepared_at(
        folder, [("2026-01-12T08:00:00Z", create_in_london), ("2026-01-12T09:00:00Z", Process.dispatch)]
    )
    killed = kill_at_every_point(
        database, edit_and_dispatch, check, at=CREATED, restart="2026-01-12T12:01:00Z"
    )
    assert killed > 50


def test_killed_in_an_edit_that_waits_and_its_activation_no_day_is_doubled_or_lost(folder: Path) -> None:
    database = prepared_at(folder, [(CREATED, create)])

    def edit_and_dispatch(process: Process) -> None:
        edit(process)
        process.dispatch("2026-01-15T12:00:00Z", "2026-01-15T12:00:01Z")

    killed = kill_at_every_point(
        database,
        edit_and_dispatch,
        lambda process: days_go_on(process, first=12),
        at="2026-01-15T12:00:00Z",
        restart="2026-01-15T12:01:00Z",
    )
    assert killed > 50
