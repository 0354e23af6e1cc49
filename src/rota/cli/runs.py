"""`rota runs`: list, show, cancel."""

from typing import Annotated

from cyclopts import App, Parameter

from rota.cli.options import (
    ActorName,
    AsJson,
    Cursor,
    Database,
    Limit,
    Reason,
    WalkAll,
    actor_of,
    asked,
    open_existing,
)
from rota.cli.output import shown_json, write_facts, write_json, write_more, write_table
from rota.cli.paging import read_pages
from rota.cli.schedule_tables import items_of
from rota.cli.tables import Column, Narrow
from rota.cli.times import shown_local
from rota.service import runs as use_cases
from rota.service.queries import ledger_place_to_wire, parse_ledger_place, parse_run_filter
from rota.service.representation import Wire

STATES = "planned, held, queued, running, succeeded, failed, cancelled, moot or skipped."

runs = App(name="runs", help="Show and cancel runs.")


@runs.command(name="list")
def list_(
    *,
    schedule: Annotated[str | None, Parameter(help="Only those of this schedule.")] = None,
    state: Annotated[str | None, Parameter(help=STATES)] = None,
    job: Annotated[str | None, Parameter(help="Only those of this job.")] = None,
    origin: Annotated[str | None, Parameter(help="schedule, backfill, manual or replay.")] = None,
    label: Annotated[str | None, Parameter(help="Only those whose schedule has it: customer=acme.")] = None,
    limit: Limit = None,
    cursor: Cursor = None,
    walk_all: WalkAll = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """List runs, newest occurrence first."""
    filter_ = parse_run_filter(asked(schedule=schedule, state=state, job=job, origin=origin, label=label))
    with open_existing(database) as context:

        def read(place: object, limit: int) -> list[tuple[Wire, Wire]]:
            found = use_cases.list_runs(context, filter_, before=parse_ledger_place(place), limit=limit)
            return [(ledger_place_to_wire(key), item) for key, item in found]

        page = read_pages(read, cursor=cursor, limit=limit, walk_all=walk_all)
        write_json(page) if json else _write_runs(page)


@runs.command
def show(run_id: str, /, *, database: Database = None, json: AsJson = False) -> None:
    """Show a run with its attempts and its result."""
    with open_existing(database) as context:
        run = use_cases.show_run(context, run_id)
        write_json(run) if json else _write_run(run)


@runs.command
def cancel(
    run_id: str,
    /,
    *,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Cancel a run that waits; ask a running one to stop."""
    with open_existing(database) as context:
        run = use_cases.cancel_run(context, run_id, actor=actor_of(actor, reason))
        write_json(run) if json else _write_run(run)


def _write_runs(page: Wire) -> None:
    write_table(
        [
            "RUN",
            Column(name="JOB", leave_out=3),
            "STATE",
            Column(name="LOCAL", leave_out=4),
            Column(name="UTC", leave_out=1),
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
                item["attempt"],
                item["reason"] or item["error"] or "",
            )
            for item in items_of(page)
        ],
    )
    write_more(page)


def _write_run(run: Wire) -> None:
    facts: list[tuple[str, object]] = [
        ("run", run["run_id"]),
        ("state", run["state"]),
        ("why", run["reason"]),
        ("job", run["job"]),
        ("local", shown_local(run["local"], run["offset"])),
        ("scheduled at", run["scheduled_at"]),
        ("due at", run["due_at"]),
        ("admitted at", run["admitted_at"]),
        ("started at", run["started_at"]),
        ("finished at", run["finished_at"]),
        ("stop asked at", run["cancel_requested_at"]),
        ("origin", run["origin"]),
        ("period", run["period_key"]),
        ("attempt", run["attempt"]),
        ("progress", None if run["progress"] is None else shown_json(run["progress"])),
        ("result", None if run["result"] is None else shown_json(run["result"])),
        ("error", run["error"]),
    ]
    write_facts([(name, value) for name, value in facts if value is not None])
    attempts = run["attempts"]
    if isinstance(attempts, list) and attempts:
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
