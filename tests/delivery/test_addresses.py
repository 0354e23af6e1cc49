"""Which addresses webhooks may reach."""

import socket

import pytest

from rota.delivery.addresses import ForbiddenAddress, Networks
from rota.domain.errors import WrongSetting

PUBLIC = ["93.184.216.34", "1.1.1.1", "192.0.1.1", "2606:4700::1111", "2a00:1450:4001:82a::200e"]

NOT_PUBLIC = [
    "127.0.0.1",
    "127.8.9.10",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200",  # metadata
    "169.254.169.254",  # metadata
    "168.63.129.16",  # inner services of Azure
    "192.0.0.192",  # metadata
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",  # IPv4-compatible
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "fc00::1",
    "fd00:ec2::254",  # metadata
    "ff02::1",
    "100::1",
    "2001:db8::1",
    "3fff::1",
    "4000::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:10.0.0.1",  # IPv4-translated
    "2002:7f00:1::1",  # 6to4 of 127.0.0.1
    "2002:a9fe:a9fe::1",  # 6to4 of 169.254.169.254
    "64:ff9b::10.0.0.1",  # NAT64
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::10.0.0.1",  # NAT64 of a network's own
    "2001:0:5db8:d822:0:0:f5ff:fffe",  # Teredo of 10.0.0.1
    "localhost",
    "",
]


@pytest.mark.parametrize("address", [*PUBLIC, "::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2002:101:101::1"])
def test_public_addresses_may_be_reached(address: str) -> None:
    assert Networks().allow(address)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_no_other_address_may_be_reached(address: str) -> None:
    assert not Networks().allow(address)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::ffff:127.9.9.9", "10.1.2.3", "fd12::1", "fd12::1%eth0", "64:ff9b::10.1.0.1", "1.1.1.1"],
)
def test_networks_that_the_relay_is_told_of_may_be_reached_too(address: str) -> None:
    assert Networks("127.0.0.0/8, 10.1.0.0/16,fd12::/16,").allow(address)


@pytest.mark.parametrize("address", ["10.2.0.1", "fd13::1", "169.254.169.254", "64:ff9b::10.2.0.1"])
def test_they_open_nothing_beside_them(address: str) -> None:
    assert not Networks("127.0.0.0/8, 10.1.0.0/16,fd12::/16,").allow(address)


@pytest.mark.parametrize("text", ["localhost", "10.1.0.0/33", "10.1.2.3/16", "10.1.0.0/16;127.0.0.0/8"])
def test_networks_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(WrongSetting, match="ROTA_WEBHOOK_NETWORKS"):
        Networks(text)


def test_no_socket_is_opened_for_an_address_that_may_not_be_reached() -> None:
    stream = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
    with pytest.raises(ForbiddenAddress, match=r"10\.0\.0\.1 is not a public address"):
        Networks().open_socket((*stream, ("10.0.0.1", 80)))
    Networks().open_socket((*stream, ("1.1.1.1", 80))).close()
