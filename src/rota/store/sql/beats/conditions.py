"""What `rota.domain.beat` says of ordinary schedules, in SQL: the conditions that both databases share.

Parameters: `after` and `now` bound what is due, `now_ended` is `now` rounded up to the millisecond. `of` is the table
of schedules, or a selection of them that has the columns `LOOKED_AT`.
"""

from sqlalchemy import ColumnElement, FromClause, bindparam, case, func, literal, literal_column, or_, select

from rota.store.sql.bounds import LATENESS_UNLIMITED
from rota.store.sql.columns import Instant, Long
from rota.store.sql.schema import is_due_status, jobs, schedules

BEAT_KEY = ("cadence_id", "period", "series", "next_due")
"""Where a schedule stands, in the order of `writes.KEY_NAMES`."""

LOOKED_AT = (
    "id",
    "revision",
    "job",
    "partition",
    "status",
    "version",
    "latest_version",
    "next_due",
    "next_scheduled_at",
    "careful_until",
    "history_from",
    "cadence_id",
    "period",
    "series",
    "named_until",
    "lateness_max",
)
"""Columns by which it is told whether a schedule is ordinary, and what is made of it."""


def is_due() -> tuple[ColumnElement[bool], ...]:
    return (
        schedules.c.next_due > bindparam("after", type_=Instant),
        schedules.c.next_due <= bindparam("now", type_=Instant),
        is_due_status(),
    )


def stands_somewhere() -> ColumnElement[bool]:
    """Of a due schedule that it may stand at a beat at all. Those that never do are the planner's, and may be very
    many: did they count as looked at, they would hold up all that is behind them."""
    return schedules.c.cadence_id.is_not(None)


def may_be_ordinary(of: FromClause = schedules) -> tuple[ColumnElement[bool], ...]:
    """The same as the function of that name in `rota.domain.beat`, of a schedule that has not lost its version."""
    instant = of.c.next_due
    return (
        of.c.status == literal_column("'active'"),
        of.c.next_scheduled_at == instant,
        of.c.version == of.c.latest_version,
        or_(of.c.careful_until.is_(None), of.c.careful_until <= instant),
        of.c.history_from <= instant,
        of.c.cadence_id.is_not(None),
        or_(of.c.named_until.is_(None), of.c.named_until > instant + literal_column("1000", Long)),
    )


def is_in_time(of: FromClause) -> ColumnElement[bool]:
    """That the policy lets it run however late it is; that of the job is only looked up where it may matter."""
    late = bindparam("now_ended", type_=Instant) - of.c.next_due
    unlimited = literal(LATENESS_UNLIMITED, Long)
    strictest = select(func.coalesce(func.min(jobs.c.lateness_max), unlimited)).scalar_subquery()
    of_job = select(jobs.c.lateness_max).where(jobs.c.name == of.c.job).scalar_subquery()
    by_job = case((late <= strictest, unlimited), else_=func.coalesce(of_job, unlimited))
    return late <= func.coalesce(of.c.lateness_max, by_job)
