"""Stripe read through the real library: from the stub, from localstripe, from published objects."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import stripe

from duebook.errors import ConfigurationError, InputError, UnavailableError
from duebook.settlements.base import Cursor, SettlementEntry
from duebook.settlements.stripe import Patience, StripePull, StripeSource, make_stripe_client
from tests.stripe_stub import Failure, StripeStub

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT.parent / "shared" / "data" / "settlements" / "stripe" / "fixtures3.json"
START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
KEY = "sk_test_stubKeyThatMustNotShow"
LOOK_BACK = timedelta(minutes=10)


@pytest.fixture
def stub() -> Iterator[StripeStub]:
    with StripeStub(now=START) as running:
        yield running


@pytest.fixture
def client(stub: StripeStub) -> stripe.StripeClient:
    return make_stripe_client(KEY, base_address=stub.address, network_retries=1)


class Waits:
    """Takes the place of sleeping, and remembers."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def source(client: stripe.StripeClient, waits: Waits) -> StripeSource:
    return StripeSource(client, sleep=waits)


def pull(
    source: StripeSource,
    *,
    cursor: Cursor | None = None,
    pending_ids: list[str] | None = None,
    open_batches: list[str] | None = None,
    look_back: timedelta = LOOK_BACK,
) -> tuple[StripePull, list[SettlementEntry]]:
    started = source.pull(
        cursor=cursor,
        pending_ids=pending_ids or [],
        open_batches=open_batches or [],
        look_back=look_back,
        now=START,
    )
    return started, list(started.entries)


def latest(entries: list[SettlementEntry]) -> dict[str, SettlementEntry]:
    """As the diff takes them: the highest position of an entry wins."""
    return {entry.entry_id: entry for entry in sorted(entries, key=lambda entry: entry.line_no)}


def charge(client: stripe.StripeClient, amount: int, **params: Any) -> str:
    told: Any = {"amount": amount, "currency": "eur", "source": "tok_visa", **params}
    return client.v1.charges.create(told).id


def fill(stub: StripeStub, count: int, *, seconds_apart: int = 1) -> list[str]:
    """Make charges straight in the books; the ids of their money rows."""
    made = []
    with stub.lock:
        for number in range(count):
            stub.books.clock.set_to(stub.books.clock.now() + seconds_apart)
            row = stub.books.create_charge(amount=1000 + number, currency="eur", method="tok_visa")
            made.append(row["balance_transaction"])
    return made


# -- a money row -----------------------------------------------------------------------------------


def test_a_charge_has_its_amounts_signs_and_instants(
    source: StripeSource, client: stripe.StripeClient
) -> None:
    made = charge(client, 1_234_567)
    _, [entry] = pull(source)
    assert (entry.gross_minor, entry.fee_minor, entry.net_minor) == (1_234_567, 35_832, 1_198_735)
    assert (entry.currency, entry.net_currency) == ("EUR", "EUR")
    assert (entry.entry_type, entry.provider_type) == ("charge", "charge")
    assert (entry.payment_ref, entry.provider_payment_ref) == (made, made)
    assert entry.entry_status == "pending"
    assert entry.batch_ref is None
    assert entry.occurred_at == START
    assert entry.available_at == START + timedelta(days=2)
    assert entry.source_order == int(START.timestamp()) * 1_000_000
    assert entry.line_no == 1


def test_a_currency_without_minor_units_is_left_as_it_is(
    source: StripeSource, client: stripe.StripeClient
) -> None:
    charge(client, 15_000, currency="jpy")
    _, [entry] = pull(source)
    assert (entry.gross_minor, entry.fee_minor, entry.currency) == (15_000, 435, "JPY")


