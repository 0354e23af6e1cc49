"""The checker finds nothing in what was lived without harm, and whatever somebody did to it afterwards."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

import psycopg
import pytest

from tests.postgresql import Databases
from tests.soak.checker import judge
from tests.soak.partitions import PartitionWatch
from tests.soak.still_life import StillLife, live

pytestmark = pytest.mark.slow

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
CLOCKS_GO_BACK = datetime(2026, 10, 25, 0, 58, tzinfo=UTC)
"""In London, two minutes later."""

ORDINARY = "origin = 'schedule' AND planned_at IS NULL AND state = 'succeeded'"
SOME = f"(SELECT min(run_id) FROM runs WHERE {ORDINARY})"

NEVER_PAUSED = f"""
(SELECT min(run_id) FROM runs r WHERE {ORDINARY}
 AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.schedule_id = r.schedule_id AND a.action = 'schedule.pause'))
"""
RUN_AGAIN = f"""
(SELECT min(run_id) FROM attempts a WHERE number = 2
 AND run_id IN (SELECT run_id FROM runs WHERE {ORDINARY}))
"""


@pytest.fixture(scope="module")
def lived(postgresql: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StillLife]:
    url = postgresql.lend()
    yield live(url, tmp_path_factory.mktemp("soak"), seed=1, now=NOON, acts=120)
    postgresql.give_back(url)


@pytest.fixture
def connection(lived: StillLife) -> Iterator[psycopg.Connection]:
    """What is done in it is undone."""
    with psycopg.connect(lived.url) as connection:
        yield connection
        connection.rollback()


def test_nothing_is_found_in_what_was_lived_without_harm(
    lived: StillLife, connection: psycopg.Connection
) -> None:
    evidence = lived.evidence(connection)
    assert judge(evidence) == []
    origins = {run.origin for run in evidence.stored.runs.values()}
    states = {run.state for run in evidence.stored.runs.values()}
    reasons = {skip.reason for skips in evidence.stored.skips_of.values() for skip in skips}
    accepted = {entry.operation for entry in lived.entries if entry.is_accepted}
    assert origins == {"schedule", "backfill", "manual", "replay"}
    assert states >= {"succeeded", "moot", "skipped", "cancelled"}
    assert "paused" in reasons
    assert len(accepted) == 12, accepted


@pytest.mark.parametrize("seed", range(2, 4))
def test_nothing_is_found_in_other_lives(
    postgresql: Databases, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    url, now = postgresql.lend(), NOON if seed % 2 else CLOCKS_GO_BACK
    other = live(url, tmp_path_factory.mktemp("soak"), seed=seed, now=now, acts=120)
    with psycopg.connect(url) as connection:
        faults = judge(other.evidence(connection))
    postgresql.give_back(url)
    assert faults == []


SKIP_OF = """
INSERT INTO skips (schedule_id, from_at, version, reason, until_at, count)
SELECT schedule_id, scheduled_at, version, '{reason}', scheduled_at + 1000, 1 FROM runs WHERE run_id = {run}
"""
DOUBLE = f"""
DROP INDEX uq_runs_schedule_id_period_key;
CREATE TEMP TABLE twin ON COMMIT DROP AS SELECT * FROM runs WHERE run_id = {SOME};
UPDATE twin SET run_id = run_id || '.again';
INSERT INTO runs SELECT * FROM twin
"""
ATTEMPT_OF_NONE = """
INSERT INTO attempts (run_id, number, worker, partition, opened_at, lease_expires_at)
VALUES ('soak-0.1.20200101T000000Z', 1, 'nobody', 0, 0, 0)
"""
ATTEMPT_TOO_MANY = f"""
INSERT INTO attempts (run_id, number, worker, partition, opened_at, lease_expires_at, finished_at, outcome)
SELECT run_id, attempt + 1, 'nobody', partition, due_at, due_at, due_at, 'lost' FROM runs WHERE run_id = {SOME}
"""
PLANNED_BY_NOBODY = f"""
UPDATE runs SET planned_at = due_at WHERE run_id =
(SELECT min(run_id) FROM runs r WHERE {ORDINARY}
 AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.schedule_id = r.schedule_id AND a.action LIKE '%plan%'))
