"""localstripe signs and delivers its events itself: the ledger follows what it says when asked."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import stripe

from duebook.services.provider_events import EventsReport, EventsRequest, read_events
from duebook.settings import Settings
from duebook.settlements.stripe import StripeSource, make_stripe_client
from tests.conftest import ROOT
from tests.due_work import value, wait_for
from tests.settlement_files import World, booked, make_world
from tests.web.receiving import STRIPE_SECRET, Running, running, stripe_headers

Conn = psycopg.Connection[Any]
CARD = {"number": "4242424242424242", "exp_month": 12, "exp_year": 2039, "cvc": "123"}


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The address of a localstripe in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.stripe_stub.localstripe"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        wait_for(lambda: _listens(address), "localstripe")
        yield address
    finally:
        process.terminate()
        process.wait(timeout=20)
        process.stdout.close()


def _listens(address: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(address, trust_env=False).status_code > 0
    return False


@dataclasses.dataclass
class Shop:
    """A live account at localstripe, its books, and the receiver that it posts to."""

    provider: str
    world: World
    client: stripe.StripeClient
    receiver: Running
    booked: int = 0

    def deliver_to(self, address: str) -> None:
        """Have events of payments posted there."""
        told = {
            "url": f"{address}/webhooks/stripe",
            "secret": STRIPE_SECRET,
            "events": ["payment_intent.succeeded"],
        }
        place = f"{self.provider}/_config/webhooks/duebook"
        answer = httpx.post(place, json=told, headers=_KEY, trust_env=False)
        assert answer.status_code == 200, answer.text

    def pay(self, amount: int) -> str:
        """A payment at the provider, and in the books; gives its charge."""
        paid_by: Any = {"type": "card", "card": CARD}
        method = self.client.v1.payment_methods.create(paid_by)
        told: Any = {
            "amount": amount,
            "currency": "eur",
            "payment_method": method.id,
            "confirm": True,
        }
        charge = self.client.v1.payment_intents.create(told).latest_charge
        assert isinstance(charge, stripe.Charge)
        self.booked += 1
        row = booked(self.booked, amount, reference=charge.id, provider_account="stripe")
        self.world.book(row)
        return charge.id

    def read(self) -> EventsReport:
        request = EventsRequest(triggered_by="pytest")
        return read_events(self.world.connect, request, self.world.config, self.world.source)

    def settled(self) -> dict[str, tuple[int, int]]:
        """Captured and refunded by payment."""
        return {
            row["payment_id"]: (row["captured_minor"], row["refunded_minor"])
            for row in self.world.rows(
                "select payment_id, captured_minor, refunded_minor from duebook.settled_position"
            )
        }


_KEY = {"Authorization": "Bearer sk_test_12345"}


@pytest.fixture
def shop(provider: str, database_url: str, configured: Settings, tmp_path: Path) -> Iterator[Shop]:
    from tests.web.receiving import with_database

    client = make_stripe_client("sk_test_12345", base_address=provider)
    world = make_world(database_url, tmp_path)
    world.source = lambda name, account: StripeSource(client)
    world.go_live("2020-01-01T00:00:00Z", "stripe")
    with running(with_database(configured, database_url)) as receiver:
        made = Shop(provider, world, client, receiver)
        made.deliver_to(receiver.address)
        yield made


def receipts(conn: Conn) -> int:
    return int(value(conn, "select count(*) from duebook.webhook_receipt"))


def test_the_ledger_follows_and_a_replay_changes_nothing(shop: Shop, conn: Conn) -> None:
    shop.pay(1000)
    wait_for(lambda: receipts(conn) == 1, "the event")
    report = shop.read()
    assert (report.read, report.ledger_changes, report.intents) == (1, 1, 1)
    assert shop.settled() == {"pay1": (1000, 0)}
    (body,) = conn.execute("select body from duebook.webhook_body").fetchone() or (b"",)
    # The provider sends it again, signed at another second.
    again = shop.receiver.post(body, stripe_headers(body))
    assert again.json() == {"status": "duplicate"}
    assert shop.read().claimed == 0
    assert value(conn, "select count(*) from duebook.ledger_change") == 1


def test_a_late_event_changes_nothing_newer(shop: Shop, conn: Conn) -> None:
    charge = shop.pay(1000)
    wait_for(lambda: receipts(conn) == 1, "the event")
    # Before it is read the payment has been refunded; a full run knows so first.
    refund: Any = {"charge": charge, "amount": 400}
    shop.client.v1.refunds.create(refund)
    shop.world.reconcile(account="stripe")
    assert shop.settled() == {"pay1": (1000, 400)}
    changes = value(conn, "select count(*) from duebook.ledger_change")
    report = shop.read()
    assert (report.read, report.ledger_changes, report.intents) == (1, 0, 0)
    assert shop.settled() == {"pay1": (1000, 400)}
    assert value(conn, "select count(*) from duebook.ledger_change") == changes


def test_a_lost_event_is_caught_by_the_night(shop: Shop, conn: Conn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broken:
        broken.settimeout(60)
        shop.deliver_to(f"http://127.0.0.1:{broken.getsockname()[1]}")
        shop.pay(1000)
        # It tries once, and nobody answers.
        broken.accept()[0].close()
    shop.deliver_to(shop.receiver.address)
    shop.pay(2000)
    wait_for(lambda: receipts(conn) == 1, "the event of the second")
    shop.read()
    first = shop.settled()
    night = shop.world.reconcile(account="stripe")
    assert shop.settled() == {"pay1": (1000, 0), "pay2": (2000, 0)}
    assert first == {"pay2": (2000, 0)}
    assert (night.ledger_changes, night.intents) == (1, 1)
