"""Which runs use which periods: asked by whoever decides about an occurrence."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from rota.domain.identity import RunId, ScheduleId
from rota.domain.key_uses import KeyProbe, KeyUse


class KeyUseStore(Protocol):
    """Which runs use which periods."""

    def read_key_uses(self, schedule_id: ScheduleId, probes: Sequence[KeyProbe]) -> list[KeyUse | None]:
        """What each probe finds (see `KeyProbe`): the run of its id, or else the first by (scheduled_at, run id) that
        uses the period; in the order of the probes."""

    def get_last_run_time(self, schedule_id: ScheduleId) -> datetime | None:
        """The latest `scheduled_at` of the schedule's runs of origin `schedule` or `backfill`."""


def read_uses(
    store: KeyUseStore, schedule_id: ScheduleId, probes: Sequence[KeyProbe]
) -> dict[RunId, KeyUse | None]:
    """What the probes find (`Uses`)."""
    if not probes:
        return {}
    found = store.read_key_uses(schedule_id, probes)
    return {probe.run_id: use for probe, use in zip(probes, found, strict=True)}
