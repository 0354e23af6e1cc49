"""`rota doctor` on PostgreSQL: the server, its settings, its clock and its tables."""

from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from rota.cli.doctor_checks import Check, Level
from rota.cli.doctor_postgresql import (
    check_clock_difference,
    check_database,
    check_durability,
    check_server,
)
from rota.config import Settings
from rota.store.sql.postgresql_inspection import PostgresReport
from rota.wiring import open_context
from tests.cli.conftest import PARTITIONS, Ended, Run
from tests.conftest import NewDatabase
from tests.postgresql import Databases

SOUND = PostgresReport(
    name="postgresql://rota@db/rota",
    version="16.4",
    version_number=160_004,
    encoding="UTF8",
    fsync="on",
    full_page_writes="on",
    synchronous_commit="on",
    schema_name="public",
    user="rota",
    may_create=True,
    is_read_only=False,
    clock_ahead=timedelta(milliseconds=3),
    clock_known_within=timedelta(milliseconds=1),
    revision="0001",
    newest_revision="0001",
)


@pytest.fixture
def server_database(new_database: NewDatabase, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database that every command takes by default."""
    url = new_database("postgresql")
    open_context(Settings(database_url=url, partitions=PARTITIONS)).store.close()
    monkeypatch.setenv("ROTA_DATABASE_URL", url)
    return url


@pytest.fixture
def empty_database(postgresql: Databases) -> str:
    return postgresql.make(migrated=False)


def levels(ended: Ended) -> dict[str, str]:
    checks = ended.wire["checks"]
    assert isinstance(checks, list)
    return {check["name"]: check["level"] for check in checks}


def test_a_sound_database_passes(run: Run, server_database: str) -> None:
    ended = run("doctor", "--json")
    assert ended.code == 0, ended.out
    found = levels(ended)
    for name in ("database", "server", "schema", "clock difference", "clock", "overdue", "zone rules"):
        assert found[name] == "ok", ended.out
    assert found["durability"] == "warn", "the server of the tests is faster than safe"
    assert "sqlite" not in found
    assert "journal" not in found


def test_an_empty_database_is_told_and_left_empty(run: Run, empty_database: str) -> None:
    ended = run("doctor", "--database", empty_database, "--json")
    assert (ended.code, levels(ended)["schema"]) == (0, "warn")
    assert "clock" not in levels(ended)
    with psycopg.connect(empty_database) as connection:
        assert connection.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchone() == (0,)


def test_a_newer_revision_fails(run: Run, server_database: str) -> None:
    with psycopg.connect(server_database, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("DELETE FROM settings WHERE name = 'schema_works_from'")
        try:
            ended = run("doctor", "--json")
        finally:
            connection.execute("UPDATE alembic_version SET version_num = '0001'")
            connection.execute("INSERT INTO settings VALUES ('schema_works_from', '0001')")
    assert (ended.code, levels(ended)["schema"]) == (1, "fail")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://rota:s3cret@127.0.0.1:1/rota",
        "postgresql://rota:s3cret@127.0.0.1:port/rota",
        "postgresql://rota:s3c@ret@127.0.0.1/rota",
        "postgresql:///rota?host=/nowhere&password=s3cret",
        "postgresql:///rota?host=/nowhere&nonsense=s3cret",
        "mysql://rota:s3cret@127.0.0.1/rota",
        "sqlite:///rota.db?password=s3cret",
    ],
)
@pytest.mark.parametrize("command", [("doctor",), ("jobs", "list"), ("jobs", "put", "mail")])
def test_no_message_tells_a_password(run: Run, command: tuple[str, ...], address: str) -> None:
    ended = run(*command, "--database", address)
    is_address = "host=/nowhere&password" in address or "127.0.0.1:1/" in address
    assert ended.code == (1 if is_address or command == ("doctor",) else 2)
    assert "s3c" not in ended.out + ended.err
    assert "ret@" not in ended.out + ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("check", "level"),
    [
        (check_database(SOUND), Level.OK),
        (check_database(replace(SOUND, is_read_only=True)), Level.FAIL),
        (check_server(replace(SOUND, version_number=140_000)), Level.OK),
        (check_server(replace(SOUND, version_number=130_016)), Level.FAIL),
        (check_durability(SOUND), Level.OK),
        (check_durability(replace(SOUND, synchronous_commit="remote_apply")), Level.OK),
        (check_durability(replace(SOUND, synchronous_commit="off")), Level.WARN),
        (check_durability(replace(SOUND, fsync="off")), Level.WARN),
        (check_durability(replace(SOUND, full_page_writes="off")), Level.WARN),
        (check_clock_difference(SOUND), Level.OK),
        (check_clock_difference(replace(SOUND, clock_ahead=timedelta(seconds=-5))), Level.WARN),
        (
            check_clock_difference(
                replace(SOUND, clock_ahead=timedelta(seconds=2), clock_known_within=timedelta(seconds=2))
            ),
            Level.OK,
        ),
    ],
)
def test_what_is_wrong_with_a_server_is_told_with_a_remedy(check: Check, level: Level) -> None:
    assert check.level is level
    assert (check.remedy is None) is (level is Level.OK)


def test_the_difference_of_the_clocks_is_told_with_its_direction() -> None:
    behind = check_clock_difference(replace(SOUND, clock_ahead=timedelta(seconds=-5)))
    assert "5.000 s behind" in behind.found
