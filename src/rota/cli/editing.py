"""`rota schedules edit`: the next version of a schedule, told as a diff before or after it is made."""

from contextlib import nullcontext
from typing import Annotated

from cyclopts import Parameter

from rota.cli import definitions
from rota.cli.dry_run_tables import write_done, write_dry_run
from rota.cli.errors import Usage
from rota.cli.options import ActorName, AsJson, Database, DryRun, Reason, actor_of, open_existing
from rota.cli.output import write_json, write_line
from rota.cli.times import locals_of
from rota.cli.whole_numbers import WHOLE
from rota.cli.wording import of_file
from rota.domain.definition import DEFINITION_FIELDS
from rota.domain.edit_form import Edit, parse_edit
from rota.domain.errors import FieldError, InvalidRequest
from rota.domain.instants import format_instant
from rota.service.changes import get_schedule
from rota.service.context import Actor, Context
from rota.service.dry_runs import dry_run_edit
from rota.service.editing import edit_schedule
from rota.service.moments import parse_moment
from rota.service.occurrences import list_upcoming
from rota.service.representation import Wire
from rota.service.runs import show_run
from rota.service.schedules import list_history, show_schedule

NEXT_SHOWN = 3
EVENTS_LOOKED_AT = 20
WITHOUT_DEFAULT = frozenset({"timezone", "recurrence"})
UNSETTABLE = ("labels", *sorted(DEFINITION_FIELDS - WITHOUT_DEFAULT))

NewTimezone = Annotated[str | None, Parameter(help="An IANA zone name, such as Europe/London.")]
NewCron = Annotated[
    str | None,
    Parameter(help='The new rule, or --at, --rrule or --every: five fields, such as "0 9 * * 1-5".'),
]
NewAnchor = Annotated[
    str | None, Parameter(help="The first instant of --every; as it is, where the interval stays, else now.")
]
NewParams = Annotated[
    str | None, Parameter(help="A JSON object, merged into the params: null takes a member away.")
]
NewLabels = Annotated[
    list[str] | None, Parameter(name="--label", help="customer=acme, beside the others; may be repeated.")
]
Unset = Annotated[
    list[str] | None,
    Parameter(
        help="Back to its default: ends-at, overdue and others, or one member, as in label.customer or "
        "params.region; may be repeated."
    ),
]
BoundaryOption = Annotated[
    str | None,
    Parameter(
        help="keep_period (default): each period runs once, under the old rule or the new; or now: periods begin anew."
    ),
]
EffectiveFrom = Annotated[
    str | None,
    Parameter(
        help="From when on the new version governs: an instant, or a local time in the zone that the schedule has now; "
        "at once, if not given."
    ),
]
AtOnce = Annotated[
    bool,
    Parameter(
        help="At once also with --replace-pending; else it waits as long as the version that it replaces."
    ),
]
ReplacePending = Annotated[bool, Parameter(help="In place of a version that has not taken over yet.")]
ExpectVersion = Annotated[
    int | None, WHOLE, Parameter(help="Only if this is the latest version: nobody has edited it meanwhile.")
]
EditFile = Annotated[
    str | None,
    definitions.FROM_FILE,
    Parameter(help="The patch in wire form as JSON in place of these options; - is standard input."),
]


