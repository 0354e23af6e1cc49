"""Durations: ISO 8601 elapsed time, read strictly and written in one way."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.durations import DURATION_MAX, format_duration, parse_duration
from rota.domain.errors import InvalidExpression


@pytest.mark.parametrize(
    ("text", "expected", "spelling"),
    [
        ("PT15M", timedelta(minutes=15), "PT15M"),
        ("PT900S", timedelta(minutes=15), "PT15M"),
        ("PT1H30M", timedelta(minutes=90), "PT1H30M"),
        ("PT90M", timedelta(minutes=90), "PT1H30M"),
        ("PT24H", timedelta(days=1), "P1D"),
        ("P1W", timedelta(weeks=1), "P7D"),
        ("P1DT12H", timedelta(hours=36), "P1DT12H"),
        ("P2DT0H0M5S", timedelta(days=2, seconds=5), "P2DT5S"),
        ("PT0S", timedelta(0), "PT0S"),
        ("P0D", timedelta(0), "PT0S"),
        ("PT0.5S", timedelta(milliseconds=500), "PT0.5S"),
        ("PT1.025S", timedelta(milliseconds=1025), "PT1.025S"),
        ("PT1M0.001S", timedelta(minutes=1, milliseconds=1), "PT1M0.001S"),
        ("P3653D", DURATION_MAX, "P3653D"),
    ],
)
def test_a_duration_has_one_spelling(text: str, expected: timedelta, spelling: str) -> None:
    assert parse_duration(text) == expected
    assert format_duration(expected) == spelling


def test_elapsed_time_can_be_written_without_days() -> None:
    assert format_duration(timedelta(days=7), largest="hour") == "PT168H"
    assert format_duration(timedelta(days=1, minutes=1), largest="hour") == "PT24H1M"


@pytest.mark.parametrize("text", ["P1Y", "P2M", "P1Y2M3D", "P1MT5M"])
def test_years_and_months_are_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidExpression, match=r"counts (years|months)"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text",
    ["", "P", "PT", "P1DT", "15M", "PT15", "pt15m", "PT15m", "-PT15M", "+PT15M", "PT-15M", " PT15M", "PT15M\n",
     "PT1,5S", "PT1.S", "PT.5S", "PT1.2345S", "PT1.5H", "P1.5D", "P1W2D", "P1WT1H", "PT5S3M", "P1D2H", "PT٣M",
     "P1H", "PT1D", "900", "15 minutes", "PT1M\0"],
)  # fmt: skip
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidExpression, match="not an ISO 8601 duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text",
    ["P3654D", "P522W", "PT999999999999S", "P999999999999D", "PT1" + "0" * 13 + "S", "P" + "9" * 5000 + "D"],
)
def test_more_than_ten_years_is_refused_however_it_is_written(text: str) -> None:
    with pytest.raises(InvalidExpression, match="longer than ten years") as refusal:
        parse_duration(text)
    assert len(refusal.value.problem) < 200


@given(st.integers(min_value=0, max_value=DURATION_MAX // timedelta(milliseconds=1)))
def test_a_duration_survives_its_text(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(duration)) == duration
    assert parse_duration(format_duration(duration, largest="hour")) == duration
