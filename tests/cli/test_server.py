"""Where a process listens, and what it says when it cannot."""

import socket

import pytest

from rota.cli.errors import Failed
from rota.cli.server import listen, url_of


def test_port_zero_takes_a_free_port_and_the_url_names_it() -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert port > 0
        assert url_of(listener) == f"http://127.0.0.1:{port}"


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_the_url_of_an_ipv6_address_has_brackets() -> None:
    with listen("::1", 0) as listener:
        assert url_of(listener) == f"http://[::1]:{listener.getsockname()[1]}"


def test_a_taken_port_is_told_at_once() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Failed, match=f"Something listens on 127.0.0.1:{port} already"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "says"), [("nope.invalid", "is no address"), ("192.0.2.1", "cannot listen on")]
)
def test_an_address_of_another_machine_is_told(host: str, says: str) -> None:
    with pytest.raises(Failed, match=says):
        listen(host, 0)
