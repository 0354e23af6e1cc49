"""The run protocol: runs, lists of them, and a schedule's ledger."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rota.domain.admission import Skip
from rota.domain.identity import RunId, ScheduleId
from rota.domain.json_text import encode_json
from rota.domain.run import Origin, Run, RunDetail, RunState
from rota.store.port import AdmissionOutcome, LedgerKey, RunFilter, Store
from tests.contract.builders import (
    DAY,
    HOUR,
    MILLISECOND,
    MINUTE,
    NINE,
    admission,
    labels,
    new_schedule,
    run_at,
    skip_at,
    success,
)
from tests.contract.steps import (
    admit,
    admit_runs,
    attempts_of,
    create,
    fence_of,
    open_attempt,
    queue_run,
    read_pages,
    run_of,
    settle,
)


def list_ids(
    store: Store, filter_: RunFilter | None = None, *, before: LedgerKey | None = None, limit: int = 100
) -> list[str]:
    return [run.run_id for run in store.list_runs(filter_ or RunFilter(), before=before, limit=limit)]


def place_of(entry: Run | Skip) -> LedgerKey:
    if isinstance(entry, Skip):
        return LedgerKey(instant=entry.from_, id_="")
    return LedgerKey(instant=entry.scheduled_at, id_=entry.run_id)


def place_after(last: Run | Skip | None) -> LedgerKey | None:
    return None if last is None else place_of(last)


@pytest.mark.parametrize(
    ("named_local", "offset"),
    [
        (datetime(2026, 1, 10, 4), timedelta(hours=-5)),
        (datetime(2026, 1, 10, 14, 45), timedelta(hours=5, minutes=45)),
        (datetime(1880, 1, 1, 0, 0, 1), -timedelta(minutes=1, seconds=15)),
    ],
    ids=["behind", "ahead", "odd"],
)
def test_a_run_is_read_back_whole(store: Store, named_local: datetime, offset: timedelta) -> None:
    schedule = create(store)
    run = replace(
        run_at(schedule, NINE, period_key="day:2026-01-10/fold"),
        due_at=NINE + 5 * MINUTE,
        named_local=named_local,
        offset=offset,
        reason="carried",
        planned_at=NINE - DAY + MILLISECOND,
        admitted_at=NINE + 7 * MILLISECOND,
        available_at=NINE + 5 * MINUTE,
    )
    admit_runs(store, schedule, run)
    assert store.get_run(run.run_id) == RunDetail(run=run, attempts=(), result=None)


def test_what_was_never_admitted_is_not_found(store: Store) -> None:
    queue_run(store)
    assert store.get_run(RunId("report-7.1.20260111T090000Z")) is None


def test_a_result_is_read_with_its_run_and_its_attempts_in_order(store: Store) -> None:
    run = queue_run(store)
    open_attempt(store, run, worker="worker-1")
    result = encode_json({"rows": 12, "é": [None, 0.5]})
    assert settle(store, success(run.run_id, at=NINE + MINUTE, result=result)) == [True]
    detail = store.get_run(run.run_id)
    assert detail is not None
    assert detail.result == result
    assert [attempt.worker for attempt in attempts_of(store, run.run_id)] == ["worker-1"]


def test_runs_are_listed_newest_first_then_by_id_descending(store: Store) -> None:
    for id_ in ("a", "c", "b"):
        schedule = create(store, new_schedule(id_))
        admit_runs(store, schedule, run_at(schedule, NINE), run_at(schedule, NINE + HOUR))
    assert list_ids(store) == [
        f"{id_}.1.20260110T{hour}0000Z" for hour in ("10", "09") for id_ in ("c", "b", "a")
    ]


def test_pages_of_runs_are_complete_and_repeat_nothing(store: Store) -> None:
    for id_ in ("a", "b", "c"):
        schedule = create(store, new_schedule(id_))
        admit_runs(store, schedule, *[run_at(schedule, NINE + hours * HOUR) for hours in range(3)])
    seen = read_pages(lambda last: store.list_runs(RunFilter(), before=place_after(last), limit=2), limit=2)
    assert [run.run_id for run in seen] == list_ids(store)
    assert len({run.run_id for run in seen}) == 9


def test_a_page_goes_on_before_a_place_where_no_run_is(store: Store) -> None:
    schedule = create(store)
    admit_runs(store, schedule, run_at(schedule, NINE), run_at(schedule, NINE + HOUR))
    assert list_ids(store, before=LedgerKey(instant=NINE + HOUR, id_="")) == ["report-7.1.20260110T090000Z"]
    assert list_ids(store, before=LedgerKey(instant=NINE, id_="")) == []


def test_a_filter_takes_only_what_matches_all_of_it(store: Store) -> None:
    acme = labels(customer="acme")
    mail = create(store, new_schedule("mail-1", job="mail", labels=acme))
    report = create(store, new_schedule("report-1", job="report", labels=labels(customer="zeta")))
    admit_runs(store, mail, run_at(mail, NINE), replace(run_at(mail, NINE + HOUR), origin="backfill"))
    admit_runs(store, report, run_at(report, NINE))
    first, second, other = (
        "mail-1.1.20260110T090000Z",
        "mail-1.1.20260110T100000Z",
        "report-1.1.20260110T090000Z",
    )
    open_attempt(store, run_of(store, first))
    assert list_ids(store, RunFilter(schedule_id=ScheduleId("mail-1"))) == [second, first]
    assert list_ids(store, RunFilter(state=RunState.QUEUED)) == [second, other]
    assert list_ids(store, RunFilter(state=RunState.RUNNING)) == [first]
    assert list_ids(store, RunFilter(job="report")) == [other]
    assert list_ids(store, RunFilter(label=("customer", "acme"))) == [second, first]
    assert list_ids(store, RunFilter(origin="backfill")) == [second]
    of_second = run_of(store, second).scheduled_at
    from_second = [run_id for run_id in list_ids(store) if run_of(store, run_id).scheduled_at >= of_second]
    before_second = [run_id for run_id in list_ids(store) if run_id not in from_second]
    assert second in from_second
    assert first in before_second
    assert list_ids(store, RunFilter(from_=of_second)) == from_second
    assert list_ids(store, RunFilter(until=of_second)) == before_second
    assert list_ids(store, RunFilter(from_=of_second, until=of_second)) == []
    assert list_ids(store, RunFilter(origin="schedule")) == [other, first]
    every = RunFilter(
        schedule_id=ScheduleId("mail-1"),
        state=RunState.QUEUED,
        job="mail",
        origin="backfill",
        label=("customer", "acme"),
    )
    assert list_ids(store, every) == [second]
    assert list_ids(store, replace(every, origin="schedule")) == []
    assert list_ids(store, RunFilter(label=("customer", "acme")), limit=1) == [second]


@pytest.mark.parametrize("origin", ["schedule", "backfill", "manual", "replay"])
def test_a_run_keeps_its_origin(store: Store, origin: Origin) -> None:
    schedule = create(store)
    admit_runs(store, schedule, replace(run_at(schedule, NINE), origin=origin))
    assert [run.origin for run in store.list_runs(RunFilter(), before=None, limit=1)] == [origin]


def test_the_ledger_merges_runs_and_skips_newest_first(store: Store) -> None:
    schedule = create(store)
    other = create(store, new_schedule("report-70"))
    runs = [run_at(schedule, NINE), run_at(schedule, NINE + 3 * HOUR)]
    skips = [
        skip_at(schedule, NINE + HOUR, NINE + 3 * HOUR, count=2, reason="expired", note="late"),
        skip_at(schedule, NINE + 4 * HOUR, NINE + 5 * HOUR, reason="paused"),
    ]
    due = admission(schedule, runs=runs, skips=skips)
    others = admission(other, skips=[skip_at(other, NINE + HOUR, NINE + 2 * HOUR)])
    outcomes = admit(store, fence_of(store, 0), [due, others])
    assert outcomes == [AdmissionOutcome.ADMITTED] * 2
    newest_first = [skips[1], runs[1], skips[0], runs[0]]
    assert store.list_ledger(schedule.schedule_id, before=None, limit=10) == newest_first
    assert store.list_ledger(schedule.schedule_id, before=None, limit=3) == newest_first[:3]
    assert store.list_ledger(ScheduleId("nobody"), before=None, limit=3) == []


def test_pages_of_the_ledger_are_complete_and_repeat_nothing(store: Store) -> None:
    schedule = create(store)
    runs = [run_at(schedule, NINE + hours * HOUR) for hours in range(0, 9, 2)]
    skips = [
        skip_at(schedule, NINE + hours * HOUR, NINE + (hours + 1) * HOUR, reason="expired")
        for hours in (1, 3, 5)
    ]
    # After an edit, an instant that the next version suppressed may be one at which a run of this one lies.
    skips.append(replace(skip_at(schedule, NINE, NINE + HOUR, reason="period_used"), version=2))
    outcomes = admit(store, fence_of(store, 0), [admission(schedule, runs=runs, skips=[])])
    assert outcomes == [AdmissionOutcome.ADMITTED]
    moved = replace(schedule, cursor=admission(schedule).cursor)
    later = admission(moved, runs=[], skips=skips, next_due=NINE + 2 * DAY)
    assert admit(store, fence_of(store, 0), [later]) == [AdmissionOutcome.ADMITTED]
    whole = store.list_ledger(schedule.schedule_id, before=None, limit=100)

    def read(last: Run | Skip | None) -> list[Run | Skip]:
        return store.list_ledger(schedule.schedule_id, before=place_after(last), limit=limit)

    for limit in (1, 2, 3):
        assert read_pages(read, limit=limit) == whole
    assert [place_of(entry).instant for entry in whole] == sorted(
        (place_of(entry).instant for entry in whole), reverse=True
    )
    assert isinstance(whole[-1], Skip)
    assert isinstance(whole[-2], Run)
