"""The statements of the SQL store in PostgreSQL's words, with its row locks; nothing here runs them there."""

import importlib
import pkgutil
from dataclasses import replace

import pytest
from sqlalchemy import ClauseElement, SelectBase, UpdateBase, event
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.schema import CreateIndex, CreateTable

import rota.store.sql
from rota.domain.identity import ScheduleId
from rota.domain.run import RunState
from rota.store.port import ChangeOutcome, ZoneRules
from rota.store.sql import (
    SqlStore,
    admissions,
    batches,
    changes,
    deliveries,
    demands,
    dispatch,
    effects,
    key_uses,
    leases,
    outbox,
    places,
    planned,
    run_changes,
    settlements,
    skips,
    taking,
    waiting_runs,
    work,
)
from rota.store.sql.prepared import Lookup, Prepared
from rota.store.sql.schema import metadata
from tests.contract.builders import (
    DAY,
    NINE,
    change_to,
    idempotency_record,
    labels,
    new_schedule,
    new_version,
    pause,
    planned_run_at,
    resume,
)
from tests.contract.steps import create, record_of

POSTGRESQL = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]
MODULES = [
    importlib.import_module(f"rota.store.sql.{module.name}")
    for module in pkgutil.iter_modules(rota.store.sql.__path__)
]


def words_of(statement: SelectBase | UpdateBase | Prepared | Lookup) -> str:
    if isinstance(statement, Prepared | Lookup):
        statement = statement._statement
    return " ".join(str(statement.compile(dialect=POSTGRESQL)).split())


def test_every_statement_of_a_module_renders() -> None:
    statements = [
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, Prepared | Lookup | SelectBase | UpdateBase)
    ]
    assert len(statements) > 25
    assert all(words_of(statement) for statement in statements)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (batches._READ_EPOCH, "FOR SHARE"),
        (admissions._READ_STANDINGS, "ORDER BY schedules.id FOR UPDATE OF schedules SKIP LOCKED"),
        (admissions._ADVANCE, "schedules.next_due IS NOT DISTINCT FROM %s::BIGINT"),
        (leases._READ_FREE, "FOR UPDATE SKIP LOCKED"),
        (leases._READ_OWNED, "FOR UPDATE"),
        (waiting_runs._READ_TO_OPEN, "FOR UPDATE OF runs"),
        (waiting_runs._READ_TO_OPEN_FREE, "FOR UPDATE OF runs SKIP LOCKED"),
        (settlements._CLOSE_ATTEMPT, "AND CASE WHEN (attempts.finished_at IS NULL) THEN true ELSE false END"),
        (work._EXTEND_LEASE, "AND CASE WHEN (attempts.finished_at IS NULL) THEN true ELSE false END"),
        (
            taking._take_of(is_bounded=False, backlog_first=False),
            "LIMIT shares.size FOR UPDATE SKIP LOCKED",
        ),
        (demands._LOCK_LIMITED, "ORDER BY jobs.name FOR NO KEY UPDATE SKIP LOCKED"),
        (deliveries._LOCK_FREE, "FOR UPDATE SKIP LOCKED"),
        (places._LOCK_FREE, "ORDER BY places.schedule_id, places.place FOR UPDATE SKIP LOCKED"),
        (effects._LOCK_RUN, "FOR NO KEY UPDATE"),
        (work._READ_RUNNING_FREE, "FOR UPDATE OF runs SKIP LOCKED"),
        (work._READ_OPEN_FREE, "FOR UPDATE OF attempts SKIP LOCKED"),
        (settlements._READ_CURRENT, "FOR UPDATE OF runs, attempts"),
        (settlements._READ_CURRENT_FREE, "FOR UPDATE OF runs, attempts SKIP LOCKED"),
        (dispatch._read_due_times_of(2), "(VALUES (%s::INTEGER), (%s::INTEGER))"),
        (outbox._read_available_of(2), "UNION ALL"),
        (skips._read_ending_at(2), "JOIN skips ON skips.schedule_id = wanted_1.schedule_id"),
        (admissions._READ_STANDINGS, "LEFT OUTER JOIN versions ON"),
        (changes._READ_SCHEDULE, "FOR UPDATE"),
        (run_changes._READ_STORED_FREE, "ORDER BY runs.run_id FOR UPDATE SKIP LOCKED"),
        (dispatch._read_due_times_of(2), "runs.state = 'planned' ORDER BY runs.due_at LIMIT 1"),
        (planned._QUEUE_BACKFILL, "FOR UPDATE OF schedules, runs) RETURNING"),
        (planned._QUEUE_IN_TIME, "FOR UPDATE OF schedules, runs) RETURNING"),
        (planned._QUEUE_IN_TIME, "AS available_at, runs.run_id, runs.attempt + %s::INTEGER AS attempt"),
        (planned._HOLD, '(runs.due_at, runs.run_id) < (%s::BIGINT, %s::VARCHAR COLLATE "C")'),
        (planned._DROP, "ORDER BY runs.due_at, runs.run_id LIMIT %s FOR UPDATE)"),
        (key_uses._READ_USER_OF_PASS, "runs.second_pass = %s ORDER BY runs.scheduled_at, runs.run_id LIMIT"),
        (key_uses._READ_USER, "runs.state != 'skipped' OR runs.reason = 'on_request'"),
    ],
)
def test_a_statement_has_what_it_needs_there(
    statement: Prepared | Lookup | SelectBase | UpdateBase, words: str
) -> None:
    assert words in words_of(statement)


