"""How PostgreSQL finds what relays ask for, and what limited jobs and places cost: by indexes, as workers do."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from sqlalchemy import insert

from rota.domain.delivery import Delivery, DeliveryEnd, DeliveryState, sent
from rota.domain.identity import RunId
from rota.domain.job import Job
from rota.domain.sink import CelerySink, DeliveryPolicy
from rota.store.port import Answer, DeliveryFilter, Wanted
from rota.store.sql import SqlStore, rows, sending_rows
from rota.store.sql.schema import deliveries, outbox, permits, places, runs, versions
from tests.contract.builders import HOUR, MINUTE, NINE, new_schedule, run_at, success
from tests.postgresql import Databases
from tests.store.postgresql_plans import FOUND_BY_INDEX, IN_ORDER, asked_by, large_store_of, plan_of, scans_of
from tests.store.test_sql_plans_postgresql import INTENT, multiply
from tests.store.watch import Ask, Asked

BATCH = 200
LARGE = {"runs", "outbox", "deliveries", "permits", "places", "versions"}
NEW = new_schedule()
RUN = run_at(NEW.schedule, NINE)
DELIVERY = Delivery(
    run_id=RUN.run_id,
    attempt=1,
    schedule_id=RUN.schedule_id,
    job="sent",
    state=DeliveryState.SENDING,
    tries=1,
    first_at=NINE,
    next_at=NINE,
)
SENT = ("sent", "mail", "full")


@pytest.fixture(scope="module", params=["never analysed", "analysed"])
def large_store(request: pytest.FixtureRequest, postgresql: Databases) -> Iterator[SqlStore]:
    is_analysed = request.param == "analysed"
    with large_store_of(postgresql, tables=LARGE, fill=fill, is_analysed=is_analysed) as store:
        yield store


@pytest.fixture(scope="module")
def asked(large_store: SqlStore) -> dict[str, list[Asked]]:
    return asked_by(large_store, ASKS)


def fill(store: SqlStore) -> None:
    for name in SENT:
        limit = 50_000 if name == "full" else None
        store.commit_job(Job(name=name, sink=CelerySink(task="t"), max_running=limit), now=NINE)
    store.commit_job(Job(name="limited", max_running=50_000), now=NINE)
    for kind, job in (("waits", "sent"), ("intent", "mail"), ("fetched", "limited")):
        multiply(store, runs, rows.run_values(replace(RUN, job=job)), kind)
        multiply(store, versions, rows.version_values(NEW.first.version), kind)
    multiply(store, deliveries, sending_rows.delivery_values(DELIVERY), "waits")
    dead = replace(DELIVERY, state=DeliveryState.DEAD, next_at=None)
    with store._database.writing() as connection:
        values = sending_rows.delivery_values(replace(dead, run_id=RunId("dead")))
        connection.execute(insert(deliveries), [dict(values)])
    multiply(store, outbox, {**INTENT, "job": "mail"}, "intent")
    multiply(store, outbox, {**INTENT, "job": "limited"}, "fetched")
    multiply(store, permits, {"run_id": "x", "job": "full"}, "permit")
    multiply(store, places, {"schedule_id": "x", "place": 0, "run_id": "x"}, "placed")


def take(store: SqlStore) -> None:
    wanted = [Wanted(job="sent", limit=BATCH), Wanted(job="mail", limit=BATCH)]
    taken = store.commit_takes(wanted, now=NINE, lease=MINUTE, limit=2 * BATCH)
    assert len(taken) == 2 * BATCH


def end(store: SqlStore) -> None:
    taken = store.commit_takes([Wanted(job="sent")], now=NINE, lease=MINUTE, limit=BATCH)
    ends = [
        DeliveryEnd(
            run_id=each.delivery.run_id,
            attempt=1,
            tries=2,
            becomes=None if place % 2 else sent(each.delivery, DeliveryPolicy(), now=NINE),
        )
        for place, each in enumerate(taken)
    ]
    assert all(store.commit_delivery_ends(ends, now=NINE))


def come_back(store: SqlStore) -> None:
    taken = store.commit_takes([Wanted(job="sent")], now=NINE, lease=MINUTE, limit=BATCH)
    assert all(store.commit_openings("receiver", [each.delivery for each in taken], now=NINE))


def answer(store: SqlStore) -> None:
    taken = store.commit_takes([Wanted(job="sent")], now=NINE, lease=MINUTE, limit=BATCH)
    answers = [
        Answer(
            run_id=each.run.run_id, attempt=1, opened_at=NINE, settlement=success(each.run.run_id, at=NINE)
        )
        for each in taken
    ]
    assert all(store.commit_answers("relay", answers))


def take_new(store: SqlStore) -> None:
    wanted = [Wanted(job="sent", limit=BATCH), Wanted(job="mail", limit=BATCH)]
    taken = store.commit_takes(
        wanted, now=NINE, lease=MINUTE, limit=BATCH, intents_first=True, backlog_first=True
    )
    assert {each.run.job for each in taken} == {"mail"}


def claim(store: SqlStore) -> None:
    wanted = [Wanted(job="limited", limit=BATCH), Wanted(job="other")]
    for backlog_first in (False, True):
        opened = store.commit_claims("w", wanted, now=NINE, limit=2 * BATCH, backlog_first=backlog_first)
        assert len(opened) == BATCH


ASKS: Mapping[str, Ask] = {
    "commit_takes": take,
    "commit_delivery_ends": end,
    "commit_openings": come_back,
    "commit_answers": answer,
    "commit_takes of intents first": take_new,
    "commit_claims": claim,
    "read_next_delivery_time": lambda store: store.read_next_delivery_time(["sent", "mail"]),
    "list_deliveries": lambda store: store.list_deliveries(
        DeliveryFilter(state=DeliveryState.DEAD), after=None, limit=10
    ),
    "get_run": lambda store: store.get_run(RunId("waits-19000")),
    "read_places": lambda store: store.read_places(NEW.schedule.schedule_id),
    "read_due": lambda store: store.read_due(0, now=NINE + HOUR, limit=3),
}


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("name", ASKS)
def test_a_hot_call_reads_no_large_table_from_end_to_end(
    large_store: SqlStore, asked: Mapping[str, list[Asked]], name: str, mode: str
) -> None:
    settings = [statement for statement, _ in asked[name] if statement.startswith("SET LOCAL")]
    settings.append(f"SET LOCAL plan_cache_mode = {mode}")
    for statement, given in asked[name]:
        if statement in settings:
            continue
        plan = plan_of(large_store, (statement, given), settings)
        for step in scans_of(plan):
            if step["Relation Name"] in LARGE:
                assert step["Node Type"] in FOUND_BY_INDEX, (statement, plan)
            if step["Relation Name"] == "outbox":
                assert step["Node Type"] in IN_ORDER, (statement, plan)
