"""The body of a Celery task that does a run's work.

::

    @celery_app.task(name="reports.daily")
    @rota_task(app)
    def daily(ctx):
        return {"day": ctx.scheduled_local.date().isoformat()}

The relay sends the run's message to that task. The task opens the attempt that the message asks for, keeps its lease by
heartbeats while the function runs, and settles it: with what the function returned, or as failed with what it raised,
which Celery is told too. Retries are the job's in Rota and not Celery's: a further attempt is a further message. A
message that comes twice returns None at once, and so does one of a run that was asked to stop.

What a run's job is Rota says, and not the message. `rota_task(app, job="daily_report")` does that job's work alone: an
attempt at another one is given back, and Celery is told by `InvalidRequest`. Nothing of Celery is imported here.
"""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from rota.application import Rota
from rota.domain.errors import FieldError, InvalidRequest
from rota.worker.context import RunContext
from rota.worker.effects import is_async
from rota.worker.outcome import Moot

T = TypeVar("T")


def rota_task(
    app: Rota, *, job: str | None = None
) -> Callable[[Callable[[RunContext], T]], Callable[[object], T | None]]:
    """Decorates a function of one argument, its context; what comes of it takes a message, and goes under Celery's own
    decorator. Raises `TypeError` for an async function, which Celery does not await.

    With a `job` it works no other one's runs.
    """

    def decorate(function: Callable[[RunContext], T]) -> Callable[[object], T | None]:
        if is_async(function):
            raise TypeError(f"Celery awaits nothing: write {function.__name__!r} as a plain def.")

        @wraps(function)
        def work(message: object) -> T | None:
            attempt = app.open_attempt(message)
            if attempt is None:
                return None
            if job not in (None, attempt.context.job):
                problem = f"It is of the job {attempt.context.job!r}, and this task does {job!r}."
                attempt.give_back(problem)
                raise InvalidRequest(FieldError("message", problem))
            with attempt as ctx:
                result = function(ctx)
                attempt.result = result
                # A reason why there was nothing to do is no value that Celery could keep.
                return None if isinstance(result, Moot) else result
            return None  # the run was asked to stop, and the function has heeded it

        return work

    return decorate
