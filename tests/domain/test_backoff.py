"""Waiting longer and longer between tries."""

from datetime import timedelta

import pytest

from rota.domain.backoff import Backoff

SECOND = timedelta(seconds=1)
STEADY = Backoff(initial_delay=10 * SECOND, factor=3, max_delay=60 * SECOND, jitter=0)


@pytest.mark.parametrize(("failures", "seconds"), [(1, 10), (2, 30), (3, 60), (4, 60), (10_000, 60)])
def test_a_delay_grows_by_its_factor_up_to_its_longest(failures: int, seconds: int) -> None:
    assert STEADY.delay_after(failures, seed="a") == seconds * SECOND


def test_a_jitter_lengthens_a_delay_by_its_share_at_most() -> None:
    backoff = Backoff(initial_delay=10 * SECOND, jitter=0.5)
    delays = {backoff.delay_after(1, seed=str(number)) for number in range(50)}
    assert len(delays) > 40
    assert 10 * SECOND <= min(delays) < 11 * SECOND
    assert 14 * SECOND < max(delays) <= 15 * SECOND


def test_a_delay_that_is_computed_again_is_the_same() -> None:
    backoff = Backoff(jitter=1)
    assert backoff.delay_after(3, seed="r-1/1/3") == backoff.delay_after(3, seed="r-1/1/3")
