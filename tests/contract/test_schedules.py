"""The schedule protocol: creation, its idempotency record, and the lists of schedules and of their history."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rota.domain.identity import ScheduleId
from rota.domain.json_text import JsonText, encode_json
from rota.domain.overdue import CatchUpAll, Expire, LatestOnly, OverduePolicy
from rota.domain.recurrence import At, Cron, Every, Recurrence, RRule
from rota.domain.schedule import ScheduleStatus
from rota.store.port import Creation, ScheduleFilter, ScheduleRecord, Store
from tests.contract.builders import (
    DAY,
    HOUR,
    MADE_AT,
    MILLISECOND,
    MINUTE,
    NINE,
    audit_event,
    cursor,
    definition,
    idempotency_record,
    labels,
    new_schedule,
    pause,
    resume,
    status_change,
)
from tests.contract.steps import commit, create, read_pages, record_of

RECURRENCES = [
    At(time=datetime(2026, 1, 10, 9)),
    At(time=NINE),
    Cron(expression="0 9 * * 1-5"),
    RRule(text="DTSTART:20260105T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO\nEXDATE:20260112T090000"),
    Every(interval=timedelta(minutes=15), anchor=NINE),
]
POLICIES: list[OverduePolicy | None] = [
    None,
    CatchUpAll(),
    CatchUpAll(max_age=timedelta(days=2)),
    LatestOnly(grace=timedelta(seconds=90)),
    Expire(deadline=timedelta(minutes=5)),
]


def ids_of(records: list[ScheduleRecord]) -> list[str]:
    return [record.schedule.schedule_id for record in records]


def list_ids(
    store: Store, filter_: ScheduleFilter | None = None, *, after: str | None = None, limit: int = 100
) -> list[str]:
    start = None if after is None else ScheduleId(after)
    return ids_of(store.list_schedules(filter_ or ScheduleFilter(), after=start, limit=limit))


@pytest.mark.parametrize("recurrence", RECURRENCES, ids=lambda recurrence: type(recurrence).__name__)
def test_a_created_schedule_is_read_back_whole(store: Store, recurrence: Recurrence) -> None:
    asked = replace(
        definition(
            recurrence, timezone="America/New_York", gap="forward", params=encode_json({"né": [1, "é\n"]})
        ),
        starts_at=NINE,
        ends_at=NINE + 100 * DAY,
        max_occurrences=7,
    )
    plain = new_schedule(of=asked, labels=labels(customer="açme"))
    new = replace(
        plain,
        schedule=replace(plain.schedule, careful_until=NINE, status_reason="why", revision=7),
        first=replace(
            plain.first,
            version=replace(
                plain.first.version,
                effective_until=NINE + 50 * DAY,
                last_scheduled_at=NINE + 6 * DAY,
                actor="ops",
                reason="first",
            ),
        ),
    )
    create(store, new)
    assert record_of(store, new.schedule) == ScheduleRecord(
        schedule=new.schedule, version=new.first.version, suspensions=()
    )
    assert store.get_version(new.schedule.schedule_id, 1) == new.first.version
    assert store.read_cadences([new.first.cadence.cadence_id]) == [new.first.cadence]


@pytest.mark.parametrize("overdue", POLICIES, ids=str)
def test_a_version_keeps_its_overdue_policy(store: Store, overdue: OverduePolicy | None) -> None:
    new = new_schedule(of=definition(overdue=overdue))
    create(store, new)
    assert store.get_version(new.schedule.schedule_id, 1) == new.first.version


def test_a_schedule_that_names_no_further_instant_can_be_stored(store: Store) -> None:
    schedule = create(store, new_schedule(due=None))
    assert record_of(store, schedule).schedule.cursor == cursor(None)


def test_what_was_never_created_is_not_found(store: Store) -> None:
    create(store)
    assert store.get_schedule(ScheduleId("other")) is None
    assert store.get_version(ScheduleId("report-7"), 2) is None
    assert store.get_version(ScheduleId("other"), 1) is None


def test_an_id_is_created_once(store: Store) -> None:
    first = new_schedule()
    create(store, first)
    second = new_schedule(job="other", of=definition(Cron(expression="0 10 * * *")), labels=labels(a="b"))
    assert store.commit_creation(second, now=MADE_AT + HOUR) is Creation.ID_TAKEN
    assert record_of(store, first.schedule).schedule == first.schedule
    assert store.get_version(first.schedule.schedule_id, 1) == first.first.version
    assert store.list_audit(first.schedule.schedule_id, limit=10) == [first.event]
    assert store.read_cadences([second.first.cadence.cadence_id]) == []


def test_the_id_of_an_ended_schedule_stays_taken(store: Store) -> None:
    schedule = create(store)
    commit(store, status_change(schedule, ScheduleStatus.ENDED, at=NINE))
    assert store.commit_creation(new_schedule(), now=NINE + HOUR) is Creation.ID_TAKEN
    assert record_of(store, schedule).schedule.status is ScheduleStatus.ENDED


def test_schedules_with_an_equal_rule_share_one_cadence(store: Store) -> None:
    one, other = new_schedule("one"), new_schedule("other")
    create(store, one)
    create(store, other)
    assert one.first.cadence.cadence_id == other.first.cadence.cadence_id
    assert store.read_cadences([one.first.cadence.cadence_id, other.first.cadence.cadence_id]) == [
        one.first.cadence
    ]


def test_cadences_are_read_by_id_and_unknown_ones_left_out(store: Store) -> None:
    one = new_schedule("one")
    other = new_schedule("other", of=definition(Cron(expression="5 * * * *"), timezone="Asia/Kathmandu"))
    create(store, one)
    create(store, other)
    read = store.read_cadences([other.first.cadence.cadence_id, "unknown", one.first.cadence.cadence_id])
    assert sorted(read, key=repr) == sorted([one.first.cadence, other.first.cadence], key=repr)
    assert store.read_cadences([]) == []


def test_an_idempotency_record_is_kept_with_its_schedule_until_it_expires(store: Store) -> None:
    record = idempotency_record(expires_at=MADE_AT + DAY)
    create(store, new_schedule(idempotency=record))
    assert store.get_idempotency("order-1", now=MADE_AT + DAY - MILLISECOND) == record
    assert store.get_idempotency("order-1", now=MADE_AT + DAY) is None
    assert store.get_idempotency("order-2", now=MADE_AT) is None


def test_a_used_key_creates_nothing(store: Store) -> None:
    record = idempotency_record()
    create(store, new_schedule("one", idempotency=record))
    again = new_schedule(
        "other",
        of=definition(Cron(expression="5 * * * *")),
        idempotency=idempotency_record(digest="another body"),
    )
    assert store.commit_creation(again, now=MADE_AT) is Creation.KEY_TAKEN
    assert store.get_schedule(ScheduleId("other")) is None
    assert store.get_version(ScheduleId("other"), 1) is None
    assert store.list_audit(ScheduleId("other"), limit=10) == []
    assert store.read_cadences([again.first.cadence.cadence_id]) == []
    assert store.get_idempotency("order-1", now=MADE_AT) == record


def test_a_repeated_request_is_told_of_its_key_before_its_id(store: Store) -> None:
    new = new_schedule(idempotency=idempotency_record())
    create(store, new)
    assert store.commit_creation(new, now=MADE_AT + HOUR) is Creation.KEY_TAKEN


def test_a_refused_creation_leaves_its_key_unused(store: Store) -> None:
    create(store)
    refused = new_schedule(idempotency=idempotency_record())
    assert store.commit_creation(refused, now=MADE_AT) is Creation.ID_TAKEN
    assert store.get_idempotency("order-1", now=MADE_AT) is None
    create(store, new_schedule("other", idempotency=idempotency_record()))


def test_an_expired_key_can_be_used_again_before_it_is_pruned(store: Store) -> None:
    create(store, new_schedule("one", idempotency=idempotency_record(expires_at=MADE_AT + HOUR)))
    renewed = idempotency_record(expires_at=MADE_AT + 2 * HOUR, digest="d2")
    other = new_schedule("other", idempotency=renewed)
    assert store.commit_creation(other, now=MADE_AT + HOUR) is Creation.CREATED
    assert store.get_idempotency("order-1", now=MADE_AT + HOUR) == renewed


def test_schedules_are_listed_by_id_in_code_point_order(store: Store) -> None:
    for id_ in ("b", "a_1", "a1", "a-1", "a", "10", "9"):
        create(store, new_schedule(id_))
    assert list_ids(store) == ["10", "9", "a", "a-1", "a1", "a_1", "b"]


def test_pages_of_schedules_are_complete_and_repeat_nothing(store: Store) -> None:
    wanted = [f"s{number:02d}" for number in range(7)]
    for id_ in reversed(wanted):
        create(store, new_schedule(id_))
    assert read_pages(lambda last: list_ids(store, after=last, limit=3), limit=3) == wanted


def test_a_page_goes_on_after_an_id_that_does_not_exist(store: Store) -> None:
    create(store, new_schedule("a"))
    create(store, new_schedule("c"))
    assert list_ids(store, after="b") == ["c"]


def test_a_filter_takes_only_what_matches_all_of_it(store: Store) -> None:
    acme, zeta = labels(customer="acme", tier="1"), labels(customer="zeta", tier="1")
    create(store, new_schedule("a", job="mail", labels=acme))
    create(store, new_schedule("b", job="mail", labels=zeta))
    create(store, new_schedule("c", job="report", labels=acme))
    paused = create(store, new_schedule("d", job="mail", labels=acme))
    commit(store, pause(paused, at=NINE))
    assert list_ids(store, ScheduleFilter(job="mail")) == ["a", "b", "d"]
    assert list_ids(store, ScheduleFilter(label=("customer", "acme"))) == ["a", "c", "d"]
    assert list_ids(store, ScheduleFilter(status=ScheduleStatus.PAUSED)) == ["d"]
    assert list_ids(store, ScheduleFilter(status=ScheduleStatus.ACTIVE, job="mail")) == ["a", "b"]
    every = ScheduleFilter(status=ScheduleStatus.ACTIVE, job="mail", label=("customer", "acme"))
    assert list_ids(store, every) == ["a"]
    assert list_ids(store, ScheduleFilter(label=("tier", "1")), after="a", limit=2) == ["b", "c"]
    assert list_ids(store, ScheduleFilter(job="mai")) == []


@pytest.mark.parametrize(
    "name", ["customer", "a.b", 'say "x"', "it's", "$", "é", "50%", "a_b", "[0]", "x\\y"]
)
def test_a_label_is_matched_whole_and_literally(store: Store, name: str) -> None:
    for id_, value in (("a", "acme"), ("b", "acme 2"), ("c", "%"), ("d", "ACME"), ("e", '"acme"')):
        create(store, new_schedule(id_, labels=encode_json({name: value})))
    create(store, new_schedule("f", labels=labels(other="acme")))
    create(store, new_schedule("g", labels=encode_json({"other": name})))
    assert list_ids(store, ScheduleFilter(label=(name, "acme"))) == ["a"]
    assert list_ids(store, ScheduleFilter(label=(name, "%"))) == ["c"]
    assert list_ids(store, ScheduleFilter(label=(name, "nobody"))) == []


def test_a_listed_schedule_is_the_record_that_is_read_alone(store: Store) -> None:
    schedules = [create(store, new_schedule(id_)) for id_ in ("a", "b", "c")]
    commit(store, pause(schedules[1], at=NINE))
    listed = store.list_schedules(ScheduleFilter(), after=None, limit=10)
    assert listed == [record_of(store, schedule) for schedule in schedules]
    assert listed[1].suspensions


def test_history_is_told_newest_first_and_of_one_schedule(store: Store) -> None:
    created = new_schedule()
    schedule = create(store, created)
    create(store, new_schedule("other"))
    paused = pause(schedule, at=NINE)
    resumed = resume(commit(store, paused), at=NINE + MINUTE, paused_at=NINE)
    ended = status_change(commit(store, resumed), ScheduleStatus.ENDED, at=NINE + MINUTE)
    commit(store, ended)
    newest_first = [ended.event, resumed.event, paused.event]
    assert store.list_audit(schedule.schedule_id, limit=10) == [*newest_first, created.event]
    assert store.list_audit(schedule.schedule_id, limit=2) == newest_first[:2]
    assert store.list_audit(ScheduleId("nobody"), limit=2) == []


def test_an_audit_event_is_read_back_whole(store: Store) -> None:
    full = replace(
        audit_event(at=MADE_AT), action="schedule.create", details=encode_json({"due": ["é", 1.5]})
    )
    bare = replace(full, schedule_id=ScheduleId("b"), actor=None, reason=None, details=JsonText("{}"))
    create(store, replace(new_schedule(), event=full))
    create(store, replace(new_schedule("b"), event=bare))
    assert store.list_audit(full.schedule_id, limit=1) == [full]
    assert store.list_audit(bare.schedule_id, limit=1) == [bare]


def test_a_record_without_a_schedule_is_kept_where_its_key_is_free(store: Store) -> None:
    record = idempotency_record(expires_at=MADE_AT + HOUR)
    assert store.commit_idempotency(record, now=MADE_AT)
    other = idempotency_record(digest="another body", expires_at=MADE_AT + DAY)
    assert not store.commit_idempotency(other, now=MADE_AT)
    assert store.get_idempotency("order-1", now=MADE_AT) == record
    assert store.commit_idempotency(other, now=MADE_AT + HOUR), "the first has expired"
    assert store.get_idempotency("order-1", now=MADE_AT + HOUR) == other
