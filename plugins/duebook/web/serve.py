"""Puts the webhook receiver together from its settings, and serves it alone, by uvicorn."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvicorn
from fastapi import FastAPI

from duebook.connections import ConnectionSpec
from duebook.errors import ConfigurationError, RefusedError
from duebook.services.operate import load_configuration
from duebook.services.receive import ReceiptStore, load_endpoints
from duebook.services.signing.certificates import CertificateKeys
from duebook.services.unsubscribe import make_links
from duebook.settings import Settings
from duebook.web.app import make_app
from duebook.web.edge import TrustedProxies, is_loopback, parse_proxies
from duebook.web.unsubscribe import add_unsubscribe

_MOST_REQUESTS: Final = 512
_DRAIN_S: Final = 20


@dataclass(frozen=True, slots=True)
class Receiver:
    """The application, its endpoints by name, and those that can't verify anything, and why.

    `has_links`: it also serves the links by which recipients leave a topic.
    """

    app: FastAPI
    endpoints: tuple[str, ...]
    broken: dict[str, ConfigurationError]
    proxies: TrustedProxies
    has_links: bool = False


def make_receiver(
    settings: Settings,
    connections: Callable[[str], ConnectionSpec | None],
    database_url: str,
    trusted_proxies: tuple[str, ...] = (),
    certificates: CertificateKeys | None = None,
) -> Receiver:
    """The receiver of these settings; `database_url` is used where it has no login of its own.

    `certificates` take the place of those that PayPal serves.

    Raises ConfigurationError for settings that can't be read; opens nothing.
    """
    config = load_configuration(settings)
    endpoints, broken = load_endpoints(config, connections)
    links = make_links(config, connections)
    proxies = parse_proxies((settings.trusted_proxies, *trusted_proxies))
    own = settings.receiver_database_url
    store = ReceiptStore(own.get_secret_value() if own else database_url)
    app = make_app(endpoints, broken, store, proxies, certificates=certificates)
    if links is not None:
        add_unsubscribe(app, links, store, proxies)
    return Receiver(
        app=app,
        endpoints=tuple(sorted(endpoints)),
        broken=broken,
        proxies=proxies,
        has_links=links is not None,
    )


@dataclass(frozen=True, slots=True)
class Listener:
    """Where to listen; port 0 takes a free one. Both TLS files, or neither."""

    host: str
    port: int
    tls_certificate: Path | None = None
    tls_key: Path | None = None

    def require_protected(self, proxies: TrustedProxies) -> None:
        """Refuse to listen where others could read along.

        Raises RefusedError for a host beyond loopback with neither TLS nor a trusted proxy.
        """
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise RefusedError("--tls-certificate and --tls-key go together")
        if self.tls_certificate is None and not is_loopback(self.host) and not proxies.networks:
            raise RefusedError(
                f"{self.host} is reachable from other machines: give --tls-certificate and "
                "--tls-key, or name the proxy that ends TLS by --trusted-proxy"
            )

    def bind(self) -> socket.socket:
        """A bound socket. Raises ConfigurationError when the place is taken or not ours."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        bound = socket.socket(family)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((self.host, self.port))
        except OSError as error:
            bound.close()
            raise ConfigurationError(
                f"can't listen on {self.host}:{self.port}: {error.strerror or 'no such address'}"
            ) from None
        return bound


class Server(uvicorn.Server):
    """One listener; `run` serves until SIGINT or SIGTERM, then finishes what was begun.

    Calls `on_ready` with its address once it listens. Raises RefusedError for a place where others
    could read along, ConfigurationError for one that is taken.
    """

    def __init__(
        self, receiver: Receiver, listener: Listener, on_ready: Callable[[str], None]
    ) -> None:
        listener.require_protected(receiver.proxies)
        super().__init__(
            uvicorn.Config(
                receiver.app,
                # Whom to believe about a forwarded request is decided by the application.
                proxy_headers=False,
                server_header=False,
                access_log=False,
                log_config=None,
                limit_concurrency=_MOST_REQUESTS,
                timeout_graceful_shutdown=_DRAIN_S,
                ssl_certfile=listener.tls_certificate,
                ssl_keyfile=listener.tls_key,
            )
        )
        try:
            self.config.load()
        except OSError:
            raise ConfigurationError(
                "the TLS certificate and its key can't be read as PEM files of one another"
            ) from None
        self._on_ready = on_ready
        self._socket = listener.bind()
        scheme = "https" if listener.tls_certificate else "http"
        host = f"[{listener.host}]" if ":" in listener.host else listener.host
        self.address = f"{scheme}://{host}:{self._socket.getsockname()[1]}"

    def serve_forever(self) -> None:
        """Listen, and give the place back at the end."""
        with self._socket:
            self.run(sockets=[self._socket])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready(self.address)
