"""The dispatcher's step: what is due becomes runs under a lease, whatever clocks and rivals do."""

from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.admission import Skip
from rota.domain.cadence import Cadence
from rota.domain.errors import ZoneRulesDiffer
from rota.domain.identity import ScheduleId
from rota.domain.run import Run, RunState
from rota.domain.schedule import ScheduleStatus, Version
from rota.service.context import Context
from rota.service.occurrences import list_upcoming
from rota.service.schedules import end_schedule, pause_schedule, resume_schedule, show_schedule
from rota.store.port import Fence, RunFilter
from rota.store.sql import SqlStore
from rota.testing.clock import ManualClock
from tests.dispatch.conftest import LEASE, START, NewDispatcher, believe_until, run_instants, save, work_off

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
NINE = datetime(2025, 6, 10, 9, tzinfo=UTC)


def ledger(context: Context, id_: str) -> list[Run | Skip]:
    return context.store.list_ledger(ScheduleId(id_), before=None, limit=10_000)


def skips(context: Context, id_: str) -> list[tuple[str, int]]:
    return [(entry.reason, entry.count) for entry in ledger(context, id_) if isinstance(entry, Skip)]


def test_a_due_occurrence_becomes_one_run_and_one_delivery(
    context: Context, new_dispatcher: NewDispatcher
) -> None:
    save(context, "report", "0 9 * * *")
    dispatcher = new_dispatcher("a")

    assert work_off(dispatcher, NINE - SECOND) == 0
    assert work_off(dispatcher, NINE) == 1
    assert work_off(dispatcher, NINE + MINUTE) == 0

    [run] = context.store.list_runs(RunFilter(), before=None, limit=10)
    assert (run.run_id, run.state) == ("report.1.20250610T090000Z", RunState.QUEUED)
    [delivery] = context.store.read_deliveries(["sales_report"], now=NINE, limit=10)
    assert (delivery.run_id, delivery.attempt) == (run.run_id, 1)
    assert show_schedule(context, "report")["next_due"] == "2025-06-11T09:00:00Z"


def test_an_idle_step_wakes_for_the_next_due_instant(context: Context, new_dispatcher: NewDispatcher) -> None:
    save(context, "report", "0 9 * * *")
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, NINE - 5 * SECOND)
    assert dispatcher.step(NINE - 5 * SECOND).wake_at == NINE - 4 * SECOND
    half = NINE - timedelta(milliseconds=500)
    assert dispatcher.step(half).wake_at == NINE


def test_two_dispatchers_that_both_believe_they_own_a_partition_make_one_run(
    context: Context, new_dispatcher: NewDispatcher
) -> None:
    save(context, "report", "* * * * *", overdue={"policy": "catch_up_all"})
    frozen, other = new_dispatcher("frozen"), new_dispatcher("other")
    work_off(frozen, START)
    assert frozen._leases.held(START)

    taken_at = START + LEASE + SECOND
    work_off(other, taken_at)
    believe_until(frozen, START + MINUTE + SECOND)

    admitted = [work_off(frozen, START + MINUTE), work_off(other, START + MINUTE)]
    assert admitted == [0, 1]
    assert run_instants(context, "report") == [START + MINUTE]


def test_b40_a_stale_holder_changes_nothing_and_stops_owning_at_once(
    context: Context, new_dispatcher: NewDispatcher
) -> None:
    save(context, "report", "0 9 * * *")
    a, b = new_dispatcher("a"), new_dispatcher("b")
    work_off(a, START)
    held_by_a = list(a._leases.held(START).values())
    work_off(b, START + LEASE + SECOND)

    assert context.store.commit_renewals("a", held_by_a, now=START + LEASE + 2 * SECOND, ttl=LEASE) == []
    believe_until(a, NINE + SECOND)
    assert work_off(a, NINE) == 0
    partition = context.store.get_schedule(ScheduleId("report")).schedule.partition  # type: ignore[union-attr]
    assert partition not in a._leases.held(NINE)

    work_off(b, NINE)
    assert run_instants(context, "report") == [NINE]


def test_a_lease_is_not_trusted_to_its_end(context: Context, new_dispatcher: NewDispatcher) -> None:
    dispatcher = new_dispatcher("a")
    dispatcher.step(START)
    assert dispatcher._leases.held(START + LEASE * 0.7)
    assert not dispatcher._leases.held(START + LEASE * 0.9)


