"""`make bench`: every measurement in small, one after the other, each with what it means.

The sizes of the published figures are the defaults of each module: `python -m bench.NAME`, `--help` for its options.
"""

import subprocess
import sys
from collections.abc import Sequence

MEASUREMENTS: Sequence[tuple[Sequence[str], str]] = (
    (
        ("recurrence",),
        "Next occurrences a second on one core, beside the usual libraries; the ratio is what is to be read.",
    ),
    (
        ("spread", "--schedules", "100000"),
        "How evenly what is due at one instant lies over slots and partitions: as by chance, or better.",
    ),
    (
        ("idle", "--many", "20000", "--steps", "500"),
        "What a dispatcher's step costs in which nothing is due: it must not grow with what is stored.",
    ),
    (
        ("sizes", "--stored", "48000", "--boundaries", "3"),
        "What schedules and runs take on the disk, and what an hour boundary writes.",
    ),
    (
        ("steady", "--due", "100", "--seconds", "5", "--stored", "5000", "--warm-up", "2"),
        "How late a steady stream is admitted, beside a program that does nothing else; and how late it is begun.",
    ),
    (
        ("backlog", "--databases", "sqlite", "--days", "7", "--down", "100", "--at-least", "2"),
        "What a long backlog costs in time and memory, and that others do not wait for it.",
    ),
    (
        ("burst", "--schedules", "10000", "--rounds", "1"),
        "The hour boundary: very many schedules due at one instant, beside the limit of the database.",
    ),
    (
        ("end_to_end", "5000"),
        "Runs that do nothing, through claim, attempt and settlement, beside the limit of the database.",
    ),
    (
        ("sending", "500"),
        "Runs that do nothing, sent to a webhook and worked over HTTP, beside what does the same without Rota.",
    ),
    (("pickup",), "How soon a run on request begins, and what telling of it costs."),
)


def main() -> int:
    """The number of measurements that failed."""
    failed = 0
    for (name, *options), meaning in MEASUREMENTS:
        print(f"\n== {name} {' '.join(options)}\n{meaning}\n", flush=True)
        done = subprocess.run([sys.executable, "-m", f"bench.{name}", *options], check=False)
        failed += done.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
