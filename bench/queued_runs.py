"""Queued runs by the ten thousand, each of a schedule of its own, in the tables that claims work on."""

from collections.abc import Iterator

from sqlalchemy import insert

from rota.domain.job import Job
from rota.domain.json_text import encode_json
from rota.domain.run import Run
from rota.store.port import NewSchedule
from rota.store.sql import open_sql_store, rows
from rota.store.sql.outbox import write_intents
from rota.store.sql.schema import runs, versions
from tests.contract.builders import MADE_AT, NINE, definition, new_schedule, run_at

JOBS = ("noop", "noop_async")
PARTITIONS = 64
AT_ONCE = 1_000


def seed(url: str, job: str, count: int) -> None:
    """Writes them as an admission leaves them: a run and its delivery, available long ago. The jobs are made too."""
    store = open_sql_store(url)
    try:
        for name in JOBS:
            store.commit_job(Job(name=name), now=MADE_AT)
        for first in range(0, count, AT_ONCE):
            made = list(_made(job, range(first, min(first + AT_ONCE, count))))
            with store._database.writing() as connection:  # noqa: SLF001 - the tables and not the port
                values = [rows.version_values(new.first.version) for new, _ in made]
                connection.execute(insert(versions), values)
                connection.execute(insert(runs), [rows.run_values(run) for _, run in made])
                write_intents(connection, [run for _, run in made])
    finally:
        store.close()


def _made(job: str, numbers: range) -> Iterator[tuple[NewSchedule, Run]]:
    for number in numbers:
        params = encode_json({"customer": number, "format": "pdf"})
        new = new_schedule(
            f"report-{number:08d}", job=job, partition=number % PARTITIONS, of=definition(params=params)
        )
        yield new, run_at(new.schedule, NINE)
