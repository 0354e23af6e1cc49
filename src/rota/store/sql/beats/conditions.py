"""What `rota.domain.beat` says of ordinary schedules, in SQL: the conditions that both databases share.

Parameters: `after` and `now` bound what is due, `now_ended` is `now` rounded up to the millisecond.
"""

from sqlalchemy import ColumnElement, bindparam, case, func, literal, literal_column, or_, select

from rota.store.sql.bounds import LATENESS_UNLIMITED
from rota.store.sql.columns import Instant, Long
from rota.store.sql.schema import is_due_status, jobs, schedules

BEAT_KEY = (schedules.c.cadence_id, schedules.c.period, schedules.c.series, schedules.c.next_due)
"""Where a schedule stands, in the order of `writes.KEY_NAMES`."""


def is_due() -> tuple[ColumnElement[bool], ...]:
    return (
        schedules.c.next_due > bindparam("after", type_=Instant),
        schedules.c.next_due <= bindparam("now", type_=Instant),
        is_due_status(),
    )


def may_be_ordinary() -> tuple[ColumnElement[bool], ...]:
    """The same as the function of that name in `rota.domain.beat`, of a schedule that has not lost its version."""
    instant = schedules.c.next_due
    return (
        schedules.c.status == literal_column("'active'"),
        schedules.c.next_scheduled_at == instant,
        schedules.c.version == schedules.c.latest_version,
        or_(schedules.c.careful_until.is_(None), schedules.c.careful_until <= instant),
        schedules.c.history_from <= instant,
        schedules.c.cadence_id.is_not(None),
    )


def is_in_time() -> ColumnElement[bool]:
    """That the policy lets it run however late it is; that of the job is only looked up where it may matter."""
    late = bindparam("now_ended", type_=Instant) - schedules.c.next_due
    unlimited = literal(LATENESS_UNLIMITED, Long)
    strictest = select(func.coalesce(func.min(jobs.c.lateness_max), unlimited)).scalar_subquery()
    of_job = select(jobs.c.lateness_max).where(jobs.c.name == schedules.c.job).scalar_subquery()
    by_job = case((late <= strictest, unlimited), else_=func.coalesce(of_job, unlimited))
    return late <= func.coalesce(schedules.c.lateness_max, by_job)
