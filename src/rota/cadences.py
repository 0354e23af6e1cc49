"""Compiled cadences: each distinct rule, zone and policy is compiled once in a process."""

from collections import OrderedDict
from functools import lru_cache
from json import JSONEncoder
from threading import Lock

from rota.domain.cadence import Cadence, Fold, Gap
from rota.domain.errors import InvalidExpression, UnreadableRow, ZoneRulesDiffer
from rota.domain.identity import digest_of
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
        cadence_id=_id_of(wire, zone.name, gap, fold, zone_fingerprint),
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
        return self._compiled(
            (definition.recurrence, definition.timezone, definition.gap, version.fold, version.fingerprint),
            tzdata=version.tzdata,
        )

    def of_row(self, row: CadenceRow) -> Cadence:
        """The cadence of many versions. Raises `ZoneRulesDiffer` as well, and `UnreadableRow` where the row is not the
        one that its id was made of: a row that was changed by hand stops no schedule, each has its rule in its version.
        """
        wire = recurrence_to_wire(row.recurrence)
        if row.cadence_id != _id_of(wire, row.timezone, row.gap, row.fold, row.fingerprint):
            raise UnreadableRow(f"The stored row of cadence {row.cadence_id} was changed.")
        return self._compiled((row.recurrence, row.timezone, row.gap, row.fold, row.fingerprint), tzdata=None)

    def _compiled(self, key: _Key, *, tzdata: str | None) -> Cadence:
        recurrence, timezone, gap, fold, zone_fingerprint = key
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept
        zone = self._load_zone(timezone, tzdata)
        if fingerprint(zone) != zone_fingerprint:
            release = self._zones.release()
            is_older = tzdata is not None and release < tzdata
            remedy = "upgrade tzdata here" if is_older else "apply the rule change first (rota tz apply)"
            raise ZoneRulesDiffer(
                f"The rules of {zone.name} here ({release}) differ from those of {_named(tzdata)} that resolved this "
                f"schedule; {remedy}."
            )
        cadence = Cadence(recurrence, zone, gap=gap, fold=fold)
        with self._lock:
            self._kept[key] = cadence
            if len(self._kept) > CADENCES_KEPT:
                self._kept.popitem(last=False)
        return cadence

    def _load_zone(self, timezone: str, tzdata: str | None) -> Zone:
        try:
            return self._zones.load(timezone)
        except InvalidExpression as error:
            raise ZoneRulesDiffer(
                f"This process does not know the zone {timezone} ({self._zones.release()}), which "
                f"{_named(tzdata)} had when it resolved this schedule; upgrade tzdata here."
            ) from error


def _named(tzdata: str | None) -> str:
    return "another release" if tzdata is None else f"tz data {tzdata}"


def _id_of(wire: object, timezone: str, gap: Gap, fold: Fold, zone_fingerprint: str) -> str:
    """Of the same text as `encode_json` writes, without its search for what cannot be stored: it is stored already."""
    return digest_of(_ENCODE([wire, timezone, gap, fold, zone_fingerprint]))


_ENCODE = JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode
