"""What a relay needs: intents to take, and deliveries that it sends; and what people see of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from rota.domain.audit import AuditEvent
from rota.domain.delivery import Delivery, DeliveryEnd, DeliveryState
from rota.domain.identity import RunId, ScheduleId
from rota.domain.job import Job
from rota.domain.run import Run
from rota.domain.schedule import Version
from rota.store.port.work import Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenDelivery:
    """A delivery that is a relay's until its lease ends, with what its message is made of."""

    delivery: Delivery
    run: Run
    version: Version
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    state: DeliveryState | None = None
    job: str | None = None
    schedule_id: ScheduleId | None = None


class DeliveryStore(Protocol):
    """Deliveries: one row for each run whose message is on its way, dead ones too."""

    elements_max: int

    def commit_takes(
        self,
        wanted: Sequence[Wanted],
        *,
        now: datetime,
        lease: timedelta,
        limit: int,
        intents_first: bool = False,
        backlog_first: bool = False,
    ) -> list[TakenDelivery]:
        """Takes up to `limit` of these jobs, and no more of each than is wanted: first deliveries whose `next_at` has
        come, by (next_at, run id), then intents available at `now`, in the order of `commit_claims`, whose outbox rows
        become deliveries. Each is `sending` with one try more, and the caller's until `now + lease`.

        With `intents_first` it is the other way round: who takes so now and then sends what is new, whatever has to be
        sent again. `backlog_first` is that of `commit_claims`, for the intents.

        Of jobs with a `max_running` no more than leave so many runs in hand, sent ones counted. Of jobs that Rota's
        workers fetch only deliveries are taken, left over from an earlier sink. What somebody else takes at the moment
        is passed over. A delivery or intent that asks for nothing any more is taken away in silence, and of a run whose
        version or job cannot be read it fails the run (I12).
        """

    def commit_delivery_ends(self, ends: Sequence[DeliveryEnd], *, now: datetime) -> list[bool]:
        """Each: what became of a try. False where the delivery is gone (its attempt was opened, its run cancelled) or
        another try has begun; nothing is changed then.

        A delivery that is dead frees its run's place, from `now` on, as if the run had ended (`rota.domain.overlap`):
        the run that waits for it is queued, and its schedule goes on.
        """

    def read_next_delivery_time(self, jobs: Sequence[str]) -> datetime | None:
        """When `commit_takes` has something of these jobs: the earliest `next_at` of their deliveries, or intent of
        those that are sent. Of full jobs only deliveries that are in hand count, which take no further place."""

    def list_deliveries(self, filter_: DeliveryFilter, *, after: RunId | None, limit: int) -> list[Delivery]:
        """By run id, those after `after`; what cannot be read is left out."""

    def commit_redrive(self, run_id: RunId, *, event: AuditEvent, now: datetime) -> Delivery | None:
        """A dead delivery is tried again at once; one that is not dead is left. The delivery after it, or None.

        Its run has no place any more: it runs beside whatever run of its schedule is open, as one on request does.
        """
