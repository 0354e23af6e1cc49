"""Many runs at once, by a filter: cancelled, or replayed.

Each request does a bounded part and says whether that was all. A cancellation is repeated as it is: what it cancelled
does not match any more. A replay goes on at the place that it names, since the runs that it replays stay as they are.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rota.domain.admission import RUNS_PER_ADMISSION_MAX
from rota.domain.audit import AuditEvent
from rota.domain.errors import FieldError, InvalidRequest
from rota.domain.identity import RunId, ScheduleId, replayed_run_id
from rota.domain.json_text import encode_json, load_json
from rota.domain.run import SETTLED, Run, RunState
from rota.service.changes import RETRIES_MAX, change_of, commit, event_of, get_schedule, kept_changing
from rota.service.context import NOBODY, Actor, Context
from rota.service.idempotency import check_key, kept_answer, record_of, request_digest
from rota.service.paging import LIMIT_MAX, encode_cursor
from rota.service.queries import RUN_FILTERS, ledger_place_to_wire
from rota.service.representation import Wire, optional_instant
from rota.service.requested import replay_of
from rota.store.port import ChangeOutcome, LedgerKey, RunFilter

RUNS_PER_REQUEST_MAX = 1_000
COUNTED_MAX = 10_000
"""So far a dry run counts."""

OPEN_STATES = (
    RunState.PLANNED,
    RunState.HELD,
    RunState.WAITING,  # before those whose end would queue them
    RunState.QUEUED,
    RunState.RUNNING,
)


def cancel_runs(
    context: Context, filter_: RunFilter, *, dry_run: bool = False, actor: Actor = NOBODY
) -> Wire:
    """Cancels the open runs that match and asks the running ones to stop, a bounded number of them.

    With `dry_run` it only counts them. Raises `InvalidRequest` for a filter that names nothing, or an ended state.
    """
    _check_names_something(filter_)
    if filter_.state in SETTLED:
        message = f"Only open runs are cancelled; give one of {', '.join(OPEN_STATES)}, or leave it out."
        raise InvalidRequest(FieldError("state", message))
    bound = COUNTED_MAX if dry_run else RUNS_PER_REQUEST_MAX
    cancelled = asked_to_stop = 0
    is_complete = True
    for run in _open_runs(context, filter_, is_looked_once=dry_run):
        if cancelled + asked_to_stop == bound:
            is_complete = False
            break
        after = run if dry_run else _cancel(context, run, actor)
        if after is None:
            continue
        if after.state is RunState.RUNNING:
            asked_to_stop += 1
        else:
            cancelled += 1
    return {
        "dry_run": dry_run,
        "cancelled": cancelled,
        "asked_to_stop": asked_to_stop,
        "is_complete": is_complete,
    }


def replay_runs(
    context: Context,
    filter_: RunFilter,
    *,
    after: LedgerKey | None = None,
    dry_run: bool = False,
    actor: Actor = NOBODY,
    idempotency_key: str | None = None,
) -> Wire:
    """Replays the occurrences whose runs match, looking at a bounded number of runs, the newest first, from `after` on.

    Of each schedule the replays are numbered, the oldest occurrence first, so that they keep nobody else waiting. Left
    out is what was replayed already: by a run that is open, or that ended in another state than asked for. Runs that
    were skipped are replayed only where that state is asked for. With `dry_run` it only counts them.

    The same key again gets the same answer. Raises `InvalidRequest` for a filter that names nothing, an open state and
    a reason that is missing, and `KeyReused`.
    """
    _check_names_something(filter_)
    if filter_.state is not None and filter_.state not in SETTLED:
        message = (
            f"Only what has ended is replayed; give one of {', '.join(sorted(SETTLED))}, or leave it out."
        )
        raise InvalidRequest(FieldError("state", message))
    if not actor.reason:
        raise InvalidRequest(FieldError("reason", "Say why they are to run once more."))
    if idempotency_key is None or dry_run:
        return _replay(context, filter_, after=after, dry_run=dry_run, actor=actor)
    check_key(idempotency_key)
    digest = request_digest("run.replay_matching", _asked_to_wire(filter_, after))
    kept = kept_answer(context, idempotency_key, digest, now=context.clock.now())
    if kept is not None:
        return dict(load_json(kept))
    answer = _replay(context, filter_, after=after, dry_run=False, actor=actor)
    now = context.clock.now()
    record = record_of(idempotency_key, digest, encode_json(answer), now=now)
    if not context.store.commit_idempotency(record, now=now):
        # Another request with the key ended first: what it replayed, this one left out, and the other way round.
        kept = kept_answer(context, idempotency_key, digest, now=now)
        answer = answer if kept is None else dict(load_json(kept))
    return answer


def _check_names_something(filter_: RunFilter) -> None:
    if filter_ == RunFilter():
        message = f"Give at least one of {', '.join(RUN_FILTERS)}; without any it would be every run."
        raise InvalidRequest(FieldError("schedule", message))


def _asked_to_wire(filter_: RunFilter, after: LedgerKey | None) -> Wire:
    """What a repeated request has to say again."""
    return {
        "schedule": filter_.schedule_id,
        "job": filter_.job,
        "state": filter_.state,
        "origin": filter_.origin,
        "label": filter_.label,
        "from": optional_instant(filter_.from_),
        "until": optional_instant(filter_.until),
        "after": None if after is None else ledger_place_to_wire(after),
    }


# --- cancelling ---


def _open_runs(context: Context, filter_: RunFilter, *, is_looked_once: bool) -> Iterator[Run]:
    """State by state, each newest first; without the running ones that were asked to stop already.

    Unless it `is_looked_once`, until a look finds none: a run may go from a state ahead to one that was looked at.
    """
    found_any = True
    while found_any:
        found_any = False
        for state in OPEN_STATES if filter_.state is None else (filter_.state,):
            for run in _walk(context, replace(filter_, state=state), None):
                if run.cancel_requested_at is None:
                    found_any = not is_looked_once
                    yield run


def _cancel(context: Context, run: Run, actor: Actor) -> Run | None:
    """The run after it, where it is cancelled or asked to stop; None where it ended otherwise, or is gone."""
    now = context.clock.now()
    event = AuditEvent(
        schedule_id=ScheduleId(run.schedule_id),
        action="run.cancel",
        at=now,
        actor=actor.name,
        reason=actor.reason,
        details=encode_json({"run_id": run.run_id}),
    )
    after = context.store.commit_cancel(run.run_id, event=event, now=now)
    return None if after is None or after.state in SETTLED - {RunState.CANCELLED} else after


def _walk(context: Context, filter_: RunFilter, before: LedgerKey | None) -> Iterator[Run]:
    """Newest first, read page by page."""
    while True:
        page = context.store.list_runs(filter_, before=before, limit=LIMIT_MAX)
        yield from page
        if len(page) < LIMIT_MAX:
            return
        before = _place_of(page[-1])


def _place_of(run: Run) -> LedgerKey:
    return LedgerKey(instant=run.scheduled_at, id_=run.run_id)


# --- replaying ---


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidates:
    """Occurrences that may be replayed."""

    by_schedule: Mapping[ScheduleId, Sequence[Run]]
    """Their first runs, the oldest first."""
    amount: int
    next_place: LedgerKey | None
    """From where on there are more."""


def _replay(
    context: Context, filter_: RunFilter, *, after: LedgerKey | None, dry_run: bool, actor: Actor
) -> Wire:
    found = _find(context, filter_, after, bound=COUNTED_MAX if dry_run else RUNS_PER_REQUEST_MAX)
    replayed = 0
    for schedule_id, firsts in found.by_schedule.items():
        if dry_run:
            replayed += len(_replayable(context, firsts, filter_.state, now=context.clock.now()))
            continue
        turn = 1
        for start in range(0, len(firsts), RUNS_PER_ADMISSION_MAX):
            chunk = firsts[start : start + RUNS_PER_ADMISSION_MAX]
            turn += _commit_replays(context, schedule_id, chunk, filter_.state, turn=turn, actor=actor)
        replayed += turn - 1
    place = found.next_place
    return {
        "dry_run": dry_run,
        "replayed": replayed,
        "left_out": found.amount - replayed,
        "is_complete": place is None,
        "next_cursor": None if place is None else encode_cursor(ledger_place_to_wire(place)),
    }


def _find(context: Context, filter_: RunFilter, after: LedgerKey | None, *, bound: int) -> _Candidates:
    """What the first `bound` runs that match are runs of: a run and its replays are of one occurrence."""
    found: dict[RunId, Run | None] = {}
    seen = 0
    last: LedgerKey | None = None
    next_place: LedgerKey | None = None
    for run in _walk(context, filter_, after):
        if seen == bound:
            next_place = last
            break
        seen, last = seen + 1, _place_of(run)
        if run.state is filter_.state or run.state in SETTLED - {RunState.SKIPPED}:
            first_id = replayed_run_id(run.run_id) if run.origin == "replay" else None
            if first_id is None:
                found[run.run_id] = run
            else:
                found.setdefault(first_id, None)
    by_schedule: dict[ScheduleId, list[Run]] = defaultdict(list)
    for first_id, first in found.items():
        detail = context.store.get_run(first_id) if first is None else None
        first = first if detail is None else detail.run  # noqa: PLW2901 - read where only its replay matched
        if first is not None:
            by_schedule[first.schedule_id].append(first)
    for firsts in by_schedule.values():
        firsts.reverse()
    return _Candidates(by_schedule=by_schedule, amount=len(found), next_place=next_place)


def _replayable(
    context: Context, firsts: Sequence[Run], state: RunState | None, *, now: datetime
) -> list[tuple[Run, int]]:
    """Of these occurrences of one schedule, the oldest first, the first run and the number of the next replay: of those
    whose last run has ended, in this state where one is asked for, and whose time has come."""
    last_replays = _last_replays(context, firsts)
    found: list[tuple[Run, int]] = []
    for first in firsts:
        number, last = last_replays.get(first.run_id, (0, first))
        is_to_come = last.state is RunState.SKIPPED and last.due_at > now
        if last.state in SETTLED and state in (None, last.state) and not is_to_come:
            found.append((first, number + 1))
    return found


def _last_replays(context: Context, firsts: Sequence[Run]) -> dict[RunId, tuple[int, Run]]:
    """Of each of these runs that was replayed the number of the last replay, and that; they are read together."""
    between = RunFilter(
        schedule_id=firsts[0].schedule_id,
        origin="replay",
        from_=firsts[0].scheduled_at,
        until=firsts[-1].scheduled_at + timedelta(seconds=1),
    )
    found: dict[RunId, tuple[int, Run]] = {}
    for run in _walk(context, between, None):
        first_id, _, number = run.run_id.rpartition(".r")
        if int(number) > found.get(RunId(first_id), (0, run))[0]:
            found[RunId(first_id)] = int(number), run
    return found


def _commit_replays(
    context: Context,
    schedule_id: ScheduleId,
    firsts: Sequence[Run],
    state: RunState | None,
    *,
    turn: int,
    actor: Actor,
) -> int:
    """Creates the replays of one bounded commit, the first of them with this turn; how many it were."""
    for _ in range(RETRIES_MAX):
        now = context.clock.now()
        replayable = _replayable(context, firsts, state, now=now)
        if not replayable:
            return 0
        runs = tuple(
            replay_of(first, number, now=now, turn=turn + place)
            for place, (first, number) in enumerate(replayable)
        )
        schedule = get_schedule(context, schedule_id).schedule
        event = event_of(schedule, "run.replay", actor, at=now, run_ids=[run.run_id for run in runs])
        # As of one replay: neither the cursor nor the revision matters.
        change = replace(change_of(schedule, at=now), expected_cursor=None, runs=runs, event=event)
        if commit(context, change) is ChangeOutcome.CHANGED:
            return len(runs)
    raise kept_changing(schedule_id)
