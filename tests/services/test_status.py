"""`status` says how everything stands and names each thing that needs a person."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.config import load_config
from duebook.db.connect import connect_url
from duebook.errors import UnavailableError
from duebook.services.status import Status, status

Connection = psycopg.Connection[Any]
Connect = Callable[[], Connection]

SEED = Path(__file__).with_name("seed_stories.sql")
RUNNING = {"nightly_reconciliation": False, "due_sweep": False}


@pytest.fixture
def empty(database_url: str) -> Connect:
    """Connections to a migrated database in which nothing happened yet."""
    return partial(connect_url, database_url, autocommit=True)


@pytest.fixture
def connect(empty: Connect) -> Connect:
    """Connections to a database with one payment for every way a night can go."""
    with empty() as conn:
        conn.execute(SEED.read_text().encode())
    return empty


def needs(found: Status) -> str:
    return "\n".join(f"{need.what} -> {need.do}" for need in found.needs)


def account(found: Status, name: str) -> Mapping[str, Any]:
    return next(row for row in found.accounts if row["provider_account"] == name)


def test_an_empty_database_needs_its_configuration(empty: Connect) -> None:
    found = status(empty, load_config())
    assert found.intents["scheduled"] == 0
    assert needs(found) == (
        "not applied yet: provider account adyen, paypal, stripe -> run `duebook apply`"
    )


def test_every_place_is_counted(connect: Connect) -> None:
    found = status(connect, None)
    counts = {k: found.intents[k] for k in ("proposed", "scheduled", "unknown", "held", "ended")}
    assert counts == {"proposed": 1, "scheduled": 1, "unknown": 1, "held": 1, "ended": 1}


def test_an_enqueued_intent_is_counted_until_its_result(connect: Connect) -> None:
    with connect() as conn:
        conn.execute(
            "insert into duebook.batch (batch_id, token, sender, channel, claimed_at, lease_until,"
            " max_age_until, size, account_ids, intent_ids, attempt_nos, due_ats)"
            " overriding system value"
            " values (92, gen_random_uuid(), 'worker-2', 'email', clock_timestamp(),"
            " clock_timestamp() - interval '1 hour', clock_timestamp(), 2, '{acme,acme}',"
            " '{1,2}', '{1,1}', '{now,now}')"
        )
    found = status(connect, None)
    assert found.intents["enqueued"] == 1
    assert found.batches[0]["is_lapsed"]
    assert "batch 92 of worker-2 lapsed 1 h ago and no sweep rescued it" in needs(found)


def test_each_account_tells_its_run_its_freshness_and_what_is_open(connect: Connect) -> None:
    found = status(connect, None)
    stripe = account(found, "stripe")
    assert (stripe["mode"], stripe["last_run_id"]) == ("live", 3)
    assert stripe["discrepancies"] == {"missing_at_provider": 1, "missing_in_ledger": 1}
    assert 86000 < stripe["freshness_s"] < 87000
    assert not stripe["is_stale"]
    adyen = account(found, "adyen")
    assert (adyen["batches_not_closed"], adyen["quarantined"]) == (1, 1)
    assert adyen["is_stale"]
    assert account(found, "paypal")["freshness_s"] is None


@pytest.mark.parametrize(
    "line",
    [
        "adyen was reconciled 1 d 12 h ago",
        "adyen: run 2 put 1 row into quarantine -> run `duebook explain run:2`",
        "adyen: 1 payout batch not closed",
        "paypal was never reconciled -> run `duebook reconcile --account paypal`",
        "stripe: 2 open differences",
        "1 booked payment without a provider account",
        "1 notice in doubt (sender_died)",
        "`duebook explain payment_missing:email:stripe:P-missing:2026-11-01:1`",
        "1 notice held (no_contact)",
        "-> import its contact",
    ],
)
def test_each_thing_that_needs_a_person_has_a_line(connect: Connect, line: str) -> None:
    assert line in needs(status(connect, None))


def test_a_backlog_is_told_with_its_age(connect: Connect) -> None:
    with connect() as conn:
        conn.execute("update duebook.due set due_at = clock_timestamp() - interval '1 hour'")
    found = status(connect, None)
    assert found.to_json()["backlog"] == 1
    assert 3600 <= found.to_json()["oldest_due_s"] < 3700
    assert "1 notice due, the oldest for 1 h" in needs(found)


def test_a_copied_database_is_said_to_send_nothing(connect: Connect) -> None:
    assert status(connect, None, environment="test").environment["refusal"] is None
    refused = status(connect, None, environment="production")
    assert "nothing is sent: this database was accepted as environment test" in needs(refused)
    with connect() as conn:
        conn.execute("update duebook.environment set database_oid = 1")
    assert "is a copy of environment test" in needs(status(connect, None))


def test_a_resting_and_a_switched_off_channel_are_told(connect: Connect) -> None:
    with connect() as conn:
        conn.execute(
            "insert into duebook.budget (channel, paused_until, pause_reason)"
            " values ('email', clock_timestamp() + interval '5 minutes', '421')"
        )
        conn.execute("insert into duebook.channel (channel, enabled) values ('sms', false)")
    text = needs(status(connect, None))
    assert "the channel email rests until" in text
    assert "the channel sms is switched off" in text


def test_paused_and_unknown_dags_are_told(connect: Connect) -> None:
    assert "DAG due_sweep" not in needs(status(connect, None, lambda: RUNNING))
    text = needs(status(connect, None, lambda: {"due_sweep": True}))
    assert "the DAG due_sweep is paused" in text
    assert "`airflow dags unpause due_sweep`" in text
    assert "Airflow does not know the DAG nightly_reconciliation" in text


def test_an_airflow_that_is_away_changes_nothing_else(connect: Connect) -> None:
    def away() -> Mapping[str, bool]:
        raise UnavailableError("Airflow at http://127.0.0.1:1 can't be reached")

    found = status(connect, None, away).to_json()
    assert found["dags"] is None
    assert "can't be reached" in found["dags_unknown_because"]
    assert found["needs"] == status(connect, None).to_json()["needs"]


def test_the_application_role_is_enough(connect: Connect, database_url: str) -> None:
    as_application = partial(connect_url, database_url, role="duebook_app", autocommit=True)
    assert status(as_application, load_config()).intents["scheduled"] == 1


def test_no_address_and_no_amount_is_told(connect: Connect) -> None:
    document = json.dumps(status(connect, load_config()).to_json())
    assert "secret.person" not in document
    assert "1234567891" not in document
    assert "12,345,678" not in document


def test_received_events_that_wait_too_long_or_were_given_up_need_a_look(empty: Connect) -> None:
    with empty() as conn:
        conn.execute(
            """
            insert into duebook.pending_event (provider_account, event_id, endpoint, queued_at)
            select 'stripe', 'evt_' || n, 'stripe', clock_timestamp() - n * interval '20 minutes'
            from generate_series(1, 2) as n
            """
        )
        conn.execute(
            "insert into duebook.event_effect (provider_account, event_id, effect)"
            " values ('stripe', 'evt_9', 'given_up')"
        )
    found = status(empty, None)
    assert (found.events["pending"], found.events["given_up"]) == (2, 1)
    assert found.events["oldest_s"] >= 40 * 60
    assert "2 received events not read again yet, the oldest for 40 min" in needs(found)
    assert "1 received event given up since the last full run" in needs(found)
