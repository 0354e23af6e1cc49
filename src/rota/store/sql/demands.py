"""How much of each job may be given out: what was asked for, bounded by what its row allows.

Of a job with a `max_running` each run in hand has a row in `permits`. Whoever gives out more of it holds the job's row
until the commit, and counts in a statement that begins under that lock: so together they never give out too much. On
PostgreSQL a row that another holds is passed over, so nobody waits; nothing of that job is given out then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select

from rota.domain.delivery import IN_HAND
from rota.domain.job import PRIORITY_DEFAULT
from rota.domain.run import RunState
from rota.store.port import Notice, Wanted
from rota.store.sql import cells
from rota.store.sql.columns import among
from rota.store.sql.notices import notify
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.schema import attempts, deliveries, jobs, permits, runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """How much of a job may be given out now."""

    job: str
    limit: int
    """Of all that there is, intents and deliveries."""
    free: int
    """Of what is not in hand yet: none of a job that is full."""
    priority: int
    is_fetched: bool
    """Whether Rota's workers fetch its runs, and they are not sent to a sink."""

    @property
    def most(self) -> int:
        return min(self.limit, self.free)


def lock_demands(connection: Connection, wanted: Iterable[Wanted], *, limit: int) -> list[Demand]:
    """What may be given out in this transaction."""
    return _demands(connection, wanted, limit, locking=True)


def read_demands(connection: Connection, names: Iterable[str]) -> list[Demand]:
    """What might be given out: of each job one, if any."""
    return _demands(connection, [Wanted(job=name) for name in names], 1, locking=False)


def write_permits(connection: Connection, of_runs: Sequence[tuple[str, str]]) -> None:
    """Permits for runs that are in hand from now on, each with its job; whoever calls holds the runs."""
    if of_runs:
        ids = [run_id for run_id, _ in of_runs]
        having = {run_id for (run_id,) in _READ_PERMITS.read(connection, ids)}
        missing = [{"run_id": id_, "job": job} for id_, job in of_runs if id_ not in having]
        _WRITE_PERMIT.execute(connection, missing)


def drop_permits(connection: Connection, run_ids: Iterable[str]) -> None:
    """Of runs that are no longer in hand; others may take their turn."""
    if _DROP_PERMIT.execute(connection, [{"key_run_id": run_id} for run_id in run_ids]):
        notify(connection, Notice.QUEUED)


def grant_permits(connection: Connection, job: str) -> None:
    """Permits for all runs in hand of a job that gets a limit."""
    for grant in (_GRANT_RUNNING, _GRANT_SENT):
        grant.execute(connection, [{"job": job}])


def _demands(connection: Connection, wanted: Iterable[Wanted], limit: int, *, locking: bool) -> list[Demand]:
    asked = {each.job: limit if each.limit is None else min(each.limit, limit) for each in wanted}
    if not asked:
        return []
    found = {row["name"]: row for row in _READ_JOBS.read(connection, list(asked)).mappings()}
    limited = [name for name, row in found.items() if row["max_running"] is not None]
    free = _free_of(connection, limited, locking=locking) if limited else {}
    return [
        Demand(
            job=name,
            limit=max(0, most),
            free=min(limit, free.get(name, 0)) if name in limited else limit,
            priority=PRIORITY_DEFAULT if name not in found else cells.integer(found[name]["priority"]),
            is_fetched=name not in found or bool(found[name]["is_fetched"]),
        )
        for name, most in asked.items()
    ]


def _free_of(connection: Connection, names: Sequence[str], *, locking: bool) -> dict[str, int]:
    """How many more of each may be in hand; nothing of those whose row another connection holds."""
    lookup = _LOCK_LIMITED if locking else _READ_LIMITED
    limits = {
        cells.text(name): cells.integer(most)
        for name, most in lookup.read(connection, names)
        if most is not None
    }
    free = _left_of(connection, limits, _COUNT_PERMITS)
    full = sorted(name for name, left in free.items() if left == 0)
    if not full:
        return free
    if not locking:
        # Who only looks drops nothing: it leaves out what a claim or a take would drop, else none would be made.
        return free | _left_of(connection, {name: limits[name] for name in full}, _COUNT_IN_HAND)
    if _DROP_LOST.execute(connection, [{"job": name} for name in full]):
        return _left_of(connection, limits, _COUNT_PERMITS)
    return free


def _left_of(connection: Connection, limits: dict[str, int], counted: Lookup) -> dict[str, int]:
    left = dict(limits)
    for job, count in counted.read(connection, list(limits)) if limits else ():
        left[cells.text(job)] -= cells.integer(count)
    return {name: max(0, most) for name, most in left.items()}


_LIMITED = (
    select(jobs.c.name, jobs.c.max_running)
    .where(jobs.c.name.in_(bindparam("keys", expanding=True)))
    .order_by(jobs.c.name)
)
_READ_JOBS = Lookup(
    select(jobs.c.name, jobs.c.priority, jobs.c.max_running, jobs.c.is_fetched).where(
        jobs.c.name.in_(bindparam("keys", expanding=True))
    )
)
_READ_LIMITED = Lookup(_LIMITED)
_LOCK_LIMITED = Lookup(_LIMITED.with_for_update(key_share=True, skip_locked=True))
_COUNT_PERMITS = Lookup(
    select(permits.c.job, func.count())
    .where(permits.c.job.in_(bindparam("keys", expanding=True)))
    .group_by(permits.c.job)
)
_READ_PERMITS = Lookup(
    select(permits.c.run_id).where(permits.c.run_id.in_(bindparam("keys", expanding=True)))
)
_WRITE_PERMIT = Prepared(insert(permits))
_DROP_PERMIT = Prepared(delete(permits).where(permits.c.run_id == bindparam("key_run_id")))
_IS_RUNNING = (
    select(runs.c.run_id)
    .where(runs.c.run_id == permits.c.run_id, runs.c.state == RunState.RUNNING.value)
    .exists()
)
_is_in_hand = among(deliveries.c.state, sorted(IN_HAND))
_IS_SENT = select(deliveries.c.run_id).where(deliveries.c.run_id == permits.c.run_id, _is_in_hand).exists()
# Those that a limit found in hand just when they ended, and of runs that somebody took away by hand (I12): a place that
# nobody holds is not to be lost for good.
_COUNT_IN_HAND = Lookup(
    select(permits.c.job, func.count())
    .where(permits.c.job.in_(bindparam("keys", expanding=True)), or_(_IS_RUNNING, _IS_SENT))
    .group_by(permits.c.job)
)
_DROP_LOST = Prepared(delete(permits).where(permits.c.job == bindparam("job"), ~_IS_RUNNING, ~_IS_SENT))
_GRANT_RUNNING = Prepared(
    insert(permits).from_select(
        ["run_id", "job"],
        select(runs.c.run_id, runs.c.job)
        .join(attempts, (attempts.c.run_id == runs.c.run_id) & (attempts.c.number == runs.c.attempt))
        .where(
            attempts.c.finished_at.is_(None),
            runs.c.job == bindparam("job"),
            runs.c.state == RunState.RUNNING.value,
            ~select(permits.c.run_id).where(permits.c.run_id == runs.c.run_id).correlate(runs).exists(),
        ),
    )
)
_GRANT_SENT = Prepared(
    insert(permits).from_select(
        ["run_id", "job"],
        select(deliveries.c.run_id, deliveries.c.job).where(
            deliveries.c.job == bindparam("job"),
            _is_in_hand,
            ~select(permits.c.run_id)
            .where(permits.c.run_id == deliveries.c.run_id)
            .correlate(deliveries)
            .exists(),
        ),
    )
)
