"""Where zones are loaded from, and what is said about a name that is none."""

import importlib.resources
import zoneinfo
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota.domain.errors import InvalidExpression
from rota.domain.zone import fingerprint
from rota.zones import Zones, load_zone, pinned_zones, tzdata_release
from tests.doctored_zones import doctored_zones


def test_zones_come_from_the_pinned_package_alone() -> None:
    assert zoneinfo.TZPATH == ()
    assert tzdata_release() == importlib.import_module("tzdata").IANA_VERSION


def test_a_zone_is_loaded_once() -> None:
    assert load_zone("Europe/Paris") is load_zone("Europe/Paris")
    assert load_zone("Europe/Paris").name == "Europe/Paris"
    assert repr(load_zone("Europe/Paris")) == "Zone('Europe/Paris')"


def test_every_name_loads() -> None:
    listed = (importlib.resources.files("tzdata") / "zones").read_text().split()
    assert pinned_zones().names() == set(listed) - {"Factory"}
    for name in pinned_zones().names():
        assert abs(load_zone(name).offset_seconds_at(1_768_053_600)) <= 14 * 3600


@pytest.mark.parametrize(
    "name",
    ["", " ", ".", "..", "../UTC", "./UTC", "/UTC", "UTC/", "Europe", "Europe/", "Europe//Paris", "europe/paris",
     "EUROPE/PARIS", " Europe/Paris", "Europe/Paris\n", "Europe/Paris\0", "Europe\\Paris", "/etc/localtime",
     "Factory", "posixrules", "localtime", "posix/UTC", "right/UTC", "zone.tab", "tzdata.zi", "__init__.py",
     "EST5", "+02:00", "UTC+2", "GMT+25", "Europe/Pariś", "\uff25urope/Paris", "x" * 100_000],
)  # fmt: skip
def test_what_is_no_zone_name_is_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(InvalidExpression) as refusal:
        load_zone(name)
    assert refusal.value.part == "timezone"
    assert refusal.value.problem.startswith("Unknown zone ")
    assert len(refusal.value.problem) < 200


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("america/new_york", "America/New_York"),
        ("America/New York", "America/New_York"),
        ("New_York", "America/New_York"),
        ("new york", "America/New_York"),
        ("America/NewYork", "America/New_York"),
        ("Amerika/New_York", "America/New_York"),
        ("Europe/Berln", "Europe/Berlin"),
        ("Europe/Pari", "Europe/Paris"),
        ("utc", "UTC"),
    ],
)
def test_the_nearest_name_is_proposed(name: str, meant: str) -> None:
    with pytest.raises(InvalidExpression, match=f'did you mean "{meant}"'):
        load_zone(name)


def test_a_directory_of_other_rules_can_be_loaded_beside_the_package(tmp_path: Path) -> None:
    replaced = {"Europe/Paris": "Asia/Tokyo", "Asia/Kolkata": "Etc/GMT-5"}
    doctored = Zones(doctored_zones(tmp_path, replaced, release="2031x", kept=["UTC", "Europe/London"]))
    assert doctored.names() == {"UTC", "Asia/Kolkata", "Europe/London", "Europe/Paris"}
    assert doctored.release() == "2031x"
    noon = datetime(2026, 1, 10, 12, tzinfo=UTC)
    assert doctored.load("Europe/Paris").segment_at(noon).offset == timedelta(hours=9)
    assert doctored.load("Asia/Kolkata").segment_at(noon).offset == timedelta(hours=5)
    assert load_zone("Europe/Paris").segment_at(noon).offset == timedelta(hours=1)
    with pytest.raises(InvalidExpression):
        doctored.load("Asia/Tokyo")


def test_a_zone_that_was_left_alone_has_the_same_rules_in_every_directory(tmp_path: Path) -> None:
    doctored = Zones(doctored_zones(tmp_path, {"Europe/Paris": "Etc/GMT-2"}, release="2031x"))
    assert fingerprint(doctored.load("Europe/London")) == fingerprint(load_zone("Europe/London"))
    assert fingerprint(doctored.load("Europe/Paris")) != fingerprint(load_zone("Europe/Paris"))


def test_the_pinned_zones_are_one_for_the_process() -> None:
    assert pinned_zones() is pinned_zones()
