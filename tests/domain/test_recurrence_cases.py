"""The recurrence cases: one a line in `tests/cases/recurrence.jsonl`, each from a public report."""

import json
from datetime import datetime
from pathlib import Path
from typing import TypedDict

import pytest

from rota.domain.cadence import Cadence, Fold, Gap
from rota.domain.errors import InvalidRequest
from rota.domain.instants import EPOCH, format_instant, parse_instant
from rota.domain.recurrence import parse_recurrence
from rota.zones import load_zone

CASES = Path(__file__).parent.parent / "cases" / "recurrence.jsonl"


class Case(TypedDict):
    """One line of the file."""

    id: str
    kind: str
    expr: str
    tz: str
    after: str
    count: int
    gap: Gap
    fold: Fold
    expect: list[str]


def cases() -> list[Case]:
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def wire(case: Case) -> dict[str, str]:
    match case["kind"]:
        case "interval":
            _, anchor, interval = case["expr"].split("/")
            return {"every": interval, "anchor": anchor}
        case "once":
            return {"at": case["expr"]}
        case kind:
            return {kind: case["expr"]}


def test_all_cases_are_there() -> None:
    assert len(cases()) == 45


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_case(case: Case) -> None:
    try:
        recurrence = parse_recurrence(wire(case), default_anchor=EPOCH)
    except InvalidRequest:
        # What can never match is refused; the cases allow that where nothing is expected.
        assert case["expect"] == []
        return
    cadence = Cadence(recurrence, load_zone(case["tz"]), gap=case["gap"], fold=case["fold"])
    after: datetime = parse_instant(case["after"])
    found: list[str] = []
    while len(found) < case["count"] and (occurrence := cadence.next(after)) is not None:
        after = occurrence.scheduled_at
        found.append(format_instant(after))
    assert found == case["expect"]
