"""Zones whose rules have changed, and what taking up the new ones does."""

from typing import Literal

from pydantic import Field

from rota.api.answer_shapes.changes import Effects
from rota.api.request_shapes import Shape


class DifferingZone(Shape):
    """Rules of a zone with which schedules were computed, and which are not this process's."""

    timezone: str
    stored_tzdata: str
    tzdata: str | None = Field(description="The release here; null: this process does not know the zone.")
    is_newer_here: bool = Field(description="False: this process is to be upgraded.")


class CheckedZone(DifferingZone):
    """The same with what depends on it."""

    schedules: int
    schedules_changed: int = Field(description="Of these, so many have instants that change.")


class ZoneCheck(Shape):
    """Every zone whose rules differ."""

    tzdata: str
    zones: list[CheckedZone]


class ZoneUpdateCounts(Shape):
    """How many schedules took up the new rules, by how."""

    version: int = Field(description="Their instants change: they got a version.")
    restamped: int = Field(description="Their instants stay.")
    failed: int


class Restamped(Shape):
    """A schedule whose instants stay."""

    schedule_id: str
    outcome: Literal["restamped"]


class NewZoneVersion(Shape):
    """A schedule that got a version."""

    schedule_id: str
    outcome: Literal["version"]
    version: int


class ExpectedZoneVersion(Effects):
    """A schedule that would get a version."""

    outcome: Literal["version"]
    dry_run: Literal[True]
    operation: Literal["tzdata"]


class NotUpdated(Shape):
    """A schedule that could not take up the new rules and was left alone."""

    schedule_id: str
    outcome: Literal["failed"]
    problem: str


class ZoneUpdate(Shape):
    """What taking up this process's rules did, or would do."""

    dry_run: bool
    tzdata: str
    zones: list[DifferingZone]
    counts: ZoneUpdateCounts
    schedules: list[Restamped | NewZoneVersion | ExpectedZoneVersion | NotUpdated] = Field(
        description="The first 1,000."
    )
