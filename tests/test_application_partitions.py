"""Rota as a library: who holds the partitions, and what waits in them."""

from datetime import UTC, datetime, timedelta
from typing import cast

from rota.service.representation import Wire
from rota.testing import World

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)


def test_an_application_tells_its_partitions() -> None:
    with World(now=NOW) as world:
        world.app.create_schedule(id="hourly", job="echo", timezone="UTC", recurrence={"cron": "0 * * * *"})
        world.clock.advance(timedelta(hours=1, seconds=2))
        waiting = cast("Wire", world.app.partitions()["totals"])
        assert (waiting["held"], waiting["lag_ms"]) == (0, 2_000)
        assert waiting["due"] == {"count": 1, "is_at_least": False}
        world.settle()
        told = world.app.partitions()
        totals = cast("Wire", told["totals"])
        assert (totals["held"], totals["lag_ms"]) == (4, 0)
        assert [entry["partitions"] for entry in cast("list[Wire]", told["dispatchers"])] == [4]
