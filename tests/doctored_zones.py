"""Other releases of the tz data for tests: a directory of compiled zones, some of which have the rules of others."""

import importlib.resources
from collections.abc import Iterable, Mapping
from pathlib import Path

KEPT = (
    "UTC",
    "America/Los_Angeles",
    "America/New_York",
    "Asia/Tokyo",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Paris",
    "Pacific/Auckland",
)
"""Zones that are there in every doctored directory."""


def doctored_zones(
    directory: Path, replaced: Mapping[str, str], *, release: str, kept: Iterable[str] = KEPT
) -> Path:
    """Writes the zones into `directory`, which it answers with, for `rota.zones.Zones` or `World(zones=...)`.

    `replaced` says whose rules a zone has: `{"Europe/Paris": "Etc/GMT-2"}` keeps Paris at UTC+2 (the sign in such names
    is turned round), `{"Europe/Paris": "Asia/Tokyo"}` gives it the clocks of Tokyo. The others are as in the package.
    `release` names the data as releases are named, `2027a`, and tells which of two is the newer one.
    """
    package = importlib.resources.files("tzdata") / "zoneinfo"
    for name in {*kept, *replaced}:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(package.joinpath(*replaced.get(name, name).split("/")).read_bytes())
    (directory / "tzdata.zi").write_text(f"# version {release}\n", encoding="ascii")
    return directory
