"""Where a request came in: plain HTTP is taken from this machine or from a trusted proxy only."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from duebook.errors import ConfigurationError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """Addresses and networks that end TLS for us."""

    networks: tuple[Network, ...] = ()

    def hold(self, host: str) -> bool:
        """Whether `host` (an address; anything else is nobody) is one of them."""
        address = _address(host)
        return address is not None and any(address in network for network in self.networks)


def parse_proxies(texts: Sequence[str]) -> TrustedProxies:
    """Addresses and networks, each text one or several by commas. Raises ConfigurationError."""
    networks: list[Network] = []
    for text in ",".join(texts).split(","):
        if not text.strip():
            continue
        try:
            networks.append(ipaddress.ip_network(text.strip(), strict=False))
        except ValueError:
            raise ConfigurationError(
                f"trusted proxy {text.strip()!r} is neither an address nor a network"
            ) from None
    return TrustedProxies(tuple(networks))


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine only."""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def is_protected(request: HTTPConnection, proxies: TrustedProxies) -> bool:
    """Whether nobody between the provider and us could read along.

    TLS ends here, or at a trusted proxy, which says by X-Forwarded-Proto when its own side was
    plain; on this machine there is nobody between. What a peer that is not trusted says is nothing.
    """
    if request.url.scheme == "https":
        return True
    host = request.client.host if request.client else ""
    if not (is_loopback(host) or proxies.hold(host)):
        return False
    forwarded = request.headers.get("x-forwarded-proto", "https")
    return forwarded.split(",")[0].strip().lower() == "https"


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
