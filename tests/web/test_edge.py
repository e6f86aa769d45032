"""Where the receiver listens, and from whom it takes plain HTTP."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import httpx
import pytest

from duebook.errors import ConfigurationError, RefusedError
from duebook.services.receive import load_endpoints
from duebook.settings import Settings
from duebook.web.app import make_app
from duebook.web.edge import TrustedProxies, parse_proxies
from duebook.web.serve import Listener, Server, make_receiver
from tests.web.receiving import (
    CONFIGURATION,
    CONNECTIONS,
    event,
    parsed,
    running,
    stripe_headers,
)

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"
PROXIES = parse_proxies(["10.0.0.0/8, 192.0.2.7", "2001:db8::/32"])


@pytest.mark.parametrize(
    ("peer", "scheme", "forwarded", "status"),
    [
        ("127.0.0.1", "http", None, 200),
        ("::1", "http", None, 200),
        ("::ffff:127.0.0.1", "http", None, 200),
        ("10.1.2.3", "http", None, 200),
        ("10.1.2.3", "http", "https", 200),
        ("2001:db8::7", "http", "HTTPS, http", 200),
        ("10.1.2.3", "http", "http", 403),
        ("127.0.0.1", "http", "http", 403),
        ("192.0.2.8", "http", None, 403),
        ("192.0.2.8", "http", "https", 403),
        ("192.0.2.8", "https", None, 200),
        ("testclient", "http", "https", 403),
    ],
)
def test_plain_http_is_taken_from_this_machine_or_a_trusted_proxy(
    answers: Any, peer: str, scheme: str, forwarded: str | None, status: int
) -> None:
    assert answers(peer, scheme, forwarded) == status


@pytest.fixture(scope="module")
def answers() -> Any:
    """The status of a signed webhook from a peer; what would be stored is only noted."""
    endpoints, broken = load_endpoints(parsed(CONFIGURATION), CONNECTIONS.get)
    app = make_app(endpoints, broken, NoStore(), PROXIES)  # type: ignore[arg-type]

    def ask(peer: str, scheme: str, forwarded: str | None) -> int:
        body = event("1")
        headers = stripe_headers(body)
        if forwarded:
            headers["X-Forwarded-Proto"] = forwarded

        async def send() -> int:
            told = httpx.ASGITransport(app, client=(peer, 4))
            async with httpx.AsyncClient(transport=told, base_url=f"{scheme}://x") as client:
                answer = await client.post("/webhooks/stripe", content=body, headers=headers)
            return answer.status_code

        return asyncio.run(send())

    return ask


class NoStore:
    """Stands where the database would."""

    async def record(self, *_: Any) -> list[str]:
        return ["stored"]

    async def close(self) -> None:
        pass


def test_a_proxy_that_is_no_address_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"'proxy.local' is neither"):
        parse_proxies(["10.0.0.1", "proxy.local"])


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_a_host_that_others_reach_needs_tls_or_a_trusted_proxy(host: str, tmp_path: Path) -> None:
    nobody = TrustedProxies()
    bare = Listener(host, 0)
    with pytest.raises(RefusedError, match="--trusted-proxy"):
        bare.require_protected(nobody)
    bare.require_protected(PROXIES)
    dataclasses.replace(bare, tls_certificate=tmp_path, tls_key=tmp_path).require_protected(nobody)
    for local in ("127.0.0.1", "::1", "localhost"):
        Listener(local, 0).require_protected(nobody)


def test_half_of_tls_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="go together"):
        Listener("127.0.0.1", 0, tls_certificate=tmp_path).require_protected(PROXIES)


def test_tls_files_that_are_none_are_said_in_one_line(configured: Settings, tmp_path: Path) -> None:
    file = tmp_path / "no.pem"
    file.write_text("no certificate")
    receiver = make_receiver(configured, CONNECTIONS.get, NOWHERE)
    listener = Listener("127.0.0.1", 0, tls_certificate=file, tls_key=file)
    with pytest.raises(ConfigurationError, match="can't be read as PEM"):
        Server(receiver, listener, print)


def test_a_place_that_is_taken_is_said_in_one_line() -> None:
    with Listener("127.0.0.1", 0).bind() as taken:
        port = taken.getsockname()[1]
        taken.listen()
        with pytest.raises(
            ConfigurationError, match=f"can't listen on 127[.]0[.]0[.]1:{port}: Address"
        ):
            Listener("127.0.0.1", port).bind()


def test_the_trusted_proxies_are_those_of_the_settings_and_of_the_command(
    configured: Settings,
) -> None:
    told = configured.model_copy(update={"trusted_proxies": "10.0.0.0/8"})
    receiver = make_receiver(told, CONNECTIONS.get, NOWHERE, ("192.0.2.7",))
    assert receiver.proxies == parse_proxies(["10.0.0.0/8", "192.0.2.7"])


def test_an_endpoint_without_its_secret_asks_to_come_back_and_stops_no_other(
    receiving: Settings, database_url: str
) -> None:
    known = {"stripe_webhook": CONNECTIONS["stripe_webhook"]}
    broken = make_receiver(receiving, known.get, database_url).broken
    assert list(broken) == ["standard"]
    assert "AIRFLOW_CONN_STANDARD_WEBHOOK" in str(broken["standard"])
    with running(receiving, connections=known) as receiver:
        away = receiver.post(b"{}", endpoint="standard")
        assert receiver.post(event("1")).status_code == 200
    assert (away.status_code, away.headers["retry-after"]) == (503, "30")


@pytest.mark.parametrize("previous", [7, ["whsec_a", None], {"a": "b"}])
def test_previous_secrets_are_texts(configured: Settings, previous: object) -> None:
    spec = dataclasses.replace(CONNECTIONS["stripe_webhook"], extra={"previous": previous})
    receiver = make_receiver(configured, lambda name: spec, NOWHERE)
    assert "`previous` is neither" in str(receiver.broken["stripe"])
