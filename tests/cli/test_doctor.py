"""`rota doctor`: what it finds, how bad that is, and what it proposes."""

import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from rota.cli.doctor_checks import Check, Level, worst
from rota.cli.doctor_machine import check_python, check_sqlite, check_tz_data
from rota.clock import SystemClock
from rota.clock_guard import read_clock
from rota.store.port import ClockReading
from tests.cli.conftest import PARTITIONS, Ended, Run, dispatch_and_work, open_database


def levels(ended: Ended) -> dict[str, str]:
    """The level of each check by its name."""
    checks = ended.wire["checks"]
    assert isinstance(checks, list)
    return {check["name"]: check["level"] for check in checks}


def found(ended: Ended, name: str) -> str:
    checks = ended.wire["checks"]
    assert isinstance(checks, list)
    return str(next(check["found"] for check in checks if check["name"] == name))


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("3.6.23", Level.OK),
        ("3.7.0", Level.WARN),
        ("3.40.1", Level.WARN),
        ("3.51.2", Level.WARN),
        ("3.51.3", Level.OK),
        ("3.52.0", Level.OK),
        ("4.0.0", Level.OK),
    ],
)
def test_the_versions_of_sqlite_with_the_wal_reset_bug_are_named(version: str, level: Level) -> None:
    check = check_sqlite("sqlite3", version)
    assert check.level is level
    assert version in check.found
    assert (check.remedy is not None) is (level is Level.WARN)
    assert ("very rare" in check.found) is (level is Level.WARN)


def test_an_old_python_fails() -> None:
    assert check_python((3, 10, 14)).level is Level.FAIL
    assert check_python((3, 11, 0)).level is Level.OK


def test_tz_data_of_the_machine_is_a_warning() -> None:
    assert check_tz_data(()).level is Level.OK
    assert check_tz_data(("/usr/share/zoneinfo",)).level is Level.WARN


def test_the_worst_check_decides() -> None:
    checks = [Check(name="a", level=level, found="b") for level in (Level.OK, Level.FAIL, Level.WARN)]
    assert worst(checks) is Level.FAIL
    assert worst(checks[:1]) is Level.OK


@pytest.mark.usefixtures("database")
def test_a_sound_database_passes_and_says_that_nobody_dispatches(run: Run) -> None:
    ended = run("doctor", "--json")
    assert ended.code == 0, ended.out
    expected = dict.fromkeys(
        (
            "python",
            "tz data",
            "database",
            "schema",
            "journal",
            "clock",
            "checkpoints",
            "overdue",
            "schedules",
            "zone rules",
        ),
        "ok",
    )
    assert {name: levels(ended)[name] for name in expected} == expected
    assert levels(ended)["partitions"] == "warn"
    assert found(ended, "partitions") == "No dispatcher holds any partition."
    assert "synchronous full" in found(ended, "journal")


@pytest.mark.usefixtures("database")
def test_the_table_has_the_remedy_below_what_was_found(run: Run) -> None:
    out = run("doctor").out
    assert [line.split()[:2] for line in out.splitlines() if line.startswith("partitions")] == [
        ["partitions", "warn"]
    ]
    assert "-> Start `rota dispatch` or `rota up`" in out


def test_a_missing_database_fails_and_is_not_made(run: Run, tmp_path: Path) -> None:
    ended = run("doctor", "--database", "missing.db", "--json")
    assert ended.code == 1
    assert (ended.wire["status"], levels(ended)["database"]) == ("fail", "fail")
    assert not (tmp_path / "missing.db").exists()


