"""The job `echo`, which every application has: it returns its params, to try a schedule before there is a handler."""

from rota.domain.job import Job
from rota.worker.context import RunContext
from rota.worker.registry import Registry

ECHO = Job(name="echo", description="Returns its params.")


def echo(context: RunContext) -> dict[str, object]:
    context.progress(0.5, "read the params")
    params = context.params
    context.progress(1.0, "returned them")
    return params


def add_echo(registry: Registry) -> None:
    registry.add(ECHO, echo)
