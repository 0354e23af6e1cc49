"""The work protocol: an attempt's end settles its run, once, and only the current attempt's (I6, I7)."""

from dataclasses import replace

import pytest

from rota.domain.identity import RunId
from rota.domain.json_text import JsonText, encode_json
from rota.domain.run import Attempt, AttemptOutcome, Progress, RunDetail, RunEvent, RunState
from rota.domain.settlement import AttemptEnd, Settlement
from rota.store.port import RETRY_TURN, Heartbeat, Intent, RunFilter, Store, TooManyElements
from tests.contract.builders import (
    HOUR,
    MILLISECOND,
    MINUTE,
    NINE,
    SECOND,
    failure,
    settlement,
    success,
)
from tests.contract.steps import attempts_of, heartbeat, open_attempt, queue_run, run_of, settle

ID = RunId("report-7.1.20260110T090000Z")
JOBS = ["sales_report"]
AT = NINE + MINUTE + MILLISECOND


def detail_of(store: Store) -> RunDetail:
    detail = store.get_run(ID)
    assert detail is not None
    return detail


def assert_refused(store: Store, end: Settlement) -> None:
    before = store.get_run(end.run_id), store.read_intents(JOBS, now=NINE + HOUR, limit=10)
    assert settle(store, end) == [False]
    assert (store.get_run(end.run_id), store.read_intents(JOBS, now=NINE + HOUR, limit=10)) == before


def end_of(outcome: AttemptOutcome, event: RunEvent, error: str | None) -> Settlement:
    return settlement(ID, AttemptEnd(outcome=outcome, error=error), event, at=AT)


def test_a_success_closes_attempt_and_run_and_keeps_the_result(store: Store) -> None:
    opened = open_attempt(store, queue_run(store))
    [attempt] = attempts_of(store, ID)
    result = encode_json({"rows": [1, 2.5, None], "é": "ß"})
    assert settle(store, success(ID, at=AT, result=result)) == [True]
    assert detail_of(store) == RunDetail(
        run=replace(opened.run, state=RunState.SUCCEEDED, finished_at=AT),
        attempts=(replace(attempt, finished_at=AT, outcome=AttemptOutcome.SUCCEEDED),),
        result=result,
    )
    assert store.read_next_intent_time(JOBS) is None


@pytest.mark.parametrize("result", [None, JsonText("null"), JsonText('""'), JsonText("0")])
def test_an_empty_result_is_told_from_none(store: Store, result: JsonText | None) -> None:
    open_attempt(store, queue_run(store))
    assert settle(store, success(ID, at=AT, result=result)) == [True]
    assert detail_of(store).result == result


@pytest.mark.parametrize(
    ("end", "state", "reason", "error"),
    [
        (failure(ID, at=AT), RunState.FAILED, None, "no paper"),
        (
            end_of(AttemptOutcome.TIMED_OUT, RunEvent.FAILED_FOR_GOOD, "an hour"),
            RunState.FAILED,
            None,
            "an hour",
        ),
        (end_of(AttemptOutcome.LOST, RunEvent.FAILED_FOR_GOOD, "gone"), RunState.FAILED, None, "gone"),
        (end_of(AttemptOutcome.CANCELLED, RunEvent.CANCELLED, None), RunState.CANCELLED, None, None),
        (end_of(AttemptOutcome.MOOT, RunEvent.FOUND_MOOT, None), RunState.MOOT, None, None),
    ],
    ids=["failed", "timed out", "lost", "cancelled", "moot"],
)
def test_each_end_has_its_state(
    store: Store, end: Settlement, state: RunState, reason: str | None, error: str | None
) -> None:
    open_attempt(store, queue_run(store))
    assert settle(store, end) == [True]
    run = run_of(store, ID)
    assert (run.state, run.reason, run.error, run.finished_at) == (state, reason, error, AT)
    [attempt] = attempts_of(store, ID)
    assert (attempt.outcome, attempt.error, attempt.finished_at) == (end.end.outcome, error, AT)
    assert store.read_next_intent_time(JOBS) is None