def test_a_file_that_is_no_database_fails(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("This is no database, and long enough to have a header.\n" * 10)
    ended = run("doctor", "--database", "text.db", "--json")
    assert (ended.code, levels(ended)["database"]) == (1, "fail")


@pytest.mark.parametrize(("revision", "level", "code"), [("9999", "fail", 1), (None, "warn", 0)])
def test_another_revision_of_the_tables_is_told_and_left_alone(
    run: Run, database: Path, revision: str | None, level: str, code: int
) -> None:
    connection = sqlite3.connect(database)
    if revision is None:
        connection.execute("DROP TABLE alembic_version")
    else:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        connection.execute("DELETE FROM settings WHERE name = 'schema_works_from'")
    connection.commit()
    before = list(connection.execute("SELECT name FROM sqlite_master ORDER BY name"))
    ended = run("doctor", "--json")
    assert (ended.code, levels(ended)["schema"]) == (code, level)
    assert "clock" not in levels(ended)
    assert list(connection.execute("SELECT name FROM sqlite_master ORDER BY name")) == before
    connection.close()


def test_another_journal_mode_is_told(run: Run, database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    assert levels(run("doctor", "--json"))["journal"] == "warn"


def test_a_dispatcher_at_work_is_seen_until_its_leases_run_out(
    run: Run, database: Path, set_time: Callable[[str], None]
) -> None:
    context = open_database(database)
    now = context.clock.now()
    context.store.commit_acquisitions("first@test", held=[], now=now, ttl=timedelta(seconds=15), limit=1)
    part = run("doctor", "--json")
    assert levels(part)["partitions"] == "warn"
    assert (
        found(part, "partitions") == f"No dispatcher holds {PARTITIONS - 1} of the {PARTITIONS} partitions."
    )
    context.store.commit_acquisitions(
        "second@test", held=[], now=now, ttl=timedelta(seconds=20), limit=PARTITIONS
    )
    held = run("doctor", "--json")
    assert levels(held)["partitions"] == "ok"
    assert f"{PARTITIONS}, held until 12:00:15Z by 2 dispatchers;" in found(held, "partitions")
    set_time("2026-01-10T12:01:00Z")
    ended = run("doctor", "--json")
    assert levels(ended)["partitions"] == "warn"
    assert (
        found(ended, "partitions")
        == "No dispatcher holds any partition; the last lease ran out at 2026-01-10T12:00:20Z."
    )
    context.store.close()


@pytest.mark.usefixtures("with_job")
def test_what_is_overdue_and_checkpoints_behind_are_told(
    run: Run, database: Path, set_time: Callable[[str], None]
) -> None:
    dispatch_and_work(database)
    dispatch_and_work(database)
    run("schedules", "create", "--id", "x", "--job", "report", "--timezone", "UTC", "--every", "PT1H")
    assert "due at 2026-01-10T13:00:00Z" in found(run("doctor", "--json"), "overdue")
    set_time("2026-01-10T13:02:30Z")
    ended = run("doctor", "--json")
    assert levels(ended)["overdue"] == "warn"
    assert "2026-01-10T13:00:00Z, has waited PT2M30S" in found(ended, "overdue")


@pytest.mark.usefixtures("with_job")
def test_schedules_in_error_are_told(run: Run, database: Path) -> None:
    run(
        "schedules", "create", "--id", "broken", "--job", "report", "--timezone", "UTC", "--cron", "0 9 * * *"
    )
    connection = sqlite3.connect(database)
    connection.execute("UPDATE schedules SET status = 'error' WHERE id = 'broken'")
    connection.commit()
    connection.close()
    ended = run("doctor", "--json")
    assert levels(ended)["schedules"] == "warn"
    assert "broken" in found(ended, "schedules")
    assert ended.code == 0


def test_a_leap_of_the_clock_fails_until_it_is_confirmed(
    run: Run, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROTA_CLOCK_FILE")
    reading = read_clock(SystemClock())
    if reading.boot_id is None:
        pytest.skip("this machine has no boot clock to judge by")
    context = open_database(database)
    context.store.commit_clock_reading(
        ClockReading(
            wall=reading.wall - timedelta(hours=2), boot_seconds=reading.boot_seconds, boot_id=reading.boot_id
        )
    )
    leapt = run("doctor", "--json")
    assert (leapt.code, levels(leapt)["clock"]) == (1, "fail")
    confirmed = run("doctor", "--confirm-clock", "--json")
    assert (confirmed.code, levels(confirmed)["clock"]) == (0, "ok")
    assert levels(run("doctor", "--json"))["clock"] == "ok"
    context.store.close()


def test_what_was_found_is_wrapped_in_a_pipe_too(run: Run, database: Path) -> None:
    assert max(map(len, run("doctor").out.splitlines())) <= 120