def test_refunds_disputes_and_their_reversals_name_the_charge(
    source: StripeSource, client: stripe.StripeClient, stub: StripeStub
) -> None:
    refunded = charge(client, 10_000)
    client.v1.refunds.create({"charge": refunded, "amount": 500})
    client.v1.refunds.create({"charge": refunded, "amount": 300})
    disputed = charge(client, 20_000, source="tok_createDispute")
    [dispute] = client.v1.disputes.list({"charge": disputed}).data
    client.v1.disputes.update(dispute.id, {"evidence": {"uncategorized_text": "winning_evidence"}})
    failed = client.v1.refunds.create({"charge": refunded, "amount": 200})
    with stub.lock:
        stub.books.fail_refund(failed.id)

    _, entries = pull(source)

    told = sorted((e.entry_type, e.payment_ref, e.gross_minor, e.fee_minor) for e in entries)
    assert told == sorted(
        [
            ("charge", refunded, 10_000, 320),
            ("refund", refunded, -500, 0),
            ("refund", refunded, -300, 0),
            ("refund", refunded, -200, 0),
            ("refund", refunded, 200, 0),
            ("charge", disputed, 20_000, 610),
            ("chargeback", disputed, -20_000, 1_500),
            ("chargeback_reversal", disputed, 20_000, 0),
        ]
    )
    provider_types = {e.entry_type: e.provider_type for e in entries}
    assert provider_types["chargeback"] == "adjustment"


def test_a_partial_capture_lowers_what_was_captured_and_refunds_nothing(
    source: StripeSource, client: stripe.StripeClient
) -> None:
    made = charge(client, 10_000, capture=False)
    client.v1.charges.capture(made, {"amount": 6_000})
    _, entries = pull(source)
    assert {e.entry_type for e in entries} == {"charge"}
    assert {e.payment_ref for e in entries} == {made}
    assert sum(e.gross_minor for e in entries) == 6_000


@pytest.mark.parametrize("reference", ["payment_intent", "metadata.order_id", "charge"])
def test_a_payment_is_known_by_what_the_account_says(
    client: stripe.StripeClient, stub: StripeStub, reference: str
) -> None:
    intent = client.v1.payment_intents.create(
        {
            "amount": 5_000,
            "currency": "eur",
            "payment_method": "pm_card_visa",
            "confirm": True,
            "metadata": {"order_id": "order-77"},
        }
    )
    client.v1.refunds.create({"payment_intent": intent.id})
    _, entries = pull(StripeSource(client, reference=reference))
    known_by = {
        "payment_intent": intent.id,
        "metadata.order_id": "order-77",
        "charge": str(intent.latest_charge),
    }
    assert [e.payment_ref for e in entries] == [known_by[reference]] * 2
    assert {e.provider_payment_ref for e in entries} == {str(intent.latest_charge)}


def test_an_unknown_reference_setting_is_refused(client: stripe.StripeClient) -> None:
    with pytest.raises(ConfigurationError, match=r"charge, payment_intent or metadata\.<key>"):
        StripeSource(client, reference="description")


def test_nothing_personal_is_kept_and_rates_are_text(
    source: StripeSource, client: stripe.StripeClient, stub: StripeStub
) -> None:
    made = charge(client, 4_200, receipt_email="jenny@example.com")
    with stub.lock:
        stub.books.add_money(
            amount=1_234,
            currency="usd",
            type="charge",
            category="charge",
            source=made,
            exchange_rate=1.10000000000000005,
            description="for jenny@example.com",
        )
    _, entries = pull(source)
    kept = json.dumps([dict(entry.body) for entry in entries])
    assert "jenny" not in kept.lower()
    assert "description" not in kept
    rates = [entry.body["exchange_rate"] for entry in entries if "exchange_rate" in entry.body]
    assert rates == ["1.1"]
    assert entries[-1].body["fee_details"] == [
        {"type": "stripe_fee", "amount": 152, "currency": "eur"}
    ]
    assert not any(isinstance(value, float) for e in entries for value in e.body.values())


