"""`rota schedules`: create, list, show, pause, resume, end, and what is to come and what became of it."""

from contextlib import nullcontext
from typing import Annotated

from cyclopts import App, Parameter

from rota.cli import definitions
from rota.cli.errors import Usage
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
from rota.cli.paging import checked_limit, read_pages
from rota.cli.schedule_tables import (
    write_history,
    write_ledger,
    write_schedule,
    write_schedules,
    write_upcoming,
)
from rota.cli.whole_numbers import WHOLE
from rota.cli.wording import OVERDUE_FORMS, in_options, of_file, option_of
from rota.domain.errors import Conflict, FieldError
from rota.domain.identity import ScheduleId
from rota.service import occurrences
from rota.service import schedules as use_cases
from rota.service.context import Context
from rota.service.creation import CreatedSchedule, KeyReused, create_schedule
from rota.service.queries import (
    ledger_place_to_wire,
    name_place_to_wire,
    parse_ledger_place,
    parse_name_place,
    parse_schedule_filter,
)
from rota.service.representation import Wire

UPCOMING_DEFAULT = 10

Labels = Annotated[list[str] | None, Parameter(name="--label", help="customer=acme; may be repeated.")]
Overdue = Annotated[
    str | None,
    Parameter(help=f"{OVERDUE_FORMS}; as the job says, if not given."),
]
Period = Annotated[str | None, Parameter(help="auto (default), day, week, month or instant.")]
DefinitionFile = Annotated[
    str | None,
    definitions.FROM_FILE,
    Parameter(help="The wire form as JSON in place of the options; - is standard input."),
]
IdempotencyKey = Annotated[
    str | None, Parameter(help="The same key with the same definition creates one schedule, for 24 hours.")
]

schedules = App(name="schedules", help="Create, show, pause and end schedules.")


@schedules.command
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
    period: Period = None,
    overdue: Overdue = None,
    params: Annotated[str | None, Parameter(help="A JSON object for the job's handler.")] = None,
    label: Labels = None,
    starts_at: Annotated[str | None, Parameter(help="No occurrence before this instant.")] = None,
    ends_at: Annotated[str | None, Parameter(help="None at or after this one.")] = None,
    max_occurrences: Annotated[int | None, WHOLE, Parameter(help="At most so many.")] = None,
    file: DefinitionFile = None,
    idempotency_key: IdempotencyKey = None,
    actor: ActorName = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Save a schedule. It takes --job, --timezone and a rule, or --file. It may be repeated safely with --id or
    --idempotency-key.
    """
    fields = definitions.given(
        id=id,
        job=job,
        timezone=timezone,
        recurrence=definitions.recurrence_of(cron=cron, at=at, rrule=rrule, every=every, anchor=anchor),
        gap=gap,
        fold=fold,
        period=period,
        overdue=definitions.overdue_of(overdue),
        params=definitions.params_of(params),
        labels=definitions.labels_of(label),
        starts_at=starts_at,
        ends_at=ends_at,
        max_occurrences=max_occurrences,
    )
    if file is not None and fields:
        raise Usage(f"--file: The definition is in the file; leave out {_options_of(fields)}.")
    body = fields if file is None else definitions.read_object(file)
    with open_or_make(database) as context:
        with nullcontext() if file is None else of_file():
            created = _create(context, body, actor=actor, idempotency_key=idempotency_key)
        _show(context, created.body, json=json, said="Created." if created.created else "It existed already.")


@schedules.command(name="list")
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


@schedules.command
def show(schedule_id: str, /, *, database: Database = None, json: AsJson = False) -> None:
    """Show a schedule, every default resolved."""
    with open_existing(database) as context:
        _show(context, use_cases.show_schedule(context, schedule_id), json=json)


@schedules.command
def pause(
    schedule_id: str,
    /,
    *,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Admit nothing from now on. What is queued or running goes on."""
    with open_existing(database) as context:
        paused = use_cases.pause_schedule(context, schedule_id, actor=actor_of(actor, reason))
        _show(context, paused, json=json)


@schedules.command
def resume(
    schedule_id: str,
    /,
    *,
    apply_overdue: Annotated[
        bool,
        Parameter(help="What fell into the pause follows the overdue policy, in place of being skipped."),
    ] = False,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Admit again, after a pause or after an error that was set right."""
    with open_existing(database) as context:
        resumed = use_cases.resume_schedule(
            context, schedule_id, apply_overdue=apply_overdue, actor=actor_of(actor, reason)
        )
        _show(context, resumed, json=json)


@schedules.command
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
        ended = use_cases.end_schedule(context, schedule_id, actor=actor_of(actor, reason))
        _show(context, ended, json=json)


@schedules.command
def upcoming(
    schedule_id: str,
    /,
    *,
    count: Annotated[int, WHOLE, Parameter(help="How many, 1 to 1000; 10 if not given.")] = UPCOMING_DEFAULT,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """List the next occurrences."""
    with open_existing(database) as context:
        answer = occurrences.list_upcoming(context, schedule_id, count=count)
        write_json(answer) if json else write_upcoming(answer)


@schedules.command(name="occurrences")
def ledger(
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
        schedule = use_cases.show_schedule(context, schedule_id)

        def read(place: object, limit: int) -> list[tuple[Wire, Wire]]:
            before = parse_ledger_place(place)
            entries = occurrences.list_ledger(context, schedule_id, before=before, limit=limit)
            return [(ledger_place_to_wire(key), item) for key, item in entries]

        page = read_pages(read, cursor=cursor, limit=limit, walk_all=walk_all)
        write_json(page) if json else write_ledger(page, zones=context.zones, timezone=schedule["timezone"])


@schedules.command
def history(
    schedule_id: str, /, *, limit: Limit = None, database: Database = None, json: AsJson = False
) -> None:
    """List who did what, newest first."""
    with open_existing(database) as context:
        events = use_cases.list_history(context, schedule_id, limit=checked_limit(limit))
        page: Wire = {"items": events, "next_cursor": None}
        write_json(page) if json else write_history(page)


def _create(
    context: Context, body: Wire, *, actor: str | None, idempotency_key: str | None
) -> CreatedSchedule:
    try:
        return create_schedule(context, body, actor=actor_of(actor, None), idempotency_key=idempotency_key)
    except KeyReused as error:
        raise Conflict(in_options(FieldError("Idempotency-Key", str(error))).message) from None


def _options_of(fields: Wire) -> str:
    kinds = fields.get("recurrence")
    rule = [f"recurrence.{kind}" for kind in kinds] if isinstance(kinds, dict) else []
    names = [name for name in fields if name != "recurrence"]
    return ", ".join(sorted(option_of(name) for name in [*names, *rule]))


def _show(context: Context, schedule: Wire, *, json: bool, said: str | None = None) -> None:
    if json:
        write_json(schedule)
        return
    if said is not None:
        write_line(said)
    write_schedule(schedule, zones=context.zones)
