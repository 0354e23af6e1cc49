"""An edit in wire form: what a patch does to a definition, and what is refused."""

from datetime import timedelta

import pytest

from rota.domain.definition import parse_definition
from rota.domain.edit_form import changed_members, merged_definition, merged_labels, parse_edit
from rota.domain.errors import InvalidRequest
from rota.domain.instants import EPOCH
from rota.domain.json_text import JsonText
from rota.domain.overdue import CatchUpAll, Expire
from rota.domain.recurrence import Every
from rota.domain.schedule import Definition

LATER = EPOCH + timedelta(days=1)


def definition(**fields: object) -> Definition:
    given = {"timezone": "UTC", "recurrence": {"cron": "0 9 * * *"}, **fields}
    return parse_definition(given, default_anchor=EPOCH)


def patched(before: Definition, **patch: object) -> Definition:
    return merged_definition(parse_edit(patch), before, default_anchor=LATER)


def test_an_empty_patch_changes_nothing() -> None:
    before = definition(params={"a": 1}, overdue={"policy": "catch_up_all"}, ends_at="2030-01-01T00:00:00Z")
    assert patched(before) == before


def test_null_brings_a_default_back() -> None:
    before = definition(gap="forward", ends_at="2030-01-01T00:00:00Z", overdue={"policy": "catch_up_all"})
    assert patched(before, gap=None, ends_at=None, overdue=None) == definition()


def test_params_are_merged_member_by_member() -> None:
    before = definition(params={"a": {"b": 1, "c": 2}, "d": 3})
    assert patched(before, params={"a": {"b": None, "e": 4}}).params == '{"a":{"c":2,"e":4},"d":3}'


def test_a_recurrence_is_replaced_whole() -> None:
    before = definition(recurrence={"every": "PT15M"})
    assert patched(before, recurrence={"cron": "0 9 * * *"}) == definition()


def test_another_overdue_policy_replaces_the_whole_of_it() -> None:
    before = definition(overdue={"policy": "expire", "deadline": "PT5M"})
    assert patched(before, overdue={"policy": "catch_up_all"}).overdue == CatchUpAll()
    assert patched(before, overdue={"deadline": "PT9M"}).overdue == Expire(deadline=timedelta(minutes=9))


def test_a_member_of_the_jobs_policy_cannot_be_patched() -> None:
    with pytest.raises(InvalidRequest, match="follows its job's policy") as refused:
        patched(definition(), overdue={"grace": "PT5M"})
    assert refused.value.errors[0].field == "overdue.policy"


def test_an_every_that_names_no_anchor_keeps_the_grid_it_has() -> None:
    before = definition(recurrence={"every": "PT15M"})
    assert patched(before, recurrence={"every": "PT900S"}) == before
    assert patched(before, recurrence={"every": "PT20M"}).recurrence == Every(
        interval=timedelta(minutes=20), anchor=LATER
    )


def test_labels_are_merged_and_left_alone_where_none_are_given() -> None:
    labels = JsonText('{"a":"1","b":"2"}')
    assert merged_labels(parse_edit({}), labels) == labels
    assert merged_labels(parse_edit({"labels": {"a": None, "c": "3"}}), labels) == '{"b":"2","c":"3"}'
    assert merged_labels(parse_edit({"labels": None}), labels) == "{}"


def test_what_changed_is_told_by_member() -> None:
    before = definition(params={"a": 1})
    after = patched(before, timezone="Asia/Tokyo", params={"a": 2})
    assert changed_members(before, after) == {
        "timezone": {"from": "UTC", "to": "Asia/Tokyo"},
        "params": {"from": {"a": 1}, "to": {"a": 2}},
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"id": "x"}, "id"),
        ({"job": "x"}, "job"),
        ({"colour": "red"}, "colour"),
        ({"boundary": "later"}, "boundary"),
        ({"boundary": "effective_from"}, "effective_from"),
        ({"boundary": "now", "effective_from": "2030-01-01T00:00:00Z"}, "boundary"),
        ({"effective_from": 7}, "effective_from"),
        ({"effective_from": "2030-01-01T00:00:00.5Z"}, "effective_from"),
        ({"replaces_pending": "yes"}, "replaces_pending"),
        ({"at_once": 1}, "at_once"),
        ({"at_once": True, "effective_from": "2030-01-01T00:00:00Z"}, "at_once"),
    ],
)
def test_a_wrong_member_is_refused_by_name(body: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_edit(body)
    assert [error.field for error in refused.value.errors] == [field]


def test_boundary_effective_from_is_the_same_as_giving_the_instant() -> None:
    instant = "2030-01-01T00:00:00Z"
    named = parse_edit({"boundary": "effective_from", "effective_from": instant})
    assert named == parse_edit({"effective_from": instant})
