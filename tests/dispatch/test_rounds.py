"""What a dispatcher serves first: the ordinary by the thousand, what is on time before what is late, and everyone."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.admission import Admission
from rota.domain.errors import UnreadableRow, ZoneRulesDiffer
from rota.domain.identity import ScheduleId, partition_of, slot_of
from rota.domain.schedule import CadenceRow
from rota.service.context import Context
from rota.service.planning import plan_occurrences
from rota.store.port import AdmissionOutcome, BeatsOutcome, DueTimes, Fence
from rota.testing.clock import ManualClock
from tests.dispatch.conftest import (
    LEASE,
    START,
    NewDispatcher,
    dispatcher_on,
    run_instants,
    save,
    skips,
    work_off,
)
from tests.dispatch.test_poison import fail_for_zone

NINE = datetime(2025, 6, 10, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
WEEK = timedelta(weeks=1)


def refuse(_fence: Fence, admissions: Sequence[Admission], *, now: datetime) -> list[AdmissionOutcome]:
    raise AssertionError(f"{len(admissions)} went through the planner at {now}")


def test_the_ordinary_of_all_partitions_are_admitted_by_one_commit_and_never_planned_one_by_one(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        save(context, f"report-{number}", "0 9 * * *", timezone=("UTC", "Africa/Abidjan")[number % 2])
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START)
    monkeypatch.setattr(context.store, "commit_admissions", refuse)
    clock.set(NINE)
    assert dispatcher.step(NINE).admitted == 40
    assert [run_instants(context, f"report-{number}") for number in range(40)] == [[NINE]] * 40


def test_what_is_on_time_is_admitted_in_the_first_step_after_an_outage(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    clock.leap(START - WEEK - clock.now())
    for number in range(30):
        save(context, f"behind-{number}", "0 * * * *", overdue={"policy": "catch_up_all"})
    for number in range(4):
        save(context, f"ordinary-{number}", "0 9 10 6 *")
        save(context, f"last-{number}", "0 9 * * *", starts_at="2025-06-10T09:00:00Z", max_occurrences=1)
    clock.set(NINE)
    dispatcher = new_dispatcher("a", page=8)
    report = dispatcher.step(NINE)
    assert [run_instants(context, f"{kind}-{n}") for kind in ("ordinary", "last") for n in range(4)] == [
        [NINE]
    ] * 8
    assert 8 < report.admitted < 30 * 25, "and the backlog has begun"
    assert report.wake_at == NINE
    work_off(dispatcher, NINE)
    assert all(len(run_instants(context, f"behind-{number}")) == 169 for number in range(30))


def test_a_key_that_is_used_sends_its_partition_through_the_planner_in_the_same_step(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        save(context, f"report-{number}", "0 9 * * *")
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START)
    commit_beats = context.store.commit_beats
    record = context.store.get_schedule(ScheduleId("report-0"))
    assert record is not None
    planned: list[str] = []
    commit_admissions = context.store.commit_admissions

    def commit_beats_but(fences, *args, **kwargs):  # type: ignore[no-untyped-def]
        if record.schedule.partition in {fence.partition for fence in fences}:
            return BeatsOutcome(is_key_used=True)
        return commit_beats(fences, *args, **kwargs)

    def note(fence: Fence, admissions: Sequence[Admission], *, now: datetime) -> list[AdmissionOutcome]:
        planned.extend(admission.schedule_id for admission in admissions)
        return commit_admissions(fence, admissions, now=now)

    monkeypatch.setattr(context.store, "commit_beats", commit_beats_but)
    monkeypatch.setattr(context.store, "commit_admissions", note)
    clock.set(NINE)
    assert dispatcher.step(NINE).admitted == 12
    assert "report-0" in planned
    assert 0 < len(planned) < 12, "the other partitions were admitted by their beats"


def test_late_ordinary_schedules_follow_their_policy(context: Context, new_dispatcher: NewDispatcher) -> None:
    save(context, "latest", "0 9 * * *")
    save(context, "expired", "0 9 * * *", overdue={"policy": "expire", "deadline": "PT5M"})
    save(context, "in-time", "0 9 * * *", overdue={"policy": "expire", "deadline": "PT10M"})
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START)
    work_off(dispatcher, NINE + 10 * MINUTE)
    assert run_instants(context, "latest") == [NINE]
    assert (run_instants(context, "expired"), skips(context, "expired")) == ([], [("expired", 1)])
    assert run_instants(context, "in-time") == [NINE]


def test_a_partition_whose_page_raises_holds_up_no_other_and_no_lost_attempt(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        save(context, f"report-{number}", "0 9 * * *", max_occurrences=1)
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START)
    read_due, read_lost = context.store.read_due, context.store.read_lost
    looked_for_lost: list[datetime] = []

    def fail_for_one(partition: int, **kwargs):  # type: ignore[no-untyped-def]
        if partition == 0:
            raise UnreadableRow("A row of partition 0 makes no sense.")
        return read_due(partition, **kwargs)

    def note(partitions: Sequence[int], *, now: datetime, limit: int):  # type: ignore[no-untyped-def]
        looked_for_lost.append(now)
        return read_lost(partitions, now=now, limit=limit)

    monkeypatch.setattr(context.store, "read_due", fail_for_one)
    monkeypatch.setattr(context.store, "read_lost", note)
    clock.set(NINE)
    with pytest.raises(UnreadableRow):
        dispatcher.step(NINE)
    served = {number: run_instants(context, f"report-{number}") == [NINE] for number in range(8)}
    partitions = {
        number: record.schedule.partition
        for number in range(8)
        if (record := context.store.get_schedule(ScheduleId(f"report-{number}"))) is not None
    }
    assert served == {number: partition != 0 for number, partition in partitions.items()}
    assert looked_for_lost == [NINE]


def test_due_times_tell_planned_runs_apart(context: Context) -> None:
    save(context, "report", "0 9 * * *")
    [due] = context.store.read_due_times(range(4)).values()
    assert due == DueTimes(schedule=NINE, planned=None)


def test_the_cadences_of_the_next_minute_are_compiled_ahead_of_it(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(context, "report", "0 9 * * *", timezone="Africa/Abidjan")
    dispatcher = new_dispatcher("a")
    clock.set(NINE - 30 * timedelta(seconds=1))
    dispatcher.step(clock.now())

    def fail(_ids: object) -> list[CadenceRow]:
        raise AssertionError("a cadence is read at the hour")

    monkeypatch.setattr(context.store, "read_cadences", fail)
    clock.set(NINE)
    assert dispatcher.step(NINE).admitted == 1


def test_a_step_that_takes_too_long_breaks_off_to_renew_its_leases(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.leap(START - HOUR - clock.now())
    for number in range(30):
        save(context, f"behind-{number}", "* * * * *", overdue={"policy": "catch_up_all"})
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START - HOUR)
    commit_admissions, commit_renewals = context.store.commit_admissions, context.store.commit_renewals
    calls: list[str] = []

    def commit_slowly(
        fence: Fence, admissions: Sequence[Admission], *, now: datetime
    ) -> list[AdmissionOutcome]:
        calls.append("admissions")
        clock.advance(LEASE / 2)
        return commit_admissions(fence, admissions, now=now)

    def note_renewals(*args, **kwargs):  # type: ignore[no-untyped-def]
        calls.append("renewals")
        return commit_renewals(*args, **kwargs)

    monkeypatch.setattr(context.store, "commit_admissions", commit_slowly)
    monkeypatch.setattr(context.store, "commit_renewals", note_renewals)
    clock.set(START)
    for _ in range(6):
        dispatcher.step(clock.now())
    assert "admissions" in calls
    assert [one for one in itertools.pairwise(calls) if set(one) == {"admissions"}] == []


def test_a_burst_in_one_partition_does_not_hold_up_what_the_planner_decides_in_another(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    ids = [f"report-{number}" for number in range(120)]
    partitions = {id_: partition_of(slot_of(ScheduleId(id_)), 4) for id_ in ids}
    for id_, partition in partitions.items():
        if partition == 0:
            save(context, id_, "0 9 * * *")
    [last, *_] = [id_ for id_, partition in partitions.items() if partition == 3]
    save(context, last, "0 9 * * *", max_occurrences=1)
    dispatcher = dispatcher_on(context, poll=MINUTE, page=8, batch=4)
    clock.set(NINE)
    for _ in range(2):
        dispatcher.step(NINE)
    assert run_instants(context, last) == [NINE]


def test_partitions_take_turns_where_a_page_is_not_enough_for_two(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    clock.leap(START - HOUR - clock.now())
    for number in range(40):
        save(context, f"behind-{number}", "* * * * *", overdue={"policy": "catch_up_all"})
    clock.set(START)
    dispatcher = new_dispatcher("a", page=1)
    for _ in range(12):
        dispatcher.step(START)
    served = {
        partition_of(slot_of(ScheduleId(f"behind-{number}")), 4)
        for number in range(40)
        if run_instants(context, f"behind-{number}")
    }
    assert served == {0, 1, 2, 3}


def test_what_falls_due_behind_a_schedule_that_is_left_alone_is_woken_for(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(context, "elsewhere", "* * * * *", timezone="Europe/Paris")
    partition = partition_of(slot_of(ScheduleId("elsewhere")), 4)
    [beside, *_] = [
        f"beside-{number}"
        for number in range(40)
        if partition_of(slot_of(ScheduleId(f"beside-{number}")), 4) == partition
    ]
    save(context, beside, "2 8 * * *")
    fail_for_zone(context, monkeypatch, "Europe/Paris", ZoneRulesDiffer("The rules of Europe/Paris differ."))
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START + MINUTE)
    just_before = START + 2 * MINUTE - timedelta(milliseconds=300)
    work_off(dispatcher, just_before)
    assert dispatcher.step(just_before).wake_at == START + 2 * MINUTE


def test_planned_runs_that_are_judged_one_by_one_are_no_more_than_a_page(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        save(context, f"planned-{number}", "0 9 * * *")
        plan_occurrences(context, ScheduleId(f"planned-{number}"), until="2025-06-10T09:00:00Z")
    dispatcher = new_dispatcher("a", page=2)
    work_off(dispatcher, START)
    read_planned = context.store.read_planned
    judged: list[int] = []

    def note(partition: int, *, now: datetime, limit: int):  # type: ignore[no-untyped-def]
        found = read_planned(partition, now=now, limit=limit)
        judged.append(len(found))
        return found

    monkeypatch.setattr(context.store, "read_planned", note)
    clock.set(NINE + HOUR)
    dispatcher.step(NINE + HOUR)
    assert sum(judged) == 2
