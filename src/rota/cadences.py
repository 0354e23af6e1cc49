"""Compiled cadences: each distinct rule, zone and policy is compiled once in a process."""

from collections import OrderedDict
from functools import lru_cache
from threading import Lock

from rota.domain.cadence import Cadence, Fold, Gap
from rota.domain.errors import InvalidExpression, ZoneRulesDiffer
from rota.domain.identity import digest_of
from rota.domain.json_text import encode_json
from rota.domain.recurrence import Recurrence, recurrence_to_wire
from rota.domain.schedule import CadenceRow, Version, ZoneRulesRow
from rota.domain.zone import Zone, fingerprint
from rota.domain.zone_rules import offsets_text
from rota.zones import Zones

CADENCES_KEPT = 4_096


def cadence_row_of(recurrence: Recurrence, zone: Zone, *, gap: Gap, fold: Fold) -> CadenceRow:
    """The cadence as stored; its id depends on nothing but what it is."""
    zone_fingerprint = fingerprint(zone)
    wire = recurrence_to_wire(recurrence)
    return CadenceRow(
        cadence_id=digest_of(encode_json([wire, zone.name, gap, fold, zone_fingerprint])),
        recurrence=recurrence,
        timezone=zone.name,
        gap=gap,
        fold=fold,
        fingerprint=zone_fingerprint,
    )


@lru_cache(maxsize=1024)
def zone_rules_of(zone: Zone, release: str) -> ZoneRulesRow:
    """The zone's rules as stored, so that a later release can be compared with them."""
    return ZoneRulesRow(
        timezone=zone.name, fingerprint=fingerprint(zone), tzdata=release, offsets=offsets_text(zone)
    )


_Key = tuple[Recurrence, str, Gap, Fold, str]


class Cadences:
    """Compiled cadences, the least recently used forgotten first. Threads may share it.

    They are kept by everything that they are computed from, not by the id that a version names: a row that was changed
    by hand then changes no other schedule (I12).
    """

    def __init__(self, zones: Zones) -> None:
        self._zones = zones
        self._kept: OrderedDict[_Key, Cadence] = OrderedDict()
        self._lock = Lock()

    def of_version(self, version: Version) -> Cadence:
        """The version's cadence.

        Raises `ZoneRulesDiffer` where this process has other rules for its zone (I11), or does not know it.
        """
        definition = version.definition
        key = definition.recurrence, definition.timezone, definition.gap, version.fold, version.fingerprint
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept
        zone = self._load_zone(version)
        if fingerprint(zone) != version.fingerprint:
            release = self._zones.release()
            is_older = release < version.tzdata
            remedy = "upgrade tzdata here" if is_older else "apply the rule change first (rota tz apply)"
            raise ZoneRulesDiffer(
                f"The rules of {zone.name} here ({release}) differ from those of tz data {version.tzdata} that "
                f"resolved this schedule; {remedy}."
            )
        cadence = Cadence(version.definition.recurrence, zone, gap=version.definition.gap, fold=version.fold)
        with self._lock:
            self._kept[key] = cadence
            if len(self._kept) > CADENCES_KEPT:
                self._kept.popitem(last=False)
        return cadence

    def _load_zone(self, version: Version) -> Zone:
        try:
            return self._zones.load(version.definition.timezone)
        except InvalidExpression as error:
            raise ZoneRulesDiffer(
                f"This process does not know the zone {version.definition.timezone} ({self._zones.release()}), which "
                f"tz data {version.tzdata} had when it resolved this schedule; upgrade tzdata here."
            ) from error
