"""Overlap: what becomes of an occurrence that falls due while a run of its schedule is open.

A schedule whose runs may not overlap has two places: the run in the first is open, queued or running through all its
attempts; the one in the second waits for it. They are given in the commit that admits a run (I3), and the commit that
ends the first run frees its place, moves the second up and queues it. Only occurrences that the rule names take places:
what is asked for (run now, backfill, replay) is neither refused by them nor counted.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from rota.domain.identity import RunId
from rota.domain.run import Run, RunEvent, RunState, next_state
from rota.domain.schedule import Overlap

Places = tuple[RunId, ...]
"""The open run, and behind it the one that waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What an occurrence gets."""

    state: RunState | None
    """Queued, waiting, or None: it is to be skipped as `overlap`."""
    places: Places
    """The schedule's places afterwards."""

    @property
    def note(self) -> str | None:
        """Which runs were in its way."""
        match self.places:
            case _ if self.state is not None:
                return None
            case (open_run, waiting):
                return f"run {open_run} is open, and run {waiting} waits for it"
            case (open_run, *_):
                return f"run {open_run} is open"
            case _:
                return None


def take_place(overlap: Overlap, places: Places, run_id: RunId) -> Place:
    """The place of the run that falls due, where those are taken."""
    match overlap:
        case "allow":
            return Place(state=RunState.QUEUED, places=places)
        case "skip" | "queue" if not places:
            return Place(state=RunState.QUEUED, places=(run_id,))
        case "queue" if len(places) == 1:
            return Place(state=RunState.WAITING, places=(*places, run_id))
        case "skip" | "queue":
            return Place(state=None, places=places)
        case _:
            assert_never(overlap)


def free_place(places: Places, run_id: RunId) -> tuple[Places, RunId | None]:
    """The places after that run ended, and the run whose turn has come by that."""
    if run_id not in places:
        return places, None
    left = tuple(place for place in places if place != run_id)
    return left, left[0] if left and places[0] == run_id else None


def turn_came(waiting: Run, *, now: datetime | None) -> Run:
    """The run that waited, once the one before it has ended."""
    return replace(waiting, state=next_state(waiting.state, RunEvent.TURN_CAME), available_at=now)
