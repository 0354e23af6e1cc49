"""Runs that somebody asks for: one now, and one that has ended once more.

They have keys and ids of their own and use up no period: neither changes what the schedule does by itself.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from itertools import count

from rota.domain.audit import AuditAction
from rota.domain.errors import Conflict, FieldError, InvalidRequest
from rota.domain.identity import (
    RunId,
    manual_run_id_of,
    replay_run_id_of,
    replayed_run_id,
)
from rota.domain.instants import whole_second_floor
from rota.domain.json_text import encode_json, load_json
from rota.domain.run import SETTLED, Run, RunState
from rota.domain.schedule import Schedule, ScheduleStatus
from rota.ids import new_request_key
from rota.service.changes import RETRIES_MAX, change_of, commit, event_of, get_schedule, kept_changing
from rota.service.context import NOBODY, Actor, Context
from rota.service.idempotency import KeyReused, check_key, kept_answer, record_of, request_digest
from rota.service.representation import Wire
from rota.service.runs import get_run, show_run
from rota.service.versions import governing_version
from rota.store.port import ChangeOutcome, ScheduleChange, ScheduleRecord


def request_run(
    context: Context, schedule_id: str, *, actor: Actor = NOBODY, idempotency_key: str | None = None
) -> tuple[bool, Wire]:
    """One run now, with the params of the version that governs the present; whether it was created, and the run.

    A paused schedule may be asked too. Raises `NotFound`, `Conflict` for what has ended, and `KeyReused`.
    """
    key = new_request_key() if idempotency_key is None else idempotency_key
    check_key(key)
    get_schedule(context, schedule_id)  # Whatever else is no id is not found either.

    def ask(now: datetime) -> ScheduleChange:
        record = get_schedule(context, schedule_id)
        if record.schedule.status is ScheduleStatus.ENDED:
            raise Conflict(f"Schedule {schedule_id!r} has ended; replay one of its runs, or create another.")
        run = _manual_run(context, record, key, now=now)
        return _change_of(record.schedule, run, "run.request", actor, now=now)

    digest = request_digest("run.request", {"schedule": schedule_id})
    return _once(context, schedule_id, ask, key=idempotency_key, digest=digest)


def replay_run(
    context: Context, run_id: str, *, actor: Actor, idempotency_key: str | None = None
) -> tuple[bool, Wire]:
    """A new run of the same occurrence, linked to the first one, with the version and params of that.

    Whether it was created, and the run. Raises `NotFound`, `InvalidRequest` where no reason is given, `Conflict` for a
    run that has not ended, and `KeyReused`.
    """
    if not actor.reason:
        raise InvalidRequest(FieldError("reason", "Say why it is to run once more."))
    if idempotency_key is not None:
        check_key(idempotency_key)
    schedule_id = get_run(context, run_id).run.schedule_id  # Whatever else is no id is not found either.

    def ask(now: datetime) -> ScheduleChange:
        run = _replay_of(context, run_id, now=now)
        schedule = get_schedule(context, schedule_id).schedule
        return _change_of(schedule, run, "run.replay", actor, now=now)

    digest = request_digest("run.replay", {"run": run_id})
    return _once(context, schedule_id, ask, key=idempotency_key, digest=digest)


def _once(
    context: Context,
    schedule_id: str,
    ask: Callable[[datetime], ScheduleChange],
    *,
    key: str | None,
    digest: str,
) -> tuple[bool, Wire]:
    """Whether the run was created, and the run: with a key, the one that it made before."""
    for _ in range(RETRIES_MAX):
        now = context.clock.now()
        answer = None if key is None else kept_answer(context, key, digest, now=now)
        if answer is not None:
            return False, show_run(context, str(load_json(answer)["run_id"]))
        asked = ask(now)
        [run] = asked.runs
        if key is not None:
            kept = record_of(key, digest, encode_json({"run_id": run.run_id}), now=now)
            asked = replace(asked, idempotency=kept)
        outcome = commit(context, asked)
        if outcome is ChangeOutcome.CHANGED:
            return True, show_run(context, run.run_id)
        if outcome is ChangeOutcome.KEY_USED and run.origin == "manual":
            raise KeyReused(
                f"The Idempotency-Key {key!r} made a run of this schedule once; choose a new one."
            )
    raise kept_changing(schedule_id)


def _change_of(
    schedule: Schedule, run: Run, action: AuditAction, actor: Actor, *, now: datetime
) -> ScheduleChange:
    """Neither the cursor nor the revision matters to a run on request."""
    event = event_of(schedule, action, actor, at=now, run_id=run.run_id)
    return replace(change_of(schedule, at=now), expected_cursor=None, runs=(run,), event=event)


def _manual_run(context: Context, record: ScheduleRecord, key: str, *, now: datetime) -> Run:
    schedule, version = record.schedule, governing_version(record, now=now)
    # An edit takes over with the next second: what is asked for right after it is the new version's, and in its window.
    instant = max(whole_second_floor(now), version.effective_from)
    offset = context.zones.load(version.definition.timezone).segment_at(instant).offset
    return Run(
        run_id=manual_run_id_of(schedule.schedule_id, version.number, instant, key),
        schedule_id=schedule.schedule_id,
        version=version.number,
        scheduled_at=instant,
        due_at=whole_second_floor(now),
        named_local=(instant + offset).replace(tzinfo=None),
        offset=offset,
        period_key=f"manual:{key}",
        origin="manual",
        job=schedule.job,
        partition=schedule.partition,
        state=RunState.QUEUED,
        admitted_at=now,
        available_at=whole_second_floor(now),
    )


def _replay_of(context: Context, run_id: str, *, now: datetime) -> Run:
    run = get_run(context, run_id).run
    if run.state not in SETTLED:
        raise Conflict(f"Run {run_id!r} is {run.state}; only one that has ended can be replayed.")
    if run.state is RunState.SKIPPED and run.due_at > now:
        raise Conflict(
            f"Run {run_id!r} is skipped, and its time has not come; move the occurrence to when it is to run."
        )
    first_id = replayed_run_id(run.run_id) if run.origin == "replay" else None
    first = run if first_id is None else get_run(context, first_id).run
    number = next(
        number
        for number in count(1)
        if context.store.get_run(RunId(replay_run_id_of(first.run_id, number))) is None
    )
    return replay_of(first, number, now=now)


def replay_of(first: Run, number: int, *, now: datetime, turn: int = 0) -> Run:
    """The replay of that number of an occurrence, whose first run is given."""
    return Run(
        run_id=replay_run_id_of(first.run_id, number),
        schedule_id=first.schedule_id,
        version=first.version,
        scheduled_at=first.scheduled_at,
        due_at=whole_second_floor(now),
        named_local=first.named_local,
        offset=first.offset,
        period_key=f"replay:{number}:{first.period_key}",
        origin="replay",
        job=first.job,
        partition=first.partition,
        state=RunState.QUEUED,
        admitted_at=now,
        available_at=whole_second_floor(now),
        turn=turn,
        second_pass=first.second_pass,
    )
