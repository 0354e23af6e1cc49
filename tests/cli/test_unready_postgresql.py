"""Commands on a PostgreSQL server that is not ready for them: no tables, no rights, another encoding, no database."""

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from rota.domain.job import Job
from rota.store.port import StoreUnavailable
from rota.store.sql import open_sql_store
from tests.cli.conftest import Run
from tests.conftest import NewDatabase
from tests.contract.builders import NINE
from tests.postgresql import Databases

READING = [
    ("partitions",),
    ("schedules", "list"),
    ("schedules", "show", "report"),
    ("runs", "list"),
    ("jobs", "list"),
    ("tz", "check"),
    ("schedules", "pause", "report"),
]


@pytest.fixture
def empty(postgresql: Databases) -> Iterator[str]:
    """The address of a database without tables."""
    url = postgresql.make(migrated=False)
    yield url
    postgresql.drop(url)


@pytest.fixture
def role(empty: str) -> Iterator[str]:
    """A role that has no rights but to connect."""
    name = f"rota_plain_{uuid4().hex[:8]}"
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
    yield name
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def as_role(url: str, role: str) -> str:
    return make_url(url).set(username=role).render_as_string(hide_password=False)


def tables_in(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("command", READING)
def test_a_command_that_reads_makes_no_tables(run: Run, empty: str, command: tuple[str, ...]) -> None:
    ended = run(*command, "--database", empty)
    assert (ended.code, ended.out) == (1, "")
    named = empty.replace("%2F", "/")
    assert ended.problems == [f"rota: There is no Rota database at {named}: make it by `rota init`."]
    assert tables_in(empty) == 0


def test_a_command_that_reads_migrates_nothing(run: Run, new_database: NewDatabase) -> None:
    url = new_database("postgresql")
    assert run("init", "--database", url).code == 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DELETE FROM alembic_version")
        try:
            ended = run("jobs", "list", "--database", url)
            assert connection.execute("SELECT count(*) FROM alembic_version").fetchone() == (0,)
        finally:
            connection.execute("INSERT INTO alembic_version VALUES ('0001')")
    assert (ended.code, len(ended.problems)) == (1, 1)
    assert run("jobs", "list", "--database", url).code == 0


def test_a_database_that_is_behind_is_told_of(
    run: Run, new_database: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.store.sql.migrations.is_usable", lambda state: False)
    ended = run("jobs", "list", "--database", new_database("postgresql"))
    assert ended.code == 1
    assert "is behind" in ended.err
    assert ended.err.endswith("bring it up to date by `rota init`, or by a start of a process.\n")


@pytest.mark.parametrize("command", [("init",), ("jobs", "put", "mail")])
def test_a_role_that_may_make_no_tables_is_told_what_it_needs(
    run: Run, empty: str, role: str, command: tuple[str, ...]
) -> None:
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    ended = run(*command, "--database", as_role(empty, role))
    assert (ended.code, len(ended.problems)) == (1, 1)
    assert "permission denied for schema public; " in ended.err
    assert f"GRANT CREATE, USAGE ON SCHEMA public TO {role}" in ended.err
    assert "at the moment" not in ended.err


def test_a_role_that_may_use_no_schema_is_told_what_it_needs(run: Run, empty: str, role: str) -> None:
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    ended = run("init", "--database", as_role(empty, role))
    assert (ended.code, len(ended.problems)) == (1, 1)
    assert f"GRANT CREATE, USAGE ON SCHEMA public TO {role}" in ended.err


@pytest.mark.parametrize("command", [("init",), ("jobs", "list"), ("doctor",)])
def test_tables_of_another_role_are_told_of_with_the_remedy(
    run: Run, empty: str, role: str, command: tuple[str, ...]
) -> None:
    assert run("init", "--database", empty).code == 0
    ended = run(*command, "--database", as_role(empty, role))
    assert ended.code == 1
    said = " ".join((ended.out + ended.err).split())
    assert "permission denied for table alembic_version" in said
    assert f"make {role} their owner" in said


def test_a_right_that_is_taken_away_later_is_told_as_unavailable(empty: str, role: str) -> None:
    open_sql_store(empty).close()
    with psycopg.connect(empty, autocommit=True) as connection:
        grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {}"
        connection.execute(sql.SQL(grant).format(sql.Identifier(role)))
        store = open_sql_store(as_role(empty, role))
        store.commit_job(Job(name="mail"), now=NINE)
        connection.execute(sql.SQL("REVOKE ALL ON jobs FROM {}").format(sql.Identifier(role)))
        with pytest.raises(StoreUnavailable, match="permission denied for table jobs; GRANT"):
            store.commit_job(Job(name="post"), now=NINE)
        with pytest.raises(StoreUnavailable, match="permission denied for table jobs; GRANT"):
            store.get_job("mail")
        store.close()


def test_doctor_says_whether_the_tables_can_be_made(run: Run, empty: str, role: str) -> None:
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    by_owner = schema_check(run, empty)
    assert by_owner["level"] == "warn"
    assert str(by_owner["remedy"]).startswith("`rota init --partitions N` makes them, and fixes the number N")
    by_role = schema_check(run, as_role(empty, role))
    assert by_role["level"] == "fail"
    assert f"GRANT CREATE, USAGE ON SCHEMA public TO {role}" in str(by_role["remedy"])


def schema_check(run: Run, url: str) -> dict[str, object]:
    checks = run("doctor", "--database", url, "--json").wire["checks"]
    assert isinstance(checks, list)
    [check] = [check for check in checks if check["name"] == "schema"]
    assert isinstance(check, dict)
    return check


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
@pytest.mark.parametrize("command", [("init",), ("jobs", "list"), ("doctor",)])
def test_another_encoding_is_refused_with_the_remedy(
    run: Run, empty: str, postgresql: Databases, encoding: str, command: tuple[str, ...]
) -> None:
    name = f"rota_encoded_{uuid4().hex[:8]}"
    create = sql.SQL("CREATE DATABASE {} ENCODING {} LOCALE 'C' TEMPLATE template0")
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute(create.format(sql.Identifier(name), sql.Literal(encoding)))
    url = make_url(empty).set(database=name).render_as_string(hide_password=False)
    try:
        ended = run(*command, "--database", url)
        assert ended.code == 1
        said = " ".join((ended.out + ended.err).split())
        assert f"has the encoding {encoding}" in said
        assert "createdb --encoding UTF8 --template template0" in said
        assert "Traceback" not in said
    finally:
        postgresql.drop(url)


def test_a_database_that_does_not_exist_is_told_how_to_make(run: Run, empty: str) -> None:
    url = make_url(empty).set(database="none_such").render_as_string(hide_password=False)
    ended = run("init", "--database", url)
    assert (ended.code, len(ended.problems)) == (1, 1)
    assert ended.err.endswith(
        'database "none_such" does not exist; make it first: createdb --encoding UTF8 none_such\n'
    )
    assert "at the moment" not in ended.err


@pytest.mark.parametrize("option", ["sslmode=bogus", "options=-c%20nonsense%3D1", "connect_timeout=soon"])
def test_what_waiting_does_not_mend_is_not_told_as_of_the_moment(run: Run, empty: str, option: str) -> None:
    ended = run("init", "--database", f"{empty}{'&' if '?' in empty else '?'}{option}")
    assert (ended.code, len(ended.problems)) == (1, 1)
    assert "cannot be used: " in ended.err


def test_lines_of_the_driver_are_told_in_one(run: Run) -> None:
    ended = run("init", "--database", "postgresql://rota@127.0.0.1:1/rota")
    assert "cannot be used at the moment: " in ended.err
    assert "refused; Is the server running" in ended.err
    assert len(ended.problems) == 1
