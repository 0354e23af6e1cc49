"""A definition in wire form: parsing what was asked, with one error per bad field, and writing it back.

Only shapes and single fields are judged here; what needs the zone's rules (an expression that never matches, a period
the rule cannot keep, an instant in the past) is judged where the schedule is made.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TypeVar, assert_never, cast, get_args

from rota.domain.cadence import FoldAsked, Gap
from rota.domain.durations import format_duration, parse_duration
from rota.domain.errors import FieldError, InvalidExpression, InvalidRequest, MalformedBody, TooLarge
from rota.domain.instants import format_instant, parse_instant
from rota.domain.json_text import EMPTY_OBJECT, JsonText, encode_json
from rota.domain.overdue import CatchUpAll, Expire, LatestOnly, OverduePolicy
from rota.domain.period import PeriodAsked
from rota.domain.recurrence import Recurrence, parse_recurrence, recurrence_to_wire
from rota.domain.schedule import Definition, Overlap

MAX_OCCURRENCES_MAX = 10_000
"""Counted once, when the version is made; a longer life is bounded by `ends_at`."""

NO_SPREAD = timedelta(0)
SPREAD_MAX = timedelta(hours=24)
LABELS_MAX = 32
LABEL_CHARACTERS_MAX = 120
DEFINITION_FIELDS = frozenset(
    {
        "timezone",
        "recurrence",
        "gap",
        "fold",
        "period",
        "overdue",
        "overlap",
        "spread",
        "params",
        "starts_at",
        "ends_at",
        "max_occurrences",
    }
)

T = TypeVar("T")


class FieldErrors:
    """Collects the errors of a request's fields, so that all are answered at once."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def add(self, field: str, message: str) -> None:
        self.errors.append(FieldError(field, message))

    def attempt(self, field: str, parse: Callable[[], T]) -> T | None:
        """The parsed value, or None with the error noted under `field` (or the fields that it names itself)."""
        try:
            return parse()
        except InvalidRequest as error:
            self.errors.extend(error.errors)
        except InvalidExpression as error:
            self.add(field, error.problem)
        except (MalformedBody, TooLarge) as error:
            self.add(f"{field}.{error.field}" if error.field else field, str(error))
        return None

    def refuse_unknown(self, value: Mapping[str, object], known: frozenset[str], *, prefix: str = "") -> None:
        for name in sorted(set(value) - known):
            self.add(f"{prefix}{name}", f"This field is not known; known are {', '.join(sorted(known))}.")

    def raise_if_any(self) -> None:
        if self.errors:
            raise InvalidRequest(*self.errors)


def parse_definition(value: Mapping[str, object], *, default_anchor: datetime) -> Definition:
    """The definition of a request's fields. Raises `InvalidRequest` with all that is wrong.

    `default_anchor` is the anchor of an `every` that names none. `params` are JSON of any shape under an object.
    """
    errors = FieldErrors()
    errors.refuse_unknown(value, DEFINITION_FIELDS)
    timezone, recurrence = parse_rule(errors, value, default_anchor=default_anchor)
    overdue_value = value.get("overdue")
    overdue = (
        None if overdue_value is None else errors.attempt("overdue", lambda: parse_overdue(overdue_value))
    )
    params = errors.attempt("params", lambda: _params(value.get("params")))
    starts_at = _optional_instant(errors, value, "starts_at")
    ends_at = _optional_instant(errors, value, "ends_at")
    if starts_at is not None and ends_at is not None and ends_at <= starts_at:
        errors.add("ends_at", "The end lies not after starts_at; give a later instant.")
    choices = {
        "gap": parse_choice(errors, value, "gap", get_args(Gap), default="skip"),
        "fold": parse_choice(errors, value, "fold", get_args(FoldAsked), default="auto"),
        "period": parse_choice(errors, value, "period", get_args(PeriodAsked), default="auto"),
    }
    choices["overlap"] = parse_choice(errors, value, "overlap", get_args(Overlap), default="allow")
    spread = parse_optional_duration(errors, value, "spread") or NO_SPREAD
    if spread > SPREAD_MAX or spread % timedelta(seconds=1):
        errors.add("spread", "Give whole seconds, at most PT24H.")
    max_occurrences = _optional_count(errors, value)
    if errors.errors or timezone is None or recurrence is None:
        raise InvalidRequest(*errors.errors)
    return Definition(
        timezone=timezone,
        recurrence=recurrence,
        gap=cast("Gap", choices["gap"]),
        fold=cast("FoldAsked", choices["fold"]),
        period=cast("PeriodAsked", choices["period"]),
        overdue=overdue,
        params=params or EMPTY_OBJECT,
        starts_at=starts_at,
        ends_at=ends_at,
        max_occurrences=max_occurrences,
        overlap=cast("Overlap", choices["overlap"]),
        spread=spread,
    )


def parse_rule(
    errors: FieldErrors, value: Mapping[str, object], *, default_anchor: datetime
) -> tuple[str | None, Recurrence | None]:
    """`timezone` and `recurrence`, which every definition has; None, with an error noted, where one is wrong."""
    timezone = value.get("timezone")
    if not isinstance(timezone, str) or not timezone:
        errors.add("timezone", 'Give an IANA zone name, such as "America/New_York".')
        timezone = None
    recurrence = value.get("recurrence")
    if not isinstance(recurrence, Mapping):
        errors.add("recurrence", 'Give one of {"cron"}, {"at"}, {"rrule"} or {"every"} as an object.')
        return timezone, None
    parsed = errors.attempt("recurrence", lambda: parse_recurrence(recurrence, default_anchor=default_anchor))
    return timezone, parsed