def test_a_moot_run_tells_why(store: Store) -> None:
    open_attempt(store, queue_run(store))
    end = end_of(AttemptOutcome.MOOT, RunEvent.FOUND_MOOT, "confirmed already")
    assert settle(store, end) == [True]
    run = run_of(store, ID)
    assert (run.state, run.reason) == (RunState.MOOT, "confirmed already")


def test_only_a_success_has_a_result(store: Store) -> None:
    open_attempt(store, queue_run(store))
    end = AttemptEnd(outcome=AttemptOutcome.FAILED, result=encode_json(1), error="no paper")
    assert settle(store, settlement(ID, end, RunEvent.FAILED_FOR_GOOD, at=AT)) == [True]
    assert detail_of(store).result is None


def test_a_retry_queues_the_same_run_for_its_next_attempt(store: Store) -> None:
    opened = open_attempt(store, queue_run(store))
    retry_at = NINE + 5 * MINUTE
    assert settle(store, failure(ID, at=AT, retry_at=retry_at, error="no toner")) == [True]
    assert run_of(store, ID) == replace(
        opened.run, state=RunState.QUEUED, available_at=retry_at, error="no toner"
    )
    assert store.read_intents(JOBS, now=retry_at - MILLISECOND, limit=10) == []
    assert store.read_intents(JOBS, now=retry_at, limit=10) == [
        Intent(run_id=ID, attempt=2, job="sales_report", available_at=retry_at, turn=RETRY_TURN)
    ]
    assert store.read_next_intent_time(JOBS) == retry_at
    assert len(store.list_runs(RunFilter(), before=None, limit=10)) == 1


def test_a_retry_keeps_the_progress_that_was_made(store: Store) -> None:
    open_attempt(store, queue_run(store))
    made = Progress(fraction=0.5, message="half")
    heartbeat(store, [Heartbeat(run_id=ID, attempt=1, lease_expires_at=AT + HOUR, progress=made)])
    assert settle(store, failure(ID, at=AT, retry_at=AT)) == [True]
    assert run_of(store, ID).progress == made
    assert open_attempt(store, run_of(store, ID), now=AT).run.progress == made


def test_a_success_after_failures_ends_without_an_error(store: Store) -> None:
    open_attempt(store, queue_run(store))
    assert settle(store, failure(ID, at=AT, retry_at=AT)) == [True]
    open_attempt(store, run_of(store, ID), now=AT, worker="worker-2")
    assert settle(store, success(ID, at=AT + MINUTE, attempt=2)) == [True]
    run = run_of(store, ID)
    assert (run.state, run.error, run.attempt) == (RunState.SUCCEEDED, None, 2)
    assert [(attempt.outcome, attempt.error) for attempt in attempts_of(store, ID)] == [
        (AttemptOutcome.FAILED, "no paper"),
        (AttemptOutcome.SUCCEEDED, None),
    ]


def test_an_attempt_settles_once(store: Store) -> None:
    open_attempt(store, queue_run(store))
    assert settle(store, success(ID, at=AT, result=encode_json(1))) == [True]
    assert_refused(store, success(ID, at=AT + SECOND, result=encode_json(2)))
    assert_refused(store, failure(ID, at=AT + SECOND, retry_at=AT + SECOND))


def test_an_attempt_twice_in_a_batch_settles_once(store: Store) -> None:
    open_attempt(store, queue_run(store))
    ends = [failure(ID, at=AT, retry_at=AT + SECOND), success(ID, at=AT, result=encode_json(1))]
    assert settle(store, *ends) == [True, False]
    assert (run_of(store, ID).state, detail_of(store).result) == (RunState.QUEUED, None)


@pytest.mark.parametrize("attempt", [0, 2])
def test_another_attempt_does_not_settle(store: Store, attempt: int) -> None:
    open_attempt(store, queue_run(store))
    assert_refused(store, success(ID, at=AT, attempt=attempt))


