"""From a provider's POST to a promise: real HTTP in, real HTTP to the provider, one notice."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from duebook.config import load_config
from duebook.settings import Settings
from duebook.settlements.stripe import make_stripe_client
from tests.conftest import DuebookCli
from tests.settlement_files import LEDGER_HEADER, booked, write_rows
from tests.stripe_stub import StripeStub
from tests.web.receiving import event, running

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def test_a_webhook_that_arrives_twice_is_one_notice_of_what_the_provider_says(
    settings: Settings, duebook_cli: DuebookCli, conn: psycopg.Connection[Any], tmp_path: Path
) -> None:
    shipped = load_config()
    assert "stripe" in shipped.webhooks
    with StripeStub(now=START) as stub:
        client = make_stripe_client("sk_test_stub", base_address=stub.address)
        told: Any = {"amount": 1000, "currency": "eur", "source": "tok_visa"}
        charge = client.v1.charges.create(told).id
        stub.books.clock.set_to(int((START + timedelta(days=3)).timestamp()))
        duebook_cli.environment["AIRFLOW_CONN_STRIPE_DEFAULT"] = json.dumps(
            {"conn_type": "http", "host": stub.address, "password": "sk_test_stub"}
        )
        row = booked(1, 1000, reference=charge, provider_account="stripe")
        ledger = write_rows(tmp_path / "ledger.csv", LEDGER_HEADER, [row])
        assert duebook_cli.in_process("ledger", "import", ledger).code == 0
        # It says another amount, which nobody believes.
        body = event("1", "charge.succeeded", id=charge, amount=99_999_999)
        with running(settings) as receiver:
            first = receiver.post(body).json()
            document = duebook_cli.in_process("events", "--json").json
            again = receiver.post(body).json()
        assert (first["status"], again["status"]) == ("stored", "duplicate")
        assert document["read"] == document["entries_new"] == document["ledger_changes"] == 1
        assert (document["intents"], document["pending"]) == (1, 0)
        assert duebook_cli.in_process("events", "--json").json["claimed"] == 0
    assert conn.execute("select captured_minor from duebook.settled_position").fetchall() == [
        (1000,)
    ]
    assert conn.execute("select state from duebook_reports.intents").fetchall() == [("proposed",)]


def test_reading_by_hand_knows_its_accounts(duebook_cli: DuebookCli) -> None:
    unknown = duebook_cli.in_process("events", "--account", "nobody")
    assert unknown.code == 2
    assert "unknown provider account nobody" in unknown.stderr
    assert "0 claimed, 0 read" in duebook_cli.in_process("events").stdout
