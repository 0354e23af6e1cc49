"""What the lives found out about clocks that are set back, told by itself."""

from datetime import UTC, datetime, timedelta

from rota.config import Settings
from rota.domain.edit_form import parse_edit
from rota.service.creation import create_schedule
from rota.service.editing import edit_schedule
from rota.service.jobs import put_job
from rota.service.schedules import end_schedule
from rota.store.port import Store
from rota.testing.clock import ManualClock
from rota.wiring import open_context
from tests.contract.conftest import folder, migrated, open_store, store  # noqa: F401 - fixtures used here
from tests.simulation.ledger import check_windows, read_ledger

NOON = datetime(2026, 3, 5, 12, tzinfo=UTC)


def test_an_end_under_a_clock_that_was_set_back_ends_no_window_before_it_began(
    store: Store,  # noqa: F811 - the fixture
) -> None:
    clock = ManualClock(NOON)
    context = open_context(Settings(partitions=1), store=store, clock=clock)
    put_job(context, "report", {})
    body = {"id": "report", "job": "report", "timezone": "UTC", "recurrence": {"cron": "0 9 * * *"}}
    create_schedule(context, body)
    edit_schedule(context, "report", parse_edit({"params": {"x": 1}}))
    clock.leap(-timedelta(hours=1))
    end_schedule(context, "report")
    ledger = read_ledger(store, "report")
    check_windows(ledger)
    latest = ledger.versions[ledger.latest]
    assert latest.effective_from == latest.effective_until
