"""Effects: what a run's attempts did to the world and recorded, so that a later attempt does not do it again."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rota.domain.identity import RunId
from rota.domain.json_text import JsonText

EFFECTS_MAX = 1_000
"""Of one run; each is a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One named effect of a run: begun by an attempt, and recorded as done once it was."""

    run_id: RunId
    name: str
    begun_by: int
    """The number of the attempt that began it first: in doubt is what came of that."""
    begun_at: datetime
    recorded_at: datetime | None = None
    """None: whether it came to pass is not known."""
    result: JsonText | None = None


class EffectState(StrEnum):
    """What an attempt learns when it begins an effect."""

    NEW = "new"
    """Nobody began it before."""
    IN_DOUBT = "in_doubt"
    """An earlier attempt, or this one, began it and recorded no end: it may have come to pass, or not."""
    RECORDED = "recorded"
    """It was recorded as done, with its result; it is not to be repeated."""
    STALE = "stale"
    """The attempt is no longer the run's current one (I6); nothing was begun."""
    FULL = "full"
    """The run has `EFFECTS_MAX` effects already; nothing was begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectBegin:
    """The answer to an attempt that begins an effect."""

    state: EffectState
    result: JsonText | None = None
