"""Killed at statements of an admission, an attempt, an edit and a plan on PostgreSQL: the server undoes what was not
committed, and another process goes on."""

from functools import partial
from itertools import count

import pytest

from rota import Rota
from rota.domain.run import RunState
from rota.service.planning import plan_occurrences
from rota.service.schedules import end_schedule
from rota.worker.context import RunContext
from rota.worker.registry import Registry
from tests.crash.kill import Ending, run_and_kill
from tests.crash.process import JOB, Process, Step, begin_work, check_after
from tests.postgresql import Databases
from tests.simulation.ledger import check_days

pytestmark = pytest.mark.slow

ID = "report"
CREATED = "2026-01-12T08:00:00Z"
NINE = "2026-01-12T09:00:00Z"
RESTART = "2026-01-12T09:01:00Z"


def prepared(postgresql: Databases, *steps: tuple[str, Step]) -> str:
    """A database after these steps, each at its moment."""
    url = postgresql.make()
    process = Process(url, steps[0][0], owner="prepared")
    for moment, step in steps:
        process.at(moment)
        step(process)
    process.close()
    return url


def kill_at_points(
    postgresql: Databases, source: str, work: Step, check: Step, *, at: str, restart: str, every: int = 1
) -> int:
    """At how many points `work` was killed, each on a copy of `source`; `check` looks at what another process finds."""
    for killed, point in enumerate(count(1, every)):
        url = postgresql.copy(source)
        ending = run_and_kill(partial(begin_work, url, work, at=at), at=point, only_writers=True)
        check_after(url, check, restart=restart, what=f"{ending} at point {point}")
        postgresql.drop(url)
        if ending is Ending.FINISHED:
            postgresql.drop(source)
            return killed
    raise AssertionError("unreachable")


def create(process: Process) -> None:
    process.create(ID, "0 9 * * *", "Europe/London")


def work_off(process: Process) -> None:
    """A worker that does whatever is available."""
    registry = Registry()

    @registry.job(JOB)
    def report(run: RunContext) -> dict[str, object]:
        run.progress(0.5, "half")
        return {"attempt": run.attempt}

    with Rota(store=process.store, clock=process.clock, registry=registry) as app:
        worker = app.build_worker(inline=True)
        now = process.clock.now()
        while worker.step(now).wake_at <= now:
            pass


def states(process: Process) -> list[RunState]:
    return [run.state for run in process.ledger(ID).runs.values()]


def test_killed_in_an_admission_one_run_and_its_intent_are_left(postgresql: Databases) -> None:
    def check(process: Process) -> None:
        process.ledger(ID)
        process.dispatch()
        assert states(process) == [RunState.QUEUED]

    killed = kill_at_points(
        postgresql,
        prepared(postgresql, (CREATED, create)),
        lambda process: process.dispatch(NINE),
        check,
        at=CREATED,
        restart=RESTART,
        every=3,
    )
    assert killed > 4


def test_killed_in_an_attempt_the_run_is_finished_by_another(postgresql: Databases) -> None:
    def check(process: Process) -> None:
        process.ledger(ID)
        process.dispatch()
        work_off(process)
        process.dispatch("2026-01-12T09:05:00Z")
        work_off(process)
        assert states(process) == [RunState.SUCCEEDED]

    killed = kill_at_points(
        postgresql,
        prepared(postgresql, (CREATED, create), (NINE, Process.dispatch)),
        work_off,
        check,
        at=NINE,
        restart=RESTART,
        every=2,
    )
    assert killed > 4


def test_killed_in_an_edit_and_its_activation_no_day_is_doubled_or_lost(postgresql: Databases) -> None:
    def edit(process: Process) -> None:
        process.edit(ID, timezone="America/New_York", params={"x": 2})

    def edit_and_dispatch(process: Process) -> None:
        edit(process)
        process.dispatch("2026-01-13T14:00:00Z")

    def check(process: Process) -> None:
        process.ledger(ID)
        edit(process)
        process.dispatch("2026-01-14T14:00:00Z", "2026-01-15T14:00:00Z")
        ledger = process.ledger(ID)
        check_days(ledger)
        assert len(ledger.runs) == 4

    killed = kill_at_points(
        postgresql,
        prepared(postgresql, (CREATED, create), (NINE, Process.dispatch)),
        edit_and_dispatch,
        check,
        at=RESTART,
        restart="2026-01-13T14:01:00Z",
        every=5,
    )
    assert killed > 4


def test_killed_in_a_plan_and_an_end_every_planned_run_has_its_one_outcome(postgresql: Databases) -> None:
    def plan_and_end(process: Process) -> None:
        plan_occurrences(process.context, ID, until="2026-02-20T12:00:00Z")
        end_schedule(process.context, ID)
        process.dispatch()

    def check(process: Process) -> None:
        process.ledger(ID)
        end_schedule(process.context, ID)
        process.dispatch()
        assert set(states(process)) <= {RunState.SKIPPED}

    killed = kill_at_points(
        postgresql,
        prepared(postgresql, (CREATED, create)),
        plan_and_end,
        check,
        at=CREATED,
        restart="2026-01-12T08:01:00Z",
        every=6,
    )
    assert killed > 2
