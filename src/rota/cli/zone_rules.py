"""Zones whose rules differ, in a sentence: for the doctor, and for whoever starts a process that would not admit."""

from rota.cli.doctor_checks import Check, fine, warning
from rota.cli.errors import complain
from rota.service.context import Context
from rota.service.zone_updates import differing_zones

ZONES_NAMED_MAX = 5


def check_zone_rules(context: Context) -> Check:
    """Of every zone that is stored: cheap, since it looks at zones and at no schedules."""
    differing = differing_zones(context)
    release = context.zones.release()
    if not differing:
        return fine("zone rules", f"as stored, with tz data {release}")
    names = sorted({zone.stored.timezone for zone in differing})
    more = f" and {len(names) - ZONES_NAMED_MAX} more" if len(names) > ZONES_NAMED_MAX else ""
    return warning(
        "zone rules",
        f"Those of {', '.join(names[:ZONES_NAMED_MAX])}{more} are others here (tz data {release}) than schedules were "
        "computed with; these schedules are left alone.",
        remedy="See `rota tz check`, then run `rota tz apply`: it takes up the new rules."
        if all(zone.is_newer_here for zone in differing)
        else "Upgrade the tz data here, which is older than that of some schedules; `rota tz check` names them.",
    )


def warn_of_zone_rules(context: Context) -> None:
    """On standard error, where a process begins that leaves schedules alone."""
    check = check_zone_rules(context)
    if check.remedy is not None:
        complain(f"zone rules: {check.found} {check.remedy}")