def test_a_run_that_was_not_opened_does_not_settle(store: Store) -> None:
    queue_run(store)
    assert_refused(store, success(ID, at=AT, attempt=0))
    assert_refused(store, success(ID, at=AT))


def test_an_unknown_run_does_not_settle(store: Store) -> None:
    queue_run(store)
    assert_refused(store, success("unknown", at=AT))


def test_a_late_end_of_an_older_attempt_changes_nothing(store: Store) -> None:
    """Given up for lost, the first worker comes back: while its run waits, while the next attempt runs, and after."""
    open_attempt(store, queue_run(store))
    late = success(ID, at=NINE + HOUR, result=encode_json("late"))
    assert settle(store, failure(ID, at=AT, retry_at=AT)) == [True]
    assert_refused(store, late)
    open_attempt(store, run_of(store, ID), now=AT, worker="worker-2")
    assert_refused(store, late)
    assert settle(store, success(ID, at=AT + SECOND, attempt=2, result=encode_json("timely"))) == [True]
    assert_refused(store, late)
    assert detail_of(store).result == encode_json("timely")


def test_a_cancelled_run_does_not_settle(store: Store) -> None:
    open_attempt(store, queue_run(store))
    cancelled = end_of(AttemptOutcome.CANCELLED, RunEvent.CANCELLED, None)
    assert settle(store, cancelled) == [True]
    assert_refused(store, success(ID, at=AT + SECOND))


def test_each_place_of_a_batch_tells_of_its_settlement(store: Store) -> None:
    for id_ in ("a", "b", "c", "d"):
        open_attempt(store, queue_run(store, id_))
    ids = [f"{id_}.1.20260110T090000Z" for id_ in ("d", "c", "b", "a")]
    assert settle(store, success(ids[1], at=AT)) == [True]
    ends = [
        success(ids[0], at=AT, result=encode_json("d")),
        success(ids[1], at=AT + SECOND),
        failure(ids[2], at=AT, retry_at=AT + HOUR),
        failure(ids[3], at=AT),
    ]
    assert settle(store, *ends) == [True, False, True, True]
    assert [run_of(store, id_).state for id_ in ids] == [
        RunState.SUCCEEDED,
        RunState.SUCCEEDED,
        RunState.QUEUED,
        RunState.FAILED,
    ]


def test_a_run_that_fails_for_good_after_retries_keeps_every_attempt(store: Store) -> None:
    """Operations case B44: the retries are attempts of the same run, and no run of their own."""
    run = queue_run(store)
    for number in range(1, 5):
        open_attempt(store, run, now=NINE + number * MINUTE)
        at = NINE + number * MINUTE + SECOND
        assert settle(store, failure(ID, at=at, attempt=number, retry_at=at, error=str(number))) == [True]
        run = run_of(store, ID)
    open_attempt(store, run, now=NINE + 5 * MINUTE)
    assert settle(store, failure(ID, at=NINE + 31 * MINUTE, attempt=5, error="5")) == [True]
    final = run_of(store, ID)
    assert (final.state, final.attempt, final.error) == (RunState.FAILED, 5, "5")
    assert (final.started_at, final.finished_at) == (NINE + MINUTE, NINE + 31 * MINUTE)
    attempts: tuple[Attempt, ...] = attempts_of(store, ID)
    assert [attempt.error for attempt in attempts] == ["1", "2", "3", "4", "5"]
    assert len(store.list_runs(RunFilter(), before=None, limit=10)) == 1


def test_more_settlements_than_the_store_takes_are_refused_whole(store: Store) -> None:
    open_attempt(store, queue_run(store))
    with pytest.raises(TooManyElements):
        store.commit_settlements([success(ID, at=AT)] * (store.elements_max + 1))
    assert run_of(store, ID).state is RunState.RUNNING
