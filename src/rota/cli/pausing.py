"""`rota schedules pause` and `resume`."""

from typing import Annotated

from cyclopts import Parameter

from rota.cli.dry_run_tables import write_dry_run, write_occurrences
from rota.cli.explanations import entries_of
from rota.cli.options import ActorName, AsJson, Database, DryRun, Reason, actor_of, open_existing
from rota.cli.output import write_json, write_line
from rota.cli.pauses import held_runs
from rota.cli.schedule_tables import write_answer
from rota.cli.times import locals_of
from rota.domain.schedule import ScheduleStatus
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
        before = use_cases.show_schedule(context, schedule_id)
        paused = use_cases.pause_schedule(context, schedule_id, actor=who)
        said = "Already paused." if before["status"] == ScheduleStatus.PAUSED else "Paused."
        write_answer(context, paused, json=json, said=said)


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
        before = use_cases.show_schedule(context, schedule_id)
        foretold = _held_foretold(context, before, apply_overdue=apply_overdue)
        resumed = use_cases.resume_schedule(context, schedule_id, apply_overdue=apply_overdue, actor=who)
        said = "Already active." if before["status"] == ScheduleStatus.ACTIVE else "Resumed."
        write_answer(context, resumed, json=json, said=said)
        if foretold is not None and not json:
            write_line("")
            write_occurrences(foretold, ["kept", "skipped"], local_of=locals_of(context, schedule_id))


def _held_foretold(context: Context, before: Wire, *, apply_overdue: bool) -> Wire | None:
    """What becomes of the runs that the pause held, in the shape of a dry run; None where it held none."""
    held = {run["run_id"] for run in held_runs(context, before)}
    if not held:
        return None
    told = dry_run_resume(context, str(before["id"]), apply_overdue=apply_overdue)
    sections = {
        name: [entry for entry in entries_of(told, name) if entry.get("run_id") in held]
        for name in ("kept", "skipped")
    }
    return {"operation": "resumed", **sections}


def _write_told(context: Context, told: Wire, *, json: bool) -> None:
    if json:
        write_json(told)
        return
    id_ = str(told["schedule_id"])
    before = use_cases.show_schedule(context, id_)
    write_dry_run(told, before, local_of=locals_of(context, id_), now=context.clock.now())
