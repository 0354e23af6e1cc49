"""The health protocol: the clock's memory, and forgetting what has expired."""

from rota.domain.identity import ScheduleId
from rota.store.port import ClockReading, Creation, Store
from tests.contract.builders import HOUR, MADE_AT, MILLISECOND, NINE, idempotency_record, new_schedule


def test_a_store_that_can_be_used_answers_a_ping(store: Store) -> None:
    store.ping()


def test_a_store_starts_without_any_clock_reading(store: Store) -> None:
    assert store.get_clock_reading() is None


def test_the_last_clock_reading_is_kept_whole(store: Store) -> None:
    for reading in (
        ClockReading(wall=NINE + MILLISECOND, boot_seconds=1234.5678, boot_id="boot-1"),
        ClockReading(wall=NINE - HOUR, boot_seconds=None, boot_id=None),
    ):
        store.commit_clock_reading(reading)
        assert store.get_clock_reading() == reading


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
