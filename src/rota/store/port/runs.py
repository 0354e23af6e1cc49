"""What the use cases and pages need of runs and jobs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rota.domain.admission import Skip
from rota.domain.audit import AuditEvent
from rota.domain.identity import RunId, ScheduleId
from rota.domain.job import Job
from rota.domain.run import Origin, Run, RunDetail, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    schedule_id: ScheduleId | None = None
    state: RunState | None = None
    job: str | None = None
    origin: Origin | None = None
    label: tuple[str, str] | None = None
    """A label of the run's schedule."""
    from_: datetime | None = None
    """Scheduled at this instant or later."""
    until: datetime | None = None
    """Scheduled before this instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerKey:
    """A place in a list of runs or of a schedule's ledger: the instant, then the id (a skip's is empty)."""

    instant: datetime
    id_: str


class RunStore(Protocol):
    """Runs as people and applications see them."""

    def get_run(self, run_id: RunId) -> RunDetail | None:
        """Raises `UnreadableRow`."""

    def list_runs(self, filter_: RunFilter, *, before: LedgerKey | None, limit: int) -> list[Run]:
        """Newest scheduled_at first, then by run id descending; those after the place `before` in that order.

        What cannot be read is left out.
        """

    def list_ledger(
        self, schedule_id: ScheduleId, *, before: LedgerKey | None, limit: int
    ) -> list[Run | Skip]:
        """A schedule's runs and skips, newest instant first (a skip's is its `from_`), ties by id descending.

        What cannot be read is left out.
        """

    def commit_cancel(self, run_id: RunId, *, event: AuditEvent, now: datetime) -> Run | None:
        """A run that is not open is cancelled with its intent or delivery, and frees its place; a running one is asked
        to stop; a settled one is left.

        The run after it, or None where there is no such run. Raises `UnreadableRow`.
        """


class JobStore(Protocol):
    def commit_job(self, job: Job, *, now: datetime) -> bool:
        """Creates or replaces; True where it was created."""

    def get_job(self, name: str) -> Job | None:
        """Raises `UnreadableRow`."""

    def list_jobs(self, *, after: str | None, limit: int) -> list[Job]:
        """By name, those after `after`; what cannot be read is left out."""
