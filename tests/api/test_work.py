"""The worker protocol over HTTP: what is claimed, kept, settled, and what is refused by name."""

from datetime import timedelta
from typing import cast

import pytest
from starlette.testclient import TestClient

from rota.service.context import Context
from rota.service.work_requests import REPORTS_MAX
from rota.store.memory import MemoryStore
from rota.testing.clock import ManualClock
from tests.api.conftest import JOB, Body, WorkOff, body_of, fields_of, report

WORKER = "sales@host-7:4711"
RUN = "report-7.1.20260110T130000Z"
FIRST: Body = {"run_id": RUN, "attempt": 1}


@pytest.fixture
def queued(client: TestClient, clock: ManualClock, work_off: WorkOff) -> TestClient:
    """One run that waits for a worker; it is tried twice, at once."""
    retry = {"max_attempts": 2, "initial_delay": "PT0S"}
    client.put(f"/jobs/{JOB}", json={"lease": "PT20S", "timeout": "PT10M", "retry": retry})
    client.post("/schedules", json=report(recurrence={"cron": "0 * * * *"}, params={"customer": "acme"}))
    clock.advance(timedelta(hours=1, seconds=2))
    work_off()
    return client


def claim(client: TestClient, **fields: object) -> Body:
    return body_of(client.post("/attempts/claim", json={"worker": WORKER, "jobs": [JOB]} | fields))


def outcome_of(client: TestClient, path: str, **fields: object) -> object:
    """What becomes of a report of the first attempt."""
    answer = body_of(client.post(path, json={"attempts": [FIRST | fields]}))
    [told] = cast("list[Body]", answer["attempts"])
    assert {"run_id": told["run_id"], "attempt": told["attempt"]} == FIRST
    return told["outcome"]


def run_of(client: TestClient) -> Body:
    return body_of(client.get(f"/runs/{RUN}"))


def test_a_claim_gives_all_that_a_worker_has_to_know(queued: TestClient) -> None:
    assert claim(queued) == {
        "attempts": [
            {
                "run_id": RUN,
                "schedule_id": "report-7",
                "version": 1,
                "job": JOB,
                "attempt": 1,
                "scheduled_at": "2026-01-10T13:00:00Z",
                "due_at": "2026-01-10T13:00:00Z",
                "local": "2026-01-10T08:00",
                "named_local": "2026-01-10T08:00",
                "offset": "-05:00",
                "timezone": "America/New_York",
                "period_key": "instant:2026-01-10T13:00:00Z",
                "origin": "schedule",
                "params": {"customer": "acme"},
                "lease": "PT20S",
                "timeout": "PT10M",
                "cancel_requested": False,
            }
        ],
        "may_be_more": True,
        "next_in": None,
    }
    [attempt] = cast("list[Body]", run_of(queued)["attempts"])
    assert (attempt["worker"], attempt["lease_expires_at"]) == (WORKER, "2026-01-10T13:00:22Z")
    assert claim(queued) == {"attempts": [], "may_be_more": False, "next_in": None}


def test_a_claim_of_nothing_tells_whether_there_is_anything(queued: TestClient) -> None:
    assert claim(queued, limit=0) == {"attempts": [], "may_be_more": True, "next_in": None}
    assert run_of(queued)["state"] == "queued"
    claim(queued)
    assert claim(queued, limit=0)["may_be_more"] is False


def test_a_claim_tells_when_the_next_run_becomes_available(queued: TestClient, clock: ManualClock) -> None:
    queued.put(f"/jobs/{JOB}", json={"retry": {"initial_delay": "PT30S", "jitter": 0}})
    claim(queued)
    assert outcome_of(queued, "/attempts/settle", outcome="failed", error="no data") == "settled"
    clock.advance(timedelta(seconds=10))
    assert claim(queued)["next_in"] == "PT20S"


def test_of_a_job_no_more_is_given_than_is_wanted_of_it(
    queued: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    clock.advance(timedelta(hours=1))
    work_off()
    given = claim(queued, jobs=[{"job": JOB, "limit": 1}], limit=10)
    assert len(cast("list[Body]", given["attempts"])) == 1
    assert given["may_be_more"] is False


def test_one_of_four_claims_that_leave_it_to_the_server_asks_for_a_backlog_first(
    client: TestClient, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    commit = store.commit_claims

    def note(*arguments: object, backlog_first: bool = False, **more: object) -> object:
        asked.append(backlog_first)
        return commit(*arguments, backlog_first=backlog_first, **more)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(store, "commit_claims", note)
    for _ in range(8):
        claim(client)
    assert sum(asked) == 2
    claim(client, backlog_first=True)
    claim(client, backlog_first=False)
    assert asked[8:] == [True, False]


def test_a_message_opens_its_attempt_one_time(queued: TestClient) -> None:
    opened = body_of(queued.post("/attempts/open", json={"worker": WORKER, **FIRST}))
    assert opened["outcome"] == "opened"
    assert cast("Body", opened["attempt"])["params"] == {"customer": "acme"}
    for message in (FIRST, {"run_id": RUN, "attempt": 2}, {"run_id": "nothing", "attempt": 1}):
        again = body_of(queued.post("/attempts/open", json={"worker": WORKER, **message}))
        assert again == {"outcome": "stale", "attempt": None}


def test_a_heartbeat_prolongs_the_lease_by_the_servers_clock(queued: TestClient, clock: ManualClock) -> None:
    claim(queued)
    clock.advance(timedelta(seconds=15))
    progress = {"fraction": 0.5, "message": "x" * 1_000}
    assert outcome_of(queued, "/attempts/heartbeat", progress=progress) == "current"
    run = run_of(queued)
    assert cast("list[Body]", run["attempts"])[0]["lease_expires_at"] == "2026-01-10T13:00:37Z"
    shown = cast("Body", run["progress"])
    assert shown["fraction"] == 0.5
    assert len(str(shown["message"])) == 500


def test_a_request_to_stop_comes_with_the_next_heartbeat(queued: TestClient) -> None:
    claim(queued)
    queued.post(f"/runs/{RUN}/cancel")
    assert outcome_of(queued, "/attempts/heartbeat") == "cancel_requested"
    assert outcome_of(queued, "/attempts/settle", outcome="cancelled") == "settled"
    assert run_of(queued)["state"] == "cancelled"


def test_an_end_is_settled_one_time(queued: TestClient) -> None:
    claim(queued)
    assert (
        outcome_of(queued, "/attempts/settle", outcome="succeeded", result={"rows": [1, 2.5, None]})
        == "settled"
    )
    for path, fields in (("/attempts/settle", {"outcome": "failed"}), ("/attempts/heartbeat", {})):
        assert outcome_of(queued, path, **fields) == "stale"
    run = run_of(queued)
    assert (run["state"], run["result"]) == ("succeeded", {"rows": [1, 2.5, None]})


def test_the_jobs_policy_decides_whether_it_is_tried_again(queued: TestClient) -> None:
    for attempt, state in ((1, "queued"), (2, "failed")):
        claim(queued)
        end = {"run_id": RUN, "attempt": attempt, "outcome": "failed", "error": "e" * 10_000}
        queued.post("/attempts/settle", json={"attempts": [end]})
        run = run_of(queued)
        assert (run["state"], run["attempt"]) == (state, attempt)
        assert len(str(run["error"])) == 4_000


@pytest.mark.parametrize(
    ("end", "state"),
    [
        ({"outcome": "failed", "retryable": False}, "failed"),
        ({"outcome": "moot", "error": "confirmed already"}, "moot"),
        ({"outcome": "interrupted"}, "queued"),
        ({"outcome": "timed_out"}, "queued"),
    ],
)
def test_an_end_makes_of_its_run_what_it_does_everywhere(queued: TestClient, end: Body, state: str) -> None:
    claim(queued)
    assert outcome_of(queued, "/attempts/settle", **end) == "settled"
    assert run_of(queued)["state"] == state


# I6, B41
def test_work_that_outlived_its_lease_is_stale_and_changes_nothing(
    queued: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    claim(queued)
    clock.advance(timedelta(seconds=20))
    work_off()
    for _ in range(2):
        before = run_of(queued)
        assert outcome_of(queued, "/attempts/settle", outcome="succeeded", result="late") == "stale"
        assert outcome_of(queued, "/attempts/heartbeat") == "stale"
        effect = FIRST | {"name": "send-mail"}
        assert body_of(queued.post("/effects/begin", json=effect))["state"] == "stale"
        assert body_of(queued.post("/effects/record", json=effect))["state"] == "stale"
        assert run_of(queued) == before
        claim(queued)
    assert run_of(queued)["state"] == "running"


def test_reports_of_many_attempts_are_told_one_by_one_in_their_order(
    client: TestClient, context: Context, clock: ManualClock, work_off: WorkOff
) -> None:
    for name in ("a", "b", "c"):
        client.post("/schedules", json=report(id=name, recurrence={"cron": "0 * * * *"}))
    clock.advance(timedelta(hours=1))
    work_off()
    store = context.store
    assert isinstance(store, MemoryStore)
    claimed = cast("list[Body]", claim(client, limit=3)["attempts"])
    names = [{"run_id": item["run_id"], "attempt": 1} for item in claimed]
    gone = {"run_id": "gone", "attempt": 1}
    store.elements_max = 2  # as a store that takes few elements a call
    reports = [names[0], gone, names[1], names[2]]
    beats = body_of(client.post("/attempts/heartbeat", json={"attempts": reports}))["attempts"]
    assert [item["outcome"] for item in cast("list[Body]", beats)] == [
        "current",
        "stale",
        "current",
        "current",
    ]
    ends = [item | {"outcome": "succeeded"} for item in reports]
    settled = body_of(client.post("/attempts/settle", json={"attempts": ends}))["attempts"]
    assert [item["outcome"] for item in cast("list[Body]", settled)] == [
        "settled",
        "stale",
        "settled",
        "settled",
    ]


def test_an_effect_is_new_then_in_doubt_then_recorded(queued: TestClient) -> None:
    claim(queued)
    effect = FIRST | {"name": "send-mail"}
    for state in ("new", "in_doubt"):
        assert body_of(queued.post("/effects/begin", json=effect)) == {"state": state, "result": None}
    recorded = queued.post("/effects/record", json=effect | {"result": {"id": 7}})
    assert body_of(recorded) == {"state": "recorded"}
    begun = queued.post("/effects/begin", json=effect)
    assert body_of(begun) == {"state": "recorded", "result": {"id": 7}}


NESTED: object = 0
for _ in range(40):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    ("path", "body", "fields"),
    [
        ("/attempts/claim", {}, ["worker", "jobs"]),
        (
            "/attempts/claim",
            {"worker": "w\n", "jobs": [], "limit": 101, "wait": "PT2M"},
            ["worker", "jobs", "limit", "wait"],
        ),
        (
            "/attempts/claim",
            {"worker": "w", "jobs": ["Sales", 7, {"job": "a", "limit": 0}, "b", "b"]},
            ["jobs.0", "jobs.1", "jobs.2.limit", "jobs.4"],
        ),
        ("/attempts/claim", {"worker": "w", "jobs": [{"name": "a"}]}, ["jobs.0.name", "jobs.0.job"]),
        (
            "/attempts/claim",
            {"worker": "w", "jobs": ["a"], "backlog_first": 1, "wait": "20s"},
            ["wait", "backlog_first"],
        ),
        ("/attempts/open", {"run_id": "r" * 201, "attempt": 0}, ["worker", "run_id", "attempt"]),
        ("/attempts/open", {"worker": "w", "run_id": "r"}, ["attempt"]),
        ("/attempts/heartbeat", {}, ["attempts"]),
        ("/attempts/heartbeat", {"attempts": []}, ["attempts"]),
        ("/attempts/heartbeat", {"attempts": [7, FIRST, FIRST]}, ["attempts.0", "attempts.2"]),
        ("/attempts/heartbeat", {"attempts": [FIRST] * (REPORTS_MAX + 1)}, ["attempts"]),
        (
            "/attempts/heartbeat",
            {"attempts": [FIRST | {"progress": {"fraction": 2}}]},
            ["attempts.0.progress.fraction"],
        ),
        ("/attempts/settle", {"attempts": [FIRST]}, ["attempts.0.outcome"]),
        ("/attempts/settle", {"attempts": [FIRST | {"outcome": "lost"}]}, ["attempts.0.outcome"]),
        (
            "/attempts/settle",
            {"attempts": [FIRST | {"outcome": "failed", "result": 1}]},
            ["attempts.0.result"],
        ),
        (
            "/attempts/settle",
            {"attempts": [FIRST | {"outcome": "succeeded", "result": "x" * 262_144}]},
            ["attempts.0.result"],
        ),
        (
            "/attempts/settle",
            {"attempts": [FIRST | {"outcome": "failed", "error": 1, "retryable": 1}]},
            ["attempts.0.error", "attempts.0.retryable"],
        ),
        ("/effects/begin", {**FIRST, "name": ""}, ["name"]),
        ("/effects/record", {**FIRST, "name": "a", "value": 1}, ["value"]),
    ],
)
def test_a_bad_field_is_named(queued: TestClient, path: str, body: Body, fields: list[str]) -> None:
    assert fields_of(queued.post(path, json=body)) == fields


def test_a_report_is_bounded_and_may_nest_as_deep_as_a_result(queued: TestClient) -> None:
    large = {"attempts": [FIRST | {"outcome": "succeeded", "result": "x" * 1_100_000}]}
    assert queued.post("/attempts/settle", json=large).status_code == 413
    deep = {"attempts": [FIRST | {"outcome": "succeeded", "result": NESTED}]}
    assert queued.post("/attempts/settle", json=deep).status_code == 400
    claim(queued)
    inner = cast("list[object]", NESTED)
    for _ in range(8):
        inner = cast("list[object]", inner[0])
    assert outcome_of(queued, "/attempts/settle", outcome="succeeded", result=inner) == "settled"
    assert run_of(queued)["result"] == inner