def test_b19_a_poisoned_schedule_goes_to_error_alone(
    context: Context, new_dispatcher: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A definition that raises when it is computed; the store's tests put a broken row into the database."""
    save(context, "healthy", "*/5 * * * *")
    save(context, "poisoned", "*/5 * * * *", timezone="Europe/Paris")
    of_version = context.cadences.of_version

    def fail_for_poisoned(version):  # type: ignore[no-untyped-def]
        if version.schedule_id == "poisoned":
            raise ZeroDivisionError("a rule that divides by nothing")
        return of_version(version)

    monkeypatch.setattr(context.cadences, "of_version", fail_for_poisoned)
    dispatcher = new_dispatcher("a")
    for minute in range(11):
        work_off(dispatcher, START + minute * MINUTE)

    assert run_instants(context, "healthy") == [START + 5 * MINUTE, START + 10 * MINUTE]
    shown = show_schedule(context, "poisoned")
    assert (shown["status"], shown["status_reason"]) == (
        "error",
        "ZeroDivisionError: a rule that divides by nothing",
    )
    assert context.store.list_audit(ScheduleId("poisoned"), limit=1)[0].action == "schedule.error"

    monkeypatch.undo()
    clock = context.clock
    assert isinstance(clock, ManualClock)
    clock.set(START + 12 * MINUTE)
    resume_schedule(context, "poisoned")
    work_off(dispatcher, START + 15 * MINUTE)
    assert run_instants(context, "poisoned") == [START + 15 * MINUTE]
    assert skips(context, "poisoned") == [("error", 2)], "08:05, at which it was found, and 08:10"


def test_while_paused_nothing_is_admitted_and_what_fell_due_says_so(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "report", "* * * * *", overdue={"policy": "catch_up_all"})
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START + MINUTE)
    clock.set(START + MINUTE + SECOND)
    pause_schedule(context, "report")
    assert work_off(dispatcher, START + 5 * MINUTE) == 0
    clock.set(START + 5 * MINUTE + SECOND)
    resume_schedule(context, "report")
    work_off(dispatcher, START + 6 * MINUTE)

    assert run_instants(context, "report") == [START + MINUTE, START + 6 * MINUTE]
    assert skips(context, "report") == [("paused", 4)]


def test_a_pause_is_made_up_for_where_the_resume_asks_for_it(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "report", "* * * * *", overdue={"policy": "catch_up_all"})
    pause_schedule(context, "report")
    clock.set(START + 3 * MINUTE)
    resume_schedule(context, "report", apply_overdue=True)
    work_off(new_dispatcher("a"), START + 3 * MINUTE)
    assert run_instants(context, "report") == [START + n * MINUTE for n in (1, 2, 3)]


def test_ending_records_what_was_owed_and_keeps_the_history(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "report", "* * * * *")
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START + MINUTE)
    clock.set(START + 4 * MINUTE + SECOND)
    end_schedule(context, "report")
    work_off(dispatcher, START + 10 * MINUTE)

    assert run_instants(context, "report") == [START + MINUTE]
    assert skips(context, "report") == [("ended", 3)]
    assert context.store.read_due_times(range(4)) == {}


def test_a_one_time_schedule_runs_once_and_ends(context: Context, new_dispatcher: NewDispatcher) -> None:
    save(context, "once", "", recurrence={"at": "2025-06-10T11:00"}, timezone="Europe/Paris")
    work_off(new_dispatcher("a"), NINE)
    [run] = context.store.list_runs(RunFilter(), before=None, limit=10)
    assert (run.scheduled_at, run.period_key) == (NINE, "once")
    assert show_schedule(context, "once")["status"] == ScheduleStatus.ENDED


def test_b38_a_clock_set_back_runs_nothing_twice_and_sleeps_no_longer(
    context: Context, new_dispatcher: NewDispatcher
) -> None:
    save(context, "report", "* * * * *", overdue={"policy": "catch_up_all"})
    dispatcher = new_dispatcher("a")
    for minute in range(241):
        work_off(dispatcher, START + minute * MINUTE + 30 * SECOND)
    before = run_instants(context, "report")
    for minute in range(210, 242):
        now = START + minute * MINUTE + 30 * SECOND
        work_off(dispatcher, now)
        assert dispatcher.step(now).wake_at <= now + SECOND
    assert run_instants(context, "report") == [*before, START + 241 * MINUTE]


