"""Occurrences to come and gone as tables for people."""

from rota.cli.dry_run_tables import write_occurrences
from rota.cli.output import write_line, write_more, write_table
from rota.cli.pauses import held_runs
from rota.cli.schedule_tables import items_of
from rota.cli.tables import Column, Narrow
from rota.cli.times import LocalOf, local_of, locals_of, shown_local
from rota.domain.errors import Conflict, ZoneRulesDiffer
from rota.service.context import Context
from rota.service.occurrences import list_upcoming
from rota.service.representation import Wire
from rota.zones import Zones

COMING_SHOWN = 3


def write_coming(context: Context, schedule: Wire) -> None:
    """What comes first, below the schedule; why it cannot be told, where that is not said by the schedule."""
    id_ = str(schedule["id"])
    try:
        answer = list_upcoming(context, id_, count=COMING_SHOWN)
    except ZoneRulesDiffer as error:
        write_line(str(error))
        return
    except Conflict:  # it is in error, and says why
        return
    held = held_runs(context, schedule)
    if answer["occurrences"] or held:
        write_line("")
        write_upcoming(answer, held=held, local_of=locals_of(context, id_))


def write_upcoming(answer: Wire, *, held: list[Wire], local_of: LocalOf) -> None:
    """A line for each occurrence to come, for each one that is left out on the way, and for each that is held."""
    told: Wire = {**answer, "next": answer["occurrences"], "held": held, "operation": "upcoming"}
    if not told["next"]:
        write_line("Nothing comes: it has ended." if answer["status"] == "ended" else "Nothing comes.")
    sections = ["held", "next", "suppressed", "skipped"]
    write_occurrences(told, sections, local_of=local_of, shown_max=None)


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