@pytest.mark.parametrize(
    ("type_", "category", "entry_type"),
    [
        ("stripe_fee", "fee", "fee"),
        ("payment_failure_refund", "charge_failure", "charge"),
        ("reserved_funds", "risk_reserved_funds", "reserve"),
        ("transfer", "transfer", "transfer"),
        ("adjustment", "other_adjustment", "adjustment"),
        ("moon_tax", "moon_tax", "other"),
        ("payment", None, "charge"),
        ("moon_tax", None, "other"),
    ],
)
def test_every_type_is_kept_and_an_unknown_one_as_other(
    source: StripeSource, stub: StripeStub, type_: str, category: str, entry_type: str
) -> None:
    with stub.lock:
        stub.books.add_money(amount=-7, currency="eur", type=type_, category=category, source=None)
    started, [entry] = pull(source)
    assert (entry.entry_type, entry.provider_type) == (entry_type, type_)
    assert entry.payment_ref is None
    assert started.rejects == []


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("amount", None, "missing"),
        ("amount", 10.5, "not a whole number"),
        ("amount", True, "not a whole number"),
        ("fee", "12", "not a whole number"),
        ("net", 2**63, "out of range"),
        ("currency", "euro", "not a currency code"),
        ("currency", None, "missing"),
        ("created", "yesterday", "not a whole number"),
        ("available_on", 10**15, "out of range"),
        ("status", "lost", "unknown status"),
        ("id", "txn\x00", "not a text"),
        ("type", None, "missing"),
    ],
)
def test_a_row_that_cant_be_used_is_named_and_the_others_go_on(
    source: StripeSource,
    client: stripe.StripeClient,
    stub: StripeStub,
    monkeypatch: pytest.MonkeyPatch,
    column: str,
    value: Any,
    reason: str,
) -> None:
    charge(client, 1_000)
    with stub.lock:
        row = stub.books.add_money(
            amount=1, currency="eur", type="charge", category="charge", source=None
        )
        if column == "created":
            # Spoiled when shown, since the stub sorts by it.
            monkeypatch.setattr(stub.books, "_as_of_now", _spoiled(row["id"], value))
        else:
            row[column] = value
    charge(client, 2_000)

    started, entries = pull(source)

    assert sorted(entry.gross_minor for entry in entries) == [1_000, 2_000]
    [reject] = started.rejects
    assert (reject.position, reject.column, reject.reason) == (2, column, reason)
    assert reject.expected
    assert reject.value is None or "\x00" not in reject.value


def _spoiled(row_id: str, created: object) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def show(thing: dict[str, Any]) -> dict[str, Any]:
        shown = {"status": "available", **thing}
        return {**shown, "created": created} if thing["id"] == row_id else shown

    return show


# -- pages, cursor, look-back ----------------------------------------------------------------------


def test_every_page_is_read(source: StripeSource, stub: StripeStub) -> None:
    made = fill(stub, 257)
    started, entries = pull(source)
    assert [entry.entry_id for entry in entries] == made[::-1]
    assert [entry.line_no for entry in entries] == list(range(1, 258))
    assert started.cursor == Cursor(START + timedelta(seconds=257))


def test_rows_of_one_second_across_a_page_edge_are_all_there(
    source: StripeSource, stub: StripeStub
) -> None:
    made = fill(stub, 250, seconds_apart=0)
    _, entries = pull(source)
    assert sorted(entry.entry_id for entry in entries) == sorted(made)
    _, again = pull(source, cursor=Cursor(START), look_back=timedelta(0))
    assert sorted(entry.entry_id for entry in again) == sorted(made)


def test_rows_inserted_at_the_head_while_paging_come_with_the_next_pull(
    source: StripeSource, stub: StripeStub
) -> None:
    made = fill(stub, 150)
    late: list[str] = []

    def insert(path: str) -> None:
        if "starting_after" in path and not late:
            late.extend(fill(stub, 2))

    stub.before.append(insert)
    first, entries = pull(source)
    assert sorted(entry.entry_id for entry in entries) == sorted(made)
    _, then = pull(source, cursor=first.cursor)
    both = latest(entries) | latest(then)
    assert sorted(both) == sorted(made + late)


def test_a_row_seen_late_is_found_by_the_look_back(source: StripeSource, stub: StripeStub) -> None:
    """As singer-io/tap-stripe#45: dated before the newest row that the last pull saw."""
    fill(stub, 3)
    first, _ = pull(source)
    with stub.lock:
        late = stub.books.add_money(
            amount=5,
            currency="eur",
            type="charge",
            category="charge",
            source=None,
            created=int((START - timedelta(minutes=3)).timestamp()),
        )
    _, entries = pull(source, cursor=first.cursor)
    assert late["id"] in latest(entries)


