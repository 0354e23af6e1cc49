"""The health protocol: the clock's memory, and forgetting what has expired."""

from datetime import datetime, timedelta

import pytest

from rota.clock import SystemClock
from rota.domain.identity import ScheduleId
from rota.store.memory import health as memory_health
from rota.store.port import ClockReading, Creation, Notice, Store
from rota.store.sql import SqlStore
from rota.store.sql import health as sql_health
from tests.contract.builders import HOUR, MADE_AT, MILLISECOND, MINUTE, NINE, idempotency_record, new_schedule
from tests.contract.ears import Ears
from tests.contract.racing import all_at_once


def test_a_store_that_can_be_used_answers_a_ping(store: Store) -> None:
    store.ping()


def test_a_store_starts_without_any_clock_reading(store: Store) -> None:
    assert store.get_clock_reading("boot-1") is None


def reading_of(boot_id: str | None, wall: datetime = NINE) -> ClockReading:
    return ClockReading(wall=wall, boot_seconds=1234.5678, boot_id=boot_id)


def test_the_last_clock_reading_is_kept_whole(store: Store) -> None:
    for wall in (NINE + MILLISECOND, NINE - HOUR):
        store.commit_clock_reading(reading_of("boot-1", wall))
        assert store.get_clock_reading("boot-1") == reading_of("boot-1", wall)
    without_seconds = ClockReading(wall=NINE, boot_seconds=None, boot_id="boot-1")
    store.commit_clock_reading(without_seconds)
    assert store.get_clock_reading("boot-1") == without_seconds


def test_each_machine_has_a_clock_reading_of_its_own(store: Store) -> None:
    readings = [reading_of("boot-1"), reading_of("boot-2", NINE + HOUR)]
    for reading in readings:
        store.commit_clock_reading(reading)
    assert [store.get_clock_reading(reading.boot_id) for reading in readings] == readings
    assert store.get_clock_reading("boot-3") is None


def test_a_machine_without_a_name_for_its_start_has_no_clock_reading(store: Store) -> None:
    store.commit_clock_reading(reading_of(None))
    assert store.get_clock_reading(None) is None


def test_a_confirmed_clock_reading_takes_the_place_of_every_machines(store: Store) -> None:
    for number in (1, 2, 3):
        store.commit_clock_reading(reading_of(f"boot-{number}"))
    store.commit_clock_confirmation(reading_of("boot-1", NINE + HOUR))
    assert store.get_clock_reading("boot-1") == reading_of("boot-1", NINE + HOUR)
    assert store.get_clock_reading("boot-2") is None
    store.commit_clock_confirmation(reading_of(None))
    assert store.get_clock_reading("boot-1") is None


def test_a_confirmation_is_heard_of_by_dispatchers_that_stopped(store: Store) -> None:
    ears = Ears(store)
    if isinstance(store, SqlStore) and store._database._writers.dialect.name == "postgresql":
        ears.await_notices(*Notice)
    store.commit_clock_reading(reading_of("boot-1"))
    for boot_id in ("boot-1", None):
        store.commit_clock_confirmation(reading_of(boot_id, NINE + HOUR))
        ears.await_notices(Notice.DUE)
    ears.close()


def test_clock_readings_of_starts_long_ago_are_forgotten(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (memory_health, sql_health):
        monkeypatch.setattr(module, "CLOCK_READINGS_MAX", 3)
    for number, wall in enumerate([NINE, NINE - HOUR, NINE + HOUR, NINE + 2 * HOUR]):
        store.commit_clock_reading(reading_of(f"boot-{number}", wall))
    kept = [number for number in range(4) if store.get_clock_reading(f"boot-{number}") is not None]
    assert kept == [0, 2, 3]
    store.commit_clock_reading(reading_of("boot-0", NINE + 3 * HOUR))
    assert store.get_clock_reading("boot-2") is not None


def test_processes_of_one_machine_may_keep_its_reading_at_once(store: Store) -> None:
    all_at_once(lambda _: store.commit_clock_reading(reading_of("boot-1")))
    assert store.get_clock_reading("boot-1") == reading_of("boot-1")


def test_only_a_server_has_a_clock_of_its_own(store: Store) -> None:
    time = store.read_time()
    if isinstance(store, SqlStore) and store._database._writers.dialect.name == "postgresql":
        assert time is not None
        assert time.utcoffset() == timedelta(0)
        assert abs(time - SystemClock().now()) < MINUTE
    else:
        assert time is None


def test_expired_records_are_forgotten_in_bounded_steps(store: Store) -> None:
    for number in range(5):
        record = idempotency_record(f"order-{number}", expires_at=MADE_AT + number * HOUR)
        new = new_schedule(f"s{number}", idempotency=record)
        assert store.commit_creation(new, now=MADE_AT - HOUR) is Creation.CREATED
    assert store.prune_idempotency(now=MADE_AT - MILLISECOND, limit=10) == 0
    assert store.prune_idempotency(now=MADE_AT + 3 * HOUR, limit=3) == 3
    assert store.prune_idempotency(now=MADE_AT + 3 * HOUR, limit=3) == 1
    assert store.prune_idempotency(now=MADE_AT + 3 * HOUR, limit=3) == 0
    assert store.get_idempotency("order-3", now=MADE_AT - HOUR) is None
    assert store.get_idempotency("order-4", now=MADE_AT + 3 * HOUR) is not None
    assert store.get_schedule(ScheduleId("s0")) is not None
