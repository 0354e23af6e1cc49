"""`rota schedules pause` and `resume`."""

from typing import Annotated

from cyclopts import Parameter

from rota.cli.dry_run_tables import write_dry_run
from rota.cli.explanations import entries_of
from rota.cli.options import ActorName, AsJson, Database, DryRun, Reason, actor_of, open_existing
from rota.cli.output import write_json
from rota.cli.schedule_tables import write_answer
from rota.cli.times import locals_of
from rota.service import schedules as use_cases
from rota.service.context import Context
from rota.service.dry_runs import dry_run_pause, dry_run_resume
from rota.service.representation import Wire

ApplyOverdue = Annotated[
    bool, Parameter(help="What fell into the pause follows the overdue policy, in place of being skipped.")
]


def pause(
    schedule_id: str,
    /,
    *,
    dry_run: DryRun = False,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Admit nothing from now on. What is queued or running goes on."""
    who = actor_of(actor, reason)
    with open_existing(database) as context:
        if dry_run:
            told = dry_run_pause(context, schedule_id, actor=who)
            if not json:
                # Planned ones are among the kept: they are held, and not skipped.
                told["skipped"] = [
                    entry for entry in entries_of(told, "skipped") if entry["state"] == "named"
                ]
            _write_told(context, told, json=json)
            return
        paused = use_cases.pause_schedule(context, schedule_id, actor=who)
        write_answer(paused, zones=context.zones, json=json)


def resume(
    schedule_id: str,
    /,
    *,
    apply_overdue: ApplyOverdue = False,
    dry_run: DryRun = False,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Admit again, after a pause or after an error that was set right."""
    who = actor_of(actor, reason)
    with open_existing(database) as context:
        if dry_run:
            told = dry_run_resume(context, schedule_id, apply_overdue=apply_overdue, actor=who)
            _write_told(context, told, json=json)
            return
        resumed = use_cases.resume_schedule(context, schedule_id, apply_overdue=apply_overdue, actor=who)
        write_answer(resumed, zones=context.zones, json=json)


def _write_told(context: Context, told: Wire, *, json: bool) -> None:
    if json:
        write_json(told)
        return
    id_ = str(told["schedule_id"])
    before = use_cases.show_schedule(context, id_)
    write_dry_run(told, before, local_of=locals_of(context, id_), now=context.clock.now())
