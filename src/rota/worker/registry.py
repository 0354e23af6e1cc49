"""The jobs of an application and their handlers, by name."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from rota.domain.errors import Conflict
from rota.domain.job import PARAMS_BYTES_MAX, Job, RetryPolicy
from rota.domain.job_form import DESCRIPTION_CHARACTERS_MAX, job_to_wire, parse_job
from rota.domain.overdue import CatchUpAll, Expire, LatestOnly, OverduePolicy
from rota.worker.context import RunContext

Handler = Callable[[RunContext], object] | Callable[[RunContext], Awaitable[object]]
"""Returns a JSON value, None or `Moot`; what it raises fails the attempt."""

H = TypeVar("H", bound=Callable[..., object])


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredJob:
    job: Job
    handler: Handler
    is_async: bool


class Registry:
    """Jobs by name. Filled while modules are imported, then only read."""

    def __init__(self) -> None:
        self._jobs: dict[str, RegisteredJob] = {}

    def job(
        self,
        name: str,
        *,
        timeout: timedelta | None = None,
        retry: RetryPolicy | None = None,
        overdue: OverduePolicy | None = None,
        lease: timedelta | None = None,
        params_bytes_max: int = PARAMS_BYTES_MAX,
        description: str | None = None,
    ) -> Callable[[H], H]:
        """Decorates the handler of a job, sync or async, and leaves it as it is. What is not given takes its default.

        The description is the first line of the handler's docstring, unless one is given. Raises `InvalidRequest`
        where a value is out of bounds, and `Conflict` where the name is taken.
        """
        if not isinstance(name, str):
            raise TypeError('Give the job a name: @app.job("sales_report").')
        _check_type("timeout", timeout, timedelta)
        _check_type("retry", retry, RetryPolicy)
        _check_type("overdue", overdue, CatchUpAll, LatestOnly, Expire)
        _check_type("lease", lease, timedelta)
        default = Job(name=name)
        job = Job(
            name=name,
            overdue=overdue or default.overdue,
            retry=retry or default.retry,
            timeout=timeout,
            lease=default.lease if lease is None else lease,
            params_bytes_max=params_bytes_max,
            description=description,
        )

        def register(handler: H) -> H:
            self.add(job, handler)
            return handler

        return register

    def add(self, job: Job, handler: Handler) -> None:
        """Raises `InvalidRequest` for a job out of bounds, `Conflict` for a name that has a handler already."""
        if not callable(handler):
            raise TypeError(
                f"The handler of {job.name!r} is a {type(handler).__name__}; give a function of one argument."
            )
        if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
            raise TypeError(f"The handler of {job.name!r} yields; let it return its result.")
        _check_arguments(job.name, handler)
        wire = job_to_wire(job)
        if job.description is None:
            wire["description"] = _first_line(handler)
        # What the wire form refuses here, no store would keep either.
        checked = parse_job(job.name, wire)
        if job.name in self._jobs:
            raise Conflict(f"The job {job.name!r} has a handler already; choose another name.")
        self._jobs[job.name] = RegisteredJob(job=checked, handler=handler, is_async=_is_async(handler))

    def get(self, name: str) -> RegisteredJob | None:
        return self._jobs.get(name)

    def jobs(self) -> list[Job]:
        """By name."""
        return [entry.job for _, entry in sorted(self._jobs.items())]


def _is_async(handler: Handler) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


def _check_arguments(name: str, handler: Handler) -> None:
    """Raises `TypeError` where the call with the context alone would: at registration, not at each attempt."""
    try:
        signature = inspect.signature(handler)
    except ValueError:
        return  # A builtin that does not tell.
    try:
        signature.bind(object())
    except TypeError as error:
        raise TypeError(
            f"The handler of {name!r} is called with one argument, its context, and takes {signature}: {error}."
        ) from None


def _first_line(handler: Handler) -> str | None:
    is_plain = inspect.isfunction(handler) or inspect.ismethod(handler)
    lines = (inspect.getdoc(handler) or "").splitlines() if is_plain else []
    return lines[0][:DESCRIPTION_CHARACTERS_MAX] if lines else None


def _check_type(name: str, value: object, *types: type) -> None:
    if value is not None and not isinstance(value, types):
        names = " or ".join(expected.__name__ for expected in types)
        raise TypeError(f"Give {name} as {names}, not as {type(value).__name__}.")
