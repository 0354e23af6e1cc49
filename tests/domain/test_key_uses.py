"""Who uses which period: a probe finds exactly the runs whose key, under the asking version, would be the same."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.admission import run_of
from rota.domain.cadence import Cadence, Occurrence
from rota.domain.identity import run_id_of
from rota.domain.key_uses import KeyUse, is_user, key_of, probe_of
from rota.domain.period import Period, period_key
from rota.domain.recurrence import Cron
from rota.domain.run import Run, RunState
from rota.domain.schedule import Version
from rota.zones import load_zone
from tests.contract.builders import new_schedule

MADE = new_schedule()
ZONES = ("Pacific/Kiritimati", "Etc/GMT+12", "Europe/London", "Pacific/Apia", "America/Nuuk")
START = datetime(2026, 1, 1, tzinfo=UTC)


def version(
    period: Period, *, number: int = 2, counts_from: datetime | None = None, series: int = 1
) -> Version:
    first = MADE.first.version
    return replace(first, number=number, period=period, counts_from=counts_from, series=series)


def occurrence(zone: str, hours: int) -> Occurrence:
    cadence = Cadence(Cron(expression="0 * * * *"), load_zone(zone), gap="forward", fold="both")
    found = cadence.next(START + timedelta(hours=hours))
    assert found is not None
    return found


def run(
    of: Occurrence, *, number: int = 1, state: RunState = RunState.SUCCEEDED, reason: str | None = None
) -> Run:
    return replace(run_of(MADE.schedule, version("day", number=number), of), state=state, reason=reason)


@given(
    period=st.sampled_from(["day", "week", "month", "instant", "once"]),
    zones=st.tuples(st.sampled_from(ZONES), st.sampled_from(ZONES)),
    hours=st.tuples(st.integers(0, 9000), st.integers(-800, 800)),
)
def test_a_probe_finds_a_run_exactly_where_both_have_the_same_key(
    period: Period, zones: tuple[str, str], hours: tuple[int, int]
) -> None:
    asking = occurrence(zones[0], hours[0])
    existing = occurrence(zones[1], max(0, hours[0] + hours[1]))
    probe = probe_of(version(period), asking)
    same_key = period_key(period, asking) == period_key(period, existing)
    assert is_user(probe, run(existing)) is same_key


@pytest.mark.parametrize(
    ("state", "reason", "uses"),
    [
        (RunState.CANCELLED, None, True),
        (RunState.FAILED, None, True),
        (RunState.SKIPPED, "on_request", True),
        (RunState.SKIPPED, "paused", False),
        (RunState.SKIPPED, "ended", False),
        (RunState.SKIPPED, "superseded", False),
    ],
)
def test_a_run_in_any_state_uses_its_period_but_one_skipped_automatically(
    state: RunState, reason: str | None, *, uses: bool
) -> None:
    found = occurrence("Europe/London", 30)
    assert is_user(probe_of(version("day"), found), run(found, state=state, reason=reason)) is uses
    use = KeyUse(run_id=run(found).run_id, state=state, reason=reason)
    assert use.frees_its_period is not uses


@pytest.mark.parametrize("origin", ["manual", "replay"])
def test_runs_on_request_use_no_period(origin: str) -> None:
    found = occurrence("Europe/London", 30)
    asked = replace(run(found), origin=origin)  # type: ignore[arg-type]
    assert not is_user(probe_of(version("day"), found), asked)


def test_a_fresh_series_counts_runs_from_its_beginning_on_only() -> None:
    found = occurrence("Europe/London", 30)
    begins = found.scheduled_at + timedelta(seconds=1)
    fresh = version("day", counts_from=begins, series=2)
    assert not is_user(probe_of(fresh, found), run(found))
    assert is_user(probe_of(fresh, found, whole_life=True), run(found))
    assert key_of(fresh, found) == "day:2026-01-02#2"


def test_its_own_run_is_found_whatever_became_of_it() -> None:
    found = occurrence("Europe/London", 30)
    own = run(found, number=2, state=RunState.SKIPPED, reason="paused")
    probe = probe_of(version("day"), found)
    assert probe.run_id == run_id_of(MADE.schedule.schedule_id, 2, found.scheduled_at)
    assert is_user(probe, own)


def test_the_second_pass_of_a_fold_has_a_period_of_its_own() -> None:
    cadence = Cadence(Cron(expression="30 1 * * *"), load_zone("Europe/London"), gap="skip", fold="both")
    first, second = list(
        cadence.occurrences(
            after=datetime(2026, 10, 25, tzinfo=UTC), until=datetime(2026, 10, 25, 12, tzinfo=UTC)
        )
    )
    assert not is_user(probe_of(version("day"), first), run(second))
    assert is_user(probe_of(version("day"), second), run(second))
