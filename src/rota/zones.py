"""Where zones are loaded from: the pinned `tzdata` package, never the machine, so that two processes agree.

The only module that touches `zoneinfo`; what is computed from a zone is in `rota.domain.zone`.
"""

import difflib
import importlib.resources
import zoneinfo
from collections.abc import Callable
from datetime import datetime
from functools import cache, cached_property, lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path

from rota.domain.errors import InvalidExpression
from rota.domain.zone import Zone

# Zones made elsewhere in this process, by a library or a handler, then come from the same package.
zoneinfo.reset_tzpath(to=[])

_NOT_ZONES = frozenset({"Factory", "posixrules", "localtime"})
_MAGIC = b"TZif"
_NAME_LENGTH_MAX = 64


class Zones:
    """The compiled zones of one directory, by default of the `tzdata` package; each is loaded once."""

    def __init__(self, directory: Path | None = None) -> None:
        self._root: Traversable = (
            importlib.resources.files("tzdata") / "zoneinfo" if directory is None else directory
        )
        self._load = lru_cache(maxsize=None)(self._read)

    def load(self, name: str) -> Zone:
        """The zone of that IANA name, to the letter; `InvalidExpression` proposes the nearest name."""
        # Looked up before it is made a path, so no `..`, no absolute path and no other case gets through.
        if name not in self.names():
            raise InvalidExpression("timezone", self._unknown(name))
        return self._load(name)

    def names(self) -> frozenset[str]:
        """The IANA names that can be loaded."""
        return self._names

    def release(self) -> str:
        """The release of the tz data, such as `2026f`."""
        return self._release

    @cached_property
    def _release(self) -> str:
        with (self._root / "tzdata.zi").open(encoding="ascii") as lines:
            return next(lines).removeprefix("# version ").strip()

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(_zone_files(self._root, "")) - _NOT_ZONES

    def _read(self, name: str) -> Zone:
        with self._root.joinpath(*name.split("/")).open("rb") as file:
            return Zone(name, _offset_function(zoneinfo.ZoneInfo.from_file(file, key=name)))

    def _unknown(self, name: str) -> str:
        shown = repr(name if len(name) <= _NAME_LENGTH_MAX else name[:_NAME_LENGTH_MAX] + "…")
        nearest = self._nearest(name[:_NAME_LENGTH_MAX])
        if nearest is None:
            return f'Unknown zone {shown}; give an IANA name, such as "America/New_York".'
        return f'Unknown zone {shown}; did you mean "{nearest}"?'

    def _nearest(self, name: str) -> str | None:
        """By the whole name or by its last part, whatever the case."""
        wanted = name.lower().replace(" ", "_")
        by_spelling = {known.lower().rpartition("/")[2]: known for known in sorted(self._names, reverse=True)}
        by_spelling |= {known.lower(): known for known in self._names}
        nearest = difflib.get_close_matches(wanted, by_spelling, n=1, cutoff=0.75)
        return by_spelling[nearest[0]] if nearest else None


@cache
def pinned_zones() -> Zones:
    """The zones of the pinned package; one for the process."""
    return Zones()


def load_zone(name: str) -> Zone:
    """The zone of that name in the pinned package; see `Zones.load`."""
    return pinned_zones().load(name)


def tzdata_release() -> str:
    """The release of the pinned package, such as `2026f`."""
    return pinned_zones().release()


def _zone_files(directory: Traversable, prefix: str) -> list[str]:
    found: list[str] = []
    for entry in directory.iterdir():
        if entry.is_dir():
            found += _zone_files(entry, f"{prefix}{entry.name}/")
        elif _is_compiled_zone(entry):
            found.append(prefix + entry.name)
    return found


def _is_compiled_zone(entry: Traversable) -> bool:
    with entry.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _offset_function(zone: zoneinfo.ZoneInfo) -> Callable[[int], int]:
    def offset_seconds_at(seconds: int) -> int:
        offset = datetime.fromtimestamp(seconds, zone).utcoffset()
        assert offset is not None  # noqa: S101 - a ZoneInfo always has one
        return offset.days * 86400 + offset.seconds

    return offset_seconds_at
