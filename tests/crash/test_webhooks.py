"""Webhooks and a sender that is killed between an acceptance and its record."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.channels.endpoints import Reach, parse_endpoint
from duebook.channels.webhook_secrets import endpoint_secret
from duebook.db.connect import connect_url
from duebook.services.check import check
from tests.crash.hooking_process import MASTER_KEY
from tests.crash.test_senders import lapse
from tests.due_work import add_due, places, value
from tests.webhook_sink import Post, WebhookSink

pytestmark = pytest.mark.crash

Conn = psycopg.Connection[Any]


class Customer:
    """What the documentation tells a customer's developer to do: verify, then look at the id."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._seen: set[str] = set()
        self.payments: list[str] = []

    def receive(self, post: Post) -> None:
        document = post.verify(self._secret)
        if post.webhook_id not in self._seen:
            self._seen.add(post.webhook_id)
            self.payments.append(document["data"]["payment_id"])


def run_sender(url: str, die_at: int) -> int:
    script = Path(__file__).parent / "hooking_process.py"
    command = [sys.executable, str(script), url, str(die_at)]
    return subprocess.run(command, check=False, capture_output=True, timeout=60).returncode


@pytest.mark.parametrize("deaths", [(13,), (1, 2, 7)])
def test_a_receiver_gets_an_id_twice_at_most_and_its_customer_sees_it_once(
    conn: Conn, database_url: str, deaths: tuple[int, ...]
) -> None:
    add_due(conn, 30, prefix="w", channel="webhook")
    conn.execute("update duebook.intent_kind set max_claims = 20")
    with WebhookSink() as sink:
        conn.execute("update duebook.contact set address = %s", [sink.url])
        for die_at in deaths:
            assert run_sender(database_url, die_at) == -signal.SIGKILL
            lapse(conn)
            # What was in the window that died may be sent again: the receiver knows its ids.
            conn.execute("select * from duebook.rescue_batches(10, 10)")
            assert "in_doubt" not in places(conn)
        for _ in range(5):
            assert run_sender(database_url, 0) == 0
            if places(conn) == {"outcome": 30}:
                break
    assert places(conn) == {"outcome": 30}
    assert value(conn, "select count(*) from duebook.outcome where result = 'sent'") == 30
    times = Counter(sink.ids)
    assert len(times) == 30
    assert 1 < max(times.values()) <= 1 + len(deaths)
    customer = Customer(secret(sink.url))
    for post in sink.posts:
        customer.receive(post)
    assert sorted(customer.payments) == sorted(f"w{number}" for number in range(1, 31))
    assert check(lambda: connect_url(database_url, autocommit=True))["violations"] == []


def secret(url: str) -> str:
    identity = parse_endpoint(url, Reach(allow_private=True)).identity
    return endpoint_secret(MASTER_KEY, "w000000", identity)