def test_the_cursor_follows_stripes_clock_and_never_goes_back(
    source: StripeSource, stub: StripeStub
) -> None:
    ahead = Cursor(START + timedelta(days=1))
    started, entries = pull(source, cursor=ahead)
    assert (entries, started.cursor) == ([], ahead)
    started, _ = pull(source)
    assert started.cursor == Cursor(datetime(1970, 1, 1, tzinfo=UTC))


def test_what_lies_before_the_look_back_is_not_asked_for(
    source: StripeSource, stub: StripeStub
) -> None:
    fill(stub, 120, seconds_apart=60)
    _, entries = pull(source, cursor=Cursor(START + timedelta(hours=2)))
    assert len(entries) == 11
    asked = [line for line in stub.requests if "/v1/balance_transactions" in line]
    assert len(asked) == 1
    assert "created[gte]=" in unquote(asked[0])


# -- pending, payouts ------------------------------------------------------------------------------


def test_pending_entries_are_read_again_by_id(source: StripeSource, stub: StripeStub) -> None:
    made = fill(stub, 3)
    _, entries = pull(source)
    assert {entry.entry_status for entry in entries} == {"pending"}
    with stub.lock:
        stub.books.clock.set_to(int((START + timedelta(days=3)).timestamp()))
    cursor = Cursor(START + timedelta(days=3))
    _, then = pull(source, cursor=cursor, pending_ids=made)
    assert {entry.entry_id: entry.entry_status for entry in then} == dict.fromkeys(made, "settled")
    assert {entry.payment_ref for entry in then} == {entry.payment_ref for entry in entries}


def test_many_pending_entries_cost_pages_and_not_a_request_each(
    source: StripeSource, stub: StripeStub
) -> None:
    made = fill(stub, 300)
    stub.requests.clear()
    _, entries = pull(source, cursor=Cursor(START + timedelta(days=1)), pending_ids=made)
    assert sorted(latest(entries)) == sorted(made)
    assert len(stub.requests) < 10


def test_a_pending_id_that_is_gone_is_named(source: StripeSource) -> None:
    started, entries = pull(source, cursor=Cursor(START), pending_ids=["txn_gone"])
    assert entries == []
    [reject] = started.rejects
    assert (reject.column, reject.value) == ("id", "txn_gone")


def test_an_automatic_payout_names_its_rows_and_closes_to_zero(
    source: StripeSource, client: stripe.StripeClient, stub: StripeStub
) -> None:
    made = [charge(client, amount) for amount in (1_000_000, 2_000_000, 3_000_000)]
    client.v1.refunds.create({"charge": made[0], "amount": 250_000})
    with stub.lock:
        stub.books.set_clock(int((START + timedelta(days=3)).timestamp()))
    later = charge(client, 4_000_000)

    started, entries = pull(source)

    current = latest(entries)
    paid = {e.entry_id: e for e in current.values() if e.batch_ref is not None}
    unpaid = [e.payment_ref for e in current.values() if e.batch_ref is None]
    assert unpaid == [later]
    by_batch: dict[str, int] = {}
    for entry in paid.values():
        assert entry.batch_ref is not None
        by_batch[entry.batch_ref] = by_batch.get(entry.batch_ref, 0) + entry.net_minor
    assert set(by_batch.values()) == {0}
    assert sum(entry.entry_type == "payout" for entry in paid.values()) == len(by_batch)
    assert {fact.batch_ref for fact in started.batches} == set(by_batch)
    assert all(fact.is_itemisable and fact.is_complete for fact in started.batches)


def test_a_payout_under_reconciliation_is_itemised_once_it_is_complete(
    source: StripeSource, client: stripe.StripeClient, stub: StripeStub
) -> None:
    charge(client, 1_000_000)
    with stub.lock:
        stub.books.clock.set_to(int((START + timedelta(days=2)).timestamp()))
        [payout] = stub.books.run_payouts(complete=False)
    started, entries = pull(source)
    [fact] = started.batches
    assert (fact.batch_ref, fact.is_itemisable, fact.is_complete) == (payout["id"], True, False)
    assert [e.entry_type for e in entries if e.batch_ref] == ["payout"]

    with stub.lock:
        stub.books.complete_payout(payout["id"])
    started, entries = pull(
        source, cursor=Cursor(START + timedelta(days=9)), open_batches=[payout["id"]]
    )
    assert {e.batch_ref for e in entries} == {payout["id"]}
    assert sum(e.net_minor for e in latest(entries).values()) == 0
    assert started.batches[0].is_complete


