"""Updates of the tz data in the library: which zones' rules differ from the stored ones, and taking the new ones up."""

from itertools import groupby

from rota.application.connection import Connection
from rota.service import zone_updates
from rota.service.context import Actor, Context
from rota.service.representation import Wire
from rota.telemetry import get_logger

log = get_logger("application")


class ZoneUpdates(Connection):
    """What is asked of the rules of zones."""

    def check_zones(self) -> Wire:
        """The zones whose rules here are not those that schedules were computed with, and how many those are."""
        return zone_updates.check_zones(self.context)

    def apply_zones(
        self, *, dry_run: bool = False, actor: str | None = None, reason: str | None = None
    ) -> Wire:
        """Takes up the rules of this process's tz data for every schedule that was computed with older ones.

        A schedule whose instants change gets a version, with the reason `tzdata` unless told; the others are stamped
        with the new rules. What broke off is gone on with by applying again.
        """
        return zone_updates.apply_zones(self.context, dry_run=dry_run, actor=Actor(name=actor, reason=reason))


def report_differing_zones(context: Context) -> None:
    """One line of the log for each zone whose schedules this process leaves alone, with what to do about it."""
    differing = zone_updates.differing_zones(context)
    for timezone, group in groupby(differing, key=lambda zone: zone.stored.timezone):
        zones = list(group)
        stored = sorted({zone.stored.tzdata for zone in zones})
        is_newer_here = all(zone.is_newer_here for zone in zones)
        remedy = (
            "`rota tz check` shows what would change, `rota tz apply` takes the new rules up."
            if is_newer_here
            else "This process has the older tz data, or lacks the zone: upgrade it."
        )
        log.error(
            "zone.rules_differ",
            timezone=timezone,
            stored_tzdata=", ".join(stored),
            tzdata=context.zones.release(),
            problem=f"Schedules in {timezone} were computed with other rules than this process has, and it leaves them "
            f"alone. {remedy}",
        )
