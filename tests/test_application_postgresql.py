"""The library on PostgreSQL: an application that is given an address, and a world on a real server."""

from datetime import UTC, datetime, timedelta

import pytest

from rota import Rota, RunContext
from rota.store.port import StoreUnavailable
from rota.testing import World
from tests.conftest import NewDatabase, OpenStore

NOW = datetime(2026, 1, 10, 10, tzinfo=UTC)
DAY = timedelta(days=1)


def test_an_application_takes_the_address_of_a_server(new_database: NewDatabase) -> None:
    url = new_database("postgresql")
    with Rota(url) as app:
        app.job("sales_report")(lambda run: None)
        app.register_jobs()
        made = app.create_schedule(job="sales_report", timezone="UTC", recurrence={"cron": "0 9 * * *"})
    with Rota(url.replace("postgresql://", "postgres://")) as again:
        assert [entry["id"] for entry in again.list_schedules()] == [made["id"]]


def test_what_a_handler_says_is_kept_though_the_database_cannot_hold_all_of_it(open_store: OpenStore) -> None:
    world = World(store=open_store("postgresql"), now=NOW)

    @world.app.job("sales_report")
    def report(run: RunContext) -> None:
        run.progress(0.5, "half\x00 \ud800 done")
        raise ValueError("no\x00 paper \udfff")

    world.app.register_jobs()
    world.app.create_schedule(
        id="report", job="sales_report", timezone="UTC", recurrence={"cron": "0 9 * * *"}, params={"a": "🕐"}
    )
    world.pass_time(DAY)
    [run] = world.app.runs()
    assert "ValueError: no" in str(run["error"])


def test_a_server_that_is_not_there_is_told_of_in_one_line() -> None:
    app = Rota("postgresql://rota:s3cret@127.0.0.1:1/rota")
    with pytest.raises(
        StoreUnavailable, match=r"postgresql://rota:\*\*\*@127\.0\.0\.1:1/rota cannot be used"
    ) as caught:
        app.list_schedules()
    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value) + repr(app.settings)
