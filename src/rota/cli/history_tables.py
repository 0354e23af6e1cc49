"""What was done to a schedule, and the versions that came of it, as tables for people."""

from collections.abc import Iterator
from datetime import datetime

from rota.cli.dry_run_tables import changed_lines
from rota.cli.output import shown_json, write_more, write_table
from rota.cli.schedule_tables import is_ahead, items_of, shown_limits, shown_rule
from rota.cli.tables import Column, Narrow
from rota.service.representation import Wire


def write_history(page: Wire) -> None:
    """An entry for each event; that of an edit tells what it changed, and when its version takes over."""
    write_table(
        [
            "AT",
            "ACTION",
            "BY",
            Column(name="WHY", narrow=Narrow.WRAP),
            Column(name="DETAILS", narrow=Narrow.WRAP),
        ],
        [
            (
                item["at"],
                item["action"],
                item["actor"],
                item["reason"],
                "\n".join(_details(item)) or None,
            )
            for item in items_of(page)
        ],
    )
    write_more(page)


def write_versions(page: Wire, schedule: Wire, *, now: datetime) -> None:
    """A line for each version, the latest first; `schedule` says which of them waits and which decides."""
    write_table(
        [
            "VERSION",
            "STATE",
            "FROM",
            Column(name="UNTIL", leave_out=3),
            Column(name="BOUNDARY", leave_out=2),
            Column(name="RULE", narrow=Narrow.CUT, leave_out=5),
            Column(name="TIMEZONE", leave_out=6),
            Column(name="TZ DATA", leave_out=1),
            Column(name="BY", leave_out=4),
            Column(name="WHY", narrow=Narrow.CUT),
        ],
        [
            (
                item["version"],
                _state_of(item, schedule, now=now),
                item["effective_from"],
                item["effective_until"],
                item["boundary"],
                shown_rule(item["recurrence"]) + shown_limits(item),
                item["timezone"],
                item["tzdata"],
                item["actor"],
                item["reason"] or "",
            )
            for item in items_of(page)
        ],
    )
    write_more(page)


def _state_of(version: Wire, schedule: Wire, *, now: datetime) -> str:
    until = version["effective_until"]
    pending = schedule["pending"]
    if isinstance(pending, dict) and version["version"] == pending["version"]:
        return "waits"
    if version["effective_from"] == until:
        return "replaced"
    if schedule["status"] == "ended":
        return "ended" if version["version"] == schedule["version"] else "past"
    if is_ahead(version["effective_from"], now=now):
        return "next"
    if until is not None and is_ahead(until, now=now):
        return f"governs until {until}"
    return "governs" if version["version"] == schedule["version"] else "past"


def _details(event: Wire) -> Iterator[str]:
    details = event["details"]
    assert isinstance(details, dict)  # noqa: S101 - as every event has it
    if event["action"] != "schedule.edit":
        yield from (f"{name.replace('_', ' ')}: {_shown(value)}" for name, value in details.items())
        return
    if "version" in details:
        yield f"version {details['version']}, takes over {details['effective_from']} ({details['boundary']})"
        if details["replaced"] is not None:
            yield f"version {details['replaced']} had not taken over yet"
    yield from changed_lines(details["changed"])
    for run_id in details.get("carried", ()):
        yield f"carried: {run_id}"


def _shown(value: object) -> str:
    if isinstance(value, dict) and set(value) == {"from", "to"}:
        return f"{_shown(value['from'])} -> {_shown(value['to'])}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else shown_json(value)
