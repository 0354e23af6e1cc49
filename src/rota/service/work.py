"""What workers ask for over HTTP: claims, openings, heartbeats, ends of attempts, effects.

The server's clock and the job as it is stored decide, as they do for a worker in the same process: a worker elsewhere
says what became of an attempt, and not what becomes of its run. An attempt that is over is told as stale.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar, cast

from rota.domain.durations import format_duration
from rota.domain.effect import EffectState
from rota.domain.json_text import load_json
from rota.domain.settlement import Settlement, settle_attempt
from rota.service.context import Context
from rota.service.representation import Wire
from rota.service.work_requests import (
    ClaimRequest,
    parse_effect_begin,
    parse_effect_record,
    parse_ends,
    parse_heartbeats,
    parse_opening,
)
from rota.store.port import (
    Heartbeat,
    Notice,
    OpenAttemptRow,
    Subscription,
    claim_attempts,
)
from rota.wire.assignment import assignment_of, assignment_to_wire
from rota.wire.reports import NamedAttempt, ReportedEnd, ReportedHeartbeat

STALE = "stale"
NOTHING = timedelta(0)

R = TypeVar("R", bound=NamedAttempt)


def claim(context: Context, request: ClaimRequest) -> Wire:
    """Opens what there is, up to the limit; of a limit of 0, tells whether there is anything."""
    now = context.clock.now()
    if request.limit == 0:
        next_at = context.store.read_next_intent_time([each.job for each in request.wanted])
        is_there = next_at is not None and next_at <= now
        return _claim_answer([], may_be_more=is_there, next_at=None if is_there else next_at, now=now)
    claimed = claim_attempts(
        context.store,
        request.worker,
        request.wanted,
        now=now,
        limit=request.limit,
        backlog_first=request.backlog_first is True,
    )
    opened = [assignment_of(each.run, each.version, each.job) for each in claimed.opened]
    return _claim_answer(
        [assignment_to_wire(assignment) for assignment in opened],
        may_be_more=claimed.may_be_more,
        next_at=claimed.next_at,
        now=now,
    )


def give_back(context: Context, claimed: Wire) -> None:
    """Ends what a claim opened as interrupted, since whoever asked has gone: others take it at once."""
    error = "The worker had gone before it was told of the attempt."
    ends: list[Wire] = [
        {"run_id": each["run_id"], "attempt": each["attempt"], "outcome": "interrupted", "error": error}
        for each in cast("list[Wire]", claimed["attempts"])
    ]
    settle(context, {"attempts": ends})


def open_attempt(context: Context, body: Wire) -> Wire:
    """Opens the attempt that a message asked for. Raises `InvalidRequest`."""
    worker, attempt = parse_opening(body)
    [opened] = context.store.commit_openings(worker, [attempt], now=context.clock.now())
    if opened is None:
        return {"outcome": STALE, "attempt": None}
    assignment = assignment_of(opened.run, opened.version, opened.job)
    return {"outcome": "opened", "attempt": assignment_to_wire(assignment)}


def heartbeat(context: Context, body: Wire) -> Wire:
    """Prolongs leases and stores progress; one outcome for each, in their order. Raises `InvalidRequest`."""
    reports = parse_heartbeats(body)
    now = context.clock.now()

    def commit(current: Sequence[tuple[ReportedHeartbeat, OpenAttemptRow]]) -> list[str]:
        heartbeats = [
            Heartbeat(
                run_id=report.run_id,
                attempt=report.attempt,
                lease_expires_at=now + row.job.lease,
                progress=report.progress,
            )
            for report, row in current
        ]
        return [outcome.value for outcome in context.store.commit_heartbeats(heartbeats, now=now)]

    return _for_current(context, reports, commit)


def settle(context: Context, body: Wire) -> Wire:
    """Settles attempts as the jobs' retry policies say; one outcome for each, in their order. Raises `InvalidRequest`.

    Of an attempt that is over by now (it outlived its lease, and another one follows or runs) nothing is changed.
    """
    reports = parse_ends(body)
    now = context.clock.now()

    def commit(current: Sequence[tuple[ReportedEnd, OpenAttemptRow]]) -> list[str]:
        settlements = [_settlement(report, row, now=now) for report, row in current]
        return [
            "settled" if was_current else STALE
            for was_current in context.store.commit_settlements(settlements)
        ]

    return _for_current(context, reports, commit)


def begin_effect(context: Context, body: Wire) -> Wire:
    """Notes that an attempt begins an effect, or tells that it is done. Raises `InvalidRequest`."""
    attempt, name = parse_effect_begin(body)
    begun = context.store.commit_effect_begin(attempt, name, now=context.clock.now())
    return {
        "state": begun.state.value,
        "result": None if begun.result is None else load_json(begun.result),
    }


def record_effect(context: Context, body: Wire) -> Wire:
    """Records an effect as done. Raises `InvalidRequest`."""
    attempt, name, result = parse_effect_record(body)
    is_recorded = context.store.commit_effect(attempt, name, result=result, now=context.clock.now())
    return {"state": (EffectState.RECORDED if is_recorded else EffectState.STALE).value}


def subscribe_to_work(context: Context, heard: Callable[[], None]) -> Subscription:
    """Has `heard` called whenever there may be something to claim."""

    def hear(notice: Notice) -> None:
        if notice is Notice.QUEUED:
            heard()

    return context.store.subscribe(hear)


def _claim_answer(
    attempts: list[Wire], *, may_be_more: bool, next_at: datetime | None, now: datetime
) -> Wire:
    next_in = None if next_at is None else format_duration(max(next_at - now, NOTHING))
    return {"attempts": attempts, "may_be_more": may_be_more, "next_in": next_in}


def _settlement(report: ReportedEnd, row: OpenAttemptRow, *, now: datetime) -> Settlement:
    return settle_attempt(
        run_id=report.run_id,
        attempt=report.attempt,
        end=report.end,
        retry=row.job.retry,
        cancel_requested=row.run.cancel_requested_at is not None,
        now=now,
    )


def _for_current(
    context: Context,
    reports: Sequence[R],
    commit: Callable[[Sequence[tuple[R, OpenAttemptRow]]], list[str]],
) -> Wire:
    """The answer about reports: those of current attempts are committed, as many at a time as the store takes."""
    outcomes: list[str] = []
    size = context.store.elements_max
    for start in range(0, len(reports), size):
        batch = reports[start : start + size]
        rows = context.store.read_open_attempts(batch)
        current = [(report, row) for report, row in zip(batch, rows, strict=True) if row is not None]
        answers = iter(commit(current) if current else [])
        outcomes += [STALE if row is None else next(answers) for row in rows]
    return {
        "attempts": [
            {"run_id": report.run_id, "attempt": report.attempt, "outcome": outcome}
            for report, outcome in zip(reports, outcomes, strict=True)
        ]
    }