def edit(
    schedule_id: str,
    /,
    *,
    timezone: NewTimezone = None,
    cron: NewCron = None,
    at: definitions.At = None,
    rrule: definitions.RRule = None,
    every: definitions.Every = None,
    anchor: NewAnchor = None,
    gap: definitions.Gap = None,
    fold: definitions.Fold = None,
    period: definitions.Period = None,
    overdue: definitions.Overdue = None,
    overlap: definitions.Overlap = None,
    spread: definitions.Spread = None,
    params: NewParams = None,
    label: NewLabels = None,
    starts_at: definitions.StartsAt = None,
    ends_at: definitions.EndsAt = None,
    max_occurrences: definitions.MaxOccurrences = None,
    unset: Unset = None,
    boundary: BoundaryOption = None,
    effective_from: EffectiveFrom = None,
    at_once: AtOnce = False,
    replace_pending: ReplacePending = False,
    file: EditFile = None,
    expect_version: ExpectVersion = None,
    dry_run: DryRun = False,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Change what is given and nothing else. It makes the next version; what was planned or ran stays as it was.

    Try it with --dry-run first: that tells which occurrences are kept, carried, suppressed and skipped, and why."""
    rule = definitions.recurrence_of(cron=cron, at=at, rrule=rrule, every=every, anchor=anchor)
    fields = definitions.given(timezone=timezone, recurrence=rule, gap=gap, fold=fold, period=period)
    bounds = definitions.given(starts_at=starts_at, ends_at=ends_at, effective_from=effective_from)
    fields |= bounds | definitions.given(overlap=overlap, spread=spread)
    fields |= definitions.given(overdue=definitions.overdue_of(overdue), params=definitions.params_of(params))
    fields |= definitions.given(labels=definitions.labels_of(label), max_occurrences=max_occurrences)
    flags = definitions.given(at_once=at_once or None, replaces_pending=replace_pending or None)
    fields |= flags | definitions.given(boundary=boundary)
    body = _with_unset(fields, unset or []) if file is None else _read(file, fields, unset or [])
    with open_existing(database) as context, nullcontext() if file is None else of_file():
        asked = parse_edit(_with_instant(context, schedule_id, body, effective_from))
        act = _tell if dry_run else _carry_out
        act(context, schedule_id, asked, actor_of(actor, reason), expect_version=expect_version, json=json)


def _with_instant(context: Context, schedule_id: str, body: Wire, effective_from: str | None) -> Wire:
    """The patch with an instant in place of a local time. Raises `NotFound` and `InvalidRequest`."""
    if effective_from is None:
        return body
    version = get_schedule(context, schedule_id).version
    moment = parse_moment(context, version, effective_from, field="effective_from")
    return {**body, "effective_from": format_instant(moment)}


def _tell(
    context: Context, schedule_id: str, asked: Edit, who: Actor, *, expect_version: int | None, json: bool
) -> None:
    told = dry_run_edit(context, schedule_id, asked, expected_version=expect_version, actor=who)
    if json:
        write_json(told)
        return
    before = show_schedule(context, schedule_id)
    write_dry_run(told, before, local_of=locals_of(context, schedule_id), now=context.clock.now())
    if told["changed"]:
        latest = before["latest_version"]
        write_line(
            f"Do it with --expect-version {latest}: that refuses where somebody has edited it meanwhile."
        )


def _carry_out(
    context: Context, schedule_id: str, asked: Edit, who: Actor, *, expect_version: int | None, json: bool
) -> None:
    before = show_schedule(context, schedule_id)
    after = edit_schedule(context, schedule_id, asked, expected_version=expect_version, actor=who)
    if json:
        write_json(after)
        return
    done = _what_was_done(context, before, after)
    write_done(done, before, local_of=locals_of(context, schedule_id), now=context.clock.now())


def _what_was_done(context: Context, before: Wire, after: Wire) -> Wire:
    """In the shape of a dry run: from the event of the edit, which was written in the same commit."""
    id_, version = str(after["id"]), after["latest_version"]
    made = after["pending"] if isinstance(after["pending"], dict) else after
    labels = {"labels": {"from": before["labels"], "to": after["labels"]}}
    done: Wire = {
        "operation": "edit",
        "schedule_id": id_,
        "version": version,
        "effective_from": None,
        "changed": labels if before["labels"] != after["labels"] else {},
        "changes_version": before["latest_version"],
        "period": made["period"],
    }
    if version == before["latest_version"]:
        return done
    for event in list_history(context, id_, limit=EVENTS_LOOKED_AT):
        details = event["details"]
        if (
            event["action"] == "schedule.edit"
            and isinstance(details, dict)
            and details.get("version") == version
        ):
            carried = [{**show_run(context, run_id), "note": None} for run_id in details["carried"]]
            done |= {
                "boundary": details["boundary"],
                "effective_from": details["effective_from"],
                "is_pending": after["pending"] is not None,
                "replaces": details["replaced"],
                "changed": details["changed"],
                "carried": carried,
                "next": list_upcoming(context, id_, count=NEXT_SHOWN)["occurrences"],
            }
            break
    return done


def _read(file: str, fields: Wire, unset: list[str]) -> Wire:
    given = [definitions.options_of(fields), "--unset" if unset else ""]
    if any(given):
        options = ", ".join(option for option in given if option)
        raise Usage(f"--file: The patch is in the file; leave out {options}.")
    return definitions.read_object(file)


def _with_unset(fields: Wire, unset: list[str]) -> Wire:
    """The patch with null for each name: a whole member, or one inside of labels or params.

    Raises `Usage` where nothing is given, and `InvalidRequest`.
    """
    if not fields and not unset:
        raise Usage(
            "Say what is to change, such as --cron or --params; `rota schedules edit --help` lists it."
        )
    errors: list[FieldError] = []
    for name in unset:
        first, dot, rest = name.partition(".")
        field = "labels" if first in ("label", "labels") else first.replace("-", "_")
        if field not in UNSETTABLE or (dot and field not in ("labels", "params")) or (dot and not rest):
            known = ", ".join(option.replace("_", "-") for option in UNSETTABLE)
            message = f"{name!r} has no default; give one of {known}, label.NAME or params.NAME."
            errors.append(FieldError("--unset", message))
            continue
        path = [field] if not dot else [field, rest] if field == "labels" else [field, *rest.split(".")]
        if not _set_null(fields, path):
            errors.append(FieldError("--unset", f"{name!r} is given a value as well; leave one of them out."))
    if errors:
        raise InvalidRequest(*errors)
    return fields


def _set_null(patch: Wire, path: list[str]) -> bool:
    """False where the patch has a value there already."""
    member, *rest = path
    if not rest:
        is_free = patch.get(member) is None
        patch[member] = None
        return is_free
    inner = patch.setdefault(member, {})
    return isinstance(inner, dict) and _set_null(inner, rest)
