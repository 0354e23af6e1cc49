"""Set-based admission writes what the planner would write, of every kind of ordinary schedule (I1, I2, I3)."""

from dataclasses import replace

import pytest

from rota.domain.admission import plan_admission
from rota.domain.beat import beat_of
from rota.domain.due import DueSchedule
from rota.domain.overdue import CatchUpAll, Expire, LatestOnly
from rota.domain.recurrence import Cron, Every, RRule
from rota.store.port import AdmissionOutcome, BeatsOutcome
from tests.contract.beating import (
    HALF_PAST_TWO,
    NINE_DAILY,
    ROME,
    Case,
    all_of,
    at,
    beat,
    cadence_of,
    made_of,
    read_keys,
    strict_and_lax_jobs,
)
from tests.contract.builders import (
    DAY,
    HOUR,
    MADE_AT,
    MINUTE,
    NINE,
    SECOND,
)
from tests.contract.conftest import STORES, OpenStore
from tests.contract.steps import (
    create,
    fence_of,
    hold,
)

CASES = {
    "a cron in UTC": Case(recurrence=NINE_DAILY, at=NINE, period="day"),
    "a cron in a zone": Case(
        recurrence=NINE_DAILY, timezone="Asia/Kolkata", at=at("2026-01-10T03:30"), period="day"
    ),
    "west of Greenwich": Case(
        recurrence=Cron(expression="0 23 * * *"),
        timezone="America/St_Johns",
        at=at("2026-01-11T02:30"),
        period="day",
    ),
    "by week": Case(recurrence=Cron(expression="0 9 * * 1"), at=at("2026-12-28T09:00"), period="week"),
    "by month": Case(recurrence=Cron(expression="0 9 L * *"), at=at("2026-01-31T09:00"), period="month"),
    "by instant": Case(recurrence=Cron(expression="*/5 * * * *"), at=at("2026-01-10T09:05")),
    "an rrule": Case(
        recurrence=RRule(text="DTSTART:20260101T100000\nRRULE:FREQ=WEEKLY;BYDAY=SA"),
        at=NINE,
        timezone=ROME,
        period="week",
    ),
    "every 90 minutes": Case(
        recurrence=Every(interval=90 * MINUTE, anchor=MADE_AT.replace(microsecond=0)),
        at=at("2026-01-05T14:00:15"),
    ),
    "in a gap, forward": Case(
        recurrence=HALF_PAST_TWO, timezone=ROME, gap="forward", at=at("2026-03-29T01:00"), period="day"
    ),
    "before a gap, skipped": Case(
        recurrence=HALF_PAST_TWO, timezone=ROME, at=at("2026-03-28T01:30"), period="day"
    ),
    "a fold, first": Case(recurrence=HALF_PAST_TWO, timezone=ROME, at=at("2026-10-25T00:30"), period="day"),
    "a fold, second": Case(
        recurrence=HALF_PAST_TWO, timezone=ROME, fold="second", at=at("2026-10-25T01:30"), period="day"
    ),
    "a fold, both: first pass": Case(
        recurrence=HALF_PAST_TWO, timezone=ROME, fold="both", at=at("2026-10-25T00:30"), period="day"
    ),
    "a fold, both: second pass": Case(
        recurrence=HALF_PAST_TWO, timezone=ROME, fold="both", at=at("2026-10-25T01:30"), period="day"
    ),
    "a later series": Case(recurrence=NINE_DAILY, at=NINE, period="day", series=3),
    "before its end": Case(recurrence=NINE_DAILY, at=NINE, ends_at=NINE + DAY + SECOND),
    "before its last": Case(recurrence=NINE_DAILY, at=NINE, last=NINE + DAY),
    "latest only, late": Case(recurrence=NINE_DAILY, at=NINE, overdue=LatestOnly(grace=MINUTE), late=HOUR),
    "expire, in time": Case(recurrence=NINE_DAILY, at=NINE, overdue=Expire(deadline=HOUR), late=HOUR),
    "catch up, in time": Case(recurrence=NINE_DAILY, at=NINE, overdue=CatchUpAll(max_age=HOUR), late=HOUR),
    "catch up, however late": Case(recurrence=NINE_DAILY, at=NINE, overdue=CatchUpAll(), late=23 * HOUR),
    "of a strict job, in time": Case(recurrence=NINE_DAILY, at=NINE, job="strict", late=MINUTE),
    "of a strict job, laxer itself": Case(
        recurrence=NINE_DAILY, at=NINE, job="strict", overdue=LatestOnly(), late=20 * HOUR
    ),
    "of a lax job, however late": Case(recurrence=NINE_DAILY, at=NINE, job="lax", late=20 * HOUR),
    "of a job that is not stored": Case(recurrence=NINE_DAILY, at=NINE, late=20 * HOUR),
}


LAST_OF_A_BACKLOG = "the last of a backlog"


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("name", [*CASES, LAST_OF_A_BACKLOG])
def test_what_is_ordinary_is_written_as_the_planner_writes_it(
    open_store: OpenStore, kind: str, name: str
) -> None:
    case = CASES.get(name, CASES["by instant"])
    new = made_of(case)
    if name == LAST_OF_A_BACKLOG:
        new = replace(new, schedule=replace(new.schedule, turn=3))
    now = case.at + case.late
    by_beats, by_planner = open_store(kind), open_store(kind)
    for store in (by_beats, by_planner):
        strict_and_lax_jobs(store)
        create(store, new)
        hold(store)
    [due] = by_planner.read_due(0, now=now, limit=10)
    assert isinstance(due, DueSchedule)
    planned = plan_admission(due, cadence_of(new), now=now)
    assert len(planned.runs) == 1
    fence = fence_of(by_planner, 0)
    assert by_planner.commit_admissions(fence, [planned], now=now) == [AdmissionOutcome.ADMITTED]

    [key] = read_keys(by_beats, now=now)
    found = beat_of(key, cadence_of(new), now=now)
    assert found is not None
    assert beat(by_beats, [found], now=now) == BeatsOutcome(admitted=1)
    assert all_of(by_beats) == all_of(by_planner)
