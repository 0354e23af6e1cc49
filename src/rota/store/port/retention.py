"""How history is given up: old runs go, and no period that one of them used becomes free again (I2).

A schedule's `history_from` says since when its history is whole: nothing scheduled before it can ever be created. It
never passes what is still to be decided: the cursor, and runs that are planned or held. What is removed lies
`PRUNED_BEHIND` before it. Two instants so far apart are never of one period, whatever version tells them and in
whatever zone, so of what can still be created nothing shares a period with a run that is gone.

But a one-time schedule has one period for its whole life, and any schedule may become one by an edit. So while a
schedule has not ended, a run that uses its period goes only if a later one stays that uses the same life: scheduled no
earlier, due no earlier, and in a state in which it can no longer free its key.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rota.domain.key_uses import PERIOD_REACH
from rota.domain.run import SETTLED, RunState
from rota.store.port.runs import LedgerKey

PRUNED_BEHIND = max(PERIOD_REACH.values())

KEEPS_ITS_KEY = SETTLED - {RunState.SKIPPED} | {RunState.WAITING, RunState.QUEUED, RunState.RUNNING}
"""In these a run uses its period for good. What is planned may be dropped yet; a skip may be restored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneOutcome:
    """What one commit removed, and where the next one is to go on."""

    runs: int = 0
    skips: int = 0
    suspensions: int = 0
    events: int = 0
    """Of the audit."""
    reached: LedgerKey | None = None
    """None: all that is old was looked at."""

    @property
    def total(self) -> int:
        return self.runs + self.skips + self.suspensions + self.events


class RetentionStore(Protocol):
    """History that is no longer kept."""

    def prune_history(self, *, before: datetime, after: LedgerKey | None, limit: int) -> PruneOutcome:
        """Looks at up to `limit` runs scheduled more than `PRUNED_BEHIND` before `before`, by (scheduled_at, run id),
        those behind `after`. Those that have ended and may go are removed with their attempts and results, and of
        their schedules what lies wholly as far back: skips, suspensions that have ended, and audit events, up to
        `limit` of each. `history_from` is raised in the same transaction, to `before` at most.

        What somebody else is at work on is left, and so is whatever has an open attempt or a delivery intent. Where a
        limit of the others was reached, no run goes, and `reached` is `after`: the same runs are looked at again.
        """
