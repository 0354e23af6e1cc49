"""Migrations while others work: old and new code side by side, one migration at a time, and no queue behind it."""

import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.exc import IntegrityError

import rota.store.sql
from rota.domain.identity import ScheduleId
from rota.domain.job import Job
from rota.domain.run import RunState
from rota.store.port import ScheduleFilter, StoreUnavailable
from rota.store.sql import SqlStore, open_sql_store
from rota.store.sql.databases import open_database
from rota.store.sql.migrations import REVISIONS, Revisions, bring_up_to_date, turns, upgrade
from rota.store.sql.schema import metadata
from tests.contract.builders import NINE, success
from tests.contract.steps import open_attempt, queue_run, run_of, settle
from tests.postgresql import Databases
from tests.store.made_up_revisions import CONTRACTING, EXPANDING, INDEXING, revisions_up_to
from tests.store.watch import asked_of


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, empty_database: Path, tmp_path: Path) -> str:
    """A database with the tables of this code, which nobody else is given."""
    if request.param == "postgresql":
        return made_on(request.getfixturevalue("postgresql"))
    return str(shutil.copy(empty_database, tmp_path / "rota.db"))


@pytest.fixture
def server_url(postgresql: Databases) -> str:
    return made_on(postgresql)


@pytest.fixture
def newest(tmp_path: Path) -> Revisions:
    """What a release knows that has expanded the tables."""
    return revisions_up_to(tmp_path / "files", INDEXING)


def made_on(postgresql: Databases) -> str:
    url = postgresql.make()
    open_sql_store(url).close()
    return url


def migrate(url: str, revisions: Revisions) -> None:
    database = open_database(url)
    try:
        bring_up_to_date(database, revisions)
    finally:
        database.close()


def ask(url: str, statement: str) -> list[tuple[object, ...]]:
    database = open_database(url)
    try:
        with database.writing() as connection:
            found = connection.exec_driver_sql(statement)
            return [tuple(row) for row in found] if found.returns_rows else []
    finally:
        database.close()


def revision_of(url: str) -> object:
    [[revision]] = ask(url, "SELECT version_num FROM alembic_version")
    return revision


def is_valid(url: str, index: str) -> list[tuple[object, ...]]:
    return ask(url, f"SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{index}')")


def use(store: SqlStore, id_: str) -> None:
    """What writes to each of the tables that were expanded, and reads it again."""
    run = queue_run(store, id_)
    open_attempt(store, run)
    assert settle(store, success(run.run_id, at=NINE)) == [True]
    assert run_of(store, run.run_id).state is RunState.SUCCEEDED
    store.commit_job(Job(name=id_), now=NINE)
    assert store.get_job(id_) == Job(name=id_)


def test_old_and_new_code_work_side_by_side_on_expanded_tables(url: str, newest: Revisions) -> None:
    before = open_sql_store(url)
    use(before, "before")
    migrate(url, newest)
    use(before, "already-open")
    opened_after = open_sql_store(url)
    use(opened_after, "opened-after")
    ask(url, "UPDATE jobs SET team = 'new code' WHERE name = 'before'")
    assert before.get_job("before") == Job(name="before")
    assert ask(url, "SELECT name, team FROM jobs ORDER BY name") == [
        ("already-open", None),
        ("before", "new code"),
        ("opened-after", None),
    ]
    migrate(url, newest)
    before.close()
    opened_after.close()
    assert revision_of(url) == INDEXING


def test_code_that_is_too_old_for_contracted_tables_is_refused(url: str, tmp_path: Path) -> None:
    migrate(url, revisions_up_to(tmp_path, CONTRACTING))
    with pytest.raises(StoreUnavailable, match=f"newer Rota .revision {CONTRACTING}; this one knows"):
        open_sql_store(url)
    migrate(url, revisions_up_to(tmp_path, EXPANDING))
    assert revision_of(url) == CONTRACTING


def test_revisions_are_run_one_after_the_other(url: str, tmp_path: Path) -> None:
    for name in (EXPANDING, INDEXING, CONTRACTING):
        migrate(url, revisions_up_to(tmp_path, name))
        assert revision_of(url) == name
    migrate(url, revisions_up_to(tmp_path / "again", CONTRACTING))
    assert ask(url, "SELECT value FROM settings WHERE name = 'schema_works_from'") == [(EXPANDING,)]


def test_of_several_that_open_an_old_database_one_migrates_it(server_url: str, newest: Revisions) -> None:
    together = Barrier(4)

    def open_at_once(_: int) -> None:
        together.wait(timeout=30)
        migrate(server_url, newest)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(open_at_once, range(4)))
    assert revision_of(server_url) == INDEXING
    assert is_valid(server_url, "uq_jobs_team") == [(True,)]


