"""Rota: a timezone-aware schedule service and library.

What a program needs is here; each name is loaded at its first use, so that `import rota` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.application import Rota
    from rota.domain.job import RetryPolicy
    from rota.domain.overdue import CatchUpAll, Expire, LatestOnly
    from rota.domain.sink import CelerySink, DeliveryPolicy, SqsSink, WebhookSink, WorkerSink
    from rota.worker.context import RunContext
    from rota.worker.outcome import CancelledRun, EffectInDoubt, Moot, PermanentFailure

__all__ = [
    "CancelledRun",
    "CatchUpAll",
    "CelerySink",
    "DeliveryPolicy",
    "EffectInDoubt",
    "Expire",
    "LatestOnly",
    "Moot",
    "PermanentFailure",
    "RetryPolicy",
    "Rota",
    "RunContext",
    "SqsSink",
    "WebhookSink",
    "WorkerSink",
]

_MODULES = {
    "CancelledRun": "rota.worker.outcome",
    "CatchUpAll": "rota.domain.overdue",
    "CelerySink": "rota.domain.sink",
    "DeliveryPolicy": "rota.domain.sink",
    "EffectInDoubt": "rota.worker.outcome",
    "Expire": "rota.domain.overdue",
    "LatestOnly": "rota.domain.overdue",
    "Moot": "rota.worker.outcome",
    "PermanentFailure": "rota.worker.outcome",
    "RetryPolicy": "rota.domain.job",
    "Rota": "rota.application",
    "RunContext": "rota.worker.context",
    "SqsSink": "rota.domain.sink",
    "WebhookSink": "rota.domain.sink",
    "WorkerSink": "rota.domain.sink",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
