"""Names that are derived: the same in every process, readable, and evenly spread."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from rota.domain.identity import (
    SLOT_COUNT,
    ScheduleId,
    fraction_of,
    is_schedule_id,
    partition_of,
    run_id_of,
    slot_of,
)


def test_a_run_id_can_be_read_back() -> None:
    run_id = run_id_of(ScheduleId("report-7"), 2, datetime(2026, 1, 10, 9, tzinfo=UTC))
    assert run_id == "report-7.2.20260110T090000Z"
    assert run_id.split(".") == ["report-7", "2", "20260110T090000Z"]


@pytest.mark.parametrize("text", ["a", "7", "report-7", "a_b", "x" * 80])
def test_a_slug_is_a_schedule_id(text: str) -> None:
    assert is_schedule_id(text)


@pytest.mark.parametrize("text", ["", "A", "-a", "_a", "a.b", "a b", "x" * 81, "ä", "a\n", "\u0667"])
def test_anything_else_is_none(text: str) -> None:
    assert not is_schedule_id(text)


def test_a_slot_never_changes() -> None:
    """These values are stored: another hash would move every schedule."""
    assert [slot_of(ScheduleId(text)) for text in ("report-7", "a")] == [SLOTS["report-7"], SLOTS["a"]]


SLOTS = {"report-7": 2367, "a": 559}


@pytest.mark.parametrize("count", [1, 3, 64, SLOT_COUNT])
def test_every_partition_owns_a_range_of_slots_of_about_the_same_size(count: int) -> None:
    owners = [partition_of(slot, count) for slot in range(SLOT_COUNT)]
    assert owners == sorted(owners)
    sizes = Counter(owners)
    assert len(sizes) == count
    assert max(sizes.values()) - min(sizes.values()) <= 1


def test_schedules_spread_over_partitions() -> None:
    spread = Counter(partition_of(slot_of(ScheduleId(f"report-{n}")), 64) for n in range(64_000))
    assert max(spread.values()) < 1.15 * 1000


def test_a_fraction_depends_on_its_text_alone() -> None:
    assert fraction_of("a") == fraction_of("a")
    assert 0 <= fraction_of("a") < 1
    assert fraction_of("a") != fraction_of("b")