def test_b38_nothing_is_admitted_on_a_forward_leap_until_the_clock_is_set_right(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "report", "* * * * *", overdue={"policy": "catch_up_all"})
    dispatcher = new_dispatcher("a")

    def pass_minutes(count: int) -> None:
        for _ in range(count):
            clock.advance(MINUTE)
            work_off(dispatcher, clock.now())

    pass_minutes(4)
    clock.leap(timedelta(hours=8))
    report = dispatcher.step(clock.now())
    assert report.leap is not None
    assert report.leap.wall - report.leap.expected == timedelta(hours=8)
    pass_minutes(10)
    assert run_instants(context, "report")[-1] == START + 4 * MINUTE
    assert new_dispatcher("restarted").step(clock.now()).leap is not None

    clock.leap(-timedelta(hours=8))
    pass_minutes(2)
    assert run_instants(context, "report") == [START + n * MINUTE for n in range(1, 17)]


def test_b38_a_forward_leap_that_is_declared_right_is_gone_along_with(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    from rota.service.health import confirm_clock

    save(context, "report", "0 * * * *", overdue={"policy": "catch_up_all"})
    dispatcher = new_dispatcher("a")
    dispatcher.step(clock.now())
    clock.leap(timedelta(hours=8))
    assert dispatcher.step(clock.now()).leap is not None
    confirm_clock(context)
    assert work_off(dispatcher, clock.now()) == 8


def test_a_machine_that_was_suspended_has_not_leapt(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "report", "0 9 * * *")
    dispatcher = new_dispatcher("a")
    dispatcher.step(clock.now())
    clock.advance(timedelta(hours=8))
    assert work_off(dispatcher, clock.now()) == 1


def test_schedules_of_a_zone_with_other_rules_are_left_alone_and_keep_nobodys_place(
    context: Context, new_dispatcher: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        save(context, f"elsewhere-{number}", "* * * * *", timezone="Europe/Paris")
    save(context, "healthy", "*/5 * * * *")
    of_version = context.cadences.of_version

    def refuse_paris(version: Version) -> Cadence:
        if version.definition.timezone == "Europe/Paris":
            raise ZoneRulesDiffer("The rules of Europe/Paris differ.")
        return of_version(version)

    monkeypatch.setattr(context.cadences, "of_version", refuse_paris)
    dispatcher = new_dispatcher("a", page=1)
    for minute in range(11):
        work_off(dispatcher, START + minute * MINUTE)
    assert run_instants(context, "healthy") == [START + 5 * MINUTE, START + 10 * MINUTE]
    assert dispatcher.step(START + 10 * MINUTE).wake_at == START + 10 * MINUTE + SECOND, "no busy loop"
    assert show_schedule(context, "elsewhere-0")["status"] == "active"

    monkeypatch.undo()
    work_off(new_dispatcher("updated"), START + 11 * MINUTE)
    assert run_instants(context, "elsewhere-0") == [START + 10 * MINUTE, START + 11 * MINUTE], "within grace"


def test_a_step_reads_one_page_and_the_next_one_goes_on_with_the_other_partitions(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    for number in range(40):
        save(context, f"report-{number}", "0 9 * * *")
    clock.set(NINE)
    dispatcher = new_dispatcher("a", page=5)
    steps = [dispatcher.step(NINE).admitted for _ in range(8)]
    assert steps == [5] * 8
    assert dispatcher.step(NINE).admitted == 0


def test_what_an_ended_schedule_owed_and_can_no_longer_be_named_is_recorded(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(context, "poisoned", "* * * * *")

    def fail(_version: Version) -> Cadence:
        raise ZeroDivisionError("a rule that divides by nothing")

    monkeypatch.setattr(context.cadences, "of_version", fail)
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START + 3 * MINUTE)
    assert show_schedule(context, "poisoned")["status"] == "error"
    end_schedule(context, "poisoned")
    work_off(dispatcher, START + 4 * MINUTE)

    shown = show_schedule(context, "poisoned")
    assert (shown["status"], shown["status_reason"], shown["next_due"]) == ("ended", "deleted", None)
    [skip] = ledger(context, "poisoned")
    assert isinstance(skip, Skip)
    assert (skip.reason, skip.from_) == ("error", START + MINUTE)
    assert skip.until > START + 3 * MINUTE


@pytest.mark.parametrize("context", ["sqlite"], indirect=True)
def test_b19_a_row_that_no_date_matches_goes_to_error_and_the_healthy_one_runs(
    new_dispatcher: NewDispatcher, context: Context, clock: ManualClock
) -> None:
    """The input of the case: the row is put straight into the database, behind the back of every check."""
    assert isinstance(context.store, SqlStore)
    clock.set(datetime(2025, 6, 10, 10, 2, tzinfo=UTC))
    save(context, "healthy", "*/5 * * * *")
    save(context, "poisoned", "*/5 * * * *")
    with context.store._database.writing() as connection:
        changed = connection.exec_driver_sql(
            "UPDATE versions SET definition = replace(definition, '*/5 * * * *', '0 0 30 2 *')"
            " WHERE schedule_id = 'poisoned'"
        )
        assert changed.rowcount == 1
    dispatcher = new_dispatcher("a")
    for minute in range(2, 12):
        work_off(dispatcher, datetime(2025, 6, 10, 10, minute, tzinfo=UTC))
    ten = datetime(2025, 6, 10, 10, tzinfo=UTC)
    assert run_instants(context, "healthy") == [ten + 5 * MINUTE, ten + 10 * MINUTE]
    assert show_schedule(context, "poisoned")["status"] == "error"


@pytest.mark.parametrize(
    ("overdue", "expected_first", "expected_count", "expected_skips"),
    [
        ({"policy": "catch_up_all"}, "2025-06-09T22:01:00Z", 480, []),
        ({"policy": "latest_only"}, "2025-06-10T06:00:00Z", 1, [("superseded", 479)]),
        ({"policy": "expire", "deadline": "PT5M"}, "2025-06-10T05:56:00Z", 5, [("expired", 475)]),
    ],
)
def test_b33_after_a_night_off_the_ledger_says_what_became_of_every_minute(
    context: Context,
    new_dispatcher: NewDispatcher,
    clock: ManualClock,
    overdue: dict[str, object],
    expected_first: str,
    expected_count: int,
    expected_skips: list[tuple[str, int]],
) -> None:
    clock.leap(datetime(2025, 6, 9, 22, tzinfo=UTC) - clock.now())
    save(context, "report", "* * * * *", overdue=overdue)
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, datetime(2025, 6, 10, 6, 0, 30, tzinfo=UTC))
    first = datetime.fromisoformat(expected_first)
    expected = [first + n * MINUTE for n in range(expected_count)]
    assert expected == run_instants(context, "report")
    assert expected_skips == skips(context, "report")
    work_off(dispatcher, datetime(2025, 6, 10, 6, 1, 30, tzinfo=UTC))
    assert run_instants(context, "report")[-1] == datetime(2025, 6, 10, 6, 1, tzinfo=UTC)


def test_upcoming_names_nothing_again_after_the_clock_was_set_back(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "report", "* * * * *")
    work_off(new_dispatcher("a"), START + 30 * MINUTE)
    clock.leap(-20 * MINUTE)
    [first, *_] = list_upcoming(context, "report", count=2)["occurrences"]  # type: ignore[misc]
    assert first["scheduled_at"] == "2025-06-10T08:31:00Z"


def test_checkpoints_tell_how_far_a_partition_has_admitted_everything(
    context: Context, new_dispatcher: NewDispatcher
) -> None:
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START)
    work_off(dispatcher, START + LEASE)
    assert {state.checkpoint for state in context.store.list_partitions()} == {START}


def test_a_backlog_of_one_schedule_does_not_hold_up_the_others(
    context: Context, new_dispatcher: NewDispatcher, clock: ManualClock
) -> None:
    save(context, "backlog", "* * * * *", overdue={"policy": "catch_up_all"})
    save(context, "on-time", "0 8 * * *")
    later = START + timedelta(days=1)
    clock.set(later)
    dispatcher = new_dispatcher("a")
    dispatcher.step(later)
    assert run_instants(context, "on-time") == [later]
    assert len(run_instants(context, "backlog")) < 1440
    work_off(dispatcher, later)
    assert len(run_instants(context, "backlog")) == 1440


def test_a_fence_of_another_partition_admits_nothing(context: Context, new_dispatcher: NewDispatcher) -> None:
    save(context, "report", "0 9 * * *")
    dispatcher = new_dispatcher("a")
    work_off(dispatcher, START)
    for partition, fence in dispatcher._leases.held(START).items():
        dispatcher._leases._fences[partition] = Fence(partition=partition, epoch=fence.epoch - 1)
    believe_until(dispatcher, NINE + SECOND)
    assert work_off(dispatcher, NINE) == 0
    assert run_instants(context, "report") == []
