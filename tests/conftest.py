"""How property tests run everywhere, and the one PostgreSQL server of a test process."""

import os
from collections.abc import Iterator
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from tests.postgresql import URL_VARIABLE, Databases, running_server

# A machine that is busy is no fault of what is tested.
settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Databases]:
    """Databases of a real server. Where none can be had its tests fail: they do not skip."""
    prefix = f"rota_test_{uuid4().hex[:8]}"
    url = os.environ.get(URL_VARIABLE)
    if url is None:
        with running_server() as server:
            yield Databases(server.url(), prefix=prefix)
    else:
        databases = Databases(url, prefix=prefix)
        yield databases
        databases.drop_all()
