"""`rota runs`: list, show, cancel, replay."""

from cyclopts import App

from rota.cli.options import (
    AsJson,
    Cursor,
    Database,
    Limit,
    WalkAll,
    asked,
    open_existing,
)
from rota.cli.output import write_json
from rota.cli.paging import read_pages
from rota.cli.run_commands import cancel, replay
from rota.cli.run_filters import From, Job, Label, Origin, Schedule, State, Until
from rota.cli.run_tables import write_run, write_runs
from rota.service import runs as use_cases
from rota.service.queries import ledger_place_to_wire, parse_ledger_place, parse_run_filter
from rota.service.representation import Wire

runs = App(name="runs", help="Show, cancel and replay runs.")


@runs.command(name="list")
def list_(
    *,
    schedule: Schedule = None,
    state: State = None,
    job: Job = None,
    origin: Origin = None,
    label: Label = None,
    from_: From = None,
    until: Until = None,
    limit: Limit = None,
    cursor: Cursor = None,
    walk_all: WalkAll = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """List runs, newest occurrence first."""
    filter_ = parse_run_filter(
        asked(
            schedule=schedule,
            state=state,
            job=job,
            origin=origin,
            label=label,
            until=until,
            **{"from": from_},
        )
    )
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


runs.command(cancel)
runs.command(replay)
