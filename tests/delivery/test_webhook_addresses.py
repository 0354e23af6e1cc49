"""Where webhooks may go: addresses are judged after they were resolved, and used as they were judged."""

import re
import socket
from collections.abc import Sequence
from datetime import timedelta

import pytest

from rota.domain.sink import WebhookSink
from tests.delivery.hooks import Hooks, error_of, failed
from tests.delivery.receiver import Receiver
from tests.delivery.scene import SECOND, Scene


class Names:
    """A resolution that answers with the next address each time."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = iter(addresses)
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[tuple[int, int, int, str, tuple[str, int]]]:
        self.asked.append(host)
        place = (next(self._addresses), port)
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place)]


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"],
)
def test_an_address_that_is_not_public_is_never_connected_to(
    scene: Scene, receiver: Receiver, host: str
) -> None:
    delivery = failed(scene, WebhookSink(url=receiver.url(host=host)), Hooks(networks=""))
    problem = error_of(delivery)
    assert re.search("is not a public address|cannot be resolved|is not a canonical IPv4 address", problem)
    assert receiver.requests == []


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
def test_a_name_that_resolves_to_an_inner_address_is_not_connected_to(
    scene: Scene, receiver: Receiver, address: str
) -> None:
    hooks = Hooks(networks="", lookup=Names(address))
    delivery = failed(scene, WebhookSink(url=receiver.url(host="shop.example")), hooks)
    assert f"{address} is not a public address" in error_of(delivery)
    assert receiver.requests == []


def test_the_address_that_was_looked_at_is_the_one_that_is_connected_to(
    scene: Scene, receiver: Receiver
) -> None:
    """A name that resolves to an allowed address when it is judged, and to another one when it is used."""
    names = Names("127.0.0.2", "127.0.0.1")
    hooks = Hooks(networks="127.0.0.2/32", lookup=names)
    delivery = failed(scene, WebhookSink(url=receiver.url(host="shop.example"), timeout=SECOND), hooks)
    assert "is not a public address" not in error_of(delivery)
    assert (names.asked, receiver.requests) == (["shop.example"], [])


def test_a_name_is_judged_anew_by_each_address_that_it_resolves_to(scene: Scene, receiver: Receiver) -> None:
    names = Names("127.0.0.2", "127.0.0.1")
    scene.job("hook", WebhookSink(url=receiver.url(host="shop.example"), timeout=SECOND))
    run_id = scene.queue("hook")
    for _ in range(2):
        scene.rest(scene.relay(Hooks(networks="127.0.0.2/32", lookup=names)))
        scene.clock.advance(timedelta(minutes=1))
    assert "127.0.0.1 is not a public address" in error_of(scene.delivery(run_id))
    assert (len(names.asked), receiver.requests) == (2, [])


def test_a_name_that_cannot_be_resolved_fails_the_try(scene: Scene) -> None:
    def lookup(host: str, port: int) -> Sequence[tuple[int, int, int, str, tuple[str, int]]]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    delivery = failed(scene, WebhookSink(url="http://shop.example/"), Hooks(lookup=lookup))
    assert "the name shop.example cannot be resolved" in error_of(delivery)
