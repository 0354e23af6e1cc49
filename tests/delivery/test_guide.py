"""The guide's Python is run as it stands, against a relay."""

import base64
import importlib
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import pytest
import uvicorn

from rota.clock import SystemClock, truncate_to_millis
from rota.delivery.addresses import Networks
from rota.delivery.sinks import SendersByKind, SinkSettings
from rota.domain.run import RunState
from rota.domain.sink import WebhookSink
from tests.delivery.receiver import receiving
from tests.delivery.scene import DEADLINE_SECONDS, Scene

GUIDE = Path(__file__).resolve().parent.parent.parent / "docs/guides/delivery.md"
BLOCK = re.compile(r"^```python\n(# (\w+\.py)\n.*?)^```$", re.MULTILINE | re.DOTALL)
SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
OTHER = "whsec_" + base64.b64encode(b"t" * 32).decode()


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a block of the guide by the name of its file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SHOP_SECRET", SECRET)
    blocks = {name: code for code, name in BLOCK.findall(GUIDE.read_text())}
    for name, code in blocks.items():
        (tmp_path / name).write_text(code)
    yield importlib.import_module
    for name in blocks:
        sys.modules.pop(name.removesuffix(".py"), None)


def senders() -> SendersByKind:
    return SendersByKind(SinkSettings(networks=Networks("127.0.0.0/8")), inline=True)


def test_every_block_of_the_guide_is_a_file_that_can_be_imported(load: Callable[[str], ModuleType]) -> None:
    names = [name for _, name in BLOCK.findall(GUIDE.read_text())]
    assert len(names) == GUIDE.read_text().count("```python")
    for name in names:
        load(name.removesuffix(".py"))


def test_the_receiver_of_the_guide_does_the_work_of_a_run_once(
    load: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    server = uvicorn.Server(uvicorn.Config(load("receiver").app, log_level="error", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            scene = Scene(now=truncate_to_millis(SystemClock().now()))
            url = f"http://127.0.0.1:{port}/rota"
            scene.job("invoice", WebhookSink(url=url, secrets_from=("SHOP_SECRET",)))
            scene.job("forged", WebhookSink(url=url))
            run_id, forged = scene.queue("invoice", customer="acme"), scene.queue("forged", customer="evil")
            scene.rest(scene.relay(senders()))
            scene.close()
        finally:
            server.should_exit = True
            thread.join(DEADLINE_SECONDS)
    assert scene.run(run_id).state is RunState.SUCCEEDED
    assert "401" in str(scene.delivery(forged).error)
    assert capsys.readouterr().out == f"invoice for acme of {scene.run(run_id).local.date()}\n"


def test_the_verification_of_the_guide_tells_what_is_genuine(
    load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_genuine = load("verification").is_genuine
    monkeypatch.setenv("NEW_SECRET", OTHER)
    with receiving() as receiver:
        scene = Scene(now=truncate_to_millis(SystemClock().now()))
        scene.job("invoice", WebhookSink(url=receiver.url(), secrets_from=("NEW_SECRET", "SHOP_SECRET")))
        scene.queue("invoice", customer="acme")
        scene.rest(scene.relay(senders()))
        scene.close()
    [request] = receiver.requests
    headers = dict(request.headers)
    assert is_genuine(headers, request.body, SECRET)
    assert is_genuine(headers, request.body, OTHER)
    assert not is_genuine(headers, request.body + b" ", SECRET)
    assert not is_genuine({**headers, "webhook-id": "another"}, request.body, SECRET)
    long_ago = int(headers["webhook-timestamp"]) - timedelta(hours=1).seconds
    assert not is_genuine({**headers, "webhook-timestamp": str(long_ago)}, request.body, SECRET)
