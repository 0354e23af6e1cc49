"""The name of one state of a zone, and the states that are in use."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRules:
    """The rules of a zone as some version was computed with them; a process with others leaves its schedules alone."""

    timezone: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedZoneRules:
    """Rules that schedules are computed with, whether or not their text is there and can be read."""

    timezone: str
    fingerprint: str
    tzdata: str
    """The release that was seen with them first; where that is lost, one that a version was resolved with."""
