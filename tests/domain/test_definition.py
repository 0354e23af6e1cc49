"""A definition in wire form: read back as it was written, and refused with one error for each bad field."""

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.definition import (
    LABELS_MAX,
    definition_to_wire,
    overdue_to_wire,
    parse_definition,
    parse_labels,
    parse_overdue,
)
from rota.domain.errors import InvalidRequest
from rota.domain.json_text import load_json
from rota.domain.overdue import CatchUpAll, Expire, LatestOnly, OverduePolicy

ANCHOR = datetime(2026, 1, 10, 9, tzinfo=UTC)
VALID: dict[str, object] = {"timezone": "Europe/Paris", "recurrence": {"cron": "0 9 * * *"}}


def fields_of(caught: pytest.ExceptionInfo[InvalidRequest]) -> list[str]:
    return [error.field for error in caught.value.errors]


def bad_fields(**fields: object) -> list[str]:
    with pytest.raises(InvalidRequest) as caught:
        parse_definition({**VALID, **fields}, default_anchor=ANCHOR)
    return fields_of(caught)


def test_what_is_left_out_takes_its_default() -> None:
    definition = parse_definition(VALID, default_anchor=ANCHOR)
    assert (definition.gap, definition.fold, definition.period) == ("skip", "auto", "auto")
    assert (definition.overdue, definition.params, definition.starts_at) == (None, "{}", None)
    assert (definition.ends_at, definition.max_occurrences) == (None, None)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"gap": "forward", "fold": "both", "period": "instant"},
        {"starts_at": "2026-01-10T09:00:00Z", "ends_at": "2027-01-10T09:00:00Z", "max_occurrences": 7},
        {"overdue": {"policy": "expire", "deadline": "PT5M"}},
        {"recurrence": {"every": "PT15M"}},
        {"recurrence": {"at": "2026-01-10T09:00"}},
        {"recurrence": {"rrule": "DTSTART:20260105T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO"}},
    ],
)
def test_a_definition_is_read_back_as_it_was_written(fields: dict[str, object]) -> None:
    definition = parse_definition({**VALID, **fields}, default_anchor=ANCHOR)
    assert (
        parse_definition(definition_to_wire(definition), default_anchor=ANCHOR + timedelta(1)) == definition
    )


def test_every_bad_field_is_told_at_once() -> None:
    told = bad_fields(
        timezone=7, recurrence=[], gap="jump", starts_at="soon", max_occurrences=True, color="red"
    )
    assert sorted(told) == ["color", "gap", "max_occurrences", "recurrence", "starts_at", "timezone"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"timezone": ""}, "timezone"),
        ({"recurrence": {"cron": "0 9 * *"}}, "recurrence.cron"),
        ({"recurrence": {"cron": "0 9 * * *", "at": "2026-01-10T09:00"}}, "recurrence"),
        ({"recurrence": {"every": "P1D"}}, "recurrence.every"),
        ({"fold": None}, "fold"),
        ({"period": "year"}, "period"),
        ({"overlap": "never"}, "overlap"),
        ({"spread": "PT24H1S"}, "spread"),
        ({"spread": "PT0.5S"}, "spread"),
        ({"spread": 600}, "spread"),
        ({"overdue": "latest_only"}, "overdue.policy"),
        ({"overdue": {"policy": "expire"}}, "overdue.deadline"),
        ({"overdue": {"policy": "expire", "deadline": "5 minutes"}}, "overdue.deadline"),
        ({"overdue": {"policy": "latest_only", "grace": 60}}, "overdue.grace"),
        ({"overdue": {"policy": "catch_up_all", "grace": "PT1M"}}, "overdue.grace"),
        ({"params": [1]}, "params"),
        ({"params": {"a": float("nan")}}, "params.a"),
        ({"params": {"a": [1, {"b": "\x00"}]}}, "params.a.1.b"),
        ({"starts_at": 1}, "starts_at"),
        ({"starts_at": "2026-01-10T09:00:00.5Z"}, "starts_at"),
        ({"starts_at": "2026-01-10T09:00:00Z", "ends_at": "2026-01-10T09:00:00Z"}, "ends_at"),
        ({"max_occurrences": 10_001}, "max_occurrences"),
    ],
)
def test_a_bad_field_is_named(fields: dict[str, object], expected: str) -> None:
    assert bad_fields(**fields) == [expected]


@pytest.mark.parametrize(
    "policy",
    [
        CatchUpAll(),
        CatchUpAll(max_age=timedelta(hours=1)),
        LatestOnly(),
        LatestOnly(grace=timedelta(0)),
        Expire(deadline=timedelta(minutes=5)),
    ],
)
def test_an_overdue_policy_is_read_back_as_it_was_written(policy: OverduePolicy) -> None:
    assert parse_overdue(overdue_to_wire(policy)) == policy


def test_labels_are_a_flat_object_of_strings() -> None:
    assert load_json(parse_labels({"customer": "acme"})) == {"customer": "acme"}
    assert parse_labels(None) == "{}"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["a"], "labels"),
        ({f"n{n}": "x" for n in range(LABELS_MAX + 1)}, "labels"),
        ({"a": 1}, "labels.a"),
        ({"a": ""}, "labels.a"),
        ({"a=b": "c"}, "labels.a=b"),
        ({"": "c"}, "labels."),
        ({"a": "\x00"}, "labels.a"),
    ],
)
def test_labels_that_are_none_are_refused(labels: object, expected: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_labels(labels)
    assert fields_of(caught) == [expected]


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = [
    "timezone",
    "recurrence",
    "gap",
    "fold",
    "period",
    "overdue",
    "params",
    "starts_at",
    "ends_at",
    "labels",
]


@given(st.dictionaries(st.sampled_from(KEYS), plain))
def test_no_body_does_anything_but_pass_or_be_refused(fields: dict[str, object]) -> None:
    refused: InvalidRequest | None = None
    try:
        parse_definition(cast("dict[str, object]", {**VALID, **fields}), default_anchor=ANCHOR)
    except InvalidRequest as error:
        refused = error
    assert refused is None or all(error.field and error.message for error in refused.errors)
