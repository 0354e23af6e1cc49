"""Whether anything is lost or doubled while processes are killed: `python -m bench.soak --minutes 5 --seed 7`.

Three dispatchers and two workers on one PostgreSQL server of its own, with fsync on, as `tests/soak` says.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.soak.soak import soak


def main() -> None:
    """Print what happened and what the checker found; exit 1 where it found a fault."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rota-soak-") as name:
        report = soak(Path(name), seconds=60 * asked.minutes, seed=asked.seed, settings={})
    print("\n".join(report.lines()))
    sys.exit(1 if report.faults else 0)


if __name__ == "__main__":
    main()
