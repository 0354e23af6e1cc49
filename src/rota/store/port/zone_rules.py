"""The name of one state of a zone."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRules:
    """The rules of a zone as some version was computed with them; a process with others leaves its schedules alone."""

    timezone: str
    fingerprint: str
