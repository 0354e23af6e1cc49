"""`rota init`: makes the database, or brings its tables up to date, and fixes how many partitions it has."""

from typing import Annotated

from cyclopts import Parameter

from rota.cli.options import Database, load_settings
from rota.cli.output import write_line
from rota.cli.whole_numbers import WHOLE
from rota.domain.errors import Conflict
from rota.wiring import open_store

Partitions = Annotated[
    int | None,
    WHOLE,
    Parameter(
        help="How many partitions a new database gets, instead of ROTA_PARTITIONS; fixed from then on."
    ),
]


def init(*, database: Database = None, partitions: Partitions = None) -> None:
    """Make the database or bring its tables up to date, and fix its number of partitions.

    Where it has its partitions already, the same number or none is right. What runs (`rota up`, `dispatch`, ...) makes
    a database by itself; this is for those who choose the number, or who migrate before they start what is new.
    """
    settings = load_settings(database_url=database, partitions=partitions)
    store = open_store(settings)
    try:
        had = len(store.list_partitions())
        count = store.ensure_partitions(settings.partitions)
    finally:
        store.close()
    is_said = "partitions" in settings.model_fields_set
    if is_said and count != settings.partitions:
        raise Conflict(
            f"The database has {count} partitions, which is fixed; {settings.partitions} would need a new database."
        )
    begun = "The database has" if had else "The database was made, with"
    write_line(f"{begun} {count} partition{'' if count == 1 else 's'}; its tables are up to date.")
