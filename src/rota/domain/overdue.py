"""What becomes of an occurrence that is admitted late: the three overdue policies."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, assert_never


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUpAll:
    """Every occurrence gets its run, however late; with `max_age`, those later than that are `expired`."""

    max_age: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestOnly:
    """An occurrence later than `grace` is `superseded` when a newer one is due."""

    grace: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire:
    """An occurrence later than `deadline` is `expired`."""

    deadline: timedelta


OverduePolicy = CatchUpAll | LatestOnly | Expire
Verdict = Literal["run", "expired", "superseded"]


def longest_lateness(policy: OverduePolicy) -> timedelta | None:
    """How late an occurrence still runs where no newer one is due; None: however late."""
    match policy:
        case CatchUpAll(max_age=max_age):
            return max_age
        case LatestOnly():
            return None
        case Expire(deadline=deadline):
            return deadline
        case _:
            assert_never(policy)


def judge_overdue(
    policy: OverduePolicy, *, due_at: datetime, newer_due_at: datetime | None, now: datetime
) -> Verdict:
    """The verdict on an occurrence due at `due_at`, where `newer_due_at` is the next one that may itself run."""
    late = now - due_at
    match policy:
        case CatchUpAll(max_age=max_age):
            return "expired" if max_age is not None and late > max_age else "run"
        case LatestOnly(grace=grace):
            newer_is_due = newer_due_at is not None and newer_due_at <= now
            return "superseded" if late > grace and newer_is_due else "run"
        case Expire(deadline=deadline):
            return "expired" if late > deadline else "run"
        case _:
            assert_never(policy)
