"""Instants and local times: what is read, what is refused, and one spelling for each."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.errors import InvalidExpression
from rota.domain.instants import (
    EPOCH,
    format_instant,
    format_local,
    from_millis,
    parse_instant,
    parse_local,
    stamp,
    to_millis,
    whole_second_floor,
)

MILLISECONDS = st.integers(min_value=to_millis(datetime(1, 1, 2, tzinfo=UTC)), max_value=253402214400000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-10T14:00:00Z", datetime(2026, 1, 10, 14, tzinfo=UTC)),
        ("2026-01-10T14:00:00.5Z", datetime(2026, 1, 10, 14, 0, 0, 500000, tzinfo=UTC)),
        ("2026-01-10T14:00:00.123456789Z", datetime(2026, 1, 10, 14, 0, 0, 123000, tzinfo=UTC)),
        ("2026-01-10T09:00:00-05:00", datetime(2026, 1, 10, 14, tzinfo=UTC)),
        ("2026-01-10T19:45:00+05:45", datetime(2026, 1, 10, 14, tzinfo=UTC)),
        ("2026-01-10T14:00:00-00:00", datetime(2026, 1, 10, 14, tzinfo=UTC)),
        ("2024-02-29T23:30:00-01:00", datetime(2024, 3, 1, 0, 30, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_an_rfc_3339_instant_is_read_as_utc(text: str, expected: datetime) -> None:
    parsed = parse_instant(text)
    assert parsed == expected
    assert parsed.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-10",
        "2026-01-10T14:00Z",
        "2026-01-10T14:00:00",
        "2026-01-10 14:00:00Z",
        "2026-01-10T14:00:00z",
        "2026-01-10t14:00:00Z",
        "2026-01-10T14:00:00 Z",
        "2026-01-10T14:00:00Z\n",
        " 2026-01-10T14:00:00Z",
        "2026-01-10T14:00:00,5Z",
        "2026-01-10T14:00:00.Z",
        "2026-01-10T14:00:00.1234567890Z",
        "2026-01-10T14:00:00+0500",
        "2026-01-10T14:00:00+05",
        "2026-01-10T14:00:00+24:00",
        "2026-01-10T14:00:00+05:60",
        "2026-01-10T24:00:00Z",
        "2026-01-10T14:60:00Z",
        "2026-12-31T23:59:60Z",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "12026-01-10T14:00:00Z",
        "-2026-01-10T14:00:00Z",
        "2026-W02-6T14:00:00Z",
        "20260110T140000Z",
        "٢٠٢٦-01-10T14:00:00Z",
        "2026-01-10T14:00:00Z\0",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-00:01",
        "9" * 5000,
    ],
)
def test_what_is_no_rfc_3339_instant_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(InvalidExpression) as refusal:
        parse_instant(text)
    assert refusal.value.part == "instant"
    assert len(refusal.value.problem) < 200


def test_an_instant_without_offset_is_told_what_it_lacks() -> None:
    with pytest.raises(InvalidExpression, match="no offset"):
        parse_instant("2026-01-10T14:00:00")


def test_a_fraction_of_a_second_is_refused_where_whole_seconds_are_needed() -> None:
    assert parse_instant("2026-01-10T14:00:00.000Z", whole=True) == datetime(2026, 1, 10, 14, tzinfo=UTC)
    for text in ("2026-01-10T14:00:00.001Z", "2026-01-10T14:00:00.0000001Z"):
        with pytest.raises(InvalidExpression, match="fraction"):
            parse_instant(text, whole=True)


def test_an_instant_is_written_with_milliseconds_only_where_there_are_some() -> None:
    assert format_instant(datetime(2026, 1, 10, 14, tzinfo=UTC)) == "2026-01-10T14:00:00Z"
    assert format_instant(datetime(2026, 1, 10, 14, 0, 0, 70999, tzinfo=UTC)) == "2026-01-10T14:00:00.070Z"
    assert format_instant(datetime(33, 1, 10, 14, tzinfo=UTC)) == "0033-01-10T14:00:00Z"


@given(MILLISECONDS)
def test_an_instant_survives_text_and_milliseconds(millis: int) -> None:
    instant = from_millis(millis)
    assert to_millis(instant) == millis
    assert parse_instant(format_instant(instant)) == instant


def test_milliseconds_count_from_1970_and_round_down() -> None:
    assert to_millis(EPOCH) == 0
    assert to_millis(EPOCH + timedelta(microseconds=1999)) == 1
    assert to_millis(EPOCH - timedelta(microseconds=1)) == -1
    assert from_millis(1_768_053_600_000) == datetime(2026, 1, 10, 14, tzinfo=UTC)


def test_a_stamp_is_the_instant_without_punctuation() -> None:
    assert stamp(datetime(2026, 1, 10, 9, 0, 0, 999000, tzinfo=UTC)) == "20260110T090000Z"
    assert stamp(datetime(33, 1, 2, 3, 4, 5, tzinfo=UTC)) == "00330102T030405Z"


def test_the_whole_second_below() -> None:
    whole = datetime(2026, 1, 10, 14, tzinfo=UTC)
    assert whole_second_floor(whole) == whole
    assert whole_second_floor(whole + timedelta(milliseconds=999)) == whole


@pytest.mark.parametrize(
    ("text", "expected", "spelling"),
    [
        ("2026-01-14T09:00", datetime(2026, 1, 14, 9), "2026-01-14T09:00"),
        ("2026-01-14T09:00:00", datetime(2026, 1, 14, 9), "2026-01-14T09:00"),
        ("2026-01-14T09:00:07", datetime(2026, 1, 14, 9, 0, 7), "2026-01-14T09:00:07"),
    ],
)
def test_a_local_time_has_one_spelling(text: str, expected: datetime, spelling: str) -> None:
    assert parse_local(text) == expected
    assert format_local(expected) == spelling


@pytest.mark.parametrize(
    "text",
    ["", "2026-01-14", "2026-01-14T09", "2026-01-14T09:00Z", "2026-01-14T09:00+01:00", "2026-01-14T09:00:00.5",
     "2026-01-14 09:00", "2026-02-30T09:00", "2026-01-14T24:00", "2026-01-14T09:00\n", "٢026-01-14T09:00"],
)  # fmt: skip
def test_what_is_no_local_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidExpression):
        parse_local(text)
