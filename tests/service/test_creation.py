"""Creating a schedule: what is resolved and stored, what can never run is refused by its field."""

from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.errors import Conflict, InvalidRequest
from rota.domain.identity import ScheduleId
from rota.service.context import Context
from rota.service.creation import create_schedule
from rota.service.idempotency import KeyReused
from rota.service.jobs import put_job
from rota.service.schedules import end_schedule, show_schedule
from rota.testing.clock import ManualClock
from rota.wiring import open_preview_context

NOW = datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)
DAILY = {"cron": "0 9 * * *"}


@pytest.fixture
def context() -> Context:
    opened = open_preview_context(ManualClock(NOW))
    put_job(opened, "sales_report", {"overdue": {"policy": "expire", "deadline": "PT2H"}})
    return opened


def body(**fields: object) -> dict[str, object]:
    return {
        "id": "report-7",
        "job": "sales_report",
        "timezone": "America/New_York",
        "recurrence": DAILY,
        **fields,
    }


def refused(context: Context, **fields: object) -> str:
    """The one field that a body is refused for; nothing is stored."""
    with pytest.raises(InvalidRequest) as caught:
        create_schedule(context, body(**fields))
    [error] = caught.value.errors
    assert context.store.get_schedule(ScheduleId("report-7")) is None
    return error.field


def test_defaults_are_resolved_and_what_was_asked_is_kept(context: Context) -> None:
    shown = create_schedule(context, body(recurrence={"cron": "0 * * * *"})).body
    assert (shown["fold"], shown["period"], shown["gap"]) == ("both", "instant", "skip")
    assert shown["overdue"] == {"policy": "expire", "deadline": "PT2H"}
    assert shown["asked"] == {"fold": "auto", "period": "auto", "overdue": None}
    version = context.store.get_version(ScheduleId("report-7"), 1)
    assert version is not None
    assert (version.definition.fold, version.fold) == ("auto", "both")
    assert (version.definition.period, version.period) == ("auto", "instant")
    assert version.effective_from == datetime(2026, 3, 1, 12, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"recurrence": {"at": "2026-03-08T02:30"}}, "recurrence.at"),
        ({"recurrence": {"at": "2026-03-01T06:59"}}, "recurrence.at"),
        ({"recurrence": {"at": "2026-03-01T12:00:00Z"}}, "recurrence.at"),
        ({"recurrence": {"at": "2026-04-01T09:00"}, "ends_at": "2026-03-02T00:00:00Z"}, "ends_at"),
        ({"recurrence": {"at": "2026-04-01T09:00"}, "starts_at": "2026-05-02T00:00:00Z"}, "starts_at"),
        ({"recurrence": {"at": "2026-11-01T01:30"}, "fold": "both"}, "fold"),
        ({"recurrence": {"cron": "0 0 30 2 *"}}, "recurrence.cron"),
        ({"recurrence": {"cron": "0 12 31 4 *"}}, "recurrence.cron"),
        ({"recurrence": {"rrule": "DTSTART:20250101T090000\nRRULE:FREQ=DAILY;COUNT=3"}}, "recurrence.rrule"),
        ({"ends_at": "2026-03-01T00:00:00Z"}, "ends_at"),
        ({"ends_at": "2026-03-01T13:00:00Z"}, "ends_at"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"period": "week"}, "period"),
        ({"period": "once"}, "period"),
        ({"job": "unknown"}, "job"),
        ({"id": "Report 7"}, "id"),
        ({"overlap": "never"}, "overlap"),
        ({"spread": "P2D"}, "spread"),
        ({"max_occurrences": 10_000, "recurrence": {"cron": "0 0 29 2 *"}}, "max_occurrences"),
        ({"max_occurrences": 0}, "max_occurrences"),
        ({"color": "red"}, "color"),
    ],
)
def test_what_is_wrong_or_can_never_run_is_refused_by_its_field(
    context: Context, fields: dict[str, object], expected: str
) -> None:
    assert refused(context, **fields) == expected


def test_a_local_time_in_a_gap_is_taken_where_it_may_move_forward(context: Context) -> None:
    shown = create_schedule(context, body(recurrence={"at": "2026-03-08T02:30"}, gap="forward")).body
    assert shown["next_due"] == "2026-03-08T07:00:00Z"


def test_max_occurrences_ends_with_the_last_of_them(context: Context) -> None:
    create_schedule(context, body(max_occurrences=3))
    version = context.store.get_version(ScheduleId("report-7"), 1)
    assert version is not None
    assert version.last_scheduled_at == datetime(2026, 3, 3, 14, tzinfo=UTC)


def test_an_end_that_comes_first_makes_the_count_no_bound(context: Context) -> None:
    create_schedule(context, body(max_occurrences=30, ends_at="2026-03-10T00:00:00Z"))
    version = context.store.get_version(ScheduleId("report-7"), 1)
    assert version is not None
    assert version.last_scheduled_at is None


def test_a_start_to_come_is_inclusive(context: Context) -> None:
    at = "2026-03-20T13:00:00Z"
    assert create_schedule(context, body(starts_at=at)).body["next_due"] == at


def test_equal_rules_share_one_cadence(context: Context) -> None:
    create_schedule(context, body())
    create_schedule(context, body(id="report-8", params={"other": True}))
    first, second = (context.store.get_version(ScheduleId(id_), 1) for id_ in ("report-7", "report-8"))
    assert first is not None
    assert second is not None
    assert first.cadence_id == second.cadence_id
    assert len(context.store.read_cadences([first.cadence_id])) == 1


def test_the_same_body_again_answers_with_the_same_schedule(context: Context) -> None:
    assert create_schedule(context, body()).created
    again = create_schedule(context, body())
    assert (again.created, again.schedule_id) == (False, "report-7")


def test_another_body_or_an_ended_schedule_keeps_its_id(context: Context) -> None:
    create_schedule(context, body())
    with pytest.raises(Conflict, match="another definition"):
        create_schedule(context, body(params={"other": True}))
    end_schedule(context, "report-7")
    with pytest.raises(Conflict, match="has ended"):
        create_schedule(context, body())


def test_a_key_answers_again_for_a_day_and_refuses_another_body(context: Context) -> None:
    first = create_schedule(context, body(id=None), idempotency_key="order-1")
    again = create_schedule(context, body(id=None), idempotency_key="order-1")
    assert again == first
    with pytest.raises(KeyReused):
        create_schedule(context, body(id=None, params={"other": True}), idempotency_key="order-1")
    assert isinstance(context.clock, ManualClock)
    context.clock.advance(timedelta(hours=24))
    assert create_schedule(context, body(id=None), idempotency_key="order-1").schedule_id != first.schedule_id


def test_a_key_belongs_to_the_first_body_that_it_came_with(context: Context) -> None:
    create_schedule(context, body())
    found = create_schedule(context, body(), idempotency_key="order-1")
    assert not found.created
    assert create_schedule(context, body(), idempotency_key="order-1") == found
    with pytest.raises(KeyReused):
        create_schedule(context, body(id="report-8"), idempotency_key="order-1")


def test_an_id_that_is_made_is_ordered_by_time(context: Context) -> None:
    made = [create_schedule(context, body(id=None, params={"n": n})).schedule_id for n in range(3)]
    assert made == sorted(made)
    assert show_schedule(context, made[0])["id"] == made[0]
