"""A listener for tests: it hears in whatever thread, and a test waits for what it has heard."""

from collections import Counter
from threading import Condition

from rota.store.port import Notice, Store, Subscription

DEADLINE_SECONDS = 10.0


class Ears:
    def __init__(self, store: Store) -> None:
        self._changed = Condition()
        self._heard: Counter[Notice] = Counter()
        self.subscription: Subscription = store.subscribe(self._hear)

    def await_notices(self, *wanted: Notice) -> None:
        """Until each was heard; fails where any other was. What was heard up to now is forgotten."""
        with self._changed:
            is_heard = self._changed.wait_for(
                lambda: all(self._heard[notice] for notice in wanted), DEADLINE_SECONDS
            )
            assert is_heard, f"of {wanted} only {dict(self._heard)} was heard"
            heard = set(self._heard)
            self._heard.clear()
        assert heard == set(wanted)

    def close(self) -> None:
        self.subscription.close()

    def _hear(self, notice: Notice) -> None:
        with self._changed:
            self._heard[notice] += 1
            self._changed.notify_all()
