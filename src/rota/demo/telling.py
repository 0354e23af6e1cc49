"""How the demonstration speaks: plain lines on standard output."""

import json
import sys
from collections.abc import Sequence
from typing import cast


def say_scene(title: str) -> None:
    say(f"\n== {title}")


def say_run(run: dict[str, object]) -> None:
    """One line of a run as HTTP shows it."""
    progress = cast("dict[str, object] | None", run["progress"]) or {}
    lateness = cast("dict[str, object]", run["lateness"])
    say(f"run {run['run_id']}  {run['local']} {run['offset']}  {run['state']}  attempt {run['attempt']}")
    say(
        f"    progress {progress.get('fraction')} ({progress.get('message')}), {lateness['admitted_ms']} ms late"
    )
    say(f"    result {json.dumps(run['result'])}")


def say_rows(rows: Sequence[Sequence[object]]) -> None:
    """The columns below each other, each as wide as its widest cell."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    for row in cells:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
