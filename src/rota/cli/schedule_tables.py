"""Schedules as tables for people: local time with its offset beside UTC."""

from datetime import datetime

from rota.cli.output import (
    shown_json,
    shown_labels,
    write_facts,
    write_json,
    write_line,
    write_more,
    write_table,
)
from rota.cli.tables import Column, Narrow
from rota.cli.times import local_of
from rota.domain.instants import parse_instant
from rota.service.context import Context
from rota.service.representation import Wire
from rota.service.versions import next_whole_second
from rota.zones import Zones


def write_answer(context: Context, schedule: Wire, *, json: bool, said: str | None = None) -> None:
    """The answer of a command that is a schedule, after a sentence for people."""
    if json:
        write_json(schedule)
        return
    if said is not None:
        write_line(said)
    write_schedule(schedule, zones=context.zones, now=context.clock.now())


def write_schedule(schedule: Wire, *, zones: Zones, now: datetime) -> None:
    """One schedule, field by field."""
    zone = schedule["timezone"]
    next_due = schedule["next_due"]
    facts: list[tuple[str, object]] = [
        ("id", schedule["id"]),
        ("status", schedule["status"]),
        ("why", schedule["status_reason"]),
        ("job", schedule["job"]),
        ("rule", shown_rule(schedule["recurrence"])),
        ("timezone", zone),
        ("gap, fold", f"{schedule['gap']}, {schedule['fold']}"),
        ("period", schedule["period"]),
        ("overdue", shown_overdue(schedule["overdue"])),
        ("overlap", schedule["overlap"]),
        ("spread", shown_spread(schedule)),
        ("next due", local_of(zones, zone, next_due)),
        ("in UTC", next_due),
        ("starts at", schedule["starts_at"]),
        ("ends at", schedule["ends_at"]),
        ("occurrences", schedule["max_occurrences"]),
        ("params", shown_json(schedule["params"])),
        ("labels", shown_labels(schedule["labels"])),
        ("version", _shown_version(schedule, now=now)),
        ("pending", shown_pending(schedule)),
        ("created at", schedule["created_at"]),
        ("tz data", schedule["tzdata"]),
    ]
    optional = {"spread", "why", "pending", "starts at", "ends at", "occurrences", "labels"}
    write_facts([(name, value) for name, value in facts if value or name not in optional])


def write_schedules(page: Wire, *, zones: Zones) -> None:
    """A line for each schedule."""
    write_table(
        [
            "ID",
            "STATUS",
            Column(name="JOB", leave_out=3),
            Column(name="RULE", narrow=Narrow.CUT, leave_out=4),
            Column(name="TIMEZONE", leave_out=2),
            Column(name="NEXT DUE", leave_out=5),
            Column(name="NEXT DUE IN UTC", leave_out=1),
        ],
        [
            (
                item["id"],
                item["status"],
                item["job"],
                shown_rule(item["recurrence"]),
                item["timezone"],
                local_of(zones, item["timezone"], item["next_due"]),
                item["next_due"],
            )
            for item in items_of(page)
        ],
    )
    write_more(page)


def shown_rule(recurrence: object) -> str:
    """`cron 0 9 * * 1-5`"""
    assert isinstance(recurrence, dict)  # noqa: S101 - as a schedule's wire form has it
    kind_first = sorted(recurrence.items(), key=lambda member: member[0] == "anchor")
    return ", ".join(f"{name} {value}" for name, value in kind_first).replace("\n", " ")


def shown_overdue(overdue: object) -> str:
    """`expire PT5M`"""
    assert isinstance(overdue, dict)  # noqa: S101 - as a schedule's wire form has it
    limits = [str(value) for name, value in overdue.items() if name != "policy" and value is not None]
    return " ".join([str(overdue["policy"]), *limits])


def shown_spread(definition: Wire) -> str | None:
    """`PT10M: each falls due PT3M20S after it is scheduled`; None where it is not spread."""
    if definition["spread"] is None:
        return None
    return f"{definition['spread']}: each falls due {definition['delay']} after it is scheduled"


def shown_limits(definition: Wire) -> str:
    """`, overlap skip, spread PT10M`; what is not the default."""
    limits = {"overlap": definition["overlap"], "spread": definition["spread"]}
    return "".join(f", {name} {value}" for name, value in limits.items() if value not in {None, "allow"})


def items_of(page: Wire) -> list[Wire]:
    items = page["items"]
    assert isinstance(items, list)  # noqa: S101 - as every page has it
    return items


def is_ahead(effective_from: object, *, now: datetime) -> bool:
    """Whether a window that begins then is still to come: not in the second that a change is made in."""
    return parse_instant(str(effective_from)) > next_whole_second(now)


def _shown_version(schedule: Wire, *, now: datetime) -> str:
    effective_from = schedule["effective_from"]
    takes_over = f", takes over at {effective_from}" if is_ahead(effective_from, now=now) else ""
    return f"{schedule['version']}{takes_over}"


def shown_pending(schedule: Wire) -> str | None:
    """The version that waits to take over; None where none does."""
    pending = schedule["pending"]
    if not isinstance(pending, dict):
        return None
    return f"version {pending['version']} takes over at {pending['effective_from']}"
