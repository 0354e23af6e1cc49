"""Which addresses webhooks may reach: public ones, and those of the networks that the relay is told of.

Whoever may declare jobs tells the relay where to send requests, from within the operator's network. So each address is
looked at when its connection is made, after its name was resolved: neither a name that resolves to an inner address,
nor one that resolves to another at the second look, nor an unusual spelling gets past. An IPv6 address that stands for
an IPv4 one (mapped, 6to4, Teredo, NAT64) is judged by that as well.
"""

import errno
import socket
from collections.abc import Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from rota.domain.errors import WrongSetting

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]
"""As `getaddrinfo` answers."""

GLOBAL_UNICAST = IPv6Network("2000::/3")
"""All that is public in IPv6."""

NAT64 = IPv6Network("64:ff9b::/96")

NOT_PUBLIC: tuple[Network, ...] = (
    # What the standard library of some release counts as global, and what only looks public.
    IPv4Network("0.0.0.0/8"),
    IPv4Network("100.64.0.0/10"),
    IPv4Network("168.63.129.16/32"),  # the inner services of Azure
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv4Network("198.18.0.0/15"),
    IPv6Network("2001:2::/48"),
    IPv6Network("2001:10::/28"),
    IPv6Network("2001:db8::/32"),
    IPv6Network("3fff::/20"),
)


class ForbiddenAddress(OSError):
    """Webhooks may not reach this address; where they are to, name its network in ROTA_WEBHOOK_NETWORKS."""

    def __init__(self, address: str) -> None:
        text = f"{address} is not a public address; ROTA_WEBHOOK_NETWORKS names the others that webhooks may reach"
        super().__init__(errno.EACCES, text)


class Networks:
    """The networks that webhooks may reach though they are not public."""

    def __init__(self, text: str = "") -> None:
        """`text` is a list with commas. Raises `WrongSetting`."""
        self._allowed = tuple(_network(part.strip()) for part in text.split(",") if part.strip())

    def allow(self, address: str) -> bool:
        """Whether a connection to that numeric address may be made."""
        try:
            found = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        if self._names(found):
            return True
        return is_public(found) and all(is_public(inner) or self._names(inner) for inner in _inner(found))

    def open_socket(self, info: AddressInfo) -> socket.socket:
        """A socket for that address. Raises `ForbiddenAddress`."""
        family, kind, protocol, _, place = info
        address = str(place[0])
        if not self.allow(address):
            raise ForbiddenAddress(address)
        return socket.socket(family, kind, protocol)

    def _names(self, address: Address) -> bool:
        return any(address.version == network.version and address in network for network in self._allowed)


def is_public(address: Address) -> bool:
    """Whether the address itself is one of the public network, whatever it stands for."""
    if any(address.version == network.version and address in network for network in NOT_PUBLIC):
        return False
    if isinstance(address, IPv6Address) and address not in GLOBAL_UNICAST:
        return address in NAT64
    is_special = address.is_multicast or address.is_reserved or address.is_unspecified
    return isinstance(address, IPv6Address) or (address.is_global and not is_special)


def _inner(address: Address) -> Sequence[IPv4Address]:
    """The IPv4 addresses that a gateway or tunnel may pass a connection on to."""
    if not isinstance(address, IPv6Address):
        return ()
    if address in NAT64:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    return address.teredo or ()


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise WrongSetting(
            f"ROTA_WEBHOOK_NETWORKS: {error}; give networks such as 127.0.0.0/8,10.1.0.0/16."
        ) from None
