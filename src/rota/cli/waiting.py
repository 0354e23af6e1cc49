"""The version of a schedule that waits to take over, told by what it changes."""

from collections.abc import Iterator

from rota.cli.dry_run_tables import changed_lines
from rota.service.representation import Wire

ASIDE = frozenset(
    {"version", "effective_from", "effective_until", "asked", "boundary", "created_at", "actor", "reason"}
)
"""Members of a version that are not of its definition."""


def waiting_lines(schedule: Wire) -> Iterator[str]:
    """A heading and the members that differ from those shown; nothing where no version waits."""
    pending = schedule["pending"]
    if not isinstance(pending, dict):
        return
    changed = {
        name: {"from": schedule[name], "to": value}
        for name, value in pending.items()
        if name not in ASIDE and schedule[name] != value
    }
    yield f"version {pending['version']} waits until {pending['effective_from']} ({pending['boundary']})"
    yield from changed_lines(changed) if changed else ("no member of it differs",)
