"""`rota schedules plan`, `skip` and `move`: occurrences decided ahead of their time."""

from typing import Annotated

from cyclopts import Parameter

from rota.cli.dry_run_tables import SHOWN_MAX, WAS_DRY_RUN, write_occurrences
from rota.cli.options import ActorName, AsJson, Database, DryRun, Reason, actor_of, open_existing
from rota.cli.output import write_json, write_line
from rota.cli.run_tables import write_created_runs
from rota.cli.times import LocalOf, locals_of, shown_local
from rota.service import planning as use_cases
from rota.service.representation import Wire

MOMENT = "an instant (2026-01-14T14:00:00Z), or a local time in the schedule's zone (2026-01-14T09:00)"

Until = Annotated[str, Parameter(help=f"The last moment to plan: {MOMENT}.")]
Occurrence = Annotated[str, Parameter(help=f"Which one: {MOMENT}.")]
To = Annotated[str, Parameter(help=f"When it falls due instead: {MOMENT}.")]


def plan(
    schedule_id: str,
    /,
    *,
    until: Until,
    dry_run: DryRun = False,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Create the occurrences up to a moment as planned runs. They keep their version and params through any edit."""
    with open_existing(database) as context:
        answer = use_cases.plan_occurrences(
            context, schedule_id, until=until, dry_run=dry_run, actor=actor_of(actor, reason)
        )
        write_json(answer) if json else _write_plan(answer, local_of=locals_of(context, schedule_id))


def skip(
    schedule_id: str,
    occurrence: Occurrence,
    /,
    *,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Leave out one occurrence to come ("not this Tuesday"). No edit brings it back."""
    with open_existing(database) as context:
        run = use_cases.skip_occurrence(
            context, schedule_id, scheduled_at=occurrence, actor=actor_of(actor, reason)
        )
        if json:
            write_json(run)
            return
        write_line(f"{schedule_id}: {_named(run)} is skipped; its period {run['period_key']} stays used.")


def move(
    schedule_id: str,
    occurrence: Occurrence,
    /,
    *,
    to: To,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Have one occurrence to come fall due at another time. It stays the same occurrence, of the same period."""
    with open_existing(database) as context:
        run = use_cases.move_occurrence(
            context, schedule_id, scheduled_at=occurrence, to=to, actor=actor_of(actor, reason)
        )
        if json:
            write_json(run)
            return
        due = locals_of(context, schedule_id)(run["version"], run["due_at"])
        write_line(f"{schedule_id}: {_named(run)} falls due at {due} ({run['due_at']}).")
        write_line(f"It is planned as run {run['run_id']}.")


def _write_plan(answer: Wire, *, local_of: LocalOf) -> None:
    id_, created, existing = answer["schedule_id"], answer["created"], answer["existing"]
    would = "would be created" if answer["dry_run"] else "created"
    local = local_of(answer["version"], answer["until"])
    write_line(
        f"{id_}: planned until {local} ({answer['until']}): {created} {would}, {existing} there already"
    )
    write_created_runs(answer, shown_max=SHOWN_MAX)
    write_occurrences({**answer, "operation": "plan"}, ["suppressed"], local_of=local_of)
    if answer["dry_run"]:
        write_line(WAS_DRY_RUN)


def _named(run: Wire) -> str:
    return f"{shown_local(run['local'], run['offset'])} ({run['scheduled_at']}, version {run['version']})"
