"""The worked lives of `tests/cases/edits.jsonl`, on every store."""

import json
from pathlib import Path
from typing import Required, TypedDict

import pytest

from rota.store.port import Store
from tests.edits.lives import Life, rule


class Rule(TypedDict):
    cron: str
    tz: str


class Event(TypedDict, total=False):
    at: Required[str]
    edit: Rule
    plan_until: str


class Case(TypedDict):
    """One line of the file."""

    id: str
    period: str
    start: str
    until: str
    version1: Rule
    events: list[Event]
    expect: list[tuple[int, str, str]]
    suppressed: list[tuple[int, str, str]]


CASES: list[Case] = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "edits.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_life_with_edits_has_exactly_the_runs_that_it_must_have(store: Store, case: Case) -> None:
    life = lived(store, case)
    expected = [(version, at, f"{case['period']}:{key}") for version, at, key in case["expect"]]
    assert life.kept() == expected
    suppressed = [(skip["version"], skip["from"], skip["count"]) for skip in life.skips("period_used")]
    assert suppressed == [(version, at, 1) for version, at, _ in case["suppressed"]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_suppressed_occurrence_names_the_run_that_used_its_period(store: Store, case: Case) -> None:
    life = lived(store, case)
    by_id = {run["run_id"]: run for run in life.runs()}
    for skip, (_, _, key) in zip(life.skips("period_used"), case["suppressed"], strict=True):
        user = by_id[str(skip["note"]).rpartition("run ")[2]]
        assert user["period_key"] == f"{case['period']}:{key}"


def lived(store: Store, case: Case) -> Life:
    """The life of the case, to its end."""
    first = case["version1"]
    life = Life(store, start=case["start"], **rule(first["cron"], first["tz"]), period=case["period"])
    for event in case["events"]:
        life.until(event["at"])
        if "edit" in event:
            life.edit(timezone=event["edit"]["tz"], recurrence={"cron": event["edit"]["cron"]})
        else:
            life.plan(event["plan_until"])
    return life.until(case["until"])
