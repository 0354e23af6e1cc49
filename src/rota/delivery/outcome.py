"""What becomes of one try to send a message."""

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto

from rota.domain.json_text import JsonText

ERROR_CHARACTERS_MAX = 500


class Says(Enum):
    """What a try says of its destination."""

    REACHED = auto()
    """It answers, whatever it answers to this message."""
    FAILED = auto()
    """It failed with this message, and others may fare better: its own error, an answer that does not come."""
    AWAY = auto()
    """Every other message would have failed as well: it cannot be reached, or asks to be left alone."""
    NOTHING = auto()
    """It was not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The sink has it; whoever receives it opens the attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """Its receiver has done the work: the attempt succeeded with this result."""

    result: JsonText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Its receiver says that the work is never to be asked for again: the run fails for good."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """It was not taken. `error` says why, and what to do where the relay is not set up for it."""

    error: str
    retry_after: timedelta | None = None
    """How long the sink wants to be left alone with it."""
    is_final: bool = False
    """This very message can never be sent: to try again is useless."""
    says: Says = Says.FAILED


Outcome = Accepted | Completed | Rejected | Failed


def says_of(outcome: Outcome) -> Says:
    return outcome.says if isinstance(outcome, Failed) else Says.REACHED


def shown(text: str, *, characters_max: int = ERROR_CHARACTERS_MAX) -> str:
    """A text from outside, in one line that every store can keep."""
    cut = text if len(text) <= characters_max else f"{text[: characters_max - 1]}…"
    return "".join(character if character.isprintable() else " " for character in cut).strip()


def failure_of(error: BaseException) -> Failed:
    """Of a try that ended in an error which its sink does not expect."""
    return Failed(error=shown(f"The sink failed: {type(error).__name__}: {error}"))
