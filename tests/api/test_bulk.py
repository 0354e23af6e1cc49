"""Many runs at once over HTTP: cancelled and replayed by a filter."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from rota.domain.identity import RunId
from rota.domain.run import AttemptOutcome, Run, RunState
from rota.domain.settlement import AttemptEnd, Settlement, settle_attempt
from rota.service import bulk
from rota.service.context import Context
from rota.store.memory import MemoryStore
from rota.store.port import LedgerKey, OpenedAttempt, RunFilter
from rota.testing.clock import ManualClock
from tests.api.conftest import (
    JOB,
    Body,
    WorkOff,
    body_of,
    fields_of,
    items_of,
    report,
    rows_of,
)

HOURLY = {"recurrence": {"cron": "0 * * * *"}, "overdue": {"policy": "catch_up_all"}}
WHY: Body = {"reason": "the mail server was down"}
KEY = {"Idempotency-Key": "order-1742"}

SettleAll = Callable[..., None]


@pytest.fixture
def queued(client: TestClient, clock: ManualClock, work_off: WorkOff) -> TestClient:
    """Three queued runs of each of two schedules, scheduled at 13, 14 and 15 o'clock."""
    client.post("/schedules", json=report(**HOURLY, labels={"customer": "acme"}))
    client.post("/schedules", json=report(**HOURLY, id="other"))
    clock.advance(timedelta(hours=3))
    work_off()
    return client


def states_of(client: TestClient, query: str = "") -> dict[object, object]:
    """The state of every run by its id without the version and the date."""
    return {
        str(run["run_id"]).replace(".1.20260110T", "-").replace("0000Z", ""): run["state"]
        for run in items_of(client.get(f"/runs?limit=200{query}"))
    }


def told(client: TestClient, path: str, body: Body, **headers: str) -> Body:
    return body_of(client.post(path, json=body, headers=headers))


def settlement_of(
    opened: OpenedAttempt, outcome: AttemptOutcome, clock: ManualClock, *, retryable: bool
) -> Settlement:
    return settle_attempt(
        run_id=opened.run.run_id,
        attempt=opened.run.attempt,
        end=AttemptEnd(outcome=outcome, retryable=retryable),
        retry=opened.job.retry,
        cancel_requested=False,
        now=clock.now(),
    )


# --- cancelling ---


@pytest.mark.parametrize(
    ("filter_", "cancelled"),
    [
        ({"schedule": "other"}, {"other-13", "other-14", "other-15"}),
        ({"label": "customer=acme"}, {"report-7-13", "report-7-14", "report-7-15"}),
        (
            {"job": JOB, "from": "2026-01-10T14:00:00Z", "until": "2026-01-10T15:00:00Z"},
            {"other-14", "report-7-14"},
        ),
        ({"schedule": "other", "from": "2026-01-10T15:00:00Z", "state": None}, {"other-15"}),
        ({"schedule": "other", "state": "planned"}, set()),
        ({"origin": "manual"}, set()),
        ({"job": "nobody"}, set()),
    ],
)
def test_the_open_runs_that_match_are_cancelled_and_a_dry_run_counts_them(
    queued: TestClient, store: MemoryStore, filter_: Body, cancelled: set[str]
) -> None:
    before = rows_of(store)
    expected = {"cancelled": len(cancelled), "asked_to_stop": 0, "is_complete": True}
    assert told(queued, "/runs/cancel?dry_run=true", filter_) == {"dry_run": True, **expected}
    assert rows_of(store) == before
    assert told(queued, "/runs/cancel", filter_) == {"dry_run": False, **expected}
    assert {id_ for id_, state in states_of(queued).items() if state == "cancelled"} == cancelled
    assert told(queued, "/runs/cancel", filter_)["cancelled"] == 0


def test_who_cancelled_many_and_why_is_in_the_history_of_each(queued: TestClient) -> None:
    told(queued, "/runs/cancel", {"job": JOB, "reason": "not needed"}, **{"Rota-Actor": "ops"})
    events = [
        event for event in items_of(queued.get("/schedules/other/history")) if event["action"] == "run.cancel"
    ]
    assert {(event["actor"], event["reason"]) for event in events} == {("ops", "not needed")}
    assert {str(event["details"]) for event in events} == {
        str({"run_id": f"other.1.20260110T{hour}0000Z"}) for hour in (13, 14, 15)
    }


def test_running_runs_are_asked_to_stop_once(
    queued: TestClient, context: Context, clock: ManualClock
) -> None:
    intents = context.store.read_intents([JOB], now=clock.now(), limit=2)
    context.store.commit_openings("w1", intents, now=clock.now())
    expected = {"cancelled": 4, "asked_to_stop": 2, "is_complete": True}
    assert told(queued, "/runs/cancel?dry_run=true", {"job": JOB}) == {"dry_run": True, **expected}
    assert told(queued, "/runs/cancel", {"job": JOB}) == {"dry_run": False, **expected}
    assert told(queued, "/runs/cancel", {"job": JOB}) == {
        "dry_run": False,
        "cancelled": 0,
        "asked_to_stop": 0,
        "is_complete": True,
    }
    assert sum(run["cancel_requested_at"] is not None for run in items_of(queued.get("/runs"))) == 2


