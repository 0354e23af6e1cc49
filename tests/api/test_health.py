"""Liveness and readiness: what makes Rota unready, and what is only a warning."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import cast

from starlette.testclient import TestClient

from rota.api.application import create_api
from rota.clock import FileClock
from rota.config import Settings
from rota.service.context import Context
from rota.store.memory import MemoryStore
from rota.store.port import LEASE_MAX, StoreUnavailable
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.api.conftest import Body, WorkOff, body_of, let_die, report


class BrokenStore(MemoryStore):
    """A store that is gone once `is_broken` is set."""

    is_broken = False

    def ping(self) -> None:
        if self.is_broken:
            raise StoreUnavailable("The database file cannot be opened.")


@contextmanager
def client_of(context: Context) -> Iterator[TestClient]:
    with TestClient(create_api(context), raise_server_exceptions=False) as client:
        yield client


def test_a_process_that_answers_is_live(client: TestClient) -> None:
    assert body_of(client.get("/health/live?from=probe")) == {"status": "live"}


def test_partitions_that_nobody_holds_are_a_warning(
    client: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    alone = body_of(client.get("/health/ready"))
    assert alone["status"] == "ready"
    assert alone["partitions"] == {"count": 4, "held": 0}
    assert isinstance(alone["warnings"], list)
    assert alone["warnings"][0].startswith("dispatcher: no live holder for 4 of 4 partitions")
    work_off()
    served = body_of(client.get("/health/ready"))
    assert (served["partitions"], served["warnings"]) == ({"count": 4, "held": 4}, [])
    clock.advance(timedelta(seconds=15))
    assert body_of(client.get("/health/ready"))["partitions"] == {"count": 4, "held": 0}


def test_dead_deliveries_are_a_warning(client: TestClient, context: Context, work_off: WorkOff) -> None:
    sink = {"type": "webhook", "url": "https://shop.example.com"}
    client.put("/jobs/sales_report", json={"sink": sink})
    client.post("/schedules", json=report())
    client.post("/schedules/report-7/run")
    work_off()
    assert body_of(client.get("/health/ready"))["deliveries"] == {"dead": 0}
    let_die(context, "sales_report")
    body = body_of(client.get("/health/ready"))
    assert (body["status"], body["deliveries"]) == ("ready", {"dead": 1})
    assert str(body["warnings"]).count("deliveries: 1 dead") == 1


def test_whether_a_partition_is_held_is_judged_as_everywhere(
    client: TestClient, store: MemoryStore, clock: ManualClock
) -> None:
    """A lease that ends too late was written under a clock that was ahead: whoever comes takes it."""
    for ahead, held in ((timedelta(0), 1), (timedelta(milliseconds=1), 0)):
        now = clock.now() + LEASE_MAX - timedelta(seconds=15) + ahead
        store.commit_acquisitions("ahead", held=[], now=now, ttl=timedelta(seconds=15), limit=1)
        assert body_of(client.get("/health/ready"))["partitions"] == {"count": 4, "held": held}
        assert cast("Body", body_of(client.get("/partitions"))["totals"])["held"] == held


def test_a_backlog_is_a_warning_and_is_measured(
    client: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    client.post("/schedules", json=report(recurrence={"cron": "0 * * * *"}))
    assert body_of(client.get("/health/ready"))["overdue"] == {"oldest_due_at": None, "lag_ms": 0}
    clock.advance(timedelta(hours=1, minutes=5, milliseconds=250))
    late = body_of(client.get("/health/ready"))
    assert late["overdue"] == {"oldest_due_at": "2026-01-10T13:00:00Z", "lag_ms": 300_250}
    assert isinstance(late["warnings"], list)
    assert "overdue: what is due first has waited PT5M for admission." in late["warnings"]
    work_off()
    assert body_of(client.get("/health/ready"))["overdue"] == {"oldest_due_at": None, "lag_ms": 0}


def test_a_store_that_cannot_be_reached_makes_it_unready(clock: ManualClock) -> None:
    store = BrokenStore()
    with client_of(open_context(Settings(), store=store, clock=clock)) as client:
        assert client.get("/health/ready").status_code == 200
        store.is_broken = True
        unready = body_of(client.get("/health/ready"), status=503)
        assert unready["status"] == "unready"
        assert unready["checks"] == {
            "store": {"ok": False, "problem": "The database file cannot be opened."},
            "clock": {"ok": True, "problem": None},
        }
        assert client.get("/health/live").status_code == 200


def test_a_clock_that_leapt_makes_it_unready_until_it_is_right(
    client: TestClient, clock: ManualClock, work_off: WorkOff
) -> None:
    work_off()
    clock.advance(timedelta(seconds=10))
    clock.leap(timedelta(minutes=1))
    assert client.get("/health/ready").status_code == 200
    clock.leap(timedelta(seconds=1))
    leapt = body_of(client.get("/health/ready"), status=503)
    assert isinstance(leapt["checks"], dict)
    assert "2026-01-10T12:01:11Z" in leapt["checks"]["clock"]["problem"]
    clock.leap(timedelta(seconds=-1))
    assert client.get("/health/ready").status_code == 200


def test_a_clock_that_cannot_be_read_makes_it_unready(store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "now"
    file.write_text("2026-01-10T12:00:00Z")
    with client_of(open_context(Settings(), store=store, clock=FileClock(file))) as client:
        assert client.get("/health/ready").status_code == 200
        file.write_text("soon")
        unready = body_of(client.get("/health/ready"), status=503)
        assert isinstance(unready["checks"], dict)
        assert unready["checks"]["clock"]["ok"] is False
        assert (unready["partitions"], unready["overdue"]) == (None, None)
        refused = client.post("/preview", json={})
        assert body_of(refused, status=503)["type"] == "urn:rota:problem:unavailable"
        assert refused.headers["retry-after"] == "1"
