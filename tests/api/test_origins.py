"""A browser on this machine is no way in for pages of elsewhere."""

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import body_of, report

FOREIGN = ["https://elsewhere.example", "http://testserver:81", "null", "http://["]


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_command_from_a_page_of_elsewhere_is_refused(client: TestClient, origin: str) -> None:
    body_of(client.post("/schedules", json=report()), status=201)
    refused = client.post("/schedules/report-7/pause", headers={"Origin": origin})
    assert body_of(refused, status=403)["type"] == "urn:rota:problem:foreign-origin"
    assert body_of(client.get("/schedules/report-7", headers={"Origin": origin}))["status"] == "active"


def test_a_page_of_this_server_may_command(client: TestClient) -> None:
    body_of(client.post("/schedules", json=report()), status=201)
    paused = client.post("/schedules/report-7/pause", headers={"Origin": "http://testserver"})
    assert body_of(paused)["status"] == "paused"
