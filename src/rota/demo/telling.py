"""How the demonstration speaks: plain lines on standard output."""

import json
import sys
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


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
