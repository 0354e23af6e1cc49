"""The dispatch protocol: what is due in a partition, and when the next thing will be."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rota.domain.due import DueSchedule
from rota.domain.errors import UnreadableRow
from rota.domain.job import Job
from rota.domain.overdue import CatchUpAll, Expire, LatestOnly, OverduePolicy
from rota.domain.schedule import Cursor, Schedule, ScheduleStatus
from rota.store.port import (
    AdmissionOutcome,
    ChangeOutcome,
    NewSchedule,
    NewVersion,
    ScheduleFilter,
    Store,
    Unreadable,
    ZoneRules,
)
from tests.contract.builders import (
    DAY,
    HOUR,
    MADE_AT,
    MILLISECOND,
    MINUTE,
    NINE,
    SECOND,
    admission,
    change_of,
    cursor,
    definition,
    edit,
    new_schedule,
    new_version,
    pause,
    resume,
    status_change,
)
from tests.contract.steps import admit, commit, create, due_ids, earliest_due, fence_of, record_of

ENDED = ScheduleStatus.ENDED


def set_status(
    store: Store, schedule: Schedule, status: ScheduleStatus, *, due: Cursor | None = None
) -> Schedule:
    return commit(store, status_change(schedule, status, at=NINE - HOUR, cursor=due))


def test_due_schedules_are_read_by_due_instant_then_id(store: Store) -> None:
    for id_, minutes in (("d", 0), ("b", -5), ("c", -5), ("a", -1), ("a-1", -5), ("a_1", -5), ("a1", -5)):
        create(store, new_schedule(id_, due=NINE + minutes * MINUTE))
    assert due_ids(store) == ["a-1", "a1", "a_1", "b", "c", "a", "d"]
    assert due_ids(store, limit=3) == ["a-1", "a1", "a_1"]


def test_a_schedule_is_due_at_its_instant_and_not_before(store: Store) -> None:
    create(store)
    assert due_ids(store, now=NINE - MILLISECOND) == []
    assert due_ids(store, now=NINE) == ["report-7"]


def test_only_the_asked_partition_is_read(store: Store) -> None:
    create(store, new_schedule("a", partition=0))
    create(store, new_schedule("b", partition=1))
    assert due_ids(store, 1) == ["b"]
    assert due_ids(store, 2) == []


def test_what_is_read_is_all_that_deciding_needs(store: Store) -> None:
    new = new_schedule(of=definition(overdue=Expire(deadline=MINUTE)))
    schedule = create(store, new)
    paused = commit(store, pause(schedule, at=NINE - HOUR))
    commit(store, resume(paused, at=NINE + HOUR, paused_at=NINE - HOUR))
    record = record_of(store, schedule)
    assert len(record.suspensions) == 1
    assert store.read_due(0, now=NINE, limit=10) == [
        DueSchedule(
            schedule=record.schedule,
            version=new.first.version,
            suspensions=record.suspensions,
            job_overdue=LatestOnly(),
        )
    ]


def test_suspensions_are_those_of_the_schedule_itself(store: Store) -> None:
    one, other = create(store, new_schedule("one")), create(store, new_schedule("other"))
    for schedule, until in ((one, NINE + HOUR), (other, NINE + 2 * HOUR)):
        paused = commit(store, pause(schedule, at=NINE - HOUR))
        commit(store, resume(paused, at=until, paused_at=NINE - HOUR))
    due = [entry for entry in store.read_due(0, now=NINE, limit=10) if isinstance(entry, DueSchedule)]
    ends = [[suspension.until for suspension in entry.suspensions] for entry in due]
    assert ends == [[NINE + HOUR], [NINE + 2 * HOUR]]


@pytest.mark.parametrize("overdue", [CatchUpAll(max_age=DAY), Expire(deadline=timedelta(seconds=5))], ids=str)
def test_the_policy_of_the_job_is_the_one_it_has_now(store: Store, overdue: OverduePolicy) -> None:
    create(store, new_schedule("a", job="mail"))
    create(store, new_schedule("b", job="sales_report"))
    store.commit_job(Job(name="mail", overdue=LatestOnly()), now=MADE_AT)
    store.commit_job(Job(name="mail", overdue=overdue), now=MADE_AT)
    due = [entry for entry in store.read_due(0, now=NINE, limit=10) if isinstance(entry, DueSchedule)]
    assert [entry.job_overdue for entry in due] == [overdue, Job(name="sales_report").overdue]


@pytest.mark.parametrize("status", [ScheduleStatus.PAUSED, ScheduleStatus.ERROR])
def test_a_schedule_that_is_suspended_is_not_due(store: Store, status: ScheduleStatus) -> None:
    set_status(store, create(store), status)
    assert due_ids(store) == []
    assert earliest_due(store, [0]) == {}


def test_an_ended_schedule_is_due_while_it_owes_instants(store: Store) -> None:
    set_status(store, create(store, new_schedule("owes")), ENDED)
    set_status(store, create(store, new_schedule("done")), ENDED, due=cursor(None))
    assert due_ids(store) == ["owes"]
    assert earliest_due(store, [0]) == {0: NINE}


def test_a_schedule_without_a_further_instant_is_not_due(store: Store) -> None:
    create(store, new_schedule(due=None))
    assert due_ids(store) == []
    assert earliest_due(store, [0]) == {}


def test_being_due_is_told_by_the_due_instant_not_the_scheduled_one(store: Store) -> None:
    moved = Cursor(version=1, scheduled_at=NINE, due_at=NINE + 5 * MINUTE)
    new = new_schedule()
    create(store, replace(new, schedule=replace(new.schedule, cursor=moved)))
    assert due_ids(store, now=NINE) == []
    assert due_ids(store, now=NINE + 5 * MINUTE) == ["report-7"]
    assert earliest_due(store, [0]) == {0: NINE + 5 * MINUTE}


def test_due_times_are_the_earliest_of_each_asked_partition(store: Store) -> None:
    for id_, partition, due in (
        ("a", 0, NINE + HOUR),
        ("b", 0, NINE - DAY),
        ("c", 1, NINE + 365 * DAY),
        ("d", 3, NINE),
    ):
        create(store, new_schedule(id_, partition=partition, due=due))
    assert earliest_due(store, [0, 1, 2]) == {0: NINE - DAY, 1: NINE + 365 * DAY}
    assert earliest_due(store, []) == {}


def test_an_admitted_schedule_is_due_again_at_its_next_instant(store: Store) -> None:
    schedule = create(store)
    due = admission(schedule, next_due=NINE + DAY)
    assert admit(store, fence_of(store, 0), [due]) == [AdmissionOutcome.ADMITTED]
    assert due_ids(store, now=NINE + DAY - MILLISECOND) == []
    assert due_ids(store, now=NINE + DAY) == ["report-7"]
    assert earliest_due(store, [0]) == {0: NINE + DAY}


def broken_schedule(id_: str = "report-7") -> NewSchedule:
    """One whose cursor names a version that does not exist."""
    new = new_schedule(id_)
    return replace(new, schedule=replace(new.schedule, cursor=cursor(NINE, version=9), revision=3))


def rules_of(new: NewSchedule | NewVersion) -> ZoneRules:
    version = (new.first if isinstance(new, NewSchedule) else new).version
    return ZoneRules(timezone=version.definition.timezone, fingerprint=version.fingerprint)


def test_schedules_of_excluded_rules_leave_the_page_to_others(store: Store) -> None:
    news = [
        new_schedule(f"{zone[0]}-{number}", due=NINE - minutes * MINUTE, of=definition(timezone=zone))
        for zone, minutes in (("Asia/Tokyo", 2), ("UTC", 1), ("Europe/Rome", 0))
        for number in range(3)
    ]
    for new in news:
        create(store, new)

    def read(*excluded: NewSchedule, limit: int = 3) -> list[str]:
        due = store.read_due(0, now=NINE, limit=limit, excluding={rules_of(new) for new in excluded})
        return [entry.schedule.schedule_id for entry in due if isinstance(entry, DueSchedule)]

    assert read() == ["A-0", "A-1", "A-2"]
    assert read(news[0]) == ["U-0", "U-1", "U-2"]
    assert read(news[0], limit=4) == ["U-0", "U-1", "U-2", "E-0"]
    assert read(news[0], news[3]) == ["E-0", "E-1", "E-2"]
    assert read(news[0], news[3], news[6]) == []
    assert earliest_due(store, [0]) == {0: NINE - 2 * MINUTE}


def test_rules_are_excluded_by_zone_and_fingerprint_together(store: Store) -> None:
    rules = [rules_of(new_schedule(of=definition(timezone=zone))) for zone in ("Asia/Tokyo", "UTC")]
    create(store, new_schedule("tokyo", of=definition(timezone="Asia/Tokyo")))
    crossed = {
        replace(rules[0], fingerprint=rules[1].fingerprint),
        replace(rules[0], timezone=rules[1].timezone),
    }
    for excluding, ids in ((crossed, ["tokyo"]), (set(rules), [])):
        due = store.read_due(0, now=NINE, limit=10, excluding=excluding)
        assert [entry.schedule.schedule_id for entry in due if isinstance(entry, DueSchedule)] == ids


def test_the_rules_of_a_successor_are_excluded_once_it_is_to_take_over(store: Store) -> None:
    """Until then the schedule's step is its own version's."""
    tokyo, rome = (
        new_version(of=definition(timezone=zone), number=2) for zone in ("Asia/Tokyo", "Europe/Rome")
    )
    edited = edit(create(store), replace(tokyo, version=replace(tokyo.version, effective_from=NINE + HOUR)))
    schedule = commit(store, edited)

    def is_due(*excluded: NewVersion) -> bool:
        rules = {rules_of(new) for new in excluded}
        return bool(store.read_due(0, now=NINE + DAY, limit=10, excluding=rules))

    assert is_due(tokyo)
    schedule = commit(store, replace(change_of(schedule), cursor=cursor(NINE + HOUR)))
    assert (is_due(tokyo), is_due(rome), is_due(tokyo, rome)) == (False, True, False)
    schedule = commit(store, replace(change_of(schedule), cursor=cursor(NINE + HOUR + SECOND)))
    assert is_due(tokyo)
    commit(store, replace(change_of(schedule), cursor=cursor(None), status=ENDED))
    assert not is_due()


def test_a_window_without_an_end_has_no_boundary_to_stand_at(store: Store) -> None:
    """Neither has a cursor without an instant."""
    never = Cursor(version=1, scheduled_at=None, due_at=NINE)
    new = new_version(of=definition(timezone="Asia/Tokyo"), number=2)
    change = replace(change_of(create(store)), versions=(new,), cursor=never)
    commit(store, change)
    assert store.read_due(0, now=NINE, limit=10, excluding={rules_of(new)})


def test_a_schedule_that_lost_its_version_is_told_whatever_is_excluded(store: Store) -> None:
    new = broken_schedule()
    broken = create(store, new)
    [entry] = store.read_due(0, now=NINE, limit=10, excluding=[rules_of(new)])
    assert isinstance(entry, Unreadable)
    with pytest.raises(UnreadableRow, match="version 9 does not exist"):
        store.get_schedule(broken.schedule_id)


def test_a_schedule_whose_rows_make_no_sense_stops_only_itself(store: Store) -> None:
    """I12: its cursor names a version that does not exist."""
    broken = create(store, broken_schedule("a"))
    create(store, new_schedule("b"))
    first, second = store.read_due(0, now=NINE, limit=10)
    assert isinstance(first, Unreadable)
    assert (first.schedule_id, first.status, first.cursor, first.revision) == (
        broken.schedule_id,
        ScheduleStatus.ACTIVE,
        broken.cursor,
        broken.revision,
    )
    assert first.problem
    assert isinstance(second, DueSchedule)
    listed = store.list_schedules(ScheduleFilter(), after=None, limit=10)
    assert [record.schedule.schedule_id for record in listed] == ["b"]
    stopped = status_change(broken, ScheduleStatus.ERROR, at=NINE, status_reason=first.problem)
    assert store.commit_change(stopped, fence=fence_of(store, 0)) is ChangeOutcome.CHANGED
    assert due_ids(store) == ["b"]


def test_due_times_after_an_instant_pass_over_what_was_due_before(store: Store) -> None:
    for minutes in (0, 7):
        create(store, new_schedule(f"at-{minutes}", due=NINE + minutes * MINUTE))
    assert store.read_due_times([0])[0].schedule == NINE
    assert store.read_due_times([0], after=NINE)[0].schedule == NINE + 7 * MINUTE
    assert store.read_due_times([0], after=NINE + 7 * MINUTE) == {}
