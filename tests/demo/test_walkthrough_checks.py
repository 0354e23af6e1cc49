"""Each check of the story of an edit holds for what it should be, and fails for what it should not."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rota.demo.decisions import Decision, Place, decision_from
from rota.demo.walks import ORDINARY, Life, Walk
from rota.demo.walkthrough_checks import NEXT, OWED, PLANNED, Evidence, Refusal, check_walkthrough
from rota.service.representation import Wire

BOUNDARY = "2026-01-13T14:30:01Z"
TODAY = "2026-01-13T14:00:00Z"
TOMORROW = "2026-01-14T14:00:00Z"
SUPPRESSED = "2026-01-14T09:00:00Z"


def run(identity: str, scheduled_at: str, local: str, offset: str) -> Wire:
    """A run that succeeded in time."""
    return {
        "kind": "run",
        "run_id": identity,
        "version": int(identity.split(".")[1]),
        "scheduled_at": scheduled_at,
        "due_at": scheduled_at,
        "admitted_at": scheduled_at,
        "planned_at": "2026-01-13T14:30:00Z" if identity == PLANNED else None,
        "local": local,
        "named_local": local,
        "offset": offset,
        "period_key": f"day:{local[:10]}",
        "state": "succeeded",
    }


RUNS = [
    run(OWED, TODAY, "2026-01-13T09:00", "-05:00"),
    run(PLANNED, TOMORROW, "2026-01-14T09:00", "-05:00"),
    run(NEXT, "2026-01-15T09:00:00Z", "2026-01-15T09:00", "+00:00"),
]
SKIP: Wire = {
    "kind": "skip",
    "version": 5,
    "from": SUPPRESSED,
    "reason": "period_used",
    "note": f"day:2026-01-14 is used by run {PLANNED}",
}
DECISION = Decision(
    partition=2,
    epoch=1,
    revision=5,
    read=Place(version=4, instant=TODAY),
    runs=(OWED,),
    written=Place(version=4, instant=TOMORROW),
)
BY_REVISION = Refusal(
    decision=DECISION,
    latest_version=4,
    revision=6,
    cursor=DECISION.read,
    epoch=1,
    boundary=BOUNDARY,
    answer="stale",
    is_unchanged=True,
)
BY_EPOCH = replace(
    BY_REVISION,
    decision=replace(DECISION, revision=6, written=Place(version=4, instant=BOUNDARY)),
    latest_version=5,
    cursor=Place(version=5, instant=SUPPRESSED),
    epoch=2,
    answer="fenced",
)
LIFE = Life(
    walk=Walk(
        from_zone="Europe/London",
        to_zone="America/New_York",
        day=ORDINARY[0],
        change=ORDINARY[1],
        at=ORDINARY[2],
    ),
    moment="between",
    edited_at=datetime(2026, 1, 14, 11, 30, tzinfo=UTC),
    carried=(),
    suppressed=(datetime(2026, 1, 14, 14, 0, tzinfo=UTC),),
    runs_by_day=Counter(ORDINARY[0] + timedelta(days=number) for number in range(-2, 3)),
)
GOOD = Evidence(
    planned={**RUNS[1], "state": "planned", "admitted_at": None},
    told={
        "effective_from": BOUNDARY,
        "kept": RUNS[:2],
        "suppressed": [{"scheduled_at": SUPPRESSED}],
        "next": RUNS[1:],
    },
    by_revision=BY_REVISION,
    by_epoch=BY_EPOCH,
    versions=[
        {"version": number, "effective_from": BOUNDARY, "effective_until": BOUNDARY if number == 4 else None}
        for number in range(1, 6)
    ],
    entries=[RUNS[0], SKIP, *RUNS[1:]],
    mails=[f"<{entry['run_id']}@rota.local>" for entry in RUNS],
    lives=(LIFE, LIFE),
)
FAILED = {"state": "failed"}
COPY = {**RUNS[1], "run_id": "report-7.5.20260114T140000Z", "version": 5}


def refused_otherwise(**changes: object) -> Evidence:
    return replace(GOOD, by_revision=replace(BY_REVISION, **changes))  # type: ignore[arg-type]  # fields by name


def fenced_otherwise(**changes: object) -> Evidence:
    return replace(GOOD, by_epoch=replace(BY_EPOCH, **changes))  # type: ignore[arg-type]  # fields by name


def changed(place: int, **changes: object) -> Evidence:
    """One of the entries is another."""
    entries = list(GOOD.entries)
    entries[place] = {**entries[place], **changes}
    return replace(GOOD, entries=entries)


def told_otherwise(**changes: object) -> Evidence:
    return replace(GOOD, told={**GOOD.told, **changes})


def lived_otherwise(**changes: object) -> Evidence:
    return replace(GOOD, lives=(LIFE, replace(LIFE, **changes)))  # type: ignore[arg-type]  # fields by name


BY_FOUR, PAST_THE_BOUNDARY = "had read and decided by version 4", "leads version 4 on, past the boundary"
FOR_THE_REVISION, FOR_THE_EPOCH = "refused for the revision", "refused for the epoch"
AS_IT_WAS, ONE_RUN, NEWLY_COMPUTED = "ran as it was", "each day has one run", "newly computed"
TOLD_AS_SUPPRESSED, MAILS, WINDOWS = "recorded as suppressed", "one mail each", "version 4 ends where"
DRY_RUN, LIVES, ACCOUNTED = "the dry run had told", "has each day once", "carries the day's run"
BROKEN: list[tuple[str, Evidence]] = [
    (BY_FOUR, refused_otherwise(latest_version=5)),
    (BY_FOUR, refused_otherwise(decision=replace(DECISION, read=Place(version=5, instant=TODAY)))),
    (
        PAST_THE_BOUNDARY,
        refused_otherwise(decision=replace(DECISION, written=Place(version=4, instant=BOUNDARY))),
    ),
    (
        PAST_THE_BOUNDARY,
        refused_otherwise(decision=replace(DECISION, written=Place(version=5, instant=TOMORROW))),
    ),
    (
        PAST_THE_BOUNDARY,
        refused_otherwise(decision=replace(DECISION, written=Place(version=4, instant=None))),
    ),
    (FOR_THE_REVISION, refused_otherwise(answer="admitted")),
    (FOR_THE_REVISION, refused_otherwise(answer="fenced")),
    (FOR_THE_REVISION, refused_otherwise(revision=5)),
    (FOR_THE_REVISION, refused_otherwise(epoch=2)),
    (FOR_THE_REVISION, refused_otherwise(is_unchanged=False)),
    (FOR_THE_EPOCH, fenced_otherwise(answer="stale")),
    (FOR_THE_EPOCH, fenced_otherwise(epoch=1)),
    (FOR_THE_EPOCH, fenced_otherwise(is_unchanged=False)),
    (AS_IT_WAS, replace(GOOD, planned={**GOOD.planned, "state": "queued"})),
    (AS_IT_WAS, changed(2, due_at="2026-01-14T15:00:00Z")),
    (AS_IT_WAS, changed(2, planned_at=None)),
    (AS_IT_WAS, changed(2, admitted_at="2026-01-14T09:00:00Z")),
    (AS_IT_WAS, changed(2, version=5)),
    (ONE_RUN, replace(GOOD, entries=[*GOOD.entries, COPY])),
    (ONE_RUN, replace(GOOD, entries=GOOD.entries[1:])),
    (ONE_RUN, changed(3, named_local="2026-01-14T09:00")),
    (NEWLY_COMPUTED, changed(3, offset="-05:00")),
    (NEWLY_COMPUTED, changed(3, version=4)),
    (NEWLY_COMPUTED, replace(GOOD, entries=GOOD.entries[:3])),
    (TOLD_AS_SUPPRESSED, changed(1, note="day:2026-01-14 is used by run another")),
    (TOLD_AS_SUPPRESSED, changed(1, reason="expired")),
    (TOLD_AS_SUPPRESSED, replace(GOOD, entries=RUNS)),
    (MAILS, changed(0, **FAILED)),
    (MAILS, replace(GOOD, mails=[*GOOD.mails, GOOD.mails[0]])),
    (MAILS, replace(GOOD, mails=GOOD.mails[1:])),
    (WINDOWS, replace(GOOD, versions=GOOD.versions[1:])),
    (WINDOWS, replace(GOOD, versions=[*GOOD.versions[:4], {**GOOD.versions[4], "effective_from": TODAY}])),
    (DRY_RUN, told_otherwise(kept=RUNS[:1])),
    (DRY_RUN, told_otherwise(suppressed=[])),
    (DRY_RUN, told_otherwise(next=RUNS[2:])),
    (DRY_RUN, told_otherwise(effective_from=TODAY)),
    (LIVES, lived_otherwise(runs_by_day=Counter())),
    (LIVES, replace(GOOD, lives=())),
    (ACCOUNTED, lived_otherwise(suppressed=())),
    (ACCOUNTED, lived_otherwise(moment="after")),
]


def failing(evidence: Evidence) -> list[str]:
    return [check.promise for check in check_walkthrough(evidence) if not check.holds]


def test_every_check_holds_for_what_it_should_be() -> None:
    assert failing(GOOD) == []


@pytest.mark.parametrize(("promise", "evidence"), BROKEN)
def test_a_check_fails_for_what_it_should_not_be(promise: str, evidence: Evidence) -> None:
    assert any(promise in failed for failed in failing(evidence))


def test_each_check_is_among_those_that_fail() -> None:
    named = list(dict.fromkeys(promise for promise, _ in BROKEN))
    promises = [check.promise for check in check_walkthrough(GOOD)]
    assert [[promise in whole for promise in named].count(True) for whole in promises] == [1] * len(promises)
    assert len(named) == len(promises)


@pytest.mark.parametrize("say", [str, "reached the point {}".format])
def test_a_decision_is_read_as_it_was_told(say: Callable[[str], str]) -> None:
    assert decision_from(say(DECISION.to_line())) == DECISION