def definition_to_wire(definition: Definition) -> dict[str, object]:
    """The definition in wire names, without `params` (which are stored beside it)."""
    return {
        "timezone": definition.timezone,
        "recurrence": recurrence_to_wire(definition.recurrence),
        "gap": definition.gap,
        "fold": definition.fold,
        "period": definition.period,
        "overdue": None if definition.overdue is None else overdue_to_wire(definition.overdue),
        "overlap": definition.overlap,
        "spread": None if definition.spread == NO_SPREAD else format_duration(definition.spread),
        "starts_at": _instant_to_wire(definition.starts_at),
        "ends_at": _instant_to_wire(definition.ends_at),
        "max_occurrences": definition.max_occurrences,
    }


def parse_overdue(value: object, *, field: str = "overdue") -> OverduePolicy:
    """An overdue policy in wire form. Raises `InvalidRequest`."""
    errors = FieldErrors()
    members: dict[str, frozenset[str]] = {
        "catch_up_all": frozenset({"policy", "max_age"}),
        "latest_only": frozenset({"policy", "grace"}),
        "expire": frozenset({"policy", "deadline"}),
    }
    policy = value.get("policy") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(policy, str) or policy not in members:
        message = 'Give an object with "policy": "catch_up_all", "latest_only" or "expire".'
        raise InvalidRequest(FieldError(f"{field}.policy", message))
    errors.refuse_unknown(value, members[policy], prefix=f"{field}.")
    if policy == "catch_up_all":
        max_age = parse_optional_duration(errors, value, "max_age", prefix=f"{field}.")
        errors.raise_if_any()
        return CatchUpAll(max_age=max_age)
    if policy == "latest_only":
        grace = parse_optional_duration(errors, value, "grace", prefix=f"{field}.")
        errors.raise_if_any()
        return LatestOnly() if grace is None else LatestOnly(grace=grace)
    deadline = parse_optional_duration(errors, value, "deadline", prefix=f"{field}.")
    if deadline is None and not errors.errors:
        errors.add(f"{field}.deadline", 'Say after how long an occurrence expires, such as "PT5M".')
    if errors.errors or deadline is None:
        raise InvalidRequest(*errors.errors)
    return Expire(deadline=deadline)


def overdue_to_wire(policy: OverduePolicy) -> dict[str, object]:
    match policy:
        case CatchUpAll(max_age=max_age):
            return {
                "policy": "catch_up_all",
                "max_age": None if max_age is None else format_duration(max_age),
            }
        case LatestOnly(grace=grace):
            return {"policy": "latest_only", "grace": format_duration(grace)}
        case Expire(deadline=deadline):
            return {"policy": "expire", "deadline": format_duration(deadline)}
        case _:
            assert_never(policy)


def parse_labels(value: object) -> JsonText:
    """Labels: a flat object of strings. Raises `InvalidRequest`."""
    if value is None:
        return EMPTY_OBJECT
    if not isinstance(value, Mapping):
        raise InvalidRequest(FieldError("labels", 'Give an object of strings, such as {"customer": "acme"}.'))
    errors = FieldErrors()
    if len(value) > LABELS_MAX:
        errors.add("labels", f"At most {LABELS_MAX} labels are kept.")
    for name, text in value.items():
        if not isinstance(text, str) or not 0 < len(text) <= LABEL_CHARACTERS_MAX:
            errors.add(f"labels.{name}", f"Give a text of 1 to {LABEL_CHARACTERS_MAX} characters.")
        elif not 0 < len(name) <= LABEL_CHARACTERS_MAX or "=" in name:
            errors.add(
                f"labels.{name}", f"A label's name has 1 to {LABEL_CHARACTERS_MAX} characters and no '='."
            )
    errors.raise_if_any()
    labels = errors.attempt("labels", lambda: encode_json(dict(value)))
    errors.raise_if_any()
    return labels or EMPTY_OBJECT


def parse_choice(
    errors: FieldErrors, value: Mapping[str, object], name: str, choices: tuple[str, ...], *, default: str
) -> str:
    """One of `choices`; a missing field is `default`."""
    given = value.get(name, default)
    if isinstance(given, str) and given in choices:
        return given
    errors.add(name, f"Give one of {', '.join(choices)}.")
    return default


def parse_optional_duration(
    errors: FieldErrors, value: Mapping[str, object], name: str, *, prefix: str = ""
) -> timedelta | None:
    """An ISO 8601 duration, not negative, or None where it is missing or null."""
    given = value.get(name)
    if given is None:
        return None
    if not isinstance(given, str):
        errors.add(f"{prefix}{name}", 'Give an ISO 8601 duration, such as "PT5M".')
        return None
    return errors.attempt(f"{prefix}{name}", lambda: parse_duration(given))


def _params(value: object) -> JsonText:
    if value is None:
        return EMPTY_OBJECT
    if not isinstance(value, Mapping):
        raise InvalidRequest(FieldError("params", 'Give an object, such as {"report": "sales"}.'))
    return encode_json(dict(value))


def _optional_instant(errors: FieldErrors, value: Mapping[str, object], name: str) -> datetime | None:
    given = value.get(name)
    if given is None:
        return None
    if not isinstance(given, str):
        errors.add(name, 'Give an instant in UTC, such as "2026-01-10T14:00:00Z".')
        return None
    return errors.attempt(name, lambda: parse_instant(given, whole=True))


def _optional_count(errors: FieldErrors, value: Mapping[str, object]) -> int | None:
    given = value.get("max_occurrences")
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MAX_OCCURRENCES_MAX:
        errors.add(
            "max_occurrences", f"Give a whole number from 1 to {MAX_OCCURRENCES_MAX}, or leave it out."
        )
        return None
    return given


def _instant_to_wire(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)