def test_of_several_processes_that_open_an_empty_database_one_makes_it(postgresql: Databases) -> None:
    url = postgresql.make(migrated=False)
    script = "import sys; from rota.store.sql import open_sql_store; open_sql_store(sys.argv[1]).close()"
    processes = [
        subprocess.Popen([sys.executable, "-c", script, url], stderr=subprocess.PIPE) for _ in range(4)
    ]
    ends = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
    assert ends == [(b"", 0)] * 4
    assert revision_of(url) == REVISIONS[-1]


def test_a_migration_does_not_queue_up_behind_a_long_transaction(
    server_url: str, newest: Revisions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "LOCK_TIMEOUT", timedelta(milliseconds=50))
    other = open_database(server_url)
    with other.reading() as connection:
        connection.exec_driver_sql("SELECT count(*) FROM schedules")
        with pytest.raises(StoreUnavailable, match=r"other transactions have used them for more than 0\.05"):
            migrate(server_url, newest)
    other.close()
    assert revision_of(server_url) == REVISIONS[-1]
    assert not ask(server_url, "SELECT 1 FROM information_schema.columns WHERE column_name = 'team'")
    migrate(server_url, newest)
    assert revision_of(server_url) == INDEXING


def test_an_index_that_was_interrupted_is_made_anew(server_url: str, tmp_path: Path) -> None:
    migrate(server_url, revisions_up_to(tmp_path, EXPANDING))
    store = open_sql_store(server_url)
    for name in ("one", "two"):
        store.commit_job(Job(name=name), now=NINE)
    store.close()
    ask(server_url, "UPDATE jobs SET team = 'both'")
    newest = revisions_up_to(tmp_path, INDEXING)
    with pytest.raises(IntegrityError):
        migrate(server_url, newest)
    assert (revision_of(server_url), is_valid(server_url, "uq_jobs_team")) == (EXPANDING, [(False,)])
    ask(server_url, "UPDATE jobs SET team = name")
    migrate(server_url, newest)
    assert (revision_of(server_url), is_valid(server_url, "uq_jobs_team")) == (INDEXING, [(True,)])


def test_who_waits_too_long_for_its_turn_says_so(server_url: str) -> None:
    database = open_database(server_url)
    too_long = pytest.raises(StoreUnavailable, match=r"Another process has been migrating .* 0\.1 seconds")
    with turns.turn(database), too_long, turns.turn(database, patience=timedelta(seconds=0.1)):
        raise AssertionError
    with turns.turn(database, patience=timedelta(seconds=5)):
        pass
    database.close()


def test_a_session_that_migrated_leaves_its_settings_nowhere(server_url: str, newest: Revisions) -> None:
    database = open_database(server_url)
    with database.writing() as connection:
        expected = connection.exec_driver_sql("SHOW statement_timeout").scalar()
    bring_up_to_date(database, newest)
    with database.writing() as connection:
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar() == expected != "0"
    database.close()


SHAPE = """
SELECT 'table', relname, array_to_string(reloptions, ', '), ''
  FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
UNION ALL
SELECT 'column', table_name || '.' || column_name, data_type || ' ' || is_nullable, coalesce(collation_name, '')
       || coalesce(column_default, '')
  FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL
SELECT 'index', indexname, indexdef, '' FROM pg_indexes WHERE schemaname = 'public'
UNION ALL
SELECT 'constraint', conname, pg_get_constraintdef(oid), ''
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace
ORDER BY 1, 2
"""


def test_the_revisions_make_what_the_code_describes_on_postgresql(postgresql: Databases) -> None:
    made, migrated = made_on(postgresql), postgresql.make(migrated=False)
    database = open_database(migrated)
    with database.writing() as connection:
        for revision in REVISIONS:
            upgrade(connection, to=revision)
    with database.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    database.close()
    shape = ask(made, SHAPE)
    assert ask(migrated, SHAPE) == shape
    assert len(shape) > 150


@pytest.mark.parametrize(
    ("table", "option"),
    [
        ("runs", "fillfactor=90"),
        ("outbox", "autovacuum_vacuum_threshold=1000"),
        ("partitions", "fillfactor=50"),
    ],
)
def test_tables_that_change_much_are_stored_for_it(server_url: str, table: str, option: str) -> None:
    [[options]] = ask(server_url, f"SELECT reloptions FROM pg_class WHERE relname = '{table}'")
    assert isinstance(options, list)
    assert option in options


def test_statements_name_their_columns_so_that_another_one_breaks_nobody(server_url: str) -> None:
    store = open_sql_store(server_url)
    with asked_of(store) as asked:
        use(store, "one")
        store.list_schedules(ScheduleFilter(), after=None, limit=5)
        store.list_ledger(ScheduleId("one"), before=None, limit=5)
        store.list_audit(ScheduleId("one"), limit=5)
        store.list_partitions()
    store.close()
    written = [statement for statement, _ in asked]
    texts = [module.read_text() for module in Path(rota.store.sql.__file__).parent.rglob("*.py")]
    assert any("INSERT INTO runs (" in statement for statement in written)
    for text in (*written, *texts):
        assert not re.search(r"SELECT \*|\w\.\*[ ,]|INSERT INTO \w+ (VALUES|SELECT)", text)
