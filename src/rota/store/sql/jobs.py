"""Jobs in SQL: each a text under its name."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import RowMapping, Select, insert, select, update
from sqlalchemy.exc import IntegrityError

from rota.domain.job import Job
from rota.domain.sink import WorkerSink
from rota.store.port import Notice, StoreUnavailable
from rota.store.sql import bounds, cells
from rota.store.sql.batches import Part
from rota.store.sql.demands import grant_permits
from rota.store.sql.engine import is_unique_violation
from rota.store.sql.job_texts import job_text, read_job
from rota.store.sql.notices import notify
from rota.store.sql.pages import read_page, readable
from rota.store.sql.schema import jobs

TRIES = 10
"""A first limit gives permits to all that is in hand, while claims give theirs."""


class SqlJobs(Part):
    def commit_job(self, job: Job, *, now: datetime) -> bool:
        for _ in range(TRIES):
            try:
                return self._write(job, now=now)
            except IntegrityError as error:
                # Another writer created it in between, or gave one of its runs a permit.
                if not is_unique_violation(error):
                    raise
        raise StoreUnavailable(
            f"Job {job.name} was changed by others again and again while it was to be written; try again."
        )

    def _write(self, job: Job, *, now: datetime) -> bool:
        values = {
            "spec": job_text(job),
            "updated_at": now,
            "lateness_max": bounds.lateness_of(job.overdue),
            "priority": job.priority,
            "max_running": job.max_running,
            "is_fetched": isinstance(job.sink, WorkerSink),
        }
        of_job = jobs.c.name == job.name
        with self._database.writing() as connection:
            before = connection.execute(select(jobs.c.max_running).where(of_job).with_for_update()).first()
            if before is None:
                connection.execute(insert(jobs), {"name": job.name, "created_at": now, **values})
            else:
                connection.execute(update(jobs).where(of_job).values(values))
            if job.max_running is not None and (before is None or before.max_running is None):
                grant_permits(connection, job.name)
            notify(connection, Notice.QUEUED)
            return before is None

    def get_job(self, name: str) -> Job | None:
        """Raises `UnreadableRow`."""
        with self._database.reading() as connection:
            spec = connection.execute(select(jobs.c.spec).where(jobs.c.name == name)).scalar()
        return None if spec is None else job_or_default(name, spec)

    def list_jobs(self, *, after: str | None, limit: int) -> list[Job]:
        def names_after(last: RowMapping | None) -> Select[*tuple[object, ...]]:
            # No name is empty, so all come after the empty text.
            name = after or "" if last is None else last["name"]
            return select(jobs.c.name, jobs.c.spec).where(jobs.c.name > name).order_by(jobs.c.name)

        with self._database.reading() as connection:
            return read_page(connection, names_after, _to_jobs, limit=limit)


def _to_jobs(found: Sequence[RowMapping]) -> Iterator[Job]:
    return readable(found, lambda row: job_or_default(row["name"], row["spec"]))


def job_or_default(name: str, spec: object) -> Job:
    """The job of a row, or of none: a job that was never stored has the defaults. Raises `UnreadableRow`."""
    if spec is None:
        return Job(name=name)
    with cells.reading(f"job {name}"):
        return read_job(name, cells.text(spec))
