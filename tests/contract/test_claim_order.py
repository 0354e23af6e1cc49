"""The work protocol: which intents a claim takes first, and which it leaves to others."""

from datetime import datetime

import pytest

from rota.domain.job import Job
from rota.domain.sink import CelerySink
from rota.store.port import RETRY_TURN, Store, Wanted
from tests.contract.builders import HOUR, MADE_AT, MILLISECOND, MINUTE, NINE, SECOND, audit_event, failure
from tests.contract.steps import open_attempt, queue_at, queue_run, settle, wanted

JOBS = ["mail", "report"]


def claimed(
    store: Store, asked: list[Wanted], *, now: datetime = NINE + HOUR, backlog_first: bool = False
) -> list[str]:
    """The schedules of everything that is to be had, one claim of one run after the other."""
    found: list[str] = []
    while opened := store.commit_claims("w", asked, now=now, limit=1, backlog_first=backlog_first):
        found += [attempt.run.schedule_id for attempt in opened]
    return found


def queue_backlogs(store: Store) -> None:
    for id_, turn, minutes in (("a3", 3, 0), ("a1", 1, 1), ("b0", 0, 5), ("c0", 0, 4), ("b1", 1, 2)):
        queue_at(store, id_, at=NINE + minutes * MINUTE, turn=turn, job="mail")


def test_a_job_of_a_higher_priority_comes_first_whatever_waits_of_others(store: Store) -> None:
    store.commit_job(Job(name="mail", priority=2), now=MADE_AT)
    store.commit_job(Job(name="report", priority=9), now=MADE_AT)
    queue_at(store, "low", job="mail")
    queue_at(store, "high", at=NINE + MINUTE, turn=4, job="report")
    queue_at(store, "default", at=NINE + MINUTE, job="never stored")
    assert claimed(store, wanted(*JOBS, "never stored")) == ["high", "default", "low"]


def test_what_is_on_time_comes_before_a_backlog_and_lower_turns_before_higher(store: Store) -> None:
    queue_backlogs(store)
    assert [intent.run_id[:2] for intent in store.read_intents(["mail"], now=NINE + HOUR, limit=9)] == [
        "c0",
        "b0",
        "a1",
        "b1",
        "a3",
    ]
    assert claimed(store, wanted("mail")) == ["c0", "b0", "a1", "b1", "a3"]


def test_a_claim_that_prefers_backlogs_takes_them_first_within_a_priority(store: Store) -> None:
    store.commit_job(Job(name="report", priority=9), now=MADE_AT)
    queue_backlogs(store)
    queue_at(store, "high", job="report")
    assert claimed(store, wanted(*JOBS), backlog_first=True) == ["high", "a1", "b1", "a3", "c0", "b0"]


def test_a_retry_comes_before_what_was_never_tried_and_not_before_its_time(store: Store) -> None:
    tried = queue_at(store, "tried")
    open_attempt(store, tried)
    settle(store, failure(tried.run_id, at=NINE, retry_at=NINE + MINUTE))
    queue_at(store, "first")
    queue_at(store, "second", at=NINE + SECOND)
    jobs = wanted("sales_report")
    [opened] = store.commit_claims("w", jobs, now=NINE + MINUTE - MILLISECOND, limit=1)
    assert opened.run.schedule_id == "first"
    [retry, _] = store.read_intents(["sales_report"], now=NINE + MINUTE, limit=9)
    assert (retry.run_id, retry.turn, retry.attempt) == (tried.run_id, RETRY_TURN, 2)
    assert claimed(store, jobs, now=NINE + MINUTE) == ["tried", "second"]


def fail(store: Store, run_id: str, *, attempt: int = 1, at: datetime = NINE, retry_at: datetime) -> None:
    assert settle(store, failure(run_id, at=at, attempt=attempt, retry_at=retry_at)) == [True]


def test_a_retry_of_a_backlog_keeps_its_turn_and_what_is_on_time_comes_before_it(store: Store) -> None:
    jobs = wanted("sales_report")
    for turn in (1, 2):
        run = queue_at(store, f"late-{turn}", turn=turn)
        open_attempt(store, run)
        fail(store, run.run_id, retry_at=NINE + SECOND)
    queue_at(store, "late-3", turn=3)
    queue_at(store, "on time", at=NINE + MINUTE)
    order: list[str] = []
    while opened := store.commit_claims("w", jobs, now=NINE + MINUTE, limit=1):
        [attempt] = opened
        order.append(attempt.run.schedule_id)
        if attempt.run.attempt == 2:
            fail(store, attempt.run.run_id, attempt=2, at=NINE + MINUTE, retry_at=NINE + MINUTE)
    assert order == ["on time", "late-1", "late-1", "late-2", "late-2", "late-3"]


def test_a_retry_of_a_backlog_that_has_to_wait_hides_none_of_a_higher_turn(store: Store) -> None:
    for turn, minutes in ((1, 9), (2, 3)):
        run = queue_at(store, f"late-{turn}", turn=turn)
        open_attempt(store, run)
        fail(store, run.run_id, retry_at=NINE + minutes * MINUTE)
    assert store.read_next_intent_time(["sales_report"]) == NINE + 3 * MINUTE
    assert claimed(store, wanted("sales_report"), now=NINE + 3 * MINUTE - MILLISECOND) == []
    assert claimed(store, wanted("sales_report"), now=NINE + 3 * MINUTE) == ["late-2"]
    assert claimed(store, wanted("sales_report"), now=NINE + 9 * MINUTE, backlog_first=True) == ["late-1"]


def test_the_retry_of_a_backlog_that_is_cancelled_takes_its_intent_with_it(store: Store) -> None:
    run = queue_at(store, "late", turn=4)
    open_attempt(store, run)
    fail(store, run.run_id, retry_at=NINE + MINUTE)
    store.commit_cancel(run.run_id, event=audit_event("late", at=NINE), now=NINE)
    assert store.read_intents(["sales_report"], now=NINE + HOUR, limit=9) == []


@pytest.mark.parametrize("backlog_first", [False, True])
def test_a_claim_takes_no_more_of_a_job_than_is_wanted_of_it(store: Store, *, backlog_first: bool) -> None:
    for number in range(3):
        queue_at(store, f"mail-{number}", turn=number, job="mail")
    queue_at(store, "report-0", at=NINE + MINUTE, turn=2, job="report")
    asked = [Wanted(job="mail", limit=1), Wanted(job="report", limit=5), Wanted(job="none", limit=0)]
    opened = store.commit_claims("w", asked, now=NINE + HOUR, limit=2, backlog_first=backlog_first)
    of_mail = "mail-1" if backlog_first else "mail-0"
    assert [attempt.run.schedule_id for attempt in opened] == [of_mail, "report-0"]
    assert store.commit_claims("w", [Wanted(job="mail", limit=0)], now=NINE + HOUR, limit=2) == []


def test_what_is_sent_to_a_sink_is_not_claimed(store: Store) -> None:
    queue_run(store, "sent", job="mail")
    queue_at(store, "fetched", at=NINE + MINUTE, job="report")
    store.commit_job(Job(name="mail", sink=CelerySink(task="tasks.mail")), now=MADE_AT)
    assert store.read_next_intent_time(["mail"]) is None
    assert store.read_next_intent_time(JOBS) == NINE + MINUTE
    assert claimed(store, wanted(*JOBS)) == ["fetched"]
    store.commit_job(Job(name="mail"), now=MADE_AT)
    assert store.read_next_intent_time(JOBS) == NINE
    assert claimed(store, wanted(*JOBS)) == ["sent"]
