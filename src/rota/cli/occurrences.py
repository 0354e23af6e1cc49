"""`rota schedules upcoming` and `occurrences`: what is to come, and what became of what has come."""

from typing import Annotated

from cyclopts import Parameter

from rota.cli.occurrence_tables import write_ledger, write_upcoming
from rota.cli.options import AsJson, Cursor, Database, Limit, WalkAll, open_existing
from rota.cli.output import write_json, write_line
from rota.cli.paging import read_pages
from rota.cli.pauses import held_runs, pause_line
from rota.cli.schedule_tables import shown_pending
from rota.cli.times import locals_of
from rota.cli.whole_numbers import WHOLE
from rota.service import occurrences as use_cases
from rota.service.queries import ledger_place_to_wire, parse_ledger_place
from rota.service.representation import Wire
from rota.service.schedules import show_schedule

UPCOMING_DEFAULT = 10


def upcoming(
    schedule_id: str,
    /,
    *,
    count: Annotated[int, WHOLE, Parameter(help="How many, 1 to 1000; 10 if not given.")] = UPCOMING_DEFAULT,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """List the next occurrences, planned ones among them, and what is left out on the way to them."""
    with open_existing(database) as context:
        answer = use_cases.list_upcoming(context, schedule_id, count=count)
        if json:
            write_json(answer)
            return
        schedule = show_schedule(context, schedule_id)
        for line in (shown_pending(schedule), pause_line(context, schedule)):
            if line is not None:
                write_line(f"{schedule_id}: {line}")
        held = held_runs(context, schedule)
        write_upcoming(answer, held=held, local_of=locals_of(context, schedule_id))


def list_ledger(
    schedule_id: str,
    /,
    *,
    limit: Limit = None,
    cursor: Cursor = None,
    walk_all: WalkAll = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """List what became of its occurrences, newest first: a run, or a skip with its reason."""
    with open_existing(database) as context:
        schedule = show_schedule(context, schedule_id)

        def read(place: object, limit: int) -> list[tuple[Wire, Wire]]:
            before = parse_ledger_place(place)
            entries = use_cases.list_ledger(context, schedule_id, before=before, limit=limit)
            return [(ledger_place_to_wire(key), item) for key, item in entries]

        page = read_pages(read, cursor=cursor, limit=limit, walk_all=walk_all)
        write_json(page) if json else write_ledger(page, zones=context.zones, timezone=schedule["timezone"])
