"""A job that is written while others write what it meets."""

import pytest
from sqlalchemy import Connection, insert

from rota.domain.job import Job
from rota.store.port import StoreUnavailable
from rota.store.sql import SqlStore, jobs
from rota.store.sql.schema import permits
from tests.contract.builders import MADE_AT

LIMITED = Job(name="mail", max_running=2)


def meet_permits(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """So often a claim gives a run the permit that the job's first limit gives it too."""
    left = [times]

    def grant_permits(connection: Connection, job: str) -> None:
        left[0] -= 1
        for _ in range(2 if left[0] >= 0 else 1):
            connection.execute(insert(permits), {"run_id": "met", "job": job})

    monkeypatch.setattr(jobs, "grant_permits", grant_permits)


def test_a_first_limit_that_meets_claims_again_and_again_is_written(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet_permits(monkeypatch, 3)
    assert store.commit_job(LIMITED, now=MADE_AT) is True
    assert store.get_job("mail") == LIMITED


def test_a_first_limit_that_meets_claims_without_end_is_told_as_a_store_that_is_busy(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet_permits(monkeypatch, 1_000)
    with pytest.raises(StoreUnavailable, match="try again"):
        store.commit_job(LIMITED, now=MADE_AT)
    assert store.get_job("mail") is None
