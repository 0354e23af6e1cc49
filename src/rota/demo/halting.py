"""A dispatcher process that stops before or after its next commit, so that it can be killed just there.

`python -m rota.demo.halting before|after`: everything but the stop is the dispatcher of `rota dispatch`.
"""

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import datetime

from rota.application import Rota
from rota.config import Settings
from rota.domain.admission import Admission
from rota.store.port import AdmissionOutcome, Fence, Store
from rota.telemetry import configure_logging

REACHED = "reached the point"


def halt_around_admission(store: Store, *, moment: str) -> None:
    """Makes the store's next admission stop for good, before or after it is committed."""
    commit: Callable[..., list[AdmissionOutcome]] = store.commit_admissions

    def commit_and_halt(
        fence: Fence, admissions: Sequence[Admission], *, now: datetime
    ) -> list[AdmissionOutcome]:
        if moment == "after":
            commit(fence, admissions, now=now)
        sys.stdout.write(f"{REACHED}\n")
        sys.stdout.flush()
        while True:
            signal.pause()

    setattr(store, "commit_admissions", commit_and_halt)  # noqa: B010 - the instance is changed on purpose


def main() -> None:
    settings = Settings()
    configure_logging(level=settings.log_level, log_format=settings.log_format)
    with Rota(settings=settings) as application:
        halt_around_admission(application.context.store, moment=sys.argv[1])
        application.build_dispatcher().run(threading.Event(), threading.Event())


if __name__ == "__main__":
    main()
