"""An edit in wire form: a JSON merge-patch of the definition, and how the next version is to take over.

Members of the patch replace those of the latest version; null takes a member away, so that its default holds again.
Objects are merged member by member (RFC 7396), but `recurrence` is replaced whole, and so is `overdue` where it names
another policy: their members mean nothing without the kind that they belong to.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rota.domain.definition import (
    DEFINITION_FIELDS,
    FieldErrors,
    definition_to_wire,
    parse_definition,
    parse_labels,
)
from rota.domain.durations import parse_duration
from rota.domain.errors import FieldError, InvalidExpression, InvalidRequest
from rota.domain.instants import format_instant, parse_instant
from rota.domain.json_text import JsonText, load_json
from rota.domain.recurrence import Every
from rota.domain.schedule import Boundary, Definition

BOUNDARIES = ("keep_period", "now", "effective_from")
CONTROL_FIELDS = frozenset({"boundary", "effective_from", "at_once", "replaces_pending", "reason"})
OVERDUE_FIELDS = frozenset({"policy", "max_age", "grace", "deadline"})
FIXED_FIELDS = frozenset({"id", "job"})
AS_THEY_ARE: Mapping[str, object] = {}
"""The patch that changes nothing."""

EDIT_FIELDS = DEFINITION_FIELDS | CONTROL_FIELDS | {"labels"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What is asked for, of whatever version is the latest."""

    patch: Mapping[str, object]
    """Members of the definition, in wire form."""
    labels: object
    """A patch of the schedule's labels, or `AS_THEY_ARE`."""
    boundary: Boundary
    effective_from: datetime | None
    """None: at once."""
    replaces_pending: bool
    at_once: bool = False
    """Also where it replaces a version that was to wait: else it waits as long as that one."""
    is_whole: bool = False
    """The patch is not one, but all that the schedule is to be."""


def parse_edit(body: Mapping[str, object]) -> Edit:
    """Judges all but the definition itself, which depends on the version that it changes. Raises `InvalidRequest`."""
    errors = FieldErrors()
    for name in sorted(FIXED_FIELDS & set(body)):
        errors.add(
            name, f"The {name} of a schedule cannot be changed; leave it out, or create another schedule."
        )
    known = {name: value for name, value in body.items() if name not in FIXED_FIELDS}
    errors.refuse_unknown(known, EDIT_FIELDS)
    overdue = body.get("overdue")
    if isinstance(overdue, Mapping):
        # Named here: a null for a member that there is not would be merged away.
        errors.refuse_unknown(overdue, OVERDUE_FIELDS, prefix="overdue.")
    effective_from = _effective_from(errors, body)
    boundary = _boundary(errors, body, has_instant=effective_from is not None)
    replaces = _flag(errors, body, "replaces_pending")
    at_once = _flag(errors, body, "at_once")
    if at_once and effective_from is not None:
        errors.add("at_once", "at_once and effective_from exclude each other; leave one of them out.")
    errors.raise_if_any()
    return Edit(
        patch={name: value for name, value in body.items() if name in DEFINITION_FIELDS},
        labels=body.get("labels", AS_THEY_ARE),
        boundary=boundary,
        effective_from=effective_from,
        replaces_pending=replaces,
        at_once=at_once,
    )


def merged_definition(edit: Edit, latest: Definition, *, default_anchor: datetime) -> Definition:
    """The definition of the next version. Raises `InvalidRequest` with all that is wrong."""
    merged = {} if edit.is_whole else definition_to_wire(latest) | {"params": load_json(latest.params)}
    for name, value in edit.patch.items():
        is_whole = (
            edit.is_whole
            or name == "recurrence"
            or (name == "overdue" and isinstance(value, Mapping) and "policy" in value)
        )
        merged[name] = value if is_whole else merge_patch(merged.get(name), value)
    overdue = edit.patch.get("overdue")
    if (
        latest.overdue is None
        and not edit.is_whole
        and isinstance(overdue, Mapping)
        and "policy" not in overdue
    ):
        message = "This schedule follows its job's policy, which is shown resolved; name a policy of its own."
        raise InvalidRequest(FieldError("overdue.policy", message))
    given = {name: value for name, value in merged.items() if value is not None}
    if "recurrence" in edit.patch:
        given["recurrence"] = _with_kept_anchor(edit.patch["recurrence"], latest)
    return parse_definition(given, default_anchor=default_anchor)


def merged_labels(edit: Edit, labels: JsonText) -> JsonText:
    """Raises `InvalidRequest`."""
    return parse_labels(edit.labels if edit.is_whole else merge_patch(load_json(labels), edit.labels))


def merge_patch(target: object, patch: object) -> object:
    """RFC 7396."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def changed_members(before: Definition, after: Definition) -> dict[str, object]:
    """What an edit changes, by member: `{"from": ..., "to": ...}`."""
    old = definition_to_wire(before) | {"params": load_json(before.params)}
    new = definition_to_wire(after) | {"params": load_json(after.params)}
    return {name: {"from": old[name], "to": new[name]} for name in new if old[name] != new[name]}


def _with_kept_anchor(recurrence: object, latest: Definition) -> object:
    """An `every` that names no anchor keeps the one it has: the grid moves only on request."""
    base = latest.recurrence
    if not isinstance(recurrence, Mapping) or not isinstance(base, Every) or set(recurrence) != {"every"}:
        return recurrence
    interval = recurrence["every"]
    try:
        is_same = isinstance(interval, str) and parse_duration(interval) == base.interval
    except InvalidExpression:
        return recurrence
    return {**recurrence, "anchor": format_instant(base.anchor)} if is_same else recurrence


def _flag(errors: FieldErrors, body: Mapping[str, object], name: str) -> bool:
    given = body.get(name, False)
    if not isinstance(given, bool):
        errors.add(name, "Give true or false.")
    return given is True


def _effective_from(errors: FieldErrors, body: Mapping[str, object]) -> datetime | None:
    given = body.get("effective_from")
    if given is None:
        return None
    if not isinstance(given, str):
        errors.add("effective_from", 'Give an instant in UTC, such as "2026-01-10T14:00:00Z".')
        return None
    return errors.attempt("effective_from", lambda: parse_instant(given, whole=True))


def _boundary(errors: FieldErrors, body: Mapping[str, object], *, has_instant: bool) -> Boundary:
    given = body.get("boundary")
    if given is None or given == "keep_period":
        return "keep_period"
    if given == "now":
        if has_instant:
            errors.add("boundary", "now and effective_from exclude each other; leave one of them out.")
        return "now"
    if given == "effective_from":
        if not has_instant:
            errors.add("effective_from", "Say from which instant on, such as 2026-01-10T14:00:00Z.")
        return "keep_period"
    errors.add("boundary", f"Give one of {', '.join(BOUNDARIES)}.")
    return "keep_period"
