"""Single payments and payouts asked for by id, through the real library, from the stub."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import stripe

from duebook.errors import InputError, UnavailableError
from duebook.settlements.base import NothingToRead, SettlementEntry
from duebook.settlements.stripe import StripeSource, StripeSubjectPull, make_stripe_client
from duebook.settlements.stripe_events import is_readable, subject_of
from tests.stripe_stub import Failure, StripeStub

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.fixture
def stub() -> Iterator[StripeStub]:
    with StripeStub(now=START) as running:
        yield running


@pytest.fixture
def client(stub: StripeStub) -> stripe.StripeClient:
    return make_stripe_client("sk_test_stub", base_address=stub.address, network_retries=0)


def charge(client: stripe.StripeClient, amount: int, **params: Any) -> str:
    told: Any = {"amount": amount, "currency": "eur", "source": "tok_visa", **params}
    return client.v1.charges.create(told).id


def read(
    client: stripe.StripeClient, *subjects: str
) -> tuple[StripeSubjectPull, list[SettlementEntry]]:
    source = StripeSource(client, sleep=lambda seconds: None)
    pull = source.pull_subjects(subjects=subjects, now=START)
    return pull, list(pull.entries)


def amounts(entries: list[SettlementEntry]) -> list[tuple[str, int]]:
    return sorted((entry.entry_type, entry.gross_minor) for entry in entries)


def test_a_charge_comes_with_all_its_rows_and_no_other_payments(
    stub: StripeStub, client: stripe.StripeClient
) -> None:
    asked = charge(client, 6000, capture=False)
    client.v1.charges.capture(asked, {"amount": 4500})
    charge(client, 777)
    refund = client.v1.refunds.create({"charge": asked, "amount": 500}).id
    with stub.lock:
        stub.books.fail_refund(refund)
    _, entries = read(client, asked)
    whole = [e for e in entries if e.entry_type == "charge"]
    assert sum(entry.gross_minor for entry in whole) == 4500
    refunds = [e.gross_minor for e in entries if e.entry_type == "refund"]
    assert sorted(refunds) == [-500, 500]
    assert {entry.payment_ref for entry in entries} == {asked}
    assert {entry.source_order for entry in entries} == {int(START.timestamp()) * 1_000_000}


def test_whatever_of_a_payment_is_named_leads_to_the_same_rows_once(
    stub: StripeStub, client: stripe.StripeClient
) -> None:
    asked = charge(client, 2000)
    refund = client.v1.refunds.create({"charge": asked, "amount": 500}).id
    with stub.lock:
        dispute = stub.books.dispute(asked)["id"]
    _, expected = read(client, asked)
    for subjects in ([refund], [dispute], [dispute, refund, asked, asked]):
        _, found = read(client, *subjects)
        assert amounts(found) == amounts(expected)
    assert {entry.entry_type for entry in expected} >= {"charge", "refund", "chargeback"}


def test_a_payout_names_its_rows_once_it_is_complete(
    stub: StripeStub, client: stripe.StripeClient
) -> None:
    charge(client, 1000)
    with stub.lock:
        stub.books.clock.set_to(int((START + timedelta(days=3)).timestamp()))
        [payout] = stub.books.run_payouts(complete=False)
    pull, entries = read(client, payout["id"])
    [fact] = pull.batches
    assert (fact.batch_ref, fact.is_complete) == (payout["id"], False)
    assert {entry.entry_type for entry in entries} == {"payout"}
    with stub.lock:
        stub.books.complete_payout(payout["id"])
    pull, entries = read(client, payout["id"])
    assert [fact.is_complete for fact in pull.batches] == [True]
    assert {entry.entry_type for entry in entries} == {"charge", "payout"}
    assert {entry.batch_ref for entry in entries} == {payout["id"]}


def test_a_payment_intent_without_a_charge_has_no_rows(client: stripe.StripeClient) -> None:
    pull, entries = read(client, "pi_that_is_not_paid")
    assert (entries, pull.batches, pull.rejects) == ([], [], [])


@pytest.mark.parametrize("subject", ["ch_1", "py_1", "re_1", "dp_1", "po_1"])
def test_an_id_that_stripe_does_not_know_is_said(client: stripe.StripeClient, subject: str) -> None:
    with pytest.raises(InputError, match=f"^Stripe does not know {subject}$"):
        read(client, subject)


def test_a_stripe_that_is_away_is_said(stub: StripeStub, client: stripe.StripeClient) -> None:
    asked = charge(client, 1000)
    stub.fail(Failure("500", path="/v1/balance_transactions"))
    with pytest.raises(UnavailableError, match="failed"):
        read(client, asked)


def snapshot(kind: str, thing: Any) -> dict[str, Any]:
    return {"object": "event", "type": kind, "data": {"object": thing}}


def test_an_event_is_about_the_thing_that_it_holds_or_names() -> None:
    assert subject_of(snapshot("charge.dispute.closed", {"id": "dp_1"})) == "dp_1"
    assert subject_of(snapshot("charge.refund.updated", {"id": "re_1"})) == "re_1"
    thin = {"object": "v2.core.event", "type": "v1.payout.paid", "related_object": {"id": "po_1"}}
    assert subject_of(thin) == "po_1"


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": 7},
        {"type": "charge.succeeded\n"},
        {"type": "chargeback"},
        {"type": "charge.succeeded"},
        {"type": "charge.succeeded", "data": []},
        {"type": "charge.succeeded", "data": {"object": []}},
        snapshot("charge.succeeded", {"id": ["ch_1"]}),
        snapshot("charge.succeeded", {"id": "ch_"}),
        {"object": "v2.core.event", "type": "v1.charge.succeeded", "related_object": None},
        snapshot("v2.core.account.updated", {"id": "acct_1"}),
    ],
)
def test_an_event_that_says_less_is_about_nothing(event: dict[str, Any]) -> None:
    with pytest.raises(NothingToRead):
        subject_of(event)


@pytest.mark.parametrize(
    "subject", ["", "ch_", "ch_1/refunds", "ch_1?x=1", "CH_1", "ch_" + "1" * 255]
)
def test_what_could_change_the_address_that_is_asked_is_no_id(subject: str) -> None:
    assert not is_readable(subject)
