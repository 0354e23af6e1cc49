"""The rules of zones that the schedules of a memory store were computed with."""

from collections.abc import Iterator

from rota.domain.identity import ScheduleId
from rota.domain.schedule import Schedule, ScheduleStatus, ZoneRulesRow
from rota.store.memory.records import Records, rules_of
from rota.store.port import ScheduleRecord, UsedZoneRules, ZoneRules


class MemoryZoneRules(Records):
    def list_zone_rules(self) -> list[UsedZoneRules]:
        with self._lock:
            used = {rules for _, computed_with in self._computed() for rules in computed_with}
            in_order = sorted(used, key=lambda rules: (rules.timezone, rules.fingerprint))
            return [
                UsedZoneRules(
                    timezone=rules.timezone,
                    fingerprint=rules.fingerprint,
                    tzdata=self._zone_rules[rules].tzdata,
                )
                for rules in in_order
            ]

    def get_zone_rules(self, timezone: str, fingerprint: str) -> ZoneRulesRow | None:
        with self._lock:
            return self._zone_rules.get(ZoneRules(timezone=timezone, fingerprint=fingerprint))

    def list_computed_with(
        self, rules: ZoneRules, *, after: ScheduleId | None, limit: int
    ) -> list[ScheduleRecord]:
        with self._lock:
            matching = [
                schedule
                for schedule, computed_with in self._computed()
                if rules in computed_with and self._is_readable(schedule)
            ]
            matching.sort(key=lambda schedule: schedule.schedule_id)
            page = [schedule for schedule in matching if after is None or schedule.schedule_id > after]
            return [self._record_of(schedule) for schedule in page[:limit]]

    def _computed(self) -> Iterator[tuple[Schedule, set[ZoneRules]]]:
        """The schedules that have not ended, each with the rules of its latest version and of its cursor's."""
        for schedule in self._schedules.values():
            if schedule.status is not ScheduleStatus.ENDED:
                versions = (self._version_of(schedule), self._latest_of(schedule))
                yield schedule, {rules_of(version) for version in versions if version is not None}
