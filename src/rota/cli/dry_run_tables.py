"""What a change does, as a readable diff: a head line, the members that change, and what becomes of occurrences.

The same for a dry run, and in short for what was done.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rota.cli.explanations import Telling, entries_of, fold_pairs, why
from rota.cli.output import NOTHING, shown_json, write_line, write_sections
from rota.cli.schedule_tables import shown_overdue, shown_rule
from rota.cli.tables import Column, Narrow, Section
from rota.cli.times import LocalOf, shown_local
from rota.domain.instants import parse_instant
from rota.service.dry_runs import KEPT_SHOWN_MAX
from rota.service.representation import Wire
from rota.service.versions import next_whole_second

WAS_DRY_RUN = "This was a dry run: nothing was written."
SHOWN_MAX = 10
"""Of each section; the JSON document has them all."""

TITLES: Mapping[str, str] = {
    "kept": "kept: there already, or owed; the change does not touch them",
    "carried": "carried: still run by the old rule, since the new one would miss their period",
    "suppressed": "suppressed: not run by the new rule, since a run uses their period",
    "skipped": "skipped: these do not run",
    "next": "next: what falls due first",
}
TITLES_OF: Mapping[str, Mapping[str, str]] = {
    "pause": {
        "kept": "kept: planned already; each is held when it falls due during the pause",
        "skipped": "skipped: what falls due first, as long as the pause lasts",
    },
    "resume": {"kept": "kept: admitted at once, or planned for later"},
    "plan": {"suppressed": "suppressed: not planned, since a run uses their period"},
    "upcoming": {
        "held": "held: fell due during the pause, and decided on resume",
        "suppressed": "suppressed: not run, since a run uses their period",
    },
    "resumed": {"kept": "held until now: admitted at once", "skipped": "held until now: these do not run"},
}
"""What the sections of other operations are called."""

COLUMNS = (
    Column(name="LOCAL"),
    Column(name="UTC", leave_out=1),
    Column(name="VERSION", leave_out=2),
    Column(name="PERIOD", leave_out=3),
    Column(name="WHY", narrow=Narrow.WRAP),
)


def write_dry_run(told: Wire, before: Wire, *, local_of: LocalOf, now: datetime) -> None:
    """`before` is the schedule as it is."""
    write_change(told, before, local_of=local_of, now=now)
    write_line(WAS_DRY_RUN)


def write_change(told: Wire, before: Wire, *, local_of: LocalOf, now: datetime) -> None:
    """The whole diff; `before` is the schedule as it was."""
    _write_head(told, before, now=now)
    if told["effective_from"] is None and told["operation"] == "edit":
        return  # no occurrence is touched
    told = fold_pairs(told)
    if any(entries_of(told, name) for name in TITLES):
        write_line("")
        write_occurrences(told, list(TITLES), local_of=local_of)
        write_line("")
    for line in _nothing_is(told):
        write_line(line)


def write_done(done: Wire, before: Wire, *, local_of: LocalOf, now: datetime) -> None:
    """The same in short, of what was done."""
    _write_head(done, before, now=now)
    if entries_of(done, "next"):
        write_line("")
    write_occurrences(done, ["carried", "next"], local_of=local_of)


def _write_head(told: Wire, before: Wire, *, now: datetime) -> None:
    write_line(head_of(told, before, now=now))
    if told["changed"] and told["effective_from"] is not None and (waiting := _waiting(told, before)):
        write_line(f"members are compared with {waiting}")
    for line in changed_lines(told["changed"]):
        write_line(line)


def _waiting(told: Wire, before: Wire) -> str | None:
    """The version that members are compared with, where it is not the one that the schedule shows."""
    pending, number = before.get("pending"), told.get("changes_version")
    if not isinstance(pending, dict) or pending["version"] != number:
        return None
    return f"version {number}, which waits"


def head_of(told: Wire, before: Wire, *, now: datetime) -> str:
    """`report-7: version 4 -> 5, takes over 2026-01-14T10:00:01Z (keep_period)`"""
    id_, changed, operation = told["schedule_id"], told["changed"], told["operation"]
    if not changed and told["effective_from"] is None:
        waiting = _waiting(told, before)
        return f"{id_}: nothing changes" + (f" against {waiting}" if waiting else "")
    if operation in ("pause", "resume") and isinstance(changed, dict):
        status = changed["status"]
        return f"{id_}: {status['from']} -> {status['to']}"
    if told["effective_from"] is None:
        return f"{id_}: version {told['version']} stays"
    head = (
        f"{id_}: version {before['version']} -> {told['version']}, "
        f"takes over {told['effective_from']} ({told['boundary']})"
    )
    return "; ".join([head, *_waits(told, before, now=now)])


def changed_lines(changed: object) -> Iterator[str]:
    """`- timezone: America/New_York` and `+ timezone: Europe/London`; of objects member by member."""
    assert isinstance(changed, dict)  # noqa: S101 - as every edit has it
    for name, change in changed.items():
        if name == "status":
            continue
        old, new = change["from"], change["to"]
        if name in ("labels", "params"):
            yield from _member_lines(name, old, new)
            continue
        for sign, value in (("-", old), ("+", new)):
            shown = shown_member(name, value)
            if shown is not None:
                yield f"{sign} {name}: {shown}"


def shown_member(name: str, value: object) -> str | None:
    """A member of a definition as a person reads it; None where it is not there."""
    if name == "recurrence":
        return shown_rule(value)
    if name == "overdue":
        return "as the job says" if value is None else shown_overdue(value)
    return None if value is None else str(value)


def write_occurrences(
    told: Wire, sections: Sequence[str], *, local_of: LocalOf, shown_max: int | None = SHOWN_MAX
) -> None:
    """Those sections that have entries, below one head, `shown_max` of each."""
    telling = Telling.of(told, local_of=local_of)
    titles = {**TITLES, **TITLES_OF.get(telling.operation, {})}
    filled = [
        _section(titles[name], telling, name, sorted(entries, key=_due_of), shown_max=shown_max)
        for name in sections
        if (entries := entries_of(told, name))
    ]
    if filled:
        write_sections(COLUMNS, filled)


def _due_of(entry: Wire) -> str:
    """What rows are in the order of; those in a gap have a local time alone."""
    return str(entry.get("due_at") or entry.get("from") or entry["local"])


def _section(
    title: str, telling: Telling, name: str, entries: list[Wire], *, shown_max: int | None
) -> Section:
    shown = entries[:shown_max]
    rest = len(entries) - len(shown)
    at_least = "at least " if len(entries) >= KEPT_SHOWN_MAX else ""
    return Section(
        title=title,
        rows=[_row(entry, why(telling, name, entry)) for entry in shown],
        more=f"and {at_least}{rest} more, which --json lists" if rest else None,
    )


def _row(entry: Wire, said: str) -> tuple[str, ...]:
    local = str(entry.get("local", NOTHING))
    is_range = entry.get("count", 1) != 1
    period = str(entry.get("period_key", NOTHING))
    return (
        shown_local(local, entry["offset"]) if "offset" in entry else local.replace("T", " "),
        str(entry.get("scheduled_at") or entry.get("from") or NOTHING),
        str(entry.get("version", NOTHING)),
        f"from {period}" if is_range else period,
        said,
    )


def _member_lines(name: str, old: object, new: object) -> Iterator[str]:
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        yield f"- {name}: {shown_json(old)}"
        yield f"+ {name}: {shown_json(new)}"
        return
    for member in sorted({*old, *new}):
        before, after = old.get(member), new.get(member)
        path = f"{name}.{member}"
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from _member_lines(path, before, after)
        elif before != after or (member in old) != (member in new):
            if member in old:
                yield f"- {path}: {_shown_value(before)}"
            if member in new:
                yield f"+ {path}: {_shown_value(after)}"


def _shown_value(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() else shown_json(value)


def _waits(told: Wire, before: Wire, *, now: datetime) -> Iterator[str]:
    if told["is_pending"]:
        is_ahead = parse_instant(str(told["effective_from"])) > next_whole_second(now)
        yield (
            "it waits until then"
            if is_ahead
            else f"it waits until version {before['version']} has decided what it owes from before that"
        )
    replaces = told["replaces"]
    if replaces is not None and told["operation"] == "tzdata":
        yield f"version {replaces}, which waits, comes after it by another number"
    elif replaces is not None:
        yield f"replaces version {replaces}, which waits"


def _nothing_is(told: Wire) -> Iterator[str]:
    """The sections that are empty, in a sentence, so that none is missed."""
    told_of = ("kept", "skipped") if told["operation"] in ("pause", "resume") else tuple(TITLES)[:-1]
    names = [name for name in told_of if not entries_of(told, name)]
    if names:
        *others, last = names
        listed = f"{', '.join(others)} or {last}" if others else last
        yield f"Nothing is {listed}."
    if told["operation"] != "pause" and not entries_of(told, "next"):
        yield "Nothing falls due after it."
    if not told["is_complete"]:
        yield "More is owed than is told here; the rest is decided in the same way."
