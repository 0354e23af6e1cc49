"""Runs as people and applications see and stop them."""

from rota.domain.audit import AuditEvent
from rota.domain.errors import Conflict, NotFound, UnreadableRow
from rota.domain.identity import RunId, ScheduleId
from rota.domain.job import Job
from rota.domain.json_text import encode_json
from rota.domain.run import SETTLED, Run, RunDetail, RunState
from rota.service.context import NOBODY, Actor, Context
from rota.service.queries import is_name
from rota.service.representation import Wire, run_detail_to_wire, run_to_wire, version_to_wire
from rota.store.port import LedgerKey, RunFilter


def show_run(context: Context, run_id: str) -> Wire:
    """The run with its attempts, its result, and the version that made it. Raises `NotFound`."""
    return _shown(context, get_run(context, run_id))


def get_run(context: Context, run_id: str) -> RunDetail:
    """Raises `NotFound`."""
    detail = context.store.get_run(RunId(run_id)) if is_name(run_id) else None
    if detail is None:
        raise NotFound("run", run_id)
    return detail


def list_runs(
    context: Context, filter_: RunFilter, *, before: LedgerKey | None, limit: int
) -> list[tuple[LedgerKey, Wire]]:
    """Newest first, each with its place for paging."""
    runs = context.store.list_runs(filter_, before=before, limit=limit)
    return [(LedgerKey(instant=run.scheduled_at, id_=run.run_id), run_to_wire(run)) for run in runs]


def cancel_run(context: Context, run_id: str, *, actor: Actor = NOBODY) -> Wire:
    """A run that waits is cancelled at once; a running one is asked to stop and ends when its handler heeds it.

    Cancelling what is cancelled changes nothing. Raises `NotFound`, and `Conflict` for a run that ended otherwise.
    """
    detail = get_run(context, run_id)
    if detail.run.state in SETTLED:
        if detail.run.state is RunState.CANCELLED:
            return _shown(context, detail)
        raise _has_ended(detail.run)
    now = context.clock.now()
    event = AuditEvent(
        schedule_id=ScheduleId(detail.run.schedule_id),
        action="run.cancel",
        at=now,
        actor=actor.name,
        reason=actor.reason,
        details=encode_json({"run_id": run_id}),
    )
    run = context.store.commit_cancel(RunId(run_id), event=event, now=now)
    if run is not None and run.state in SETTLED and run.state is not RunState.CANCELLED:
        raise _has_ended(run)
    return show_run(context, run_id)


def _has_ended(run: Run) -> Conflict:
    return Conflict(
        f"Run {run.run_id!r} has ended already ({run.state}); what has ended cannot be cancelled."
    )


def _shown(context: Context, detail: RunDetail) -> Wire:
    run = detail.run
    try:
        version = context.store.get_version(run.schedule_id, run.version)
    except UnreadableRow:
        version = None
    job = context.store.get_job(run.job) or Job(name=run.job)
    return run_detail_to_wire(detail, made_by=None if version is None else version_to_wire(version, job))
