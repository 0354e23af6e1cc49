"""A dispatcher process that stands still around its next commits.

`python -m rota.demo.halting before|after|between`: everything but the stop is the dispatcher of `rota dispatch`. Before
or after its next commit it stands still for good, so that it can be killed just there. Between deciding and committing
it stands still twice, tells what it has decided, and goes on when it is told to: its commit then comes too late.
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

Commit = Callable[..., list[AdmissionOutcome]]


def halt_around_admission(store: Store, *, moment: str) -> None:
    """Makes the store's next admission stop for good, before or after it is committed."""
    commit: Commit = store.commit_admissions

    def commit_and_halt(
        fence: Fence, admissions: Sequence[Admission], *, now: datetime
    ) -> list[AdmissionOutcome]:
        if moment == "after":
            commit(fence, admissions, now=now)
        _tell(REACHED)
        while True:
            signal.pause()

    _replace_commit(store, commit_and_halt)


def halt_between_decision_and_commit(store: Store) -> None:
    """Makes the next two admissions wait, decided, until `GO_ON`; then each is really tried, and its answer told."""
    # Blocked, so that it is kept where it comes before it is waited for.
    signal.pthread_sigmask(signal.SIG_BLOCK, {GO_ON})
    commit: Commit = store.commit_admissions
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

    _replace_commit(store, commit_late)


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


def _replace_commit(store: Store, commit: Commit) -> None:
    setattr(store, "commit_admissions", commit)  # noqa: B010 - the instance is changed on purpose


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
