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
from rota.domain.identity import RunId, ScheduleId, replay_run_id_of, replayed_run_id
from rota.domain.json_text import JsonText, encode_json, load_json
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

    The same key again gets the same answer, and makes what the request before it did not come to.

    Raises `InvalidRequest` for a filter that names nothing, for an open state and a reason that is missing, and
    `KeyReused`.
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
        plan = _plan(context, filter_, after=after, dry_run=dry_run)
        replayed = 0 if dry_run else _carry_out(context, plan, actor=actor)
        left_out = plan.replayed + plan.left_out - replayed
        return plan.answer() if dry_run else replace(plan, replayed=replayed, left_out=left_out).answer()
    check_key(idempotency_key)
    digest = request_digest("run.replay_matching", _asked_to_wire(filter_, after))
    plan = _kept_plan(context, filter_, after, key=idempotency_key, digest=digest)
    _carry_out(context, plan, actor=actor)
    return plan.answer()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What a request replays, and what it answers.

    The replays have their ids before the first of them is made. With a key the plan is kept before that too, so that
    the request may break anywhere: its repetition makes those that are missing, and no others.
    """

    replays: tuple[RunId, ...]
    """Of one schedule after the other, the oldest occurrence first."""
    firsts: Mapping[RunId, Run]
    """The first runs of their occurrences, as far as they have been read."""
    replayed: int
    left_out: int
    next_cursor: str | None
    is_dry_run: bool = False

    def answer(self) -> Wire:
        return {
            "dry_run": self.is_dry_run,
            "replayed": self.replayed,
            "left_out": self.left_out,
            "is_complete": self.next_cursor is None,
            "next_cursor": self.next_cursor,
        }

    def to_kept(self) -> JsonText:
        return encode_json({"answer": self.answer(), "replays": list(self.replays)})

    @classmethod
    def of_kept(cls, kept: JsonText) -> "_Plan":
        found = load_json(kept)
        answer = found["answer"]
        return cls(
            replays=tuple(map(RunId, found["replays"])),
            firsts={},
            replayed=answer["replayed"],
            left_out=answer["left_out"],
            next_cursor=answer["next_cursor"],
        )


def _kept_plan(
    context: Context, filter_: RunFilter, after: LedgerKey | None, *, key: str, digest: str
) -> _Plan:
    """The plan that is kept with the key: the one that was made first. Raises `KeyReused`."""
    now = context.clock.now()
    kept = kept_answer(context, key, digest, now=now)
    if kept is not None:
        return _Plan.of_kept(kept)
    plan = _plan(context, filter_, after=after, dry_run=False)
    now = context.clock.now()
    if context.store.commit_idempotency(record_of(key, digest, plan.to_kept(), now=now), now=now):
        return plan
    # Another request with the key was first: both do what that one has planned.
    kept = kept_answer(context, key, digest, now=now)
    return plan if kept is None else _Plan.of_kept(kept)


def _plan(context: Context, filter_: RunFilter, *, after: LedgerKey | None, dry_run: bool) -> _Plan:
    found = _find(context, filter_, after, bound=COUNTED_MAX if dry_run else RUNS_PER_REQUEST_MAX)
    now = context.clock.now()
    replayable = [
        each
        for firsts in found.by_schedule.values()
        for each in _replayable(context, firsts, filter_.state, now=now)
    ]
    place = found.next_place
    return _Plan(
        replays=tuple(replay_run_id_of(first.run_id, number) for first, number in replayable),
        firsts={first.run_id: first for first, _ in replayable},
        replayed=len(replayable),
        left_out=found.amount - len(replayable),
        next_cursor=None if place is None else encode_cursor(ledger_place_to_wire(place)),
        is_dry_run=dry_run,
    )


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
        if first is None:
            first = _run_of(context, first_id)  # noqa: PLW2901 - read where only its replay matched
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


def _carry_out(context: Context, plan: _Plan, *, actor: Actor) -> int:
    """Makes those replays of a plan that are not there; how many it were."""
    planned: dict[ScheduleId, list[_Replay]] = defaultdict(list)
    for replay_id in plan.replays:
        first_id, _, number = replay_id.rpartition(".r")
        first = plan.firsts.get(RunId(first_id)) or _run_of(context, RunId(first_id))
        if first is not None:
            replays = planned[first.schedule_id]
            replays.append(_Replay(first=first, number=int(number), turn=len(replays) + 1))
    return sum(
        _commit_replays(context, schedule_id, replays[start : start + RUNS_PER_ADMISSION_MAX], actor)
        for schedule_id, replays in planned.items()
        for start in range(0, len(replays), RUNS_PER_ADMISSION_MAX)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replay:
    first: Run
    number: int
    turn: int


def _commit_replays(
    context: Context, schedule_id: ScheduleId, replays: Sequence[_Replay], actor: Actor
) -> int:
    """Creates those of one bounded commit that are not there; how many it were."""
    for _ in range(RETRIES_MAX):
        now = context.clock.now()
        schedule = get_schedule(context, schedule_id).schedule
        replays = [each for each in replays if each.first.scheduled_at >= schedule.history_from]
        runs = tuple(replay_of(each.first, each.number, now=now, turn=each.turn) for each in replays)
        if not runs:
            return 0
        event = event_of(schedule, "run.replay", actor, at=now, run_ids=[run.run_id for run in runs])
        # As of one replay: neither the cursor nor the revision matters.
        change = replace(change_of(schedule, at=now), expected_cursor=None, runs=runs, event=event)
        if commit(context, change) is ChangeOutcome.CHANGED:
            return len(runs)
        # Some are made already: by this request before it broke, or by somebody else.
        replays = [
            each
            for each in replays
            if _run_of(context, replay_run_id_of(each.first.run_id, each.number)) is None
        ]
    raise kept_changing(schedule_id)


def _run_of(context: Context, run_id: RunId) -> Run | None:
    detail = context.store.get_run(run_id)
    return None if detail is None else detail.run
