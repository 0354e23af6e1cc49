"""A dispatcher process that stands still around its next commits.

`python -m rota.demo.halting before|after|between`: everything but the stop is the dispatcher of `rota dispatch`. Before
or after its next commit it stands still for good, so that it can be killed just there. Between deciding and committing
it stands still twice, tells what it has decided, and goes on when it is told to: its commit then comes too late. For
that it decides one by one: what is ordinary is else chosen by the very statement that commits it.
"""

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import datetime

from rota.application import Rota
from rota.config import Settings
from rota.demo.decisions import decision_of
from rota.domain.admission import Admission
from rota.store.port import AdmissionOutcome, Fence, Store
from rota.telemetry import configure_logging

REACHED = "reached the point"
ANSWERED = "the store answers"
GO_ON = signal.SIGUSR1
STOPS_BETWEEN = 2

ADMITTING = ("commit_beats", "commit_admissions")
"""The commits that admit: what is ordinary, and what was planned one by one."""


def halt_around_admission(store: Store, *, moment: str) -> None:
    """Makes the store's next admission stop for good, before or after it is committed."""
    for method in ADMITTING:
        _replace(store, method, _halting(getattr(store, method), moment=moment))


def _halting(commit: Callable[..., object], *, moment: str) -> Callable[..., None]:
    def commit_and_halt(*arguments: object, **named: object) -> None:
        if moment == "after":
            commit(*arguments, **named)
        _tell(REACHED)
        while True:
            signal.pause()

    return commit_and_halt


def halt_between_decision_and_commit(store: Store) -> None:
    """Makes the next two admissions wait, decided, until `GO_ON`; then each is really tried, and its answer told."""
    # Blocked, so that it is kept where it comes before it is waited for.
    signal.pthread_sigmask(signal.SIG_BLOCK, {GO_ON})
    commit = store.commit_admissions
    stops_left = STOPS_BETWEEN

    def commit_late(
        fence: Fence, admissions: Sequence[Admission], *, now: datetime
    ) -> list[AdmissionOutcome]:
        nonlocal stops_left
        if stops_left == 0:
            return commit(fence, admissions, now=now)
        stops_left -= 1
        _tell(f"{REACHED} {decision_of(fence, admissions[0]).to_line()}")
        signal.sigwait({GO_ON})
        outcomes = commit(fence, admissions, now=now)
        _tell(f"{ANSWERED} {outcomes[0]}")
        return outcomes

    _replace(store, "read_beats", lambda *_, **__: [])
    _replace(store, "commit_admissions", commit_late)


def main() -> None:
    settings = Settings()
    configure_logging(level=settings.log_level, log_format=settings.log_format)
    with Rota(settings=settings) as application:
        store, moment = application.context.store, sys.argv[1]
        if moment == "between":
            halt_between_decision_and_commit(store)
        else:
            halt_around_admission(store, moment=moment)
        application.build_dispatcher().run(threading.Event(), threading.Event())


def _replace(store: Store, method: str, by: Callable[..., object]) -> None:
    """Of this instance, on purpose."""
    setattr(store, method, by)


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
