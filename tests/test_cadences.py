"""Compiled cadences: one per id, and none for a zone whose rules are not those that resolved it (I11)."""

from dataclasses import replace

import pytest

from rota import cadences as module
from rota.cadences import Cadences, cadence_row_of, zone_rules_of
from rota.domain.errors import UnreadableRow, ZoneRulesDiffer
from rota.domain.identity import digest_of
from rota.domain.json_text import encode_json
from rota.domain.recurrence import Cron
from rota.domain.schedule import Version
from rota.domain.zone import fingerprint
from rota.domain.zone_rules import zone_of_offsets
from rota.zones import Zones, load_zone
from tests.contract.builders import definition, new_schedule

NINE = Cron(expression="0 9 * * *")


def version_in(zone: str) -> Version:
    row = cadence_row_of(NINE, load_zone(zone), gap="skip", fold="first")
    made = new_schedule(of=definition(NINE, timezone=zone)).first.version
    return replace(made, cadence_id=row.cadence_id, fingerprint=row.fingerprint)


def test_a_cadence_is_compiled_once() -> None:
    cadences = Cadences(Zones())
    assert cadences.of_version(version_in("Europe/Paris")) is cadences.of_version(version_in("Europe/Paris"))


def test_a_cadence_row_is_named_by_what_it_is() -> None:
    paris = cadence_row_of(NINE, load_zone("Europe/Paris"), gap="skip", fold="first")
    assert paris == cadence_row_of(NINE, load_zone("Europe/Paris"), gap="skip", fold="first")
    others = [
        cadence_row_of(NINE, load_zone("Europe/Madrid"), gap="skip", fold="first"),
        cadence_row_of(NINE, load_zone("Europe/Paris"), gap="forward", fold="first"),
        cadence_row_of(NINE, load_zone("Europe/Paris"), gap="skip", fold="both"),
        cadence_row_of(Cron(expression="1 9 * * *"), load_zone("Europe/Paris"), gap="skip", fold="first"),
    ]
    assert len({paris.cadence_id, *(row.cadence_id for row in others)}) == 5


def test_a_process_with_other_zone_rules_does_not_compute_the_cadence() -> None:
    elsewhere = replace(version_in("Europe/Paris"), fingerprint="0" * 32)
    with pytest.raises(ZoneRulesDiffer, match="Europe/Paris"):
        Cadences(Zones()).of_version(elsewhere)


def test_a_process_that_lacks_the_zone_does_not_compute_the_cadence() -> None:
    paris = version_in("Europe/Paris")
    nowhere = replace(paris, definition=replace(paris.definition, timezone="Mars/Phobos"))
    with pytest.raises(ZoneRulesDiffer, match=r"does not know the zone Mars/Phobos .* upgrade tzdata here"):
        Cadences(Zones()).of_version(nowhere)


def test_the_rules_of_a_zone_are_stored_so_that_a_later_release_can_compute_by_them() -> None:
    paris = load_zone("Europe/Paris")
    row = zone_rules_of(paris, "2026a")
    assert (row.timezone, row.tzdata) == ("Europe/Paris", "2026a")
    assert fingerprint(zone_of_offsets(row.timezone, row.offsets)) == row.fingerprint == fingerprint(paris)


def test_the_least_used_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CADENCES_KEPT", 2)
    cadences = Cadences(Zones())
    paris = cadences.of_version(version_in("Europe/Paris"))
    madrid = cadences.of_version(version_in("Europe/Madrid"))
    assert cadences.of_version(version_in("Europe/Paris")) is paris
    cadences.of_version(version_in("Europe/Rome"))
    assert cadences.of_version(version_in("Europe/Paris")) is paris
    assert cadences.of_version(version_in("Europe/Madrid")) is not madrid


def test_a_row_is_computed_unless_it_was_changed_by_hand() -> None:
    row = cadence_row_of(NINE, load_zone("Europe/Paris"), gap="skip", fold="first")
    assert Cadences(Zones()).of_row(row).recurrence == NINE
    with pytest.raises(UnreadableRow, match="was changed"):
        Cadences(Zones()).of_row(replace(row, recurrence=Cron(expression="1 9 * * *")))


def test_the_id_of_a_cadence_stays_what_it_is_in_stored_rows() -> None:
    row = cadence_row_of(NINE, load_zone("Europe/Paris"), gap="skip", fold="first")
    parts = [{"cron": "0 9 * * *"}, "Europe/Paris", "skip", "first", row.fingerprint]
    assert row.cadence_id == digest_of(encode_json(parts))
