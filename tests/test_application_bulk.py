"""Rota as a library: runs cancelled and replayed by a filter, deliveries, and jobs from elsewhere."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from rota import CatchUpAll, Rota
from rota.delivery.outcome import Failed
from rota.domain.errors import InvalidRequest, NotFound, WrongSetting
from rota.domain.job import Job
from rota.testing import World
from tests.conftest import OpenStore

NOW = datetime(2026, 1, 10, 8, tzinfo=UTC)
HOURLY = {"cron": "0 * * * *"}
SINK = {"type": "sqs", "queue_url": "https://sqs.eu-central-1.amazonaws.com/1/reports"}
WHY = "the mail was lost"
GONE = Failed(error="The queue does not exist.", is_final=True)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, open_store: OpenStore) -> World:
    """A world in which no sink ever takes anything."""
    return World(now=NOW, store=open_store(request.param), receive=lambda _: GONE)


@pytest.fixture
def app(world: World) -> Rota:
    """An hourly schedule, three of whose runs have ended, and one of a job whose three runs wait to be sent."""
    app = world.app
    app.put_job("sent", {"sink": SINK, "lease": timedelta(seconds=10)})
    app.create_schedule(id="done", job="echo", timezone="UTC", recurrence=HOURLY, overdue=CatchUpAll())
    app.create_schedule(id="waiting", job="sent", timezone="UTC", recurrence=HOURLY, overdue=CatchUpAll())
    world.pass_time(timedelta(hours=3))
    return app


def test_runs_are_chosen_by_the_instants_they_are_scheduled_at(app: Rota) -> None:
    from_, until = NOW + timedelta(hours=2), "2026-01-10T11:00:00Z"
    assert [run["run_id"] for run in app.runs(schedule="done", from_=from_, until=until)] == [
        "done.1.20260110T100000Z"
    ]
    assert len(list(app.iterate_runs(from_=from_))) == 4


def test_open_runs_that_match_are_cancelled(app: Rota) -> None:
    chosen_until = NOW + timedelta(hours=3)
    assert app.cancel_runs(job="sent", until=chosen_until, dry_run=True)["cancelled"] == 2
    assert app.runs(state="cancelled") == []
    assert app.cancel_runs(job="sent", until=chosen_until, actor="ops", reason="not needed") == {
        "dry_run": False,
        "cancelled": 2,
        "asked_to_stop": 0,
        "is_complete": True,
    }
    assert len(app.runs(state="cancelled")) == 2
    assert app.history("waiting")[0]["reason"] == "not needed"


def test_runs_that_match_and_have_ended_are_replayed(world: World, app: Rota) -> None:
    told = app.replay_runs(schedule="done", reason=WHY, idempotency_key="k", actor="ops")
    assert (told["replayed"], told["is_complete"], told["next_cursor"]) == (3, True, None)
    world.settle()
    assert [run["state"] for run in app.runs(origin="replay")] == ["succeeded"] * 3
    assert app.replay_runs(schedule="done", reason=WHY, idempotency_key="k") == told
    assert app.replay_runs(schedule="done", reason=WHY, dry_run=True)["replayed"] == 3


def test_dead_deliveries_are_listed_and_redriven(app: Rota) -> None:
    dead = app.deliveries(state="dead", job="sent", schedule="waiting")
    assert [delivery["attempt"] for delivery in dead] == [1, 1, 1]
    assert app.deliveries(after=dead[0], limit=1) == [dead[1]]
    redriven = app.redrive(str(dead[0]["run_id"]), reason="it is back")
    assert redriven["state"] == "retrying"
    assert app.redrive_deliveries(state="dead", dry_run=True)["redriven"] == 2
    assert app.redrive_deliveries(job="sent", actor="ops")["redriven"] == 2
    assert app.deliveries(state="dead") == []


def test_jobs_are_put_shown_and_listed(app: Rota) -> None:
    job = app.get_job("sent")
    assert (job["sink"], job["lease"], job["priority"]) == (SINK, "PT10S", 5)
    assert [listed["name"] for listed in app.jobs()] == ["echo", "sent"]
    assert app.jobs(after=app.jobs()[0], limit=1) == [job]
    assert app.put_job("sent")["sink"] == {"type": "worker"}
    with pytest.raises(NotFound):
        app.get_job("missing")
    with pytest.raises(InvalidRequest, match=r"sink\.type"):
        app.put_job("sent", {"sink": "worker"})


def test_jobs_of_elsewhere_become_known_with_the_applications_own(app: Rota) -> None:
    app.declare_jobs([Job(name="elsewhere", priority=9)], source="rota.toml")
    app.register_jobs()
    assert app.get_job("elsewhere")["priority"] == 9
    with pytest.raises(
        WrongSetting, match=r"rota\.toml \(\[jobs\.echo\]\) and in code \(rota\.worker\.echo:"
    ):
        app.declare_jobs([Job(name="echo")], source="rota.toml")


@pytest.mark.parametrize(
    "ask",
    [
        lambda app: app.cancel_runs(),
        lambda app: app.cancel_runs(reason="x", dry_run=True),
        lambda app: app.replay_runs(reason=WHY),
        lambda app: app.redrive_deliveries(),
        lambda app: app.cancel_runs(state="succeeded"),
        lambda app: app.cancel_runs(from_=datetime(2026, 1, 1)),
        lambda app: app.replay_runs(job="echo", reason=""),
        lambda app: app.replay_runs(job="echo", reason=WHY, cursor="x"),
        lambda app: app.deliveries(state="lost"),
        lambda app: app.deliveries(limit=0),
    ],
)
def test_what_means_nothing_certain_is_refused_and_changes_nothing(
    app: Rota, ask: Callable[[Rota], object]
) -> None:
    before = app.runs()
    with pytest.raises(InvalidRequest):
        ask(app)
    assert app.runs() == before
