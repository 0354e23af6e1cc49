"""The table of a run's transitions, the retries and the settlements that lead through it (I7)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.errors import IllegalTransition
from rota.domain.identity import RunId
from rota.domain.job import RetryPolicy
from rota.domain.run import SETTLED, TRANSITIONS, AttemptOutcome, RunEvent, RunState, next_state
from rota.domain.settlement import AttemptEnd, Settlement, settle_attempt, settled_run
from tests.contract.builders import new_schedule, run_at

NOW = datetime(2026, 1, 10, 9, 0, 1, tzinfo=UTC)
RUN = RunId("report-7.1.20260110T090000Z")


def settle(
    outcome: AttemptOutcome, *, attempt: int = 1, retryable: bool = True, cancel_requested: bool = False
) -> Settlement:
    return settle_attempt(
        run_id=RUN,
        attempt=attempt,
        end=AttemptEnd(outcome=outcome, retryable=retryable),
        retry=RetryPolicy(max_attempts=3),
        cancel_requested=cancel_requested,
        now=NOW,
    )


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (state, event)
        for state in sorted(SETTLED)
        for event in sorted(RunEvent)
        if (state, event) != (RunState.SKIPPED, RunEvent.RESTORED)
    ],
)
def test_nothing_happens_to_a_run_that_is_settled(state: RunState, event: RunEvent) -> None:
    with pytest.raises(IllegalTransition):
        next_state(state, event)


@pytest.mark.parametrize("state", sorted(set(RunState) - SETTLED))
def test_every_open_state_leads_to_a_settled_one(state: RunState) -> None:
    reached = {state}
    while (more := reached | {to for (from_, _), to in TRANSITIONS.items() if from_ in reached}) != reached:
        reached = more
    assert reached & SETTLED


def test_a_failed_attempt_is_retried_until_none_is_left() -> None:
    assert settle(AttemptOutcome.FAILED, attempt=2).event is RunEvent.RETRY_SCHEDULED
    last = settle(AttemptOutcome.FAILED, attempt=3)
    assert (last.event, last.retry_at) == (RunEvent.FAILED_FOR_GOOD, None)


@pytest.mark.parametrize(
    "outcome", [AttemptOutcome.LOST, AttemptOutcome.TIMED_OUT, AttemptOutcome.INTERRUPTED]
)
def test_an_attempt_that_did_not_end_by_itself_is_retried(outcome: AttemptOutcome) -> None:
    assert settle(outcome).event is RunEvent.RETRY_SCHEDULED


@pytest.mark.parametrize("attempt", [1, 3, 4])
def test_an_attempt_given_back_goes_on_at_once_whatever_its_number(attempt: int) -> None:
    given_back = settle(AttemptOutcome.INTERRUPTED, attempt=attempt)
    assert (given_back.event, given_back.retry_at) == (RunEvent.RETRY_SCHEDULED, NOW)


def test_a_failure_that_trying_again_cannot_mend_is_final() -> None:
    assert settle(AttemptOutcome.FAILED, retryable=False).event is RunEvent.FAILED_FOR_GOOD


def test_a_run_that_was_to_be_cancelled_is_not_tried_again() -> None:
    assert settle(AttemptOutcome.LOST, cancel_requested=True).event is RunEvent.CANCELLED


def test_work_that_ended_well_succeeded_though_a_cancel_was_asked_for() -> None:
    assert settle(AttemptOutcome.SUCCEEDED, cancel_requested=True).event is RunEvent.SUCCEEDED


def test_delays_grow_by_the_factor_up_to_the_cap_and_bear_a_jitter_of_at_most_its_share() -> None:
    retry = RetryPolicy(
        initial_delay=timedelta(seconds=10), factor=2, max_delay=timedelta(seconds=60), jitter=0.5
    )
    for attempt, base in [(2, 10), (3, 20), (4, 40), (5, 60), (90, 60)]:
        delay = retry.delay_before(attempt, seed=RUN).total_seconds()
        assert base <= delay <= base * 1.5
    assert retry.delay_before(3, seed=RUN) == retry.delay_before(3, seed=RUN)
    assert retry.delay_before(3, seed="a") != retry.delay_before(3, seed="b")


def test_a_run_that_was_asked_to_stop_does_not_fail() -> None:
    run = replace(run_at(new_schedule().schedule, NOW), state=RunState.RUNNING, attempt=3)
    last = settle(AttemptOutcome.FAILED, attempt=3)
    assert settled_run(run, last).state is RunState.FAILED
    assert settled_run(replace(run, cancel_requested_at=NOW), last).state is RunState.CANCELLED


def test_a_run_that_was_asked_to_stop_is_cancelled_instead_of_retried() -> None:
    made = run_at(new_schedule().schedule, NOW)
    run = replace(made, state=RunState.RUNNING, attempt=1)
    retried = settled_run(run, settle(AttemptOutcome.FAILED))
    assert (retried.state, retried.finished_at) == (RunState.QUEUED, None)
    stopped = settled_run(replace(run, cancel_requested_at=NOW), settle(AttemptOutcome.FAILED))
    assert (stopped.state, stopped.finished_at, stopped.available_at) == (
        RunState.CANCELLED,
        NOW,
        run.available_at,
    )


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [(AttemptOutcome.MOOT, RunState.MOOT), (AttemptOutcome.CANCELLED, RunState.CANCELLED)],
)
def test_an_attempt_that_ends_its_run_tells_when(outcome: AttemptOutcome, expected: RunState) -> None:
    run = replace(run_at(new_schedule().schedule, NOW), state=RunState.RUNNING, attempt=1)
    settled = settled_run(run, settle(outcome))
    assert (settled.state, settled.finished_at) == (expected, NOW)


def test_the_local_time_of_a_run_is_that_of_its_instant() -> None:
    run = replace(run_at(new_schedule().schedule, NOW), offset=timedelta(hours=-5))
    assert run.local == datetime(2026, 1, 10, 4, 0, 1)