def test_a_manual_payout_is_known_as_not_itemisable(
    source: StripeSource, client: stripe.StripeClient, stub: StripeStub
) -> None:
    payout = client.v1.payouts.create({"amount": 500_000, "currency": "eur"})
    started, [entry] = pull(source)
    assert (entry.entry_type, entry.batch_ref, entry.net_minor) == ("payout", payout.id, -500_000)
    [fact] = started.batches
    assert (fact.batch_ref, fact.is_itemisable, fact.is_complete) == (payout.id, False, False)
    assert not any("payout=" in line for line in stub.requests)


def test_the_money_of_a_failed_payout_comes_back_outside_its_batch(
    source: StripeSource, client: stripe.StripeClient, stub: StripeStub
) -> None:
    charge(client, 1_000_000)
    with stub.lock:
        stub.books.clock.set_to(int((START + timedelta(days=2)).timestamp()))
        [payout] = stub.books.run_payouts()
        stub.books.fail_payout(payout["id"])
        [second] = stub.books.run_payouts()
    started, entries = pull(source)
    current = latest(entries).values()
    for batch_ref in (payout["id"], second["id"]):
        assert sum(e.net_minor for e in current if e.batch_ref == batch_ref) == 0
    [back] = [e for e in current if e.provider_type == "payout_failure"]
    assert (back.entry_type, back.batch_ref) == ("adjustment", second["id"])
    assert {f.batch_ref: f.provider_status for f in started.batches}[payout["id"]] == "failed"


def test_a_row_that_only_its_refund_names_is_read_by_id(
    source: StripeSource, client: stripe.StripeClient, stub: StripeStub
) -> None:
    """The list may lag behind the refund that it belongs to."""
    made = charge(client, 1_000)
    refund = client.v1.refunds.create({"charge": made})
    with stub.lock:
        stub.books._order["balance_transaction"].remove(str(refund.balance_transaction))
    _, entries = pull(source, cursor=Cursor(START))
    [entry] = [e for e in entries if e.entry_type == "refund"]
    assert (entry.entry_id, entry.payment_ref) == (refund.balance_transaction, made)


def test_a_source_that_came_as_an_id_is_looked_up(
    source: StripeSource, client: stripe.StripeClient, stub: StripeStub
) -> None:
    made = charge(client, 1_000, source="tok_createDispute")
    client.v1.refunds.create({"charge": made, "amount": 10})
    with stub.lock:
        stub.books.expanded = lambda thing, paths: thing  # type: ignore[method-assign]
    _, entries = pull(source)
    assert [e.payment_ref for e in entries] == [made] * 3


# -- trouble ---------------------------------------------------------------------------------------


def test_too_many_requests_waits_as_long_as_it_is_told(
    source: StripeSource, stub: StripeStub, waits: Waits
) -> None:
    made = fill(stub, 120)
    stub.fail(Failure("429", path="/v1/balance_transactions", skip=1, times=2, retry_after="7"))
    _, entries = pull(source)
    assert sorted(latest(entries)) == sorted(made)
    assert waits.seconds == [7.0, 7.0]


def test_a_retry_after_that_is_a_date_is_honoured(
    source: StripeSource, stub: StripeStub, waits: Waits
) -> None:
    made = fill(stub, 1)
    when = datetime.fromtimestamp(time.time() + 30, UTC)
    stub.fail(Failure("429", retry_after=when.strftime("%a, %d %b %Y %H:%M:%S GMT")))
    _, entries = pull(source)
    assert [e.entry_id for e in entries] == made
    assert 25 <= waits.seconds[0] <= 31


def test_a_wait_that_is_too_long_ends_the_pull(source: StripeSource, stub: StripeStub) -> None:
    stub.fail(Failure("429", retry_after="3600"))
    with pytest.raises(UnavailableError, match=r"429.*asks for 3600 s.*the next run picks up"):
        pull(source)


