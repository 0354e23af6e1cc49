"""`rota runs cancel` and `replay`: one run by its id, or many by a filter."""

from typing import Annotated

from cyclopts import Parameter

from rota.cli.dry_run_tables import WAS_DRY_RUN
from rota.cli.errors import Usage
from rota.cli.options import ActorName, AsJson, Database, DryRun, Reason, actor_of, asked, open_existing
from rota.cli.output import write_json, write_line
from rota.cli.requested import Key, ReplayReason, write_requested
from rota.cli.run_filters import From, Job, Label, Origin, Schedule, State, Until
from rota.cli.run_tables import write_run
from rota.service import bulk, requested, runs
from rota.service.paging import decode_cursor
from rota.service.queries import parse_ledger_place, parse_run_filter
from rota.service.representation import Wire

Place = Annotated[
    str | None, Parameter(help="The next_cursor of the answer before, to go on with a filter where it ended.")
]


def cancel(
    run_id: str | None = None,
    /,
    *,
    schedule: Schedule = None,
    state: State = None,
    job: Job = None,
    origin: Origin = None,
    label: Label = None,
    from_: From = None,
    until: Until = None,
    dry_run: DryRun = False,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Cancel a run that waits, ask a running one to stop; or do it to the open runs that a filter finds, at most 1,000
    at a time."""
    filters = asked(
        schedule=schedule, state=state, job=job, origin=origin, label=label, until=until, **{"from": from_}
    )
    _check_one_way(run_id, filters)
    who = actor_of(actor, reason)
    if run_id is not None:
        _check_not_dry(dry_run=dry_run)
        with open_existing(database) as context:
            run = runs.cancel_run(context, run_id, actor=who)
            write_json(run) if json else write_run(run)
        return
    filter_ = parse_run_filter(filters)
    with open_existing(database) as context:
        answer = bulk.cancel_runs(context, filter_, dry_run=dry_run, actor=who)
    if json:
        write_json(answer)
        return
    would = "would be " if dry_run else ""
    write_line(f"{answer['cancelled']} {would}cancelled, {answer['asked_to_stop']} {would}asked to stop")
    _write_end(answer, "There are more: say it again.")


def replay(
    run_id: str | None = None,
    /,
    *,
    reason: ReplayReason,
    schedule: Schedule = None,
    state: State = None,
    job: Job = None,
    origin: Origin = None,
    label: Label = None,
    from_: From = None,
    until: Until = None,
    cursor: Place = None,
    dry_run: DryRun = False,
    idempotency_key: Key = None,
    actor: ActorName = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Run an occurrence that has ended once more, with the version and params that it had; or those that a filter
    finds, the newest first, 1,000 runs at a time."""
    filters = asked(
        schedule=schedule, state=state, job=job, origin=origin, label=label, until=until, **{"from": from_}
    )
    _check_one_way(run_id, filters)
    who = actor_of(actor, reason)
    if run_id is not None:
        _check_not_dry(dry_run=dry_run)
        with open_existing(database) as context:
            created, made = requested.replay_run(context, run_id, actor=who, idempotency_key=idempotency_key)
            write_requested(made, created=created, json=json)
        return
    filter_ = parse_run_filter(filters)
    place = parse_ledger_place(None if cursor is None else decode_cursor(cursor))
    with open_existing(database) as context:
        answer = bulk.replay_runs(
            context, filter_, after=place, dry_run=dry_run, actor=who, idempotency_key=idempotency_key
        )
    if json:
        write_json(answer)
        return
    would = "would be queued" if dry_run else "queued"
    write_line(f"{answer['replayed']} {would}, {answer['left_out']} left out: they were replayed already")
    _write_end(answer, f"There are more: say it again with --cursor {answer['next_cursor']}")


def _check_one_way(run_id: str | None, filters: dict[str, str]) -> None:
    """Raises `Usage`."""
    if run_id is None and not filters:
        raise Usage("RUN-ID: Give the id of a run, or a filter, such as --job or --schedule.")
    if run_id is not None and filters:
        raise Usage("RUN-ID: Give the id of a run or a filter, not both.")


def _check_not_dry(*, dry_run: bool) -> None:
    """Raises `Usage`."""
    if dry_run:
        raise Usage("--dry-run: It goes with a filter, such as --job or --schedule.")


def _write_end(answer: Wire, more: str) -> None:
    if not answer["is_complete"]:
        write_line(more)
    if answer["dry_run"]:
        write_line(WAS_DRY_RUN)