def test_what_is_put_together_for_a_call_renders(store: SqlStore) -> None:
    executed: list[ClauseElement] = []
    engines = (store._database._readers, store._database._writers)
    for engine in engines:
        event.listen(engine, "before_execute", lambda _, statement, *others: executed.append(statement))
    schedule = create(store, new_schedule(labels=labels(city="oslo"), idempotency=idempotency_record()))
    id_, rules = schedule.schedule_id, new_schedule().first.zone_rules
    run, second = planned_run_at(schedule, NINE), new_version(number=2, effective_from=NINE + DAY)
    change = replace(
        pause(schedule, at=NINE),
        cursor=replace(schedule.cursor, due_at=NINE - DAY),
        careful_until=NINE,
        labels=labels(city="rome"),
        versions=(second,),
        windows=((1, NINE + DAY),),
        runs=(run,),
        idempotency=idempotency_record("other"),
    )
    assert store.commit_change(change) is ChangeOutcome.CHANGED
    paused = record_of(store, schedule).schedule
    resumed = replace(
        resume(paused, at=NINE + DAY, paused_at=NINE),
        restamped=(second,),
        run_changes=(change_to(run, RunState.HELD),),
    )
    assert store.commit_change(resumed) is ChangeOutcome.CHANGED
    assert store.read_due(0, now=NINE, limit=1)
    assert store.list_ahead(id_, from_=NINE, limit=1)
    assert store.list_versions(id_, before=9, limit=1)
    assert store.list_computed_with(
        ZoneRules(timezone=rules.timezone, fingerprint=rules.fingerprint), after=ScheduleId("a"), limit=1
    )
    assert store.get_zone_rules(rules.timezone, rules.fingerprint)
    rendered = [str(statement.compile(dialect=POSTGRESQL)) for statement in executed]
    assert len(set(rendered)) > 20


def test_the_tables_render_with_names_ordered_by_code_point() -> None:
    for table in metadata.sorted_tables:
        assert "WITHOUT ROWID" not in str(CreateTable(table).compile(dialect=POSTGRESQL))
        for index in table.indexes:
            assert str(CreateIndex(index).compile(dialect=POSTGRESQL))
    assert 'id TEXT COLLATE "C" NOT NULL' in str(
        CreateTable(metadata.tables["schedules"]).compile(dialect=POSTGRESQL)
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("uq_runs_schedule_id_period_key", "(schedule_id, period_key) WHERE state != 'skipped' OR reason = "),
        ("ix_runs_planned", "ON runs (partition, due_at, run_id) WHERE state = 'planned'"),
        ("ix_runs_waiting", "ON runs (partition, run_id) WHERE state = 'waiting'"),
        ("ix_runs_parked", "ON runs (schedule_id, due_at, run_id) WHERE state IN ('planned', 'held')"),
        ("ix_versions_lasting", "(timezone, fingerprint, schedule_id) WHERE effective_until IS NULL"),
    ],
)
def test_a_partial_index_is_one_there_too(name: str, words: str) -> None:
    [index] = [index for table in metadata.sorted_tables for index in table.indexes if index.name == name]
    rendered = " ".join(str(CreateIndex(index).compile(dialect=POSTGRESQL)).split())
    assert words in rendered
    assert rendered.startswith("CREATE UNIQUE INDEX") == name.startswith("uq_")
