"""Jobs: the table by which the service knows what may be scheduled."""

from collections.abc import Iterable, Mapping

from rota.domain.errors import NotFound
from rota.domain.job import Job
from rota.domain.job_form import JOB_NAME_PATTERN, parse_job
from rota.service.context import Context
from rota.service.representation import Wire, named_job_to_wire


def put_job(context: Context, name: str, body: Mapping[str, object]) -> tuple[bool, Wire]:
    """Creates or replaces the job; whether it was created, and the job. Raises `InvalidRequest`."""
    job = parse_job(name, body)
    created = context.store.commit_job(job, now=context.clock.now())
    return created, named_job_to_wire(job)


def apply_jobs(context: Context, jobs: Iterable[Job], *, dry_run: bool = False) -> Wire:
    """Makes these jobs as they are given, and says what became of each; with `dry_run` only what would. Others are left
    alone."""
    outcomes = []
    for job in jobs:
        found = context.store.get_job(job.name)
        outcome = "created" if found is None else "unchanged" if found == job else "replaced"
        if not dry_run and found != job:
            context.store.commit_job(job, now=context.clock.now())
        outcomes.append({"name": job.name, "outcome": outcome})
    return {"dry_run": dry_run, "jobs": outcomes}


def show_job(context: Context, name: str) -> Wire:
    """Raises `NotFound`."""
    job = context.store.get_job(name) if JOB_NAME_PATTERN.fullmatch(name) else None
    if job is None:
        raise NotFound("job", name)
    return named_job_to_wire(job)


def list_jobs(context: Context, *, after: str | None, limit: int) -> list[Wire]:
    return [named_job_to_wire(job) for job in context.store.list_jobs(after=after, limit=limit)]
