"""Who dispatches: the partitions with their holders, and how much of each is due and waits for admission."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from rota.domain.instants import format_instant
from rota.service.context import Context
from rota.service.representation import Wire
from rota.store.port import DueCount, PartitionState, is_held

COUNTED_MAX = 1_000
"""Of a partition, of schedules and of planned runs each: to know that there is a backlog, and whether it shrinks."""
COUNTED_IN_ALL_MAX = 100_000
"""Where there are very many partitions less of each is counted, so that the answer costs no more."""

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """One partition, and what waits in it."""

    state: PartitionState
    is_held: bool
    lag: timedelta
    due: DueCount


def show_partitions(context: Context) -> Wire:
    """Every partition, all of them together, and the dispatchers that are there.

    It is put together from a few reads, one after the other, so what is admitted between them shows in some and not in
    others. Raises `StoreUnavailable`.
    """
    store, now = context.store, context.clock.now()
    states = store.list_partitions()
    numbers = [state.partition for state in states]
    limit = min(COUNTED_MAX, COUNTED_IN_ALL_MAX // max(1, len(numbers)))
    due_times = store.read_due_times(numbers)
    counts = store.count_due(numbers, now=now, limit=limit)
    standings = [
        _Standing(
            state=state,
            is_held=is_held(state, now=now),
            lag=max(timedelta(0), now - due_times[number].earliest) if number in due_times else timedelta(0),
            due=counts.get(number, DueCount()),
        )
        for number, state in zip(numbers, states, strict=True)
    ]
    held = Counter(standing.state.owner for standing in standings if standing.is_held)
    return {
        "at": format_instant(now),
        "dispatchers": [{"owner": owner, "partitions": held[owner]} for owner in store.list_present(now=now)],
        "partitions": [_to_wire(standing, limit=limit) for standing in standings],
        "totals": _totals(standings, limit=limit),
    }


def _to_wire(standing: _Standing, *, limit: int) -> Wire:
    state = standing.state
    return {
        "partition": state.partition,
        "owner": state.owner,
        "epoch": state.epoch,
        "expires_at": _instant_or_none(state.expires_at),
        "is_held": standing.is_held,
        "checkpoint": _instant_or_none(state.checkpoint),
        "lag_ms": standing.lag // _MILLISECOND,
        "due": _counted([standing.due.schedules], limit=limit),
        "planned_due": _counted([standing.due.planned], limit=limit),
    }


def _totals(standings: list[_Standing], *, limit: int) -> Wire:
    """The lag of all is the longest."""
    return {
        "partitions": len(standings),
        "held": sum(standing.is_held for standing in standings),
        "lag_ms": max((standing.lag for standing in standings), default=timedelta(0)) // _MILLISECOND,
        "due": _counted([standing.due.schedules for standing in standings], limit=limit),
        "planned_due": _counted([standing.due.planned for standing in standings], limit=limit),
    }


def _counted(counts: Iterable[int], *, limit: int) -> Wire:
    """Together; at least so many where one was counted up to the limit."""
    told = list(counts)
    return {"count": sum(told), "is_at_least": any(count >= limit for count in told)}


def _instant_or_none(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)
