"""`rota jobs`: list, show, put, apply."""

from typing import Annotated

from cyclopts import App, Parameter

from rota.cli.definitions import FROM_FILE, read_object
from rota.cli.dry_run_tables import WAS_DRY_RUN
from rota.cli.errors import Usage
from rota.cli.explanations import entries_of
from rota.cli.options import (
    AsJson,
    Cursor,
    Database,
    DryRun,
    Limit,
    WalkAll,
    load_config,
    open_existing,
    open_or_make,
)
from rota.cli.output import shown_json, write_facts, write_json, write_line, write_more, write_table
from rota.cli.paging import read_pages
from rota.cli.schedule_tables import items_of, shown_overdue
from rota.cli.tables import Column, Narrow
from rota.cli.wording import of_file
from rota.config_file import CONFIG_NAME
from rota.service import jobs as use_cases
from rota.service.queries import name_place_to_wire, parse_name_place
from rota.service.representation import Wire

jobs = App(name="jobs", help="Show and declare jobs.")


@jobs.command(name="list")
def list_(
    *,
    limit: Limit = None,
    cursor: Cursor = None,
    walk_all: WalkAll = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """List jobs by name."""
    with open_existing(database) as context:

        def read(place: object, limit: int) -> list[tuple[Wire, Wire]]:
            found = use_cases.list_jobs(context, after=parse_name_place(place), limit=limit)
            return [(name_place_to_wire(str(item["name"])), item) for item in found]

        page = read_pages(read, cursor=cursor, limit=limit, walk_all=walk_all)
        write_json(page) if json else _write_jobs(page)


@jobs.command
def show(name: str, /, *, database: Database = None, json: AsJson = False) -> None:
    """Show a job, every default resolved."""
    with open_existing(database) as context:
        job = use_cases.show_job(context, name)
        write_json(job) if json else _write_job(job)


@jobs.command
def put(
    name: str,
    /,
    *,
    file: Annotated[
        str | None, FROM_FILE, Parameter(help="Its fields as a JSON object; - is standard input.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Create or replace a job. Workers do this for the jobs that they have; without --file all is by default."""
    body = {} if file is None else read_object(file)
    with open_or_make(database) as context:
        with of_file():
            created, job = use_cases.put_job(context, name, body)
        if json:
            write_json(job)
            return
        write_line("Created." if created else "Replaced.")
        _write_job(job)


@jobs.command
def apply(*, dry_run: DryRun = False, database: Database = None, json: AsJson = False) -> None:
    """Make jobs as the tables [jobs.NAME] of rota.toml have them; others are left alone."""
    config = load_config()
    if not config.jobs:
        raise Usage(
            f"{config.source} has no jobs; give a {CONFIG_NAME} with tables [jobs.NAME] by --config PATH."
        )
    with (open_existing if dry_run else open_or_make)(database) as context:
        answer = use_cases.apply_jobs(context, config.jobs, dry_run=dry_run)
        if json:
            write_json(answer)
            return
        for outcome in entries_of(answer, "jobs"):
            write_line(f"{outcome['name']}: {outcome['outcome']}")
        if dry_run:
            write_line(WAS_DRY_RUN)


def _write_jobs(page: Wire) -> None:
    write_table(
        [
            "NAME",
            Column(name="OVERDUE", leave_out=3),
            Column(name="TIMEOUT", leave_out=2),
            Column(name="LEASE", leave_out=1),
            "SINK",
            Column(name="PRIORITY", leave_out=4),
            Column(name="MAX RUNNING", leave_out=5),
            Column(name="DESCRIPTION", narrow=Narrow.CUT),
        ],
        [
            (
                item["name"],
                shown_overdue(item["overdue"]),
                item["timeout"],
                item["lease"],
                _shown_sink(item["sink"]),
                item["priority"],
                item["max_running"],
                item["description"] or "",
            )
            for item in items_of(page)
        ],
    )
    write_more(page)


def _write_job(job: Wire) -> None:
    write_facts(
        [
            ("name", job["name"]),
            ("description", job["description"]),
            ("overdue", shown_overdue(job["overdue"])),
            ("retry", shown_json(job["retry"])),
            ("timeout", job["timeout"]),
            ("lease", job["lease"]),
            ("params at most", f"{job['params_bytes_max']} bytes"),
            ("sink", shown_json(job["sink"])),
            ("delivery", shown_json(job["delivery"])),
            ("priority", job["priority"]),
            ("running at most", job["max_running"]),
        ]
    )


def _shown_sink(sink: object) -> object:
    """Its kind; `rota jobs show` has all of it."""
    return sink["type"] if isinstance(sink, dict) else None