def test_being_too_busy_for_ever_ends_the_pull(
    client: stripe.StripeClient, stub: StripeStub, waits: Waits
) -> None:
    stub.fail(Failure("429", times=100))
    patient = StripeSource(client, patience=Patience(tries=4), sleep=waits)
    with pytest.raises(UnavailableError, match="too busy"):
        pull(patient)
    assert len(stub.requests) == 4
    assert waits.seconds == sorted(waits.seconds)
    assert len(waits.seconds) == 3


def test_a_server_error_is_tried_again_by_the_library(
    source: StripeSource, stub: StripeStub
) -> None:
    made = fill(stub, 150)
    stub.fail(Failure("500", path="/v1/balance_transactions", skip=1))
    _, entries = pull(source)
    assert sorted(latest(entries)) == sorted(made)


@pytest.mark.parametrize("kind", ["drop", "drop_body", "garbage"])
def test_a_page_that_breaks_off_is_asked_for_again(
    source: StripeSource, stub: StripeStub, kind: Any
) -> None:
    made = fill(stub, 150)
    stub.fail(Failure(kind, path="/v1/balance_transactions", skip=1))
    _, entries = pull(source)
    assert sorted(latest(entries)) == sorted(made)
    assert len(entries) == 150


@pytest.mark.parametrize("kind", ["500", "drop", "drop_body", "garbage"])
def test_trouble_that_stays_is_one_line_without_key_amount_or_address(
    source: StripeSource, client: stripe.StripeClient, stub: StripeStub, kind: Any
) -> None:
    charge(client, 7_654_321, receipt_email="jenny@example.com")
    stub.fail(Failure(kind, path="/v1/balance_transactions", times=100))
    with pytest.raises(UnavailableError) as caught:
        pull(source)
    line = str(caught.value)
    assert caught.value.exit_code == 3
    assert "\n" not in line
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    for secret in (KEY, "MustNotShow", "7654321", "jenny", "proxy"):
        assert secret not in line


def test_a_provider_that_is_not_there(waits: Waits) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    away = StripeSource(make_stripe_client(KEY, base_address=address, network_retries=1))
    with pytest.raises(UnavailableError, match="could not be reached"):
        pull(away)
    assert waits.seconds == []


def test_a_key_that_is_refused(stub: StripeStub) -> None:
    wrong = StripeSource(make_stripe_client("pk_wrongKey", base_address=stub.address))
    with pytest.raises(ConfigurationError, match="refuses the API key") as caught:
        pull(wrong)
    assert "wrongKey" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="STRIPE_API_KEY"):
        make_stripe_client("")


def test_an_address_that_is_not_stripes(stub: StripeStub) -> None:
    elsewhere = make_stripe_client(KEY, base_address=f"{stub.address}/nowhere")
    with pytest.raises(InputError, match="404"):
        pull(StripeSource(elsewhere))


def test_more_pages_announced_than_given_is_no_quiet_end(
    source: StripeSource, stub: StripeStub
) -> None:
    """As stripe/sync-engine-fork#378: an empty page in the middle must not end the pull."""
    made = fill(stub, 120)

    listed = stub.books.listed

    def starved(kind: str, url: str, query: dict[str, Any]) -> dict[str, Any]:
        page = listed(kind, url, query)
        return {**page, "data": [], "has_more": True} if "starting_after" in query else page

    stub.books.listed = starved  # type: ignore[method-assign]
    with pytest.raises(UnavailableError, match="announced more"):
        pull(source)
    assert len(made) == 120


