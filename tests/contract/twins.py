"""Two stores that are told the same things: every answer of the second has to be the first's, the oracle's."""

from collections import Counter
from collections.abc import Callable
from typing import cast

from rota.domain.effect import EffectBegin
from rota.store.port import BeatsOutcome, PlannedOutcome, Store

SILENT = {
    "commit_releases",
    "commit_absence",
    "commit_checkpoints",
    "commit_clock_reading",
    "commit_clock_confirmation",
}
"""Methods without an answer: what they did shows in the answers of others."""


class Twins:
    """`both` is a store that asks the two and compares; `answers` counts what each method answered."""

    def __init__(self, name: str, oracle: Store, other: Store) -> None:
        self.name = name
        self.oracle = oracle
        self.other = other
        self.both = cast("Store", _Both(self))
        self.answers: Counter[tuple[str, str]] = Counter()

    def ask(self, method: str, *arguments: object, **named: object) -> object:
        """The oracle's answer, which the other store has to give as well."""
        expected, answer = (
            getattr(store, method)(*arguments, **named) for store in (self.oracle, self.other)
        )
        assert answer == expected, f"{self.name}: {method} {arguments} {named}"
        parts = expected if isinstance(expected, list) else [expected]
        self.answers.update((method, kind) for part in parts for kind in kinds_of(part))
        return expected


class _Both:
    def __init__(self, twins: Twins) -> None:
        self._twins = twins

    def __getattr__(self, method: str) -> Callable[..., object]:
        return lambda *arguments, **named: self._twins.ask(method, *arguments, **named)


def methods_that_succeeded(answers: Counter[tuple[str, str]]) -> set[str]:
    """Those that at least once did, or found, something."""
    nothing = {"False", "None", "0", "{}"}
    return {method for method, kind in answers if kind not in nothing or method in SILENT}


def kinds_of(answer: object) -> list[str]:
    """A word for an answer, or for each part of it: itself where there are few, else its type."""
    if isinstance(answer, PlannedOutcome):
        return [name for name in ("queued", "held", "dropped") if getattr(answer, name)] or ["0"]
    if isinstance(answer, BeatsOutcome):
        done = {"admitted": answer.admitted, "fenced": answer.fenced, "key_used": answer.is_key_used}
        return [name for name, is_so in done.items() if is_so] or ["0"]
    if isinstance(answer, EffectBegin):
        return [str(answer.state)]
    if answer is None or isinstance(answer, bool | str) or answer in (0, {}):
        return [str(answer)]
    return [type(answer).__name__]
