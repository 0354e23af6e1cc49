"""Schedules and what they did, as tables for people: local time with its offset beside UTC."""

from rota.cli.output import (
    shown_json,
    shown_labels,
    write_facts,
    write_more,
    write_table,
)
from rota.cli.tables import Column, Narrow
from rota.cli.times import local_of, shown_local
from rota.service.representation import Wire
from rota.zones import Zones


def write_schedule(schedule: Wire, *, zones: Zones) -> None:
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
        ("next due", local_of(zones, zone, next_due)),
        ("in UTC", next_due),
        ("starts at", schedule["starts_at"]),
        ("ends at", schedule["ends_at"]),
        ("occurrences", schedule["max_occurrences"]),
        ("params", shown_json(schedule["params"])),
        ("labels", shown_labels(schedule["labels"])),
        ("version", schedule["version"]),
        ("created at", schedule["created_at"]),
        ("tz data", schedule["tzdata"]),
    ]
    optional = {"why", "starts at", "ends at", "occurrences", "labels"}
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


def write_upcoming(answer: Wire) -> None:
    """A line for each occurrence to come."""
    found = answer["occurrences"]
    assert isinstance(found, list)  # noqa: S101 - as list_upcoming makes it
    write_table(
        [
            "LOCAL",
            Column(name="UTC", leave_out=1),
            Column(name="PERIOD", leave_out=2),
            Column(name="NOTE", narrow=Narrow.WRAP),
        ],
        [
            (
                shown_local(item["local"], item["offset"]),
                item["scheduled_at"],
                item["period_key"],
                item["note"] or "",
            )
            for item in found
        ],
    )


def write_ledger(page: Wire, *, zones: Zones, timezone: object) -> None:
    """A line for each run, and one for each skip: the zone of the schedule now is that of a skip's local time."""
    write_table(
        [
            Column(name="LOCAL", leave_out=2),
            Column(name="UTC", leave_out=1),
            "OUTCOME",
            Column(name="WHY", narrow=Narrow.CUT),
            "RUN OR RANGE",
        ],
        [
            _run_row(item) if item["kind"] == "run" else _skip_row(item, zones=zones, timezone=timezone)
            for item in items_of(page)
        ],
    )
    write_more(page)


def write_history(page: Wire) -> None:
    """A line for each event."""
    write_table(
        [
            "AT",
            "ACTION",
            "BY",
            Column(name="WHY", narrow=Narrow.WRAP),
            Column(name="DETAILS", narrow=Narrow.WRAP, leave_out=1),
        ],
        [
            (
                item["at"],
                item["action"],
                item["actor"],
                item["reason"],
                shown_json(item["details"]) if item["details"] else None,
            )
            for item in items_of(page)
        ],
    )


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


def items_of(page: Wire) -> list[Wire]:
    items = page["items"]
    assert isinstance(items, list)  # noqa: S101 - as every page has it
    return items


def _run_row(run: Wire) -> tuple[object, ...]:
    why = run["reason"] or run["error"]
    return (
        shown_local(run["local"], run["offset"]),
        run["scheduled_at"],
        run["state"],
        why,
        run["run_id"],
    )


def _skip_row(skip: Wire, *, zones: Zones, timezone: object) -> tuple[object, ...]:
    count, from_ = skip["count"], skip["from"]
    shown = "1 occurrence" if count == 1 else f"{count} occurrences before {skip['until']}"
    why = f"{skip['reason']}: {skip['note']}" if skip["note"] else skip["reason"]
    return (local_of(zones, timezone, from_), from_, "skipped", why, shown)
