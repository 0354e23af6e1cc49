"""The edge between Python values and wire form: aware datetimes, durations and policies become texts and objects."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypedDict

from rota.domain.definition import overdue_to_wire
from rota.domain.durations import format_duration, parse_duration
from rota.domain.errors import FieldError, InvalidExpression, InvalidRequest
from rota.domain.instants import format_instant, parse_instant
from rota.domain.overdue import CatchUpAll, Expire, LatestOnly, OverduePolicy
from rota.service.representation import Wire
from rota.store.port import LedgerKey

NOT_CONVERTED = frozenset({"params", "labels"})
"""The user's own data: it is JSON, and stays as it is."""

LOCAL_TOO = frozenset({"recurrence.at", "scheduled_at", "to", "from", "until"})
"""Fields that may also be a local time, as text."""


class ScheduleFields(TypedDict, total=False):
    """The fields of `POST /schedules`."""

    id: str | None
    job: str
    timezone: str
    recurrence: Mapping[str, object]
    gap: str
    fold: str
    period: str
    overdue: OverduePolicy | Mapping[str, object] | None
    overlap: str
    spread: timedelta | str | None
    params: Mapping[str, object]
    labels: Mapping[str, str]
    starts_at: datetime | str | None
    ends_at: datetime | str | None
    max_occurrences: int | None


class EditFields(TypedDict, total=False):
    """The fields of `PATCH /schedules/{id}` that make up the definition, and the labels. None: back to the default."""

    timezone: str
    recurrence: Mapping[str, object]
    gap: str | None
    fold: str | None
    period: str | None
    overdue: OverduePolicy | Mapping[str, object] | None
    overlap: str | None
    params: Mapping[str, object] | None
    labels: Mapping[str, str | None] | None
    starts_at: datetime | str | None
    ends_at: datetime | str | None
    max_occurrences: int | None


class PreviewFields(TypedDict, total=False):
    """The fields of `POST /preview`."""

    timezone: str
    recurrence: Mapping[str, object]
    gap: str
    fold: str
    after: datetime | str
    count: int


def fields_to_wire(fields: Mapping[str, object]) -> Wire:
    """The same fields in wire form. Raises `InvalidRequest` for a datetime without a zone and a negative duration."""
    return {
        name: value if name in NOT_CONVERTED else value_to_wire(name, value) for name, value in fields.items()
    }


def value_to_wire(field: str, value: object) -> object:
    """`field` is the dotted path that an error names."""
    match value:
        case datetime():
            return instant_to_wire(field, value)
        case timedelta():
            if value < timedelta(0):
                raise InvalidRequest(FieldError(field, "Give a duration that is not negative."))
            # Elapsed time: hours, because a day of the calendar is not always 24 of them.
            return format_duration(value, largest="hour")
        case CatchUpAll() | LatestOnly() | Expire():
            return overdue_to_wire(value)
        case Mapping():
            return {name: value_to_wire(f"{field}.{name}", member) for name, member in value.items()}
        case _:
            return value


def document_to_wire(document: Mapping[str, object]) -> Wire:
    """A document with the policies and durations of its schedules in wire form.

    Dates and times stay: those of TOML may be local, and the use case tells which is which.
    """
    schedules = document.get("schedules")
    if not isinstance(schedules, Mapping):
        return dict(document)
    entries = {
        id_: _entry_to_wire(f"schedules.{id_}", entry) if isinstance(entry, Mapping) else entry
        for id_, entry in schedules.items()
    }
    return {**document, "schedules": entries}


def _entry_to_wire(field: str, entry: Mapping[str, object]) -> Wire:
    return {
        name: value if name in NOT_CONVERTED else _value_but_dates_to_wire(f"{field}.{name}", value)
        for name, value in entry.items()
    }


def _value_but_dates_to_wire(field: str, value: object) -> object:
    if isinstance(value, datetime):
        return value
    if isinstance(value, Mapping):
        return {name: _value_but_dates_to_wire(f"{field}.{name}", member) for name, member in value.items()}
    return value_to_wire(field, value)


def moment_to_wire(field: str, moment: datetime | str) -> str:
    """A text is passed on: an instant, or a local time in the schedule's zone. Raises `InvalidRequest`."""
    return instant_to_wire(field, moment) if isinstance(moment, datetime) else moment


def duration_of(field: str, duration: timedelta | str) -> timedelta:
    """Raises `InvalidRequest`."""
    if isinstance(duration, timedelta):
        return duration
    try:
        return parse_duration(duration)
    except InvalidExpression as error:
        raise InvalidRequest(FieldError(field, error.problem)) from error


def instant_to_wire(field: str, instant: datetime) -> str:
    if instant.tzinfo is None or instant.utcoffset() is None:
        hint = "datetime(2026, 1, 10, 14, tzinfo=UTC)"
        local = ', or a local time as text, such as "2026-01-14T09:00"' if field in LOCAL_TOO else ""
        message = f"{instant.isoformat()} has no zone; give an aware datetime, such as {hint}{local}."
        raise InvalidRequest(FieldError(field, message))
    return format_instant(instant)


def place_of(entry: Mapping[str, object] | None) -> LedgerKey | None:
    """The place of a run or skip, as a list gave it, so that the next page begins after it."""
    match entry:
        case None:
            return None
        case {"kind": "run", "scheduled_at": str(instant), "run_id": str(run_id)}:
            return LedgerKey(instant=parse_instant(instant), id_=run_id)
        case {"kind": "skip", "from": str(instant)}:
            return LedgerKey(instant=parse_instant(instant), id_="")
        case _:
            raise InvalidRequest(FieldError("before", "Give the last entry of the page before."))
