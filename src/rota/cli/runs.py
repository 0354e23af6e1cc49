"""`rota runs`: list, show, cancel, replay."""

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
from rota.cli.output import write_json
from rota.cli.paging import read_pages
from rota.cli.requested import replay
from rota.cli.run_tables import write_run, write_runs
from rota.service import runs as use_cases
from rota.service.queries import ledger_place_to_wire, parse_ledger_place, parse_run_filter
from rota.service.representation import Wire

STATES = "planned, held, queued, running, succeeded, failed, cancelled, moot or skipped."

runs = App(name="runs", help="Show, cancel and replay runs.")


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
        write_json(page) if json else write_runs(page)


@runs.command
def show(run_id: str, /, *, database: Database = None, json: AsJson = False) -> None:
    """Show a run with the version that made it, its attempts and its result."""
    with open_existing(database) as context:
        run = use_cases.show_run(context, run_id)
        write_json(run) if json else write_run(run)


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
        write_json(run) if json else write_run(run)


runs.command(replay)
