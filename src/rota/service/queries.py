"""What a list is asked for, from text: filters, and the place after which a page begins."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeVar, cast, get_args

from rota.domain.definition import FieldErrors
from rota.domain.delivery import DeliveryState
from rota.domain.errors import FieldError, InvalidExpression, InvalidRequest
from rota.domain.identity import ScheduleId
from rota.domain.instants import format_instant, parse_instant
from rota.domain.run import Origin, RunState
from rota.domain.schedule import ScheduleStatus
from rota.service.paging import broken_cursor
from rota.service.representation import Wire
from rota.store.port import DeliveryFilter, LedgerKey, RunFilter, ScheduleFilter

NAME_CHARACTERS_MAX = 400
"""Longer than any id, name or label that is stored: such a text names nothing."""

VERSION_NUMBER_MAX = 999_999_999
"""More than any schedule has versions."""

RUN_FILTERS = ("schedule", "job", "state", "origin", "label", "from", "until")
"""What runs may be chosen by."""

DELIVERY_FILTERS = ("schedule", "job", "state")
"""What deliveries may be chosen by."""

Choice = TypeVar("Choice", ScheduleStatus, RunState, DeliveryState)


def is_name(text: str) -> bool:
    """Whether a store may be asked for this text: what it cannot hold, it cannot be asked for either."""
    is_unicode = not any("\ud800" <= character <= "\udfff" for character in text)
    return 0 < len(text) <= NAME_CHARACTERS_MAX and "\x00" not in text and is_unicode


def parse_schedule_filter(asked: Mapping[str, str]) -> ScheduleFilter:
    """Of the fields `status`, `job` and `label`; others are left alone. Raises `InvalidRequest` with all bad ones."""
    errors = FieldErrors()
    filter_ = ScheduleFilter(
        status=errors.attempt("status", lambda: _choice(asked, "status", ScheduleStatus)),
        job=errors.attempt("job", lambda: _name(asked, "job")),
        label=errors.attempt("label", lambda: _label(asked)),
    )
    errors.raise_if_any()
    return filter_


def parse_run_filter(asked: Mapping[str, str]) -> RunFilter:
    """Of the fields in `RUN_FILTERS`; others are left alone. Raises `InvalidRequest` with all bad ones."""
    errors = FieldErrors()
    schedule_id = errors.attempt("schedule", lambda: _name(asked, "schedule"))
    from_ = errors.attempt("from", lambda: _instant(asked, "from"))
    until = errors.attempt("until", lambda: _instant(asked, "until"))
    if from_ is not None and until is not None and until <= from_:
        errors.add("until", "It lies not after from; give a later instant.")
    filter_ = RunFilter(
        schedule_id=None if schedule_id is None else ScheduleId(schedule_id),
        state=errors.attempt("state", lambda: _choice(asked, "state", RunState)),
        job=errors.attempt("job", lambda: _name(asked, "job")),
        origin=cast("Origin | None", errors.attempt("origin", lambda: _origin(asked))),
        label=errors.attempt("label", lambda: _label(asked)),
        from_=from_,
        until=until,
    )
    errors.raise_if_any()
    return filter_


def parse_delivery_filter(asked: Mapping[str, str]) -> DeliveryFilter:
    """Of the fields in `DELIVERY_FILTERS`; others are left alone. Raises `InvalidRequest` with all bad ones."""
    errors = FieldErrors()
    schedule_id = errors.attempt("schedule", lambda: _name(asked, "schedule"))
    filter_ = DeliveryFilter(
        state=errors.attempt("state", lambda: _choice(asked, "state", DeliveryState)),
        job=errors.attempt("job", lambda: _name(asked, "job")),
        schedule_id=None if schedule_id is None else ScheduleId(schedule_id),
    )
    errors.raise_if_any()
    return filter_


def texts_of(errors: FieldErrors, body: Mapping[str, object], names: Sequence[str]) -> dict[str, str]:
    """The members of a body that a filter is read from, as a query has them; null is as if left out."""
    texts: dict[str, str] = {}
    for name in names:
        given = body.get(name)
        if isinstance(given, str):
            texts[name] = given
        elif given is not None:
            errors.add(name, "Give a text, or leave it out.")
    return texts


def name_place_to_wire(name: str) -> Wire:
    """The place after the thing of that name, in a list by name."""
    return {"after": name}


def parse_name_place(place: object) -> str | None:
    """The name that a place was made of; None: the beginning. Raises `InvalidRequest` naming `cursor`."""
    match place:
        case None:
            return None
        case {"after": str(name), **rest} if not rest and is_name(name):
            return name
        case _:
            raise broken_cursor()


def version_place_to_wire(number: int) -> Wire:
    """The place after the version of that number, in a list of versions, latest first."""
    return {"before": number}


def parse_version_place(place: object) -> int | None:
    """The number that a place was made of; None: the beginning. Raises `InvalidRequest` naming `cursor`."""
    match place:
        case None:
            return None
        case {"before": int(number), **rest} if not rest and 1 < number <= VERSION_NUMBER_MAX:
            return number
        case _:
            raise broken_cursor()


def ledger_place_to_wire(key: LedgerKey) -> Wire:
    """The place after one entry, in a list by instant."""
    return {"instant": format_instant(key.instant), "id": key.id_}


def parse_ledger_place(place: object) -> LedgerKey | None:
    """The entry that a place was made of; None: the beginning. Raises `InvalidRequest` naming `cursor`."""
    match place:
        case None:
            return None
        case {"instant": str(instant), "id": str(id_), **rest} if not rest and (not id_ or is_name(id_)):
            try:
                return LedgerKey(instant=parse_instant(instant), id_=id_)
            except InvalidExpression:
                raise broken_cursor() from None
        case _:
            raise broken_cursor()


def _choice(asked: Mapping[str, str], field: str, choices: type[Choice]) -> Choice | None:
    given = asked.get(field)
    if given is None:
        return None
    try:
        return choices(given)
    except ValueError:
        raise InvalidRequest(FieldError(field, f"Give one of {', '.join(choices)}.")) from None


def _origin(asked: Mapping[str, str]) -> str | None:
    given = asked.get("origin")
    if given is not None and given not in get_args(Origin):
        raise InvalidRequest(FieldError("origin", f"Give one of {', '.join(get_args(Origin))}."))
    return given


def _name(asked: Mapping[str, str], field: str) -> str | None:
    given = asked.get(field)
    if given is not None and not is_name(given):
        message = f"Give 1 to {NAME_CHARACTERS_MAX} characters, none of them NUL."
        raise InvalidRequest(FieldError(field, message))
    return given


def _instant(asked: Mapping[str, str], field: str) -> datetime | None:
    given = asked.get(field)
    return None if given is None else parse_instant(given)


def _label(asked: Mapping[str, str]) -> tuple[str, str] | None:
    given = _name(asked, "label")
    if given is None:
        return None
    name, equals, value = given.partition("=")
    if not name or not equals or not value:
        raise InvalidRequest(FieldError("label", "Give a label's name and value, such as customer=acme."))
    return name, value
