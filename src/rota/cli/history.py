"""`rota schedules versions` and `history`: what a schedule was, since when, and who made it so."""

from rota.cli.history_tables import write_history, write_versions
from rota.cli.options import AsJson, Cursor, Database, Limit, WalkAll, open_existing
from rota.cli.output import write_json
from rota.cli.paging import checked_limit, read_pages
from rota.service import schedules as use_cases
from rota.service.queries import parse_version_place, version_place_to_wire
from rota.service.representation import Wire


def versions(
    schedule_id: str,
    /,
    *,
    limit: Limit = None,
    cursor: Cursor = None,
    walk_all: WalkAll = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """List its versions, latest first, each with its window, its rule, and who made it and why."""
    with open_existing(database) as context:

        def read(place: object, limit: int) -> list[tuple[Wire, Wire]]:
            before = parse_version_place(place)
            found = use_cases.list_versions(context, schedule_id, before=before, limit=limit)
            return [(version_place_to_wire(int(str(item["version"]))), item) for item in found]

        page = read_pages(read, cursor=cursor, limit=limit, walk_all=walk_all)
        if json:
            write_json(page)
            return
        schedule = use_cases.show_schedule(context, schedule_id)
        write_versions(page, schedule, now=context.clock.now())


def history(
    schedule_id: str, /, *, limit: Limit = None, database: Database = None, json: AsJson = False
) -> None:
    """List who did what, newest first; of an edit what it changed, and when its version takes over."""
    with open_existing(database) as context:
        events = use_cases.list_history(context, schedule_id, limit=checked_limit(limit))
        page: Wire = {"items": events, "next_cursor": None}
        write_json(page) if json else write_history(page)