"""
VERSION_LOST = """
DELETE FROM versions v WHERE number = 2
AND NOT EXISTS (SELECT 1 FROM versions w WHERE w.schedule_id = v.schedule_id AND w.params = v.params AND w.number > 2)
"""


def of_some(change: str) -> str:
    return f"UPDATE runs SET {change} WHERE run_id = {SOME}"


DOCTORED = {
    "a run deleted": (f"DELETE FROM runs WHERE run_id = {SOME}", "has 0 outcomes"),
    "a run doubled": (DOUBLE, "has 2 runs"),
    "an instant skipped beside its run": (SKIP_OF.format(reason="ended", run=SOME), "has 2 outcomes"),
    "an instant skipped for no reason": (
        SKIP_OF.format(reason="paused", run=NEVER_PAUSED)
        + f"; DELETE FROM runs WHERE run_id = {NEVER_PAUSED}",
        "are skipped as paused without a reason",
    ),
    "a count that is wrong": ("UPDATE skips SET count = count + 1", "a skip counts"),
    "an attempt of no run": (ATTEMPT_OF_NONE, "which is no run"),
    "an attempt too many": (ATTEMPT_TOO_MANY, "attempts and has [1, 2]"),
    "an attempt missing": (f"DELETE FROM attempts WHERE number = 1 AND run_id = {RUN_AGAIN}", "and has [2"),
    "an attempt left open": (
        f"UPDATE attempts SET finished_at = NULL, outcome = NULL WHERE run_id = {SOME}",
        "is open still",
    ),
    "two attempts at a time": (
        f"UPDATE attempts SET finished_at = opened_at + 100000000 WHERE number = 1 AND run_id = {RUN_AGAIN}",
        "before the one before had ended",
    ),
    "an outbox row left": (
        "INSERT INTO outbox (job, turn, available_at, run_id, attempt) VALUES ('soak', 0, 0, 'soak-0', 1)",
        "still waits for delivery",
    ),
    "a run left queued": (of_some("state = 'queued'"), "is queued still"),
    "a run early": (of_some("admitted_at = due_at - 1000"), "was admitted at"),
    "a run moved by nobody": (of_some("due_at = due_at - 1000"), "nobody moved it"),
    "a run planned by nobody": (PLANNED_BY_NOBODY, "nobody asked for it"),
    "a run on request lost": (
        "DELETE FROM runs WHERE run_id = (SELECT min(run_id) FROM runs WHERE origin = 'manual')",
        "was accepted: there is no run",
    ),
    "a version lost": (VERSION_LOST, "was accepted: no version is of edit"),
    "a window with a hole": (
        "UPDATE versions SET effective_from = effective_from + 1000 WHERE number = 2",
        "do not touch",
    ),
    "a schedule lost": (
        "DELETE FROM schedules WHERE id = 'soak-3'",
        "was accepted: there is no such schedule",
    ),
    "a run carried that was not at stake": (
        of_some("carried_by = version + 1, planned_at = due_at"),
        "was carried by version",
    ),
    "a schedule that goes on": (
        "UPDATE schedules SET status = 'active' WHERE id = 'soak-3'",
        "did not come to its end",
    ),
}


@pytest.mark.parametrize("what", DOCTORED)
def test_what_was_done_to_a_database_is_found(
    lived: StillLife, connection: psycopg.Connection, what: str
) -> None:
    statements, fault = DOCTORED[what]
    for statement in statements.split(";"):
        assert connection.execute(statement.encode()).rowcount != 0, statement
    faults = judge(lived.evidence(connection))
    assert any(fault in found for found in faults), faults[:5]


Doctor = Callable[[StillLife], StillLife]

DOCTORED_NOTES: dict[str, tuple[Doctor, str]] = {
    "no effects": (lambda lived: replace(lived, effects=[]), "succeeded without an effect"),
    "an effect of an attempt that never was": (
        lambda lived: replace(lived, effects=[*lived.effects, replace(lived.effects[0], attempt=9)]),
        "which is not on record",
    ),
    "an effect twice": (
        lambda lived: replace(lived, effects=[*lived.effects, lived.effects[0]]),
        "has 2 effects",
    ),
    "an effect with other params": (
        lambda lived: replace(lived, effects=[replace(lived.effects[0], edit=-1), *lived.effects[1:]]),
        "was given the params of edit -1",
    ),
    "nothing was asked for": (lambda lived: replace(lived, entries=[]), "was not asked for"),
}


@pytest.mark.parametrize("what", DOCTORED_NOTES)
def test_what_was_done_to_the_notes_is_found(
    lived: StillLife, connection: psycopg.Connection, what: str
) -> None:
    doctor, fault = DOCTORED_NOTES[what]
    faults = judge(doctor(lived).evidence(connection))
    assert any(fault in found for found in faults), faults[:5]


def test_an_epoch_that_fell_and_an_owner_without_one_are_seen(postgresql: Databases) -> None:
    url = postgresql.lend()
    watch = PartitionWatch(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO partitions (partition, owner, epoch) VALUES (0, 'a', 3)")
        watch.look()
        connection.execute("UPDATE partitions SET owner = 'b', epoch = 4")
        watch.look()
        assert (watch.faults, watch.take_overs) == ([], 1)
        connection.execute("UPDATE partitions SET owner = 'c'")
        watch.look()
        connection.execute("UPDATE partitions SET epoch = 2")
        watch.look()
    watch.close()
    postgresql.give_back(url)
    assert watch.faults == [
        "c owns partition 0 under the epoch of b, 4",
        "the epoch of partition 0 fell from 4 to 2",
    ]
