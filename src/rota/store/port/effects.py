"""What handlers need to do an effect once: a ledger of what a run's attempts began and recorded."""

from datetime import datetime
from typing import Protocol

from rota.domain.effect import EffectBegin
from rota.domain.json_text import JsonText
from rota.store.port.work import OfAttempt


class EffectStore(Protocol):
    def commit_effect_begin(self, attempt: OfAttempt, name: str, *, now: datetime) -> EffectBegin:
        """Notes that the attempt begins the effect, where it is its run's current one and the effect is not recorded.

        What an earlier begin left, and no record followed, is `in_doubt`, and stays noted as it was begun first:
        by that somebody may find out what came of it.
        """

    def commit_effect(self, attempt: OfAttempt, name: str, *, result: JsonText | None, now: datetime) -> bool:
        """Records the effect as done. False where the attempt is not its run's current one, or nobody has begun it."""
