"""Recurrences on the wire: one kind each, strict fields, one canonical form."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.errors import InvalidRequest
from rota.domain.recurrence import (
    At,
    Cron,
    Every,
    Recurrence,
    RRule,
    parse_recurrence,
    recurrence_to_wire,
)

NOW = datetime(2026, 1, 10, 14, 0, 7, 250_000, tzinfo=UTC)


def parse(value: Mapping[str, object]) -> Recurrence:
    return parse_recurrence(value, default_anchor=NOW)


@pytest.mark.parametrize(
    ("wire", "expected", "canonical"),
    [
        ({"at": "2026-01-10T09:00"}, At(time=datetime(2026, 1, 10, 9)), {"at": "2026-01-10T09:00"}),
        ({"at": "2026-01-10T09:00:00"}, At(time=datetime(2026, 1, 10, 9)), {"at": "2026-01-10T09:00"}),
        (
            {"at": "2026-01-10T14:00:00Z"},
            At(time=datetime(2026, 1, 10, 14, tzinfo=UTC)),
            {"at": "2026-01-10T14:00:00Z"},
        ),
        (
            {"at": "2026-01-10T09:00:00-05:00"},
            At(time=datetime(2026, 1, 10, 14, tzinfo=UTC)),
            {"at": "2026-01-10T14:00:00Z"},
        ),
        ({"cron": " 0  9 * * 1-5 "}, Cron(expression="0 9 * * 1-5"), {"cron": "0 9 * * 1-5"}),
        ({"cron": "@daily"}, Cron(expression="0 0 * * *"), {"cron": "0 0 * * *"}),
        (
            {"every": "PT15M", "anchor": "2026-01-10T00:00:00Z"},
            Every(interval=timedelta(minutes=15), anchor=datetime(2026, 1, 10, tzinfo=UTC)),
            {"every": "PT15M", "anchor": "2026-01-10T00:00:00Z"},
        ),
        (
            {"every": "PT900S", "anchor": "2026-01-10T01:00:00+01:00"},
            Every(interval=timedelta(minutes=15), anchor=datetime(2026, 1, 10, tzinfo=UTC)),
            {"every": "PT15M", "anchor": "2026-01-10T00:00:00Z"},
        ),
        (
            {"every": "PT168H"},
            Every(interval=timedelta(days=7), anchor=datetime(2026, 1, 10, 14, 0, 7, tzinfo=UTC)),
            {"every": "PT168H", "anchor": "2026-01-10T14:00:07Z"},
        ),
        (
            {"every": "PT1S"},
            Every(interval=timedelta(seconds=1), anchor=datetime(2026, 1, 10, 14, 0, 7, tzinfo=UTC)),
            {"every": "PT1S", "anchor": "2026-01-10T14:00:07Z"},
        ),
    ],
)
def test_a_recurrence_is_read_and_has_one_canonical_form(
    wire: dict[str, object], expected: Recurrence, canonical: dict[str, str]
) -> None:
    assert parse(wire) == expected
    assert recurrence_to_wire(expected) == canonical
    assert parse(canonical) == expected


def test_an_rrule_is_read_and_has_one_canonical_form() -> None:
    recurrence = parse({"rrule": "DTSTART:20260105T090000\r\nRRULE:FREQ=WEEKLY;BYDAY=MO\r\n"})
    assert isinstance(recurrence, RRule)
    assert parse(recurrence_to_wire(recurrence)) == recurrence


@pytest.mark.parametrize(
    ("wire", "field", "says"),
    [
        ({}, "recurrence", "exactly one of at, cron, rrule, every, not none of them"),
        ({"cron": "0 9 * * *", "every": "PT1H"}, "recurrence", "not cron, every"),
        ({"anchor": "2026-01-10T00:00:00Z"}, "recurrence", "exactly one"),
        ({"Cron": "0 9 * * *"}, "recurrence", "exactly one"),
        ({"cron": "0 9 * * *", "colour": "red"}, "recurrence.colour", "Unknown field"),
        ({"cron": "0 9 * * *", "anchor": "2026-01-10T00:00:00Z"}, "recurrence.anchor", "Only every"),
        ({"cron": None}, "recurrence.cron", "string"),
        ({"cron": 5}, "recurrence.cron", "string"),
        ({"cron": ["0 9 * * *"]}, "recurrence.cron", "string"),
        ({"cron": "0 9 * *"}, "recurrence.cron", "five"),
        ({"cron": "61 9 * * *"}, "recurrence.cron", "minute"),
        ({"cron": "0 0 30 2 *"}, "recurrence.cron", "No date"),
        ({"rrule": 1}, "recurrence.rrule", "string"),
        ({"rrule": "RRULE:FREQ=SOMETIMES"}, "recurrence.rrule", "FREQ|DTSTART"),
        ({"at": 1_768_053_600}, "recurrence.at", "string"),
        ({"at": "2026-01-10"}, "recurrence.at", "local time"),
        ({"at": "2026-01-10T09:00+01:00"}, "recurrence.at", "with seconds"),
        ({"at": "2026-01-10T09:00-05:00"}, "recurrence.at", "with seconds"),
        ({"at": "2026-01-10T09:00:00.5Z"}, "recurrence.at", "fraction"),
        ({"at": "2026-02-30T09:00"}, "recurrence.at", "no date"),
        ({"at": "9999-01-01T00:00"}, "recurrence.at", "too far"),
        ({"at": "0001-01-01T00:00:00Z"}, "recurrence.at", "too far"),
        ({"every": 900}, "recurrence.every", "string"),
        ({"every": "15m"}, "recurrence.every", "ISO 8601"),
        ({"every": "PT0S"}, "recurrence.every", "PT1S"),
        ({"every": "PT0.5S"}, "recurrence.every", "PT1S"),
        ({"every": "PT1.5S"}, "recurrence.every", "whole seconds"),
        ({"every": "P1D"}, "recurrence.every", "cron or rrule .* or PT24H"),
        ({"every": "P1W"}, "recurrence.every", "cron or rrule .* or PT168H"),
        ({"every": "P1DT1H"}, "recurrence.every", "cron or rrule .* or PT25H"),
        ({"every": "P1M"}, "recurrence.every", "months"),
        ({"every": "P20000D"}, "recurrence.every", "ten years"),
        ({"every": "PT1H", "anchor": None}, "recurrence.anchor", "string"),
        ({"every": "PT1H", "anchor": "2026-01-10T00:00"}, "recurrence.anchor", "no offset"),
        ({"every": "PT1H", "anchor": "2026-01-10T00:00:00.001Z"}, "recurrence.anchor", "fraction"),
        ({"every": "PT1H", "anchor": "9999-01-01T00:00:00Z"}, "recurrence.anchor", "too far"),
        ({"every": "PT1H", "jitter": "PT1M"}, "recurrence.jitter", "Unknown field"),
    ],
)
def test_a_wrong_recurrence_is_refused_at_the_field_that_is_wrong(
    wire: dict[str, object], field: str, says: str
) -> None:
    with pytest.raises(InvalidRequest, match=says) as refusal:
        parse(wire)
    assert [error.field for error in refusal.value.errors] == [field]


def test_all_unknown_fields_are_named_at_once() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        parse({"cron": "0 9 * * *", "one": 1, "two": 2})
    assert [error.field for error in refusal.value.errors] == ["recurrence.one", "recurrence.two"]
