"""How the store connects to a PostgreSQL server, which may go away without a word."""

from typing import cast

import psycopg

from rota.store.sql import SqlStore, open_sql_store
from rota.store.sql.postgresql import SILENCE
from tests.conftest import NewDatabase


def parameters_of(store: SqlStore) -> dict[str, str]:
    """What the connection was made with, where it is not what the driver would take by itself."""
    with store._database.reading() as connection:
        driver = cast("psycopg.Connection[object]", connection.connection.driver_connection)
        return driver.info.get_parameters()


def test_a_server_that_is_gone_without_a_word_is_given_up(new_database: NewDatabase) -> None:
    store = open_sql_store(new_database("postgresql"))
    wanted = {name: str(value) for name, value in SILENCE.items()}
    assert wanted.items() <= parameters_of(store).items()
    assert parameters_of(store)["connect_timeout"] == "5"
    store.close()


def test_what_the_address_says_of_a_connection_goes_before(new_database: NewDatabase) -> None:
    url = new_database("postgresql")
    own = "keepalives_idle=77&tcp_user_timeout=0&application_name=mine&connect_timeout=9"
    store = open_sql_store(f"{url}{'&' if '?' in url else '?'}{own}")
    told = parameters_of(store)
    assert {name: told.get(name) for name in ("keepalives_idle", "application_name", "connect_timeout")} == {
        "keepalives_idle": "77",
        "application_name": "mine",
        "connect_timeout": "9",
    }
    assert told.get("tcp_user_timeout", "0") == "0"
    assert told["keepalives_count"] == "3"
    store.close()
