"""What Rota asks of a store: a few small protocols, one per caller.

A `commit_` method applies a bounded list of elements. Each element is atomic and conditional: it is applied whole, or
changes nothing and its place in the answer says so. Each fits one DynamoDB write transaction (100 items); of
admissions, openings, heartbeats, settlements, takes and ends of deliveries a call takes `elements_max`, and refuses
more with `TooManyElements`.

No transaction, cursor or driver type crosses this border; `now` is a parameter wherever time matters. Instants are
aware UTC. Every list has one fixed order, with the id as tie-break.
"""

from typing import Protocol

from rota.store.port.claims import HELD_FOR, Claimed, claim_attempts
from rota.store.port.deliveries import DeliveryFilter, DeliveryStore, TakenDelivery
from rota.store.port.dispatch import (
    AdmissionOutcome,
    BeatsOutcome,
    DispatchStore,
    DueTimes,
    LostAttempt,
    PlannedDue,
    PlannedOutcome,
    Unreadable,
)
from rota.store.port.effects import EffectStore
from rota.store.port.errors import (
    StoreUnavailable,
    TooManyElements,
    UnknownAddress,
)
from rota.store.port.health import (
    CLOCK_READINGS_MAX,
    ClockReading,
    HealthStore,
)
from rota.store.port.key_uses import KeyUseStore, read_uses
from rota.store.port.leases import (
    ATTEMPT_LEASE_MAX,
    LEASE_MAX,
    DueCount,
    Fence,
    PartitionState,
    PresenceStore,
    is_held,
    lease_has_ended,
)
from rota.store.port.notices import (
    Audience,
    Heard,
    Notice,
    NoticeStore,
    Subscription,
    is_soon,
    makes_due_soon,
    sets,
)
from rota.store.port.retention import PRUNED_BEHIND, PruneOutcome, RetentionStore
from rota.store.port.runs import (
    JobStore,
    LedgerKey,
    RunFilter,
    RunStore,
)
from rota.store.port.schedules import (
    ChangeOutcome,
    Creation,
    IdempotencyRecord,
    NewSchedule,
    NewVersion,
    ScheduleChange,
    ScheduleFilter,
    ScheduleRecord,
    ScheduleStore,
)
from rota.store.port.work import (
    RETRY_TURN,
    Answer,
    AttemptKey,
    Heartbeat,
    HeartbeatOutcome,
    Intent,
    OfAttempt,
    OpenAttemptRow,
    OpenedAttempt,
    Wanted,
    WorkStore,
    turn_of_intent,
)
from rota.store.port.zone_rules import UsedZoneRules, ZoneRules


class Store(
    ScheduleStore,
    RunStore,
    JobStore,
    DispatchStore,
    WorkStore,
    DeliveryStore,
    EffectStore,
    HealthStore,
    NoticeStore,
    RetentionStore,
    Protocol,
):
    """A whole store: what `wiring` hands out; every caller names the smaller protocol it needs."""

    def close(self) -> None: ...


__all__ = [
    "ATTEMPT_LEASE_MAX",
    "CLOCK_READINGS_MAX",
    "HELD_FOR",
    "LEASE_MAX",
    "PRUNED_BEHIND",
    "RETRY_TURN",
    "AdmissionOutcome",
    "Answer",
    "AttemptKey",
    "Audience",
    "BeatsOutcome",
    "ChangeOutcome",
    "Claimed",
    "ClockReading",
    "Creation",
    "DeliveryFilter",
    "DeliveryStore",
    "DispatchStore",
    "DueCount",
    "DueTimes",
    "EffectStore",
    "Fence",
    "HealthStore",
    "Heard",
    "Heartbeat",
    "HeartbeatOutcome",
    "IdempotencyRecord",
    "Intent",
    "JobStore",
    "KeyUseStore",
    "LedgerKey",
    "LostAttempt",
    "NewSchedule",
    "NewVersion",
    "Notice",
    "NoticeStore",
    "OfAttempt",
    "OpenAttemptRow",
    "OpenedAttempt",
    "PartitionState",
    "PlannedDue",
    "PlannedOutcome",
    "PresenceStore",
    "PruneOutcome",
    "RetentionStore",
    "RunFilter",
    "RunStore",
    "ScheduleChange",
    "ScheduleFilter",
    "ScheduleRecord",
    "ScheduleStore",
    "Store",
    "StoreUnavailable",
    "Subscription",
    "TakenDelivery",
    "TooManyElements",
    "UnknownAddress",
    "Unreadable",
    "UsedZoneRules",
    "Wanted",
    "WorkStore",
    "ZoneRules",
    "claim_attempts",
    "is_held",
    "is_soon",
    "lease_has_ended",
    "makes_due_soon",
    "read_uses",
    "sets",
    "turn_of_intent",
]
