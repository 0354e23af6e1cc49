"""One check of `rota doctor`: what was found, how bad it is, and what to do."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from rota.service.representation import Wire


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    """It works, but not as it should."""
    FAIL = "fail"
    """Something does not work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    level: Level
    found: str
    remedy: str | None = None

    def to_wire(self) -> Wire:
        return {"name": self.name, "level": self.level.value, "found": self.found, "remedy": self.remedy}


def fine(name: str, found: str) -> Check:
    return Check(name=name, level=Level.OK, found=found)


def warning(name: str, found: str, *, remedy: str) -> Check:
    return Check(name=name, level=Level.WARN, found=found, remedy=remedy)


def failure(name: str, found: str, *, remedy: str) -> Check:
    return Check(name=name, level=Level.FAIL, found=found, remedy=remedy)


def worst(checks: Iterable[Check]) -> Level:
    order = list(Level)
    return max((check.level for check in checks), key=order.index, default=Level.OK)
