"""I2, I4, I5, I6: under random SIGKILL nothing is lost, doubled or made up."""

from pathlib import Path

import pytest

from tests.soak.soak import soak, to_json

pytestmark = pytest.mark.slow

SECONDS = 28
SEED = 7


def test_killed_and_frozen_at_random_every_occurrence_has_one_outcome(tmp_path: Path) -> None:
    report = soak(tmp_path, seconds=SECONDS, seed=SEED)
    assert report.faults == [], to_json(report)
    misfortunes = ("kills of dispatchers", "kills of workers", "crashes of the server", "take-overs seen")
    assert all(report.counts[name] > 0 for name in misfortunes), to_json(report)
    assert report.counts["runs succeeded"] > 30, to_json(report)
