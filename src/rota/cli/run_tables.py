"""Runs as tables for people: many in a list, one with its attempts and what made it, those that a request creates."""

from collections.abc import Iterator

from rota.cli.output import shown_json, write_facts, write_line, write_more, write_table
from rota.cli.schedule_tables import items_of, shown_rule
from rota.cli.tables import Column, Narrow
from rota.cli.times import shown_local
from rota.service.representation import Wire


def write_runs(page: Wire) -> None:
    """A line for each run."""
    items = items_of(page)
    is_moved = any(item["due_at"] != item["scheduled_at"] for item in items)
    write_table(
        [
            "RUN",
            Column(name="JOB", leave_out=3),
            "STATE",
            Column(name="LOCAL", leave_out=4),
            Column(name="UTC", leave_out=1),
            *(["DUE AT"] if is_moved else []),
            Column(name="ATTEMPT", leave_out=2),
            Column(name="WHY", narrow=Narrow.CUT),
        ],
        [
            (
                item["run_id"],
                item["job"],
                item["state"],
                shown_local(item["local"], item["offset"]),
                item["scheduled_at"],
                *([item["due_at"]] if is_moved else []),
                item["attempt"],
                item["reason"] or item["error"] or "",
            )
            for item in items
        ],
    )
    write_more(page)


def write_run(run: Wire) -> None:
    """One run, field by field, with the version whose rule made it, and its attempts."""
    facts: list[tuple[str, object]] = [
        ("run", run["run_id"]),
        ("state", run["state"]),
        ("why", run["reason"]),
        ("job", run["job"]),
        ("local", shown_local(run["local"], run["offset"])),
        ("scheduled at", run["scheduled_at"]),
        ("due at", run["due_at"]),
        ("planned at", run["planned_at"]),
        ("admitted at", run["admitted_at"]),
        ("started at", run["started_at"]),
        ("finished at", run["finished_at"]),
        ("stop asked at", run["cancel_requested_at"]),
        ("origin", run["origin"]),
        ("replay of", run["replay_of"]),
        ("period", run["period_key"]),
        *_made_by(run),
        ("attempt", run["attempt"]),
        ("progress", None if run["progress"] is None else shown_json(run["progress"])),
        ("result", None if run["result"] is None else shown_json(run["result"])),
        ("error", run["error"]),
    ]
    delivery = run["delivery"]
    if isinstance(delivery, dict):
        facts += [(f"delivery {name}", value) for name, value in delivery_facts(delivery)]
    write_facts([(name, value) for name, value in facts if value is not None])
    attempts = run["attempts"]
    if isinstance(attempts, list) and attempts:
        _write_attempts(attempts)
    effects = run["effects"]
    if isinstance(effects, list) and effects:
        _write_effects(effects)


def delivery_facts(delivery: Wire) -> list[tuple[str, object]]:
    """What there is to say of a delivery; what it does not have is left out."""
    facts = [
        ("state", delivery["state"]),
        ("tries", delivery["tries"]),
        ("since", delivery["first_at"]),
        ("sent at", delivery["sent_at"]),
        ("next at", delivery["next_at"]),
        ("error", delivery["error"]),
    ]
    return [(name, value) for name, value in facts if value is not None]


def write_created_runs(answer: Wire, *, shown_max: int, is_spaced: bool = False) -> None:
    """The runs that a request creates, or would; `is_spaced`: they fall due at times of their own."""
    runs = answer["runs"]
    assert isinstance(runs, list)  # noqa: S101 - as plan and backfill have it
    if not runs:
        return
    spaced = ["DUE AT"] if is_spaced else []
    write_table(
        ["LOCAL", Column(name="UTC", leave_out=1), *spaced, Column(name="PERIOD", leave_out=2), "RUN"],
        [
            (
                shown_local(run["local"], run["offset"]),
                run["scheduled_at"],
                *([run["due_at"]] if is_spaced else []),
                run["period_key"],
                run["run_id"],
            )
            for run in runs[:shown_max]
        ],
    )
    created = answer["created"]
    if isinstance(created, int) and created > shown_max:
        write_line(f"and {created - shown_max} more")


def _made_by(run: Wire) -> Iterator[tuple[str, object]]:
    version = run["made_by"]
    if not isinstance(version, dict):
        yield "version", run["version"]
        return
    yield "version", f"{run['version']}: {shown_rule(version['recurrence'])} in {version['timezone']}"
    yield "its window", shown_window(version)
    yield "its params", shown_json(version["params"])
    yield "tz data", version["tzdata"]
    if run["carried_by"] is not None:
        yield (
            "carried by",
            f"version {run['carried_by']}: past the window, so that the period did not go without a run",
        )


def shown_window(version: Wire) -> str:
    """When a version governs, half-open."""
    from_, until = version["effective_from"], version["effective_until"]
    if from_ == until:
        return f"none: it was replaced before {from_}, when it was to take over"
    return f"from {from_} on" if until is None else f"from {from_} until {until}"


def _write_attempts(attempts: list[Wire]) -> None:
    write_table(
        [
            "ATTEMPT",
            "WORKER",
            Column(name="OPENED AT", leave_out=1),
            Column(name="FINISHED AT", leave_out=2),
            "OUTCOME",
            Column(name="ERROR", narrow=Narrow.WRAP),
        ],
        [
            (
                attempt["number"],
                attempt["worker"],
                attempt["opened_at"],
                attempt["finished_at"],
                attempt["outcome"],
                attempt["error"],
            )
            for attempt in attempts
        ],
    )


def _write_effects(effects: list[Wire]) -> None:
    write_table(
        [
            "EFFECT",
            "BEGUN BY",
            Column(name="BEGUN AT", leave_out=1),
            "RECORDED AT",
            Column(name="RESULT", narrow=Narrow.CUT),
        ],
        [
            (
                effect["name"],
                effect["begun_by"],
                effect["begun_at"],
                effect["recorded_at"],
                None if effect["result"] is None else shown_json(effect["result"]),
            )
            for effect in effects
        ],
    )
