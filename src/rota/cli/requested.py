"""`rota schedules run` and `backfill`: runs that somebody asks for."""

from datetime import timedelta
from typing import Annotated

from cyclopts import Parameter

from rota.cli.dry_run_tables import SHOWN_MAX, WAS_DRY_RUN
from rota.cli.options import ActorName, AsJson, Database, DryRun, Reason, actor_of, open_existing
from rota.cli.output import write_json, write_line
from rota.cli.planning import MOMENT
from rota.cli.run_tables import write_created_runs, write_run
from rota.cli.times import LocalOf, locals_of
from rota.domain.durations import parse_duration
from rota.domain.errors import FieldError, InvalidExpression, InvalidRequest
from rota.service import backfill as backfilling
from rota.service import requested as use_cases
from rota.service.representation import Wire

Key = Annotated[
    str | None,
    Parameter(
        name=["--idempotency-key", "--key"], help="The same key makes one run, however often it is asked for."
    ),
]
From = Annotated[str, Parameter(name="--from", help=f"The first moment: {MOMENT}.")]
Until = Annotated[str, Parameter(help="The last moment, which is included; not later than now.")]
Spacing = Annotated[
    str | None, Parameter(help="How far apart the runs fall due, PT1S to PT24H; PT1S if not given.")
]
ReplayReason = Annotated[str, Parameter(help="Why it is to run once more; kept in the schedule's history.")]


def run(
    schedule_id: str,
    /,
    *,
    idempotency_key: Key = None,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Run it once, now, beside its rule. That uses up no period, and works while it is paused."""
    with open_existing(database) as context:
        created, made = use_cases.request_run(
            context, schedule_id, actor=actor_of(actor, reason), idempotency_key=idempotency_key
        )
        write_requested(made, created=created, json=json)


def backfill(
    schedule_id: str,
    /,
    *,
    from_: From,
    until: Until,
    spacing: Spacing = None,
    dry_run: DryRun = False,
    actor: ActorName = None,
    reason: Reason = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Create runs for the past occurrences of its present rule that have none, one after the other."""
    with open_existing(database) as context:
        answer = backfilling.backfill(
            context,
            schedule_id,
            from_=from_,
            until=until,
            spacing=_spacing_of(spacing),
            dry_run=dry_run,
            actor=actor_of(actor, reason),
        )
        write_json(answer) if json else _write_backfill(answer, local_of=locals_of(context, schedule_id))


def write_requested(made: Wire, *, created: bool, json: bool) -> None:
    """The run that was asked for, and whether it is new."""
    if json:
        write_json(made)
        return
    write_line("Queued." if created else "It was asked for already, with this key.")
    write_run(made)


def _spacing_of(text: str | None) -> timedelta:
    """Raises `InvalidRequest`."""
    if text is None:
        return backfilling.SPACING_DEFAULT
    try:
        return parse_duration(text)
    except InvalidExpression as error:
        raise InvalidRequest(FieldError("spacing", error.problem)) from None


def _write_backfill(answer: Wire, *, local_of: LocalOf) -> None:
    id_, version, created, left_out = (
        answer[name] for name in ("schedule_id", "version", "created", "left_out")
    )
    assert isinstance(left_out, dict)  # noqa: S101 - as backfill makes it
    from_, until = (f"{local_of(version, answer[name])} ({answer[name]})" for name in ("from", "until"))
    would = "would be created" if answer["dry_run"] else "created"
    write_line(f"{id_}: backfill from {from_} until {until}, by the rule of version {version}")
    write_line(
        f"{created} {would}; left out: {left_out['period_used']} whose period a run uses, "
        f"{left_out['owed']} that admission still owes"
    )
    write_created_runs(answer, shown_max=SHOWN_MAX, is_spaced=True)
    if answer["dry_run"]:
        write_line(WAS_DRY_RUN)
