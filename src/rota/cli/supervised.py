"""`python -m rota.cli.supervised`: the command line in a process that `rota work --processes` has started.

Its standard input is a pipe whose other end the supervisor holds and never writes to: whatever ends the supervisor,
SIGKILL too, closes it. Nothing is asked of the system but that, so it is the same everywhere.
"""

import os
import sys

from rota.cli.application import main
from rota.cli.supervising import SUPERVISOR


def take_input() -> int:
    """The pipe, out of the way: handlers and what they start read nothing from it, and do not hold it open."""
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return pipe


if __name__ == "__main__":
    SUPERVISOR.set(take_input())
    sys.exit(main())
