"""A real receiver on a real port, and the providers' own libraries to sign what it is sent."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
import standardwebhooks
import stripe
from pydantic import SecretStr

from duebook.config import Config, parse_config
from duebook.connections import ConnectionSpec
from duebook.services.signing.certificates import CertificateKeys
from duebook.settings import Settings
from duebook.web.serve import Listener, Server, make_receiver

STRIPE_SECRET = "whsec_test_secret"
STRIPE_PREVIOUS = "whsec_the_one_before"
STANDARD_SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes 123").decode()
CONFIGURATION = """
quiet_hours = "none"

[provider_accounts.stripe]
provider = "stripe"
mode = "live"
notify_from = "2020-01-01T00:00:00Z"
settle_within = "P7D"
zone = "UTC"
connection = "stripe_default"

[provider_accounts.adyen]
provider = "adyen"
mode = "dry_run"
settle_within = "P3D"
zone = "UTC"

[kinds]

[webhooks.stripe]
provider_account = "stripe"
scheme = "stripe"
connection = "stripe_webhook"

[webhooks.second]
provider_account = "stripe"
scheme = "stripe"
connection = "stripe_webhook"

[webhooks.standard]
provider_account = "adyen"
scheme = "standard"
connection = "standard_webhook"
"""
CONNECTIONS: Mapping[str, ConnectionSpec] = {
    "stripe_webhook": ConnectionSpec(
        "stripe_webhook", "http", password=STRIPE_SECRET, extra={"previous": STRIPE_PREVIOUS}
    ),
    "standard_webhook": ConnectionSpec("standard_webhook", "http", password=STANDARD_SECRET),
}


def parsed(text: str) -> Config:
    """A duebook.toml as text, validated."""
    return parse_config(tomllib.loads(text), "duebook.toml")


def event(name: str, kind: str = "charge.succeeded", **thing: Any) -> bytes:
    """A Stripe event about something."""
    told = {
        "id": f"evt_{name}",
        "object": "event",
        "type": kind,
        "data": {"object": {"id": "ch_1", "object": "charge", **thing}},
    }
    return json.dumps(told, indent=2).encode()


def stripe_headers(
    body: bytes, *, secrets: Sequence[str] = (STRIPE_SECRET,), at: int | None = None
) -> dict[str, str]:
    """The headers of a body that Stripe signed, with one v1 entry a secret."""
    at = int(time.time()) if at is None else at
    signed = stripe.WebhookSignature.generate_signature_header
    entries = [signed(body.decode(), secret, timestamp=at).partition(",")[2] for secret in secrets]
    return {
        "Stripe-Signature": ",".join([f"t={at}", *entries]),
        "Content-Type": "application/json",
    }


def standard_headers(
    body: bytes, name: str = "msg_1", *, secret: str = STANDARD_SECRET, at: int | None = None
) -> dict[str, str]:
    """The headers of a body that a sender of Standard Webhooks signed."""
    at = int(time.time()) if at is None else at
    signer = standardwebhooks.Webhook(secret)
    signature = signer.sign(name, datetime.fromtimestamp(at, UTC), body.decode())
    return {
        "webhook-id": name,
        "webhook-timestamp": str(at),
        "webhook-signature": signature,
        "Content-Type": "application/json",
    }


@dataclasses.dataclass(frozen=True, slots=True)
class Running:
    """A receiver that listens."""

    address: str
    client: httpx.Client

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def post(
        self, body: bytes, headers: Mapping[str, str] | None = None, endpoint: str = "stripe"
    ) -> httpx.Response:
        """Send a body, by default signed as Stripe would."""
        told = stripe_headers(body) if headers is None else headers
        return self.client.post(f"/webhooks/{endpoint}", content=body, headers=told)


@contextlib.contextmanager
def running(
    settings: Settings,
    *,
    connections: Mapping[str, ConnectionSpec] = CONNECTIONS,
    certificates: CertificateKeys | None = None,
) -> Iterator[Running]:
    """Serve `settings` by uvicorn, in a thread of this process."""
    assert settings.database_url is not None
    url = settings.database_url.get_secret_value()
    receiver = make_receiver(settings, connections.get, url, certificates=certificates)
    ready = threading.Event()
    server = Server(receiver, Listener("127.0.0.1", 0), lambda address: ready.set())
    thread = threading.Thread(target=server.serve_forever, name="receiver", daemon=True)
    thread.start()
    try:
        assert ready.wait(timeout=60)
        with httpx.Client(base_url=server.address, timeout=60, trust_env=False) as client:
            yield Running(server.address, client)
    finally:
        server.should_exit = True
        thread.join(timeout=60)
        assert not thread.is_alive()


def with_database(settings: Settings, url: str) -> Settings:
    """The same settings on another database."""
    return settings.model_copy(update={"database_url": SecretStr(url)})