def test_the_library_logs_no_body(
    source: StripeSource, client: stripe.StripeClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    charge(client, 7_654_321, receipt_email="jenny@example.com")
    pull(source)
    assert "7654321" not in caplog.text
    assert "jenny" not in caplog.text
    assert KEY not in caplog.text


# -- the stub as a process -------------------------------------------------------------------------


def _started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def _ended(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(timeout=20)
    finally:
        assert process.stdout is not None
        process.stdout.close()


def test_the_stub_runs_as_a_process_with_a_clock_that_is_told() -> None:
    import requests

    process, address = _started("tests.stripe_stub", "--now", "2026-03-02T12:00:00Z")
    try:
        client = make_stripe_client(KEY, base_address=address)
        charge(client, 1_000_000)
        answer = requests.post(f"{address}/_stub/advance", json={"seconds": 3 * 86_400}, timeout=20)
        assert answer.ok
        [payout] = client.v1.payouts.list().data
        assert (payout.automatic, payout.amount) == (True, 970_970)
    finally:
        assert _ended(process) == 0


# -- localstripe -----------------------------------------------------------------------------------


@pytest.fixture
def localstripe() -> Iterator[stripe.StripeClient]:
    process, address = _started("tests.stripe_stub.localstripe")
    try:
        yield make_stripe_client(KEY, base_address=address)
    finally:
        _ended(process)


def _eventually(what: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 20
    while True:
        try:
            return what()
        except stripe.APIConnectionError:
            if time.monotonic() > deadline:
                raise


def test_localstripe_is_read_without_a_created_filter(localstripe: stripe.StripeClient) -> None:
    method = _eventually(
        lambda: localstripe.v1.payment_methods.create(
            {
                "type": "card",
                "card": {
                    "number": "4242424242424242",
                    "exp_month": 12,
                    "exp_year": 2039,
                    "cvc": "123",
                },
            }
        )
    )
    made = []
    for number in range(130):
        intent = localstripe.v1.payment_intents.create(
            {
                "amount": 1_000_000 + number,
                "currency": "eur",
                "payment_method": method.id,
                "confirm": True,
            }
        )
        assert isinstance(intent.latest_charge, stripe.Charge)
        made.append(intent.latest_charge.id)
    localstripe.v1.refunds.create({"charge": made[0], "amount": 250_000})
    payout = localstripe.v1.payouts.create({"amount": 900_000, "currency": "eur"})

    source = StripeSource(localstripe)
    first, entries = pull(source)
    assert sorted(e.payment_ref or "" for e in entries if e.entry_type == "charge") == sorted(made)
    [refund] = [e for e in entries if e.entry_type == "refund"]
    assert (refund.payment_ref, refund.net_minor) == (made[0], -250_000)
    assert {e.fee_minor for e in entries} == {0}
    [fact] = first.batches
    assert (fact.batch_ref, fact.is_itemisable) == (payout.id, False)

    then, again = pull(source, cursor=first.cursor)
    assert latest(again).keys() == latest(entries).keys()
    assert then.rejects == []
    nothing, none = pull(source, cursor=Cursor(first.cursor.position + timedelta(hours=1)))
    assert (none, nothing.batches) == ([], [])


# -- published objects -----------------------------------------------------------------------------


@pytest.mark.skipif(not FIXTURES.exists(), reason="the published fixtures are not here")
def test_the_published_objects_are_read(source: StripeSource, stub: StripeStub) -> None:
    published = json.loads(FIXTURES.read_text())["resources"]
    with stub.lock:
        books = stub.books
        for kind in ("balance_transaction", "payout", "refund", "dispute", "charge"):
            thing = published[kind]
            books._objects[thing["id"]] = thing
            books._order.setdefault(kind, []).append(thing["id"])
        row, payout = published["balance_transaction"], published["payout"]
        for name in ("refund", "dispute"):
            linked = {**row, "id": f"txn_{name}", "source": published[name]["id"]}
            linked |= {"type": name, "reporting_category": name, "amount": -row["amount"]}
            books._objects[linked["id"]] = linked
            books._order["balance_transaction"].append(linked["id"])
        books._payout_of[row["id"]] = payout["id"]

    started, entries = pull(source)

    assert started.rejects == []
    current = latest(entries)
    assert current[row["id"]].gross_minor == row["amount"]
    assert current[row["id"]].batch_ref == payout["id"]
    charged = published["charge"]["id"]
    assert {e.payment_ref for e in current.values()} == {charged}
    assert sorted(e.entry_type for e in current.values()) == ["charge", "chargeback", "refund"]
    assert not re.search("jenny", json.dumps([dict(e.body) for e in entries]), re.IGNORECASE)
