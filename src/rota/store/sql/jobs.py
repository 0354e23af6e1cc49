"""Jobs in SQL: each a text under its name."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import RowMapping, Select, insert, select, update
from sqlalchemy.exc import IntegrityError

from rota.domain.job import Job
from rota.store.sql import bounds, cells, texts
from rota.store.sql.batches import Part
from rota.store.sql.engine import is_unique_violation
from rota.store.sql.pages import read_page, readable
from rota.store.sql.schema import jobs


class SqlJobs(Part):
    def commit_job(self, job: Job, *, now: datetime) -> bool:
        values = {
            "spec": texts.job_text(job),
            "updated_at": now,
            "lateness_max": bounds.lateness_of(job.overdue),
        }
        replaced = update(jobs).where(jobs.c.name == job.name).values(values)
        try:
            with self._database.writing() as connection:
                if connection.execute(replaced).rowcount:
                    return False
                connection.execute(insert(jobs), {"name": job.name, "created_at": now, **values})
                return True
        except IntegrityError as error:
            if not is_unique_violation(error):
                raise
        # Another writer created it in between.
        with self._database.writing() as connection:
            connection.execute(replaced)
        return False

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
        return texts.read_job(name, cells.text(spec))
