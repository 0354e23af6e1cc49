"""The jobs of an application and their handlers, by name."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypedDict, TypeVar, Unpack

from rota.domain.errors import Conflict
from rota.domain.job import Job, RetryPolicy
from rota.domain.job_form import DESCRIPTION_CHARACTERS_MAX, job_to_wire, parse_job
from rota.domain.overdue import CatchUpAll, Expire, LatestOnly, OverduePolicy
from rota.domain.sink import CelerySink, DeliveryPolicy, Sink, SqsSink, WebhookSink, WorkerSink
from rota.worker.context import RunContext
from rota.worker.effects import is_async

Handler = Callable[[RunContext], object] | Callable[[RunContext], Awaitable[object]]
"""Returns a JSON value, None or `Moot`; what it raises fails the attempt."""
Guard = Callable[[RunContext], object] | Callable[[RunContext], Awaitable[object]]
"""Returns None to let the handler go on, or why there is nothing to do: a text, or `Moot`."""

H = TypeVar("H", bound=Callable[..., object])

CONCURRENCY_MAX = 1_000


class JobSettings(TypedDict, total=False):
    """What may be said of a job; what is left out, or None, takes its default."""

    timeout: timedelta | None
    retry: RetryPolicy | None
    overdue: OverduePolicy | None
    lease: timedelta | None
    params_bytes_max: int | None
    sink: Sink | None
    delivery: DeliveryPolicy | None
    priority: int | None
    max_running: int | None
    description: str | None


KINDS: dict[str, tuple[type, ...]] = {
    "timeout": (timedelta,),
    "retry": (RetryPolicy,),
    "overdue": (CatchUpAll, LatestOnly, Expire),
    "lease": (timedelta,),
    "params_bytes_max": (int,),
    "sink": (WorkerSink, WebhookSink, CelerySink, SqsSink),
    "delivery": (DeliveryPolicy,),
    "priority": (int,),
    "max_running": (int,),
    "description": (str,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredJob:
    job: Job
    handler: Handler
    is_async: bool
    guard: Guard | None = None
    concurrency: int | None = None
    """How many attempts at it a worker has open at once; None: as many as it has places."""


class Registry:
    """Jobs by name. Filled while modules are imported, then only read."""

    def __init__(self) -> None:
        self._jobs: dict[str, RegisteredJob] = {}
        self._declared: dict[str, Job] = {}

    def job(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        guard: Guard | None = None,
        **settings: Unpack[JobSettings],
    ) -> Callable[[H], H]:
        """Decorates the handler of a job, sync or async, and leaves it as it is. What is not given takes its default.

        The description is the first line of the handler's docstring, unless one is given. Raises `InvalidRequest`
        where a value is out of bounds, and `Conflict` where the name is taken.
        """
        job = _job_of(name, settings)

        def register(handler: H) -> H:
            self.add(job, handler, guard=guard, concurrency=concurrency)
            return handler

        return register

    def declare(self, name: str, **settings: Unpack[JobSettings]) -> Job:
        """Makes a job known that has no handler here: its runs are sent to a sink, or fetched by other workers.

        Raises `InvalidRequest` where a value is out of bounds, and `Conflict` where the name is taken.
        """
        job = _checked(_job_of(name, settings), description=None)
        self._check_is_free(name)
        self._declared[name] = job
        return job

    def add(
        self, job: Job, handler: Handler, *, guard: Guard | None = None, concurrency: int | None = None
    ) -> None:
        """Raises `InvalidRequest` for a job out of bounds, `Conflict` for a name that is taken already."""
        _check_function("handler", job.name, handler)
        _check_sink(job)
        is_async_handler = is_async(handler)
        if guard is not None:
            _check_function("guard", job.name, guard)
            if is_async(guard) and not is_async_handler:
                raise TypeError(
                    f"The guard of {job.name!r} is async and its handler is not; make both the same, or the guard sync."
                )
        _check_concurrency(job.name, concurrency)
        checked = _checked(job, description=_first_line(handler))
        self._check_is_free(job.name)
        self._jobs[job.name] = RegisteredJob(
            job=checked, handler=handler, is_async=is_async_handler, guard=guard, concurrency=concurrency
        )

    def get(self, name: str) -> RegisteredJob | None:
        """The job with its handler; None where it has none here."""
        return self._jobs.get(name)

    def jobs(self) -> list[Job]:
        """All that are known here, by name: those that have a handler, and those that were declared."""
        known = {name: entry.job for name, entry in self._jobs.items()} | self._declared
        return [job for _, job in sorted(known.items())]

    def fetched(self) -> list[RegisteredJob]:
        """Those whose runs a worker fetches, by name."""
        entries = [entry for _, entry in sorted(self._jobs.items())]
        return [entry for entry in entries if isinstance(entry.job.sink, WorkerSink)]

    def _check_is_free(self, name: str) -> None:
        if name in self._jobs:
            raise Conflict(f"The job {name!r} has a handler already; choose another name.")
        if name in self._declared:
            raise Conflict(f"The job {name!r} is declared already; choose another name.")


def _job_of(name: str, settings: JobSettings) -> Job:
    if not isinstance(name, str):
        raise TypeError('Give the job a name: @app.job("sales_report").')
    unknown = sorted(set(settings) - set(KINDS))
    if unknown:
        raise TypeError(f"A job has no {unknown[0]!r}; it has {', '.join(KINDS)}.")
    given: dict[str, object] = {key: value for key, value in settings.items() if value is not None}
    for key, value in given.items():
        kinds = KINDS[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"Give {key} as {names}, not as {type(value).__name__}.")
    return replace(Job(name=name), **given)  # type: ignore[arg-type]  # their kinds were checked above


def _checked(job: Job, *, description: str | None) -> Job:
    """The job as a store keeps it. What the wire form refuses, no store would keep either."""
    wire = job_to_wire(job)
    if job.description is None:
        wire["description"] = description
    return parse_job(job.name, wire)


def _check_function(what: str, name: str, function: Callable[..., object]) -> None:
    """Raises `TypeError` for what cannot be called with a context: at registration, not at each attempt."""
    if not callable(function):
        raise TypeError(
            f"The {what} of {name!r} is a {type(function).__name__}; give a function of one argument."
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"The {what} of {name!r} yields; let it return its result.")
    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # A builtin that does not tell.
    try:
        signature.bind(object())
    except TypeError as error:
        raise TypeError(
            f"The {what} of {name!r} is called with one argument, its context, and takes {signature}: {error}."
        ) from None


def _check_sink(job: Job) -> None:
    """A handler has to be one that somebody calls: a worker, or a consumer of the queue that its runs are sent to."""
    if isinstance(job.sink, WebhookSink | CelerySink):
        where = "a webhook" if isinstance(job.sink, WebhookSink) else "Celery"
        raise TypeError(
            f"Runs of {job.name!r} are sent to {where}, so no worker calls a handler; "
            f"declare the job with app.declare({job.name!r}, sink=...)."
        )


def _check_concurrency(name: str, concurrency: int | None) -> None:
    if concurrency is None:
        return
    if isinstance(concurrency, bool) or not isinstance(concurrency, int):
        raise TypeError(f"Give concurrency as int, not as {type(concurrency).__name__}.")
    if not 1 <= concurrency <= CONCURRENCY_MAX:
        raise ValueError(f"Give {name!r} a concurrency from 1 to {CONCURRENCY_MAX}, or none.")


def _first_line(handler: Handler) -> str | None:
    is_plain = inspect.isfunction(handler) or inspect.ismethod(handler)
    lines = (inspect.getdoc(handler) or "").splitlines() if is_plain else []
    return lines[0][:DESCRIPTION_CHARACTERS_MAX] if lines else None
