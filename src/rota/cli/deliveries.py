"""`rota deliveries`: list what is on its way to sinks, redrive what is dead."""

from typing import Annotated

from cyclopts import App, Parameter

from rota.cli.dry_run_tables import WAS_DRY_RUN
from rota.cli.errors import Usage
from rota.cli.options import (
    ActorName,
    AsJson,
    Cursor,
    Database,
    DryRun,
    Limit,
    Reason,
    WalkAll,
    actor_of,
    asked,
    open_existing,
)
from rota.cli.output import write_facts, write_json, write_line, write_more, write_table
from rota.cli.paging import read_pages
from rota.cli.run_filters import Job, Schedule
from rota.cli.run_tables import delivery_facts
from rota.cli.schedule_tables import items_of
from rota.cli.tables import Column, Narrow
from rota.service import deliveries as use_cases
from rota.service.queries import name_place_to_wire, parse_delivery_filter, parse_name_place
from rota.service.representation import Wire

deliveries = App(name="deliveries", help="Show what is on its way to sinks, and redrive what is dead.")


@deliveries.command(name="list")
def list_(
    *,
    state: Annotated[str | None, Parameter(help="sending, retrying, sent or dead.")] = None,
    job: Job = None,
    schedule: Schedule = None,
    limit: Limit = None,
    cursor: Cursor = None,
    walk_all: WalkAll = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """List deliveries by the ids of their runs."""
    filter_ = parse_delivery_filter(asked(state=state, job=job, schedule=schedule))
    with open_existing(database) as context:

        def read(place: object, limit: int) -> list[tuple[Wire, Wire]]:
            found = use_cases.list_deliveries(context, filter_, after=parse_name_place(place), limit=limit)
            return [(name_place_to_wire(str(item["run_id"])), item) for item in found]

        page = read_pages(read, cursor=cursor, limit=limit, walk_all=walk_all)
        write_json(page) if json else _write_deliveries(page)


@deliveries.command
def redrive(
    run_id: str | None = None,
    /,
    *,
    state: Annotated[str | None, Parameter(help="dead; alone it is every dead delivery.")] = None,
    job: Job = None,
    schedule: Schedule = None,
    dry_run: DryRun = False,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Try a dead delivery again, at once; or those that a filter finds, at most 1,000 at a time."""
    filters = asked(state=state, job=job, schedule=schedule)
    if (run_id is None) is not bool(filters):
        raise Usage("RUN-ID: Give the id of a run, or a filter, such as --job, --schedule or --state dead.")
    who = actor_of(actor, reason)
    if run_id is not None:
        if dry_run:
            raise Usage("--dry-run: It goes with a filter, such as --job or --schedule.")
        with open_existing(database) as context:
            delivery = use_cases.redrive_delivery(context, run_id, actor=who)
        write_json(delivery) if json else write_facts(
            [("run", delivery["run_id"]), *delivery_facts(delivery)]
        )
        return
    filter_ = parse_delivery_filter(filters)
    with open_existing(database) as context:
        answer = use_cases.redrive_deliveries(context, filter_, dry_run=dry_run, actor=who)
    if json:
        write_json(answer)
        return
    write_line(f"{answer['redriven']} {'would be ' if dry_run else ''}redriven")
    if not answer["is_complete"]:
        write_line("There are more: say it again.")
    if dry_run:
        write_line(WAS_DRY_RUN)


def _write_deliveries(page: Wire) -> None:
    write_table(
        [
            "RUN",
            Column(name="JOB", leave_out=3),
            "STATE",
            Column(name="TRIES", leave_out=2),
            Column(name="SINCE", leave_out=4),
            Column(name="NEXT AT", leave_out=1),
            Column(name="ERROR", narrow=Narrow.CUT),
        ],
        [
            (
                item["run_id"],
                item["job"],
                item["state"],
                item["tries"],
                item["first_at"],
                item["next_at"],
                item["error"] or "",
            )
            for item in items_of(page)
        ],
    )
    write_more(page)
