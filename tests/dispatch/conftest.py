"""Dispatchers over one store and one manual clock, as many as a test wants."""

from datetime import UTC, datetime, timedelta
from typing import Protocol

import pytest

from rota.config import Settings
from rota.dispatch.dispatcher import BATCH, Dispatcher
from rota.domain.admission import Skip
from rota.domain.identity import ScheduleId
from rota.domain.run import Run
from rota.service.context import Context
from rota.service.creation import create_schedule
from rota.service.jobs import put_job
from rota.store.port import RunFilter
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.conftest import OpenStore

START = datetime(2025, 6, 10, 8, 0, tzinfo=UTC)
LEASE = timedelta(seconds=15)


class NewDispatcher(Protocol):
    def __call__(self, owner: str, page: int = 100) -> Dispatcher: ...


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def context(request: pytest.FixtureRequest, clock: ManualClock, open_store: OpenStore) -> Context:
    opened = open_context(Settings(partitions=4), store=open_store(request.param), clock=clock)
    put_job(opened, "sales_report", {})
    return opened


def dispatcher_on(
    context: Context,
    owner: str = "a",
    *,
    poll: timedelta = timedelta(seconds=1),
    page: int = 100,
    batch: int = BATCH,
    keep: timedelta | None = None,
) -> Dispatcher:
    """A dispatcher of the context's store and clock."""
    return Dispatcher(
        context.store,
        cadences=context.cadences,
        clock=context.clock,
        owner=owner,
        lease=LEASE,
        poll=poll,
        page=page,
        batch=batch,
        keep=keep,
    )


@pytest.fixture
def new_dispatcher(context: Context) -> NewDispatcher:
    return lambda owner, page=100: dispatcher_on(context, owner, page=page)


def save(context: Context, id_: str, cron: str, **fields: object) -> None:
    """Saves a schedule in UTC, unless `fields` say otherwise."""
    body = {"id": id_, "job": "sales_report", "timezone": "UTC", "recurrence": {"cron": cron}, **fields}
    assert create_schedule(context, body).created


def work_off(dispatcher: Dispatcher, now: datetime) -> int:
    """Sets the clock and steps at `now` until a step wants to wait; the number of runs admitted."""
    clock = dispatcher._clock
    assert isinstance(clock, ManualClock)
    if now >= clock.now():
        clock.set(now)
    else:
        clock.leap(now - clock.now())
    admitted = 0
    while (report := dispatcher.step(now)).wake_at <= now:
        admitted += report.admitted
    return admitted + report.admitted


def run_instants(context: Context, id_: str) -> list[datetime]:
    """The instants of the schedule's runs, oldest first."""
    runs = context.store.list_runs(RunFilter(schedule_id=ScheduleId(id_)), before=None, limit=10_000)
    return sorted(run.scheduled_at for run in runs)


def believe_until(dispatcher: Dispatcher, instant: datetime) -> None:
    """What a process believes that was frozen in the middle of a step: its leases hold, and no renewal is due."""
    leases = dispatcher._leases
    leases._trusted_until = leases._renew_at = leases._look_at = instant


def ledger(context: Context, id_: str) -> list[Run | Skip]:
    return context.store.list_ledger(ScheduleId(id_), before=None, limit=10_000)


def skips(context: Context, id_: str) -> list[tuple[str, int]]:
    return [(entry.reason, entry.count) for entry in ledger(context, id_) if isinstance(entry, Skip)]
