"""A run: the one record of one occurrence, and every transition of its state.

Rule 1: everything that decides a run's next state is in this file.
Rule 2: this file does not know who asks, or what time it is.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from rota.domain.delivery import Delivery
from rota.domain.effect import Effect
from rota.domain.errors import IllegalTransition
from rota.domain.identity import RunId, ScheduleId
from rota.domain.json_text import JsonText


class RunState(StrEnum):
    PLANNED = "planned"
    HELD = "held"
    WAITING = "waiting"
    """Admitted, and to be queued when the run of its schedule that is open ends (`overlap: queue`)."""
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    MOOT = "moot"
    SKIPPED = "skipped"


SETTLED = frozenset(
    {RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.MOOT, RunState.SKIPPED}
)


class RunEvent(StrEnum):
    """What happened to a run, in the past tense."""

    FELL_DUE = "fell_due"
    FELL_DUE_WHILE_PAUSED = "fell_due_while_paused"
    FELL_DUE_WHILE_OPEN = "fell_due_while_open"
    RELEASED = "released"
    RELEASED_WHILE_OPEN = "released_while_open"
    TURN_CAME = "turn_came"
    DROPPED = "dropped"
    RESTORED = "restored"
    ATTEMPT_OPENED = "attempt_opened"
    RETRY_SCHEDULED = "retry_scheduled"
    SUCCEEDED = "succeeded"
    FAILED_FOR_GOOD = "failed_for_good"
    FOUND_MOOT = "found_moot"
    FOUND_UNREADABLE = "found_unreadable"
    CANCELLED = "cancelled"


TRANSITIONS: dict[tuple[RunState, RunEvent], RunState] = {
    (RunState.PLANNED, RunEvent.FELL_DUE): RunState.QUEUED,
    (RunState.PLANNED, RunEvent.FELL_DUE_WHILE_PAUSED): RunState.HELD,
    (RunState.PLANNED, RunEvent.FELL_DUE_WHILE_OPEN): RunState.WAITING,
    (RunState.PLANNED, RunEvent.DROPPED): RunState.SKIPPED,
    (RunState.PLANNED, RunEvent.CANCELLED): RunState.CANCELLED,
    # Only what was skipped on request, and on request again: see `rota.service.planning.move_occurrence`.
    (RunState.SKIPPED, RunEvent.RESTORED): RunState.PLANNED,
    (RunState.HELD, RunEvent.RELEASED): RunState.QUEUED,
    (RunState.HELD, RunEvent.RELEASED_WHILE_OPEN): RunState.WAITING,
    (RunState.HELD, RunEvent.DROPPED): RunState.SKIPPED,
    (RunState.HELD, RunEvent.CANCELLED): RunState.CANCELLED,
    (RunState.WAITING, RunEvent.TURN_CAME): RunState.QUEUED,
    (RunState.WAITING, RunEvent.CANCELLED): RunState.CANCELLED,
    (RunState.QUEUED, RunEvent.ATTEMPT_OPENED): RunState.RUNNING,
    (RunState.QUEUED, RunEvent.CANCELLED): RunState.CANCELLED,
    (RunState.QUEUED, RunEvent.FOUND_UNREADABLE): RunState.FAILED,
    (RunState.RUNNING, RunEvent.RETRY_SCHEDULED): RunState.QUEUED,
    (RunState.RUNNING, RunEvent.SUCCEEDED): RunState.SUCCEEDED,
    (RunState.RUNNING, RunEvent.FAILED_FOR_GOOD): RunState.FAILED,
    (RunState.RUNNING, RunEvent.FOUND_MOOT): RunState.MOOT,
    (RunState.RUNNING, RunEvent.CANCELLED): RunState.CANCELLED,
}


def next_state(state: RunState, event: RunEvent) -> RunState:
    """The state after `event`. Raises `IllegalTransition`."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(f"A {state} run cannot have {event}.") from None


Origin = Literal["schedule", "backfill", "manual", "replay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a handler last reported: `fraction` in [0, 1], and a short message."""

    fraction: float
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run as stored. Its params are its version's; its result lives in a record of its own."""

    run_id: RunId
    schedule_id: ScheduleId
    version: int
    scheduled_at: datetime
    due_at: datetime
    """When it falls due: `scheduled_at`, unless the occurrence was moved or spread."""
    named_local: datetime
    """The local time that the rule names (naive); `local` is the one that the zone made of it."""
    offset: timedelta
    period_key: str
    origin: Origin
    job: str
    partition: int
    state: RunState
    reason: str | None = None
    planned_at: datetime | None = None
    admitted_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    attempt: int = 0
    """The number of the current or last attempt; 0 before the first."""
    available_at: datetime | None = None
    """Not to be started before this: `due_at`, or the end of a retry's delay."""
    progress: Progress | None = None
    error: str | None = None
    cancel_requested_at: datetime | None = None
    turn: int = 0
    """Its place in its schedule's backlog when it was made: 0 for one that was on time. Of what waits to be started the
    lower turns come first, so that a long backlog of one schedule keeps no other waiting."""
    second_pass: bool = False
    """Of two occurrences with this local time, the second."""
    carried_by: int | None = None
    """The version whose activation created it, though its instant lies past its own version's window."""

    @property
    def local(self) -> datetime:
        """The resolved local time of `scheduled_at` (naive)."""
        return self.scheduled_at.replace(tzinfo=None) + self.offset


class AttemptOutcome(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    MOOT = "moot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at a run. Its number fences the worker: only the current attempt may report or settle (I6)."""

    run_id: RunId
    number: int
    worker: str
    opened_at: datetime
    lease_expires_at: datetime
    finished_at: datetime | None = None
    outcome: AttemptOutcome | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    """A run with what a page about it shows."""

    run: Run
    attempts: tuple[Attempt, ...]
    result: JsonText | None
    effects: tuple[Effect, ...] = ()
    """By the time they were begun."""
    delivery: Delivery | None = None
    """The message that asks for its next attempt, where one is on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChange:
    """A run as it becomes: applies only if its state is still `expected_state`."""

    expected_state: RunState
    run: Run
