"""Rules of a zone kept as text, and whether two releases name the same instants."""

from datetime import UTC, datetime, timedelta

import pytest

from rota.domain.cadence import Cadence, Fold
from rota.domain.json_text import JsonText
from rota.domain.recurrence import At, Cron, Every
from rota.domain.zone import fingerprint
from rota.domain.zone_rules import first_difference, names_the_same, offsets_text, zone_of_offsets
from rota.zones import load_zone, pinned_zones

NOW = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize("name", sorted(pinned_zones().names())[::7])
def test_a_zone_is_read_back_from_its_text(name: str) -> None:
    zone = load_zone(name)
    again = zone_of_offsets(name, offsets_text(zone))
    assert fingerprint(again) == fingerprint(zone)


@pytest.mark.parametrize(
    "text", ["{}", '{"first":0}', '{"changes":[[2,0],[1,0]],"first":0}', '{"changes":[1],"first":0}']
)
def test_a_text_that_it_did_not_write_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="make no sense"):
        zone_of_offsets("Europe/Paris", JsonText(text))


def test_only_what_the_other_offsets_touch_is_another_instant() -> None:
    def same(expression: str, *ends: datetime, fold: Fold = "first") -> bool:
        rule = Cron(expression=expression)
        old = Cadence(rule, load_zone("Europe/Paris"), gap="skip", fold=fold)
        new = Cadence(rule, load_zone("Etc/GMT-1"), gap="skip", fold=fold)
        return names_the_same(old, new, from_=NOW, ends=ends)

    assert not same("0 9 * * *")
    assert same("0 9 * 12 *")
    assert same("*/15 * * * *", fold="both")
    assert not same("*/15 * * * *")
    assert not same("15 2 * * *")
    assert same("0 9 * * *", datetime(2027, 3, 28, tzinfo=UTC))
    assert not same("0 9 * * *", datetime(2027, 3, 29, tzinfo=UTC))


def test_elapsed_time_and_instants_are_the_same_under_any_rules() -> None:
    for rule in (Every(interval=timedelta(seconds=30), anchor=NOW), At(time=NOW + timedelta(days=300))):
        old = Cadence(rule, load_zone("Europe/Paris"), gap="skip", fold="first")
        new = Cadence(rule, load_zone("Asia/Tokyo"), gap="skip", fold="first")
        assert names_the_same(old, new, from_=NOW, ends=[])


@pytest.mark.parametrize(
    ("expression", "from_", "first"),
    [
        ("0 9 * * *", "2026-11-30T00:00:00", "2027-03-28T07:00:00"),
        ("* * * * 1-5", "2027-05-05T00:00:00", "2027-05-07T22:00:00"),
        ("* * * 4-8 *", "2027-05-05T00:00:00", "2027-08-31T22:00:00"),
        ("* * * 1-3,11,12 *", "2026-11-30T00:00:00", "2027-03-31T22:00:00"),
        ("* * * 11,12 *", "2026-11-30T00:00:00", None),
        ("* * * * *", "2027-05-05T00:00:00", "2027-10-31T01:00:00"),
    ],
)
def test_the_first_difference_is_found_behind_a_long_stretch_that_is_alike(
    expression: str, from_: str, first: str | None
) -> None:
    """Without its summer time the days of Paris begin an hour later in summer."""
    rule = Cron(expression=expression)
    old = Cadence(rule, load_zone("Europe/Paris"), gap="skip", fold="first")
    new = Cadence(rule, load_zone("Etc/GMT-1"), gap="skip", fold="first")
    found = first_difference(old, new, from_=datetime.fromisoformat(from_).replace(tzinfo=UTC))
    assert found == (None if first is None else datetime.fromisoformat(first).replace(tzinfo=UTC))
