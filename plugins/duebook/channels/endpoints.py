"""Addresses that customers chose: which URLs may be posted to, and to which machines they may lead.

A URL is a customer's text, so it must not reach what only this network can reach. What counts is
the address that is connected to, looked at when the socket is made: neither a name that resolves
anew between a check and the connection, nor a literal in an odd form, comes past it. The networks
are those of the registries of special-purpose addresses
(https://www.iana.org/assignments/iana-ipv4-special-registry,
https://www.iana.org/assignments/iana-ipv6-special-registry). No error here repeats a URL.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_LONGEST: Final = 2048
_SPECIAL_4: Final = tuple(
    ipaddress.IPv4Network(each)
    for each in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# Of IPv6 only what is handed out as global unicast is public; of that these are not: Teredo and
# other protocols, documentation, 6to4 (each of which may hide an IPv4 address).
_GLOBAL_6: Final = ipaddress.IPv6Network("2000::/3")
_SPECIAL_6: Final = tuple(
    ipaddress.IPv6Network(each) for each in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


class EndpointError(Exception):
    """The text is not a URL that may be posted to; the message never repeats it."""


class PrivateAddressError(OSError):
    """The name leads to machines that a customer's URL must not reach."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One place to post to. `identity` is its origin and path: what a secret belongs to."""

    url: URL = field(repr=False)
    identity: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reach:
    """Where connections may lead: the public internet, less `refused` networks of the operator's.

    `allow_private` lets them lead to anywhere else too, and plain HTTP to this machine.
    """

    allow_private: bool = False
    refused: tuple[Network, ...] = ()

    def allows(self, address: Address) -> bool:
        """Whether `address`, or the IPv4 address that it stands for, may be connected to."""
        inner = _inner(address)
        if any(each in network for network in self.refused for each in (address, inner)):
            return False
        return self.allow_private or is_public(inner)


def is_public(address: Address) -> bool:
    """Whether an address belongs to the public internet, as unicast."""
    address = _inner(address)
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _SPECIAL_4)
    return address in _GLOBAL_6 and not any(address in network for network in _SPECIAL_6)


def _inner(address: Address) -> Address:
    """The IPv4 address behind its forms in IPv6: mapped, and translated (RFC 6052)."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def parse_endpoint(text: str, reach: Reach) -> Endpoint:
    """One https URL without a login or a fragment; http only to this machine, where allowed.

    Raises EndpointError.
    """
    if len(text) > _LONGEST or not text.isprintable() or " " in text.strip():
        raise EndpointError("address is not a URL")
    try:
        url = URL(text.strip())
        host, port = url.raw_host, url.port
    except ValueError:
        raise EndpointError("address is not a URL") from None
    if not host or port is None:
        raise EndpointError("address is not a URL with a host")
    if url.raw_user is not None or url.raw_password is not None:
        raise EndpointError("address holds a login, which would be sent to whoever answers there")
    if url.raw_fragment:
        raise EndpointError("address holds a fragment, which is never sent")
    _check_scheme(url, host, reach)
    shown = f"[{host}]" if ":" in host else host.rstrip(".").lower()
    return Endpoint(url, f"{url.scheme}://{shown}:{port}{url.raw_path}")


def _check_scheme(url: URL, host: str, reach: Reach) -> None:
    literal = _literal(host)
    is_here = host.lower() == "localhost" or (literal is not None and literal.is_loopback)
    if url.scheme != "https" and not (url.scheme == "http" and reach.allow_private and is_here):
        raise EndpointError("address is not an https URL")
    if literal is not None and not reach.allows(literal):
        raise EndpointError("address is not on the public internet")


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


class GuardedResolver(AbstractResolver):
    """Names by the system's resolver, less the addresses that are out of reach."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._inner = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses that may be connected to; raises PrivateAddressError when there is none."""
        found = await self._inner.resolve(host, port, family)
        allowed = [each for each in found if self._is_allowed(each["host"])]
        if found and not allowed:
            raise PrivateAddressError
        return allowed

    def _is_allowed(self, host: str) -> bool:
        literal = _literal(host)
        return literal is not None and self._reach.allows(literal)

    async def close(self) -> None:
        """Nothing is kept."""


def guarded_connector(
    reach: Reach, *, limit: int, tls: SSLContext, keep_alive_s: float
) -> aiohttp.TCPConnector:
    """A connector whose every socket leads to where `reach` allows, whatever a name said before."""

    def make_socket(info: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, address = info
        literal = _literal(str(address[0]))
        if literal is None or not reach.allows(literal):
            raise PrivateAddressError
        return socket.socket(family, kind, protocol)

    return aiohttp.TCPConnector(
        resolver=GuardedResolver(reach),
        socket_factory=make_socket,
        ssl=tls,
        limit=limit,
        keepalive_timeout=keep_alive_s,
        ttl_dns_cache=30,
        interleave=1,
    )


def parse_networks(values: Sequence[object]) -> tuple[Network, ...]:
    """Networks such as "192.0.2.0/24". Raises ValueError."""
    return tuple(ipaddress.ip_network(str(value)) for value in values)
