"""`rota schedules`: create, list, show, end; its other commands are in files of their own."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Annotated

from cyclopts import App, Parameter

from rota.cli import definitions, editing, history, occurrences, pausing, planning, requested
from rota.cli.errors import Usage
from rota.cli.occurrence_tables import write_coming
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
    open_or_make,
)
from rota.cli.output import write_json, write_line
from rota.cli.paging import read_pages
from rota.cli.pauses import pause_line
from rota.cli.schedule_tables import write_answer, write_schedules
from rota.cli.waiting import waiting_lines
from rota.cli.wording import of_file
from rota.domain.identity import ScheduleId
from rota.service import schedules as use_cases
from rota.service.creation import create_schedule
from rota.service.queries import name_place_to_wire, parse_name_place, parse_schedule_filter
from rota.service.representation import Wire

DefinitionFile = Annotated[
    str | None,
    definitions.FROM_FILE,
    Parameter(help="The wire form as JSON in place of the options; - is standard input."),
]
IdempotencyKey = Annotated[
    str | None, Parameter(help="The same key with the same definition creates one schedule, for 24 hours.")
]


def create(
    *,
    id: Annotated[str | None, Parameter(help="Made, if not given.")] = None,  # noqa: A002 - its wire name
    job: Annotated[str | None, Parameter(help="Required: what it runs.")] = None,
    timezone: definitions.Timezone = None,
    cron: definitions.Cron = None,
    at: definitions.At = None,
    rrule: definitions.RRule = None,
    every: definitions.Every = None,
    anchor: definitions.Anchor = None,
    gap: definitions.Gap = None,
    fold: definitions.Fold = None,
    period: definitions.Period = None,
    overdue: definitions.Overdue = None,
    overlap: definitions.Overlap = None,
    spread: definitions.Spread = None,
    params: definitions.Params = None,
    label: definitions.Labels = None,
    starts_at: definitions.StartsAt = None,
    ends_at: definitions.EndsAt = None,
    max_occurrences: definitions.MaxOccurrences = None,
    file: DefinitionFile = None,
    idempotency_key: IdempotencyKey = None,
    actor: ActorName = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Save a schedule. It takes --job, --timezone and a rule, or --file. It may be repeated safely with --id or
    --idempotency-key.
    """
    rule = definitions.recurrence_of(cron=cron, at=at, rrule=rrule, every=every, anchor=anchor)
    fields = definitions.given(id=id, job=job, timezone=timezone, recurrence=rule, gap=gap, fold=fold)
    fields |= definitions.given(period=period, overdue=definitions.overdue_of(overdue))
    fields |= definitions.given(overlap=overlap, spread=spread)
    fields |= definitions.given(params=definitions.params_of(params), labels=definitions.labels_of(label))
    fields |= definitions.given(starts_at=starts_at, ends_at=ends_at, max_occurrences=max_occurrences)
    if file is not None and fields:
        raise Usage(f"--file: The definition is in the file; leave out {definitions.options_of(fields)}.")
    body = fields if file is None else definitions.read_object(file)
    with open_or_make(database) as context:
        with nullcontext() if file is None else of_file():
            who = actor_of(actor, None)
            created = create_schedule(context, body, actor=who, idempotency_key=idempotency_key)
        said = "Created." if created.created else "It existed already."
        write_answer(context, created.body, json=json, said=said)


def list_(
    *,
    status: Annotated[str | None, Parameter(help="active, paused, error or ended.")] = None,
    job: Annotated[str | None, Parameter(help="Only those of this job.")] = None,
    label: Annotated[str | None, Parameter(help="Only those with this label: customer=acme.")] = None,
    limit: Limit = None,
    cursor: Cursor = None,
    walk_all: WalkAll = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """List schedules by id, ended ones included."""
    filter_ = parse_schedule_filter(asked(status=status, job=job, label=label))
    with open_existing(database) as context:

        def read(place: object, limit: int) -> list[tuple[Wire, Wire]]:
            after = parse_name_place(place)
            found = use_cases.list_schedules(
                context, filter_, after=None if after is None else ScheduleId(after), limit=limit
            )
            return [(name_place_to_wire(str(item["id"])), item) for item in found]

        page = read_pages(read, cursor=cursor, limit=limit, walk_all=walk_all)
        write_json(page) if json else write_schedules(page, zones=context.zones)


def show(schedule_id: str, /, *, database: Database = None, json: AsJson = False) -> None:
    """Show a schedule, every default resolved, and what comes next."""
    with open_existing(database) as context:
        schedule = use_cases.show_schedule(context, schedule_id)
        write_answer(context, schedule, json=json)
        if json:
            return
        if (paused := pause_line(context, schedule)) is not None:
            write_line(paused)
        if waiting := list(waiting_lines(schedule)):
            write_line("")
        for line in waiting:
            write_line(line)
        write_coming(context, schedule)


def end(
    schedule_id: str,
    /,
    *,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """No further occurrence. Its history stays, and its id is never used again."""
    with open_existing(database) as context:
        before = use_cases.show_schedule(context, schedule_id)
        ended = use_cases.end_schedule(context, schedule_id, actor=actor_of(actor, reason))
        why = "" if reason is None else f" ({reason})"
        said = "It had ended already." if before["status"] == "ended" else f"Ended{why}."
        write_answer(context, ended, json=json, said=said)


COMMANDS: Mapping[str, Callable[..., None]] = {
    "create": create,
    "list": list_,
    "show": show,
    "edit": editing.edit,
    "pause": pausing.pause,
    "resume": pausing.resume,
    "end": end,
    "upcoming": occurrences.upcoming,
    "plan": planning.plan,
    "skip": planning.skip,
    "move": planning.move,
    "run": requested.run,
    "backfill": requested.backfill,
    "occurrences": occurrences.list_ledger,
    "versions": history.versions,
    "history": history.history,
}
"""In the order of the reference."""

schedules = App(name="schedules", help="Create, show, edit, plan, pause and end schedules.")
for name, command in COMMANDS.items():
    schedules.command(command, name=name)
