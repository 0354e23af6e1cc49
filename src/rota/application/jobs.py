"""Jobs in the library: those that the database knows, whoever declared them."""

from collections.abc import Mapping

from rota.application.connection import Connection
from rota.application.fields import fields_to_wire
from rota.application.pages import checked_limit
from rota.service import jobs
from rota.service.paging import LIMIT_DEFAULT
from rota.service.representation import Wire


class Jobs(Connection):
    """What is asked of jobs."""

    def jobs(self, *, after: Mapping[str, object] | None = None, limit: int = LIMIT_DEFAULT) -> list[Wire]:
        """One page, by name: at most `limit` (up to 200); `after` is the last one of the page before.

        Raises `InvalidRequest`.
        """
        place = None if after is None else str(after["name"])
        return jobs.list_jobs(self.context, after=place, limit=checked_limit(limit))

    def get_job(self, name: str) -> Wire:
        """The job, every default resolved. Raises `NotFound`."""
        return jobs.show_job(self.context, name)

    def put_job(self, name: str, fields: Mapping[str, object] | None = None) -> Wire:
        """Creates or replaces a job, with the fields of `PUT /jobs/{name}`; what is left out takes its default.

        Durations may be given as `timedelta`. Raises `InvalidRequest`.
        """
        _, job = jobs.put_job(self.context, name, fields_to_wire(fields or {}))
        return job