def test_a_run_that_goes_back_to_the_queue_meanwhile_is_found_by_another_look(
    queued: TestClient,
    context: Context,
    store: MemoryStore,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    intents = context.store.read_intents([JOB], now=clock.now(), limit=1)
    [opened] = context.store.commit_openings("w1", intents, now=clock.now())
    assert opened is not None
    list_runs = store.list_runs

    def list_after_it_failed(filter_: RunFilter, *, before: LedgerKey | None, limit: int) -> list[Run]:
        if filter_.state is RunState.RUNNING:
            store.commit_settlements([settlement_of(opened, AttemptOutcome.FAILED, clock, retryable=True)])
        return list_runs(filter_, before=before, limit=limit)

    monkeypatch.setattr(store, "list_runs", list_after_it_failed)
    assert told(queued, "/runs/cancel", {"job": JOB})["cancelled"] == 6


def test_a_request_cancels_a_bounded_number_and_is_repeated_for_the_rest(
    queued: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "RUNS_PER_REQUEST_MAX", 4)
    monkeypatch.setattr(bulk, "COUNTED_MAX", 5)
    monkeypatch.setattr(bulk, "LIMIT_MAX", 2)
    counted = told(queued, "/runs/cancel?dry_run=true", {"job": JOB})
    assert (counted["cancelled"], counted["is_complete"]) == (5, False)
    answers = [told(queued, "/runs/cancel", {"job": JOB}) for _ in range(3)]
    assert [(answer["cancelled"], answer["is_complete"]) for answer in answers] == [
        (4, False),
        (2, True),
        (0, True),
    ]


@pytest.mark.parametrize("path", ["/runs/cancel", "/runs/replay", "/runs/cancel?dry_run=true"])
def test_an_empty_filter_is_refused(queued: TestClient, store: MemoryStore, path: str) -> None:
    before = rows_of(store)
    for body in (WHY, {**WHY, "job": None}):
        assert fields_of(queued.post(path, json=body)) == ["schedule"]
    assert rows_of(store) == before


@pytest.mark.parametrize(
    ("path", "body", "fields"),
    [
        ("/runs/cancel", {"job": 5}, ["job"]),
        ("/runs/cancel", {"job": ""}, ["job"]),
        ("/runs/cancel", {"jobs": JOB}, ["jobs"]),
        ("/runs/cancel", {"job": JOB, "state": "asleep"}, ["state"]),
        ("/runs/cancel", {"job": JOB, "state": "failed"}, ["state"]),
        ("/runs/cancel", {"job": JOB, "label": "acme"}, ["label"]),
        ("/runs/cancel", {"from": "2026-01-10T14:00", "until": "now"}, ["from", "until"]),
        ("/runs/cancel", {"from": "2026-01-10T14:00:00Z", "until": "2026-01-10T14:00:00Z"}, ["until"]),
        ("/runs/cancel", {"job": JOB, "reason": ""}, ["reason"]),
        ("/runs/replay", {"job": JOB}, ["reason"]),
        ("/runs/replay", {"job": JOB, "state": "queued", **WHY}, ["state"]),
        ("/runs/replay", {"job": JOB, "cursor": "x", **WHY}, ["cursor"]),
        ("/runs/replay", {"job": JOB, "origin": "elsewhere", "limit": 5, **WHY}, ["limit", "origin"]),
    ],
)
def test_a_bad_member_is_named(queued: TestClient, path: str, body: Body, fields: list[str]) -> None:
    assert sorted(fields_of(queued.post(path, json=body))) == sorted(fields)


def test_runs_are_listed_from_an_instant_until_another(queued: TestClient) -> None:
    query = "&from=2026-01-10T14:00:00Z&until=2026-01-10T15:00:00Z"
    assert set(states_of(queued, query)) == {"other-14", "report-7-14"}
    assert fields_of(queued.get("/runs?from=yesterday&until=2026-01-10")) == ["from", "until"]


# --- replaying ---


@pytest.fixture
def settle(context: Context, clock: ManualClock) -> SettleAll:
    """Works off all queued runs: those at these hours fail, the others succeed."""

    def settle_all(*failing: int) -> None:
        intents = context.store.read_intents([JOB], now=clock.now(), limit=100)
        for opened in context.store.commit_openings("w1", intents, now=clock.now()):
            assert opened is not None
            is_failing = opened.run.scheduled_at.hour in failing
            outcome = AttemptOutcome.FAILED if is_failing else AttemptOutcome.SUCCEEDED
            settlement = settlement_of(opened, outcome, clock, retryable=False)
            assert context.store.commit_settlements([settlement]) == [True]

    return settle_all


def test_the_runs_that_ended_so_are_replayed_from_the_oldest_on_each_in_its_turn(
    queued: TestClient, context: Context, store: MemoryStore, settle: SettleAll
) -> None:
    settle(13, 15)
    before = rows_of(store)
    failed: Body = {"job": JOB, "state": "failed", **WHY}
    expected = {"replayed": 4, "left_out": 0, "is_complete": True, "next_cursor": None}
    assert told(queued, "/runs/replay?dry_run=true", failed) == {"dry_run": True, **expected}
    assert rows_of(store) == before
    assert told(queued, "/runs/replay", failed, **{"Rota-Actor": "ops"}) == {"dry_run": False, **expected}
    turns = {}
    for schedule_id in ("report-7", "other"):
        for hour in (13, 15):
            found = context.store.get_run(RunId(f"{schedule_id}.1.20260110T{hour}0000Z.r1"))
            assert found is not None
            assert (found.run.origin, found.run.state) == ("replay", "queued")
            turns[schedule_id, hour] = found.run.turn
    assert turns == {("report-7", 13): 1, ("report-7", 15): 2, ("other", 13): 1, ("other", 15): 2}
    event = items_of(queued.get("/schedules/other/history"))[0]
    assert (event["action"], event["actor"], event["reason"]) == ("run.replay", "ops", WHY["reason"])
    assert event["details"] == {"run_ids": [f"other.1.20260110T{hour}0000Z.r1" for hour in (13, 15)]}


def test_what_was_replayed_already_is_left_out_until_it_fails_again(
    queued: TestClient, settle: SettleAll
) -> None:
    settle(13, 15)
    failed: Body = {"schedule": "other", "state": "failed", **WHY}
    assert told(queued, "/runs/replay", failed)["replayed"] == 2
    while_open = told(queued, "/runs/replay", failed)
    settle(15)
    once_more = told(queued, "/runs/replay", failed)
    assert (while_open["replayed"], while_open["left_out"]) == (0, 2)
    assert (once_more["replayed"], once_more["left_out"]) == (1, 1)
    assert states_of(queued, "&schedule=other&state=queued") == {"other-15.r2": "queued"}


def test_without_a_state_all_that_ended_is_replayed_but_for_what_was_skipped(
    queued: TestClient, clock: ManualClock, settle: SettleAll, work_off: WorkOff
) -> None:
    settle(13)
    queued.post("/schedules/other/occurrences/2026-01-10T11:00/skip")
    skipped: Body = {"schedule": "other", "state": "skipped", **WHY}
    before_its_time = told(queued, "/runs/replay", skipped)
    assert (before_its_time["replayed"], before_its_time["left_out"]) == (0, 1)
    clock.advance(timedelta(hours=2))
    all_of_it: Body = {"schedule": "other", "until": "2026-01-10T17:00:00Z", **WHY}
    assert told(queued, "/runs/replay?dry_run=true", all_of_it)["replayed"] == 3
    assert told(queued, "/runs/replay", skipped)["replayed"] == 1
    assert states_of(queued, "&schedule=other&state=queued") == {"other-16.r1": "queued"}


def test_open_runs_are_not_replayed(queued: TestClient) -> None:
    answer = told(queued, "/runs/replay", {"job": JOB, **WHY})
    assert (answer["replayed"], answer["left_out"]) == (0, 0)


def test_a_request_looks_at_a_bounded_number_and_goes_on_at_its_cursor(
    queued: TestClient, settle: SettleAll, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle()
    monkeypatch.setattr(bulk, "RUNS_PER_REQUEST_MAX", 4)
    monkeypatch.setattr(bulk, "LIMIT_MAX", 3)
    body: Body = {"job": JOB, **WHY}
    first = told(queued, "/runs/replay", body)
    assert (first["replayed"], first["is_complete"]) == (4, False)
    rest = told(queued, "/runs/replay", {**body, "cursor": first["next_cursor"]})
    assert (rest["replayed"], rest["is_complete"], rest["next_cursor"]) == (2, True, None)
    assert len(states_of(queued, "&origin=replay")) == 6


def test_many_runs_of_one_schedule_are_replayed_in_several_commits_with_turns_that_go_on(
    client: TestClient, context: Context, clock: ManualClock, settle: SettleAll, work_off: WorkOff
) -> None:
    client.post("/schedules", json=report(**HOURLY))
    clock.advance(timedelta(hours=60))
    work_off()
    settle()
    assert told(client, "/runs/replay", {"job": JOB, **WHY})["replayed"] == 60
    replays = context.store.list_runs(RunFilter(origin="replay"), before=None, limit=99)
    assert [run.turn for run in reversed(replays)] == list(range(1, 61))


def test_the_same_key_gets_the_same_answer_and_replays_nothing_more(
    queued: TestClient, settle: SettleAll
) -> None:
    settle(13)
    body: Body = {"job": JOB, "state": "failed", **WHY}
    first = told(queued, "/runs/replay", body, **KEY)
    settle(13)
    assert told(queued, "/runs/replay", body, **KEY) == first
    assert len(states_of(queued, "&origin=replay")) == 2
    refused = queued.post("/runs/replay", json={**body, "schedule": "other"}, headers=KEY)
    assert fields_of(refused) == ["Idempotency-Key"]
    told(queued, "/runs/replay?dry_run=true", {**body, "schedule": "other"}, **KEY)
