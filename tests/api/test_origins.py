"""A browser on this machine is no way in for pages of elsewhere."""

import pytest
from starlette.testclient import TestClient

from rota.api.application import create_api
from rota.api.origins import LOOPBACK_HOSTS
from rota.service.context import Context
from rota.wiring import hosts_on
from tests.api.conftest import body_of, fields_of, report

FOREIGN = ["https://elsewhere.example", "http://testserver:81", "null", "http://["]


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_command_from_a_page_of_elsewhere_is_refused(client: TestClient, origin: str) -> None:
    body_of(client.post("/schedules", json=report()), status=201)
    refused = client.post("/schedules/report-7/pause", headers={"Origin": origin})
    assert fields_of(refused, status=403) == ["Origin"]
    assert refused.json()["type"] == "urn:rota:problem:foreign-origin"
    assert body_of(client.get("/schedules/report-7", headers={"Origin": origin}))["status"] == "active"


def test_a_page_of_this_server_may_command(client: TestClient) -> None:
    body_of(client.post("/schedules", json=report()), status=201)
    paused = client.post("/schedules/report-7/pause", headers={"Origin": "http://testserver"})
    assert body_of(paused)["status"] == "paused"


@pytest.fixture(scope="module")
def on_loopback(shared_context: Context) -> TestClient:
    """A client of an API that answers to the names of loopback alone."""
    return TestClient(create_api(shared_context, hosts=LOOPBACK_HOSTS), base_url="http://127.0.0.1:8080")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "LOCALHOST", "[::1]:8080"])
def test_a_server_on_loopback_answers_to_its_names(on_loopback: TestClient, host: str) -> None:
    for path in ("/jobs", "/health/live", "/openapi.json"):
        assert on_loopback.get(path, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "elsewhere.example",
        "elsewhere.example:8080",
        "localhost.elsewhere.example",
        "127.0.0.1.elsewhere.example:8080",
        "elsewhere.example@localhost",
        "localhost@elsewhere.example",
        "[::1].elsewhere.example",
        "localhost:8080:elsewhere.example",
        "localhost:",
        "192.0.2.1:8080",
        "",
    ],
)
def test_a_page_whose_name_points_at_this_machine_can_neither_read_nor_command(
    on_loopback: TestClient, host: str
) -> None:
    origin = {"Host": host, "Origin": f"http://{host}"}
    for refused in (
        on_loopback.get("/jobs", headers={"Host": host}),
        on_loopback.get("/openapi.json", headers={"Host": host}),
        on_loopback.put("/jobs/theirs", json={}, headers=origin),
    ):
        assert fields_of(refused, status=421) == ["Host"]
        assert refused.json()["type"] == "urn:rota:problem:foreign-host"
    assert on_loopback.get("/jobs/theirs").status_code == 404


def test_a_server_behind_a_proxy_answers_to_any_name(client: TestClient) -> None:
    assert client.get("/jobs", headers={"Host": "rota.example.com"}).status_code == 200


@pytest.mark.parametrize(
    ("address", "named", "hosts"),
    [
        ("127.0.0.1", "127.0.0.1", LOOPBACK_HOSTS),
        ("127.0.0.1", "localhost", LOOPBACK_HOSTS),
        ("::1", "::1", LOOPBACK_HOSTS),
        ("127.0.1.1", "Workstation", LOOPBACK_HOSTS | {"127.0.1.1", "workstation"}),
        ("0.0.0.0", "0.0.0.0", None),
        ("::", "::", None),
        ("192.0.2.1", "rota.example.com", None),
    ],
)
def test_only_on_loopback_the_names_are_known(address: str, named: str, hosts: frozenset[str] | None) -> None:
    assert hosts_on(address, named=named) == hosts
