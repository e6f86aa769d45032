"""Received events: what they are about is read again from the provider, compared, told once."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import stripe

from duebook.services.provider_events import EventsReport, EventsRequest, read_events
from duebook.services.receive import Endpoint, ReceiptStore, Verdict
from duebook.services.signing.base import Event
from duebook.settlements.stripe import StripeSource, make_stripe_client
from tests.settlement_files import World, booked
from tests.stripe_stub import Failure, StripeStub

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
KEY = "sk_test_stub"
NO_TRIES_LEFT = EventsRequest(max_tries=1, triggered_by="pytest")
REQUEST = EventsRequest(triggered_by="pytest")


@pytest.fixture
def stub() -> Iterator[StripeStub]:
    with StripeStub(now=START) as started:
        yield started


@dataclasses.dataclass(slots=True)
class Shop:
    """A live Stripe account, its books, and webhooks stored as the receiver stores them."""

    world: World
    stub: StripeStub
    client: stripe.StripeClient

    def receive(
        self,
        name: str,
        kind: str,
        subject: str | None,
        *,
        endpoint: str = "stripe",
        **event: Any,
    ) -> Verdict:
        """Store an event about `subject`; its amounts are never true."""
        thing = {"id": subject, "amount": 1, "currency": "xxx"} if subject else {}
        body = {"id": f"evt_{name}", "object": "event", "type": kind, "data": {"object": thing}}
        return self.store(f"evt_{name}", {**body, **event}, endpoint=endpoint)

    def store(
        self,
        event_id: str,
        document: Any,
        *,
        endpoint: str = "stripe",
        account: str = "stripe",
        scheme: Any = "stripe",
    ) -> Verdict:
        async def record() -> Verdict:
            store = ReceiptStore(self.world.url)
            try:
                told = Endpoint(endpoint, account, scheme, (), 1)
                event = Event(event_id, json.dumps(document).encode())
                return (await store.record(told, [event], {}))[0]
            finally:
                await store.close()

        return asyncio.run(record())

    def charge(self, amount: int, **params: Any) -> str:
        told: Any = {"amount": amount, "currency": "eur", "source": "tok_visa", **params}
        return self.client.v1.charges.create(told).id

    def book(self, number: int, amount: int, charge: str) -> None:
        self.world.book(booked(number, amount, reference=charge, provider_account="stripe"))

    def read(self, request: EventsRequest = REQUEST) -> EventsReport:
        return read_events(self.world.connect, request, self.world.config, self.world.source)

    def effects(self) -> dict[str, str]:
        rows = self.world.rows("select event_id, effect from duebook.event_effect")
        return {row["event_id"]: row["effect"] for row in rows}

    def make_due(self) -> None:
        """As if every wait were over."""
        with self.world.connect() as conn:
            conn.execute("update duebook.pending_event set not_before = clock_timestamp()")


@pytest.fixture
def shop(world: World, stub: StripeStub) -> Shop:
    client = make_stripe_client(KEY, base_address=stub.address, network_retries=0)
    world.source = lambda name, account: StripeSource(client, sleep=lambda seconds: None)
    world.go_live("2020-01-01T00:00:00Z", "stripe")
    return Shop(world, stub, client)


def test_an_event_makes_the_provider_be_read_and_its_own_amounts_are_not_believed(
    shop: Shop,
) -> None:
    charge = shop.charge(1000)
    shop.book(1, 1000, charge)
    shop.stub.books.clock.set_to(int((START + timedelta(days=3)).timestamp()))
    shop.receive("1", "charge.succeeded", charge)
    report = shop.read()
    assert (report.read, report.runs, report.entries_new, report.ledger_changes) == (1, 1, 1, 1)
    assert (report.intents, report.pending) == (1, 0)
    [run] = shop.world.rows(
        "select run_id, scope, triggered_by, matched from duebook.reconciliation_run"
    )
    assert (run["scope"], run["triggered_by"], run["matched"]) == ("payments", "pytest", 1)
    [effect] = shop.world.rows("select event_id, effect, run_id from duebook.event_effect")
    assert effect == {"event_id": "evt_1", "effect": "read", "run_id": run["run_id"]}
    [entry] = shop.world.rows("select gross_minor, currency from duebook.settlement_entry")
    assert entry == {"gross_minor": 1000, "currency": "EUR"}


def test_a_webhook_that_arrives_twice_and_at_two_endpoints_has_one_effect(shop: Shop) -> None:
    charge = shop.charge(1000)
    shop.book(1, 1000, charge)
    shop.stub.books.clock.set_to(int((START + timedelta(days=3)).timestamp()))
    told = ("charge.succeeded", charge)
    assert [shop.receive("1", *told) for _ in range(2)] == ["stored", "duplicate"]
    assert shop.receive("1", *told, endpoint="second") == "stored"
    assert (shop.read().read, shop.read().read) == (1, 0)
    # The third delivery comes when all is done.
    assert shop.receive("1", *told, endpoint="third") == "stored"
    assert shop.world.value("select count(*) from duebook.pending_event") == 0
    assert shop.read().claimed == 0
    assert shop.world.value("select count(*) from duebook.event_effect") == 1
    assert shop.world.value("select count(*) from duebook.intent") == 1
    assert shop.world.value("select count(*) from duebook.webhook_receipt") == 3


def test_an_event_queued_again_beside_its_effect_is_dropped(shop: Shop) -> None:
    shop.receive("1", "balance.available", None)
    shop.read()
    with shop.world.connect() as conn:
        conn.execute("insert into duebook.pending_event values ('stripe', 'evt_1', 'stripe')")
    assert (shop.read().claimed, shop.read().pending) == (0, 0)


def test_the_night_after_an_event_finds_nothing_new_and_tells_nobody_again(shop: Shop) -> None:
    charge = shop.charge(1000)
    shop.book(1, 1000, charge)
    shop.stub.books.clock.set_to(int((START + timedelta(days=3)).timestamp()))
    shop.receive("1", "charge.succeeded", charge)
    shop.read()
    night = shop.world.reconcile(account="stripe")
    assert (night.matched, night.intents) == (1, 0)
    assert shop.world.value("select count(*) from duebook.intent") == 1


def test_refunds_and_disputes_are_read_with_their_charge(shop: Shop) -> None:
    refunded, disputed = shop.charge(1000), shop.charge(2000)
    for number, (amount, charge) in enumerate([(1000, refunded), (2000, disputed)]):
        shop.book(number, amount, charge)
    refund = shop.client.v1.refunds.create({"charge": refunded, "amount": 400}).id
    with shop.stub.lock:
        dispute = shop.stub.books.dispute(disputed)["id"]
    shop.stub.books.clock.set_to(int((START + timedelta(days=3)).timestamp()))
    shop.receive("1", "refund.created", refund)
    shop.receive("2", "charge.dispute.created", dispute)
    report = shop.read()
    assert (report.read, report.runs) == (2, 1)
    rows = shop.world.rows(
        "select payment_id, captured_minor, refunded_minor, charged_back_minor"
        " from duebook.settled_position order by payment_id"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("pay0", 1000, 400, 0),
        ("pay1", 2000, 0, 2000),
    ]


def test_a_payment_intent_and_a_thin_event_lead_to_their_charges(shop: Shop) -> None:
    told: Any = {"amount": 700, "currency": "eur", "payment_method": "pm_card_visa"}
    intent = shop.client.v1.payment_intents.create(told).id
    [charge] = shop.client.v1.charges.list({"payment_intent": intent}).data
    shop.receive("1", "payment_intent.succeeded", intent)
    assert shop.read().entries_new == 1
    other = shop.charge(800)
    thin = {"id": other, "type": "charge", "url": f"/v1/charges/{other}"}
    shop.store(
        "evt_2",
        {
            "id": "evt_2",
            "object": "v2.core.event",
            "type": "v1.charge.succeeded",
            "related_object": thin,
        },
    )
    assert shop.read().entries_new == 1
    found = shop.world.rows("select payment_ref from duebook.settlement_entry")
    assert {row["payment_ref"] for row in found} == {charge.id, other}


def test_a_payout_is_read_with_its_rows_and_its_batch_closes(shop: Shop) -> None:
    shop.book(1, 1000, shop.charge(1000))
    with shop.stub.lock:
        shop.stub.books.clock.set_to(int((START + timedelta(days=3)).timestamp()))
        [payout] = shop.stub.books.run_payouts()
        shop.stub.books.complete_payout(payout["id"])
    shop.receive("1", "payout.paid", payout["id"])
    report = shop.read()
    assert (report.read, report.entries_new) == (1, 2)
    [batch] = shop.world.rows("select batch_ref, status from duebook.settlement_batch")
    assert batch == {"batch_ref": payout["id"], "status": "closed"}


@pytest.mark.parametrize(
    ("kind", "subject", "reason"),
    [
        ("balance.available", None, "balance.available is about no payment"),
        ("customer.created", "cus_1", "customer.created is about no payment"),
        ("charge.succeeded", "cus_1", "names nothing that can be read"),
        ("charge.succeeded", "ch_../../v1/x", "names nothing that can be read"),
        ("", "ch_1", "the event has no type"),
    ],
)
def test_an_event_about_no_money_row_is_ignored_with_the_reason(
    shop: Shop, kind: str, subject: str | None, reason: str
) -> None:
    shop.receive("1", kind, subject)
    report = shop.read()
    assert (report.ignored, report.runs, report.pending) == (1, 0, 0)
    [effect] = shop.world.rows("select effect, reason, run_id from duebook.event_effect")
    assert (effect["effect"], effect["run_id"]) == ("ignored", None)
    assert reason in effect["reason"]
    assert shop.stub.requests == []


def test_standard_webhooks_name_payments_and_a_provider_of_files_has_nothing_to_ask(
    shop: Shop,
) -> None:
    charge = shop.charge(1000)
    named = {"type": "payment.changed", "data": {"payment_ids": [charge, charge, 7, "unknown"]}}
    shop.store("msg_1", named, endpoint="gateway", scheme="standard")
    shop.store("msg_2", {"data": []}, endpoint="gateway", scheme="standard")
    shop.store("msg_3", named, endpoint="files", account="adyen", scheme="standard")
    report = shop.read()
    assert (report.read, report.ignored, report.entries_new) == (1, 2, 1)
    reasons = dict(
        (row["event_id"], row["reason"])
        for row in shop.world.rows("select event_id, reason from duebook.event_effect")
    )
    assert reasons["msg_2"] == "the event names no payment_ids"
    assert reasons["msg_3"] == "adyen is read from files: there is nothing to ask again"


def test_a_scoped_run_judges_only_its_payments_and_moves_neither_cursor_nor_order(
    shop: Shop,
) -> None:
    late, missing = shop.charge(1000), "ch_never"
    shop.book(1, 1500, late)
    shop.book(2, 900, missing)
    shop.world.reconcile(account="stripe", as_of=datetime(2026, 3, 3, tzinfo=UTC))
    state = (
        "select last_full_as_of, last_full_run_id, cursor_position, newest_entry_at"
        " from duebook.provider_account where provider_account = 'stripe'"
    )
    [before] = shop.world.rows(state)
    shop.stub.books.clock.set_to(int((START + timedelta(days=30)).timestamp()))
    shop.receive("1", "charge.updated", late)
    shop.read()
    assert shop.world.rows(state) == [before]
    opened = shop.world.rows("select kind, payment_id from duebook.discrepancy")
    assert [(row["kind"], row["payment_id"]) for row in opened] == [("amount_mismatch", "pay1")]
    assert shop.world.reconcile(account="stripe").discrepancies == {
        "amount_mismatch": 1,
        "missing_at_provider": 1,
    }
    # What is missing stays so, whatever another payment's event leads to.
    shop.receive("2", "charge.updated", late)
    shop.read()
    assert (
        shop.world.value(
            "select count(*) from duebook.discrepancy"
            " where kind = 'missing_at_provider' and closed_at is null"
        )
        == 1
    )


def test_an_older_event_after_a_newer_one_changes_nothing_back(shop: Shop) -> None:
    charge = shop.charge(1000)
    shop.book(1, 1000, charge)
    shop.client.v1.refunds.create({"charge": charge})
    shop.stub.books.clock.set_to(int((START + timedelta(days=3)).timestamp()))
    shop.receive("2", "charge.refunded", charge)
    shop.read()
    shop.receive("1", "charge.pending", charge, created=1)
    report = shop.read()
    assert (report.read, report.entries_changed, report.ledger_changes) == (1, 0, 0)


def test_a_provider_that_is_away_postpones_its_events_and_then_they_are_read(shop: Shop) -> None:
    charge = shop.charge(1000)
    shop.receive("1", "charge.succeeded", charge)
    shop.stub.fail(Failure("500", times=1))
    report = shop.read()
    assert (report.failed, report.read, report.pending) == (1, 0, 1)
    [waiting] = shop.world.rows(
        "select tries, last_error, not_before - clock_timestamp() as wait"
        " from duebook.pending_event"
    )
    assert waiting["tries"] == 1
    assert "Stripe failed (HTTP 500)" in waiting["last_error"]
    assert timedelta(seconds=5) < waiting["wait"] <= timedelta(seconds=30)
    assert shop.read().claimed == 0
    shop.make_due()
    assert (shop.read().read, shop.effects()) == (1, {"evt_1": "read"})


def test_one_event_that_can_not_be_read_stops_no_other_and_is_given_up_with_an_audit_event(
    shop: Shop,
) -> None:
    shop.receive("bad", "charge.succeeded", "ch_unknown")
    shop.receive("good", "charge.succeeded", shop.charge(1000))
    report = shop.read(NO_TRIES_LEFT)
    assert (report.claimed, report.read, report.given_up, report.pending) == (2, 1, 1, 0)
    assert shop.effects() == {"evt_bad": "given_up", "evt_good": "read"}
    [audit] = shop.world.rows(
        "select actor, subject, detail from duebook.audit_event where action = 'event_given_up'"
    )
    assert audit == {
        "actor": "provider_events",
        "subject": "stripe",
        "detail": {"event_id": "evt_bad", "reason": "Stripe does not know ch_unknown"},
    }


def test_an_event_whose_reader_always_dies_is_given_up_too(shop: Shop) -> None:
    shop.receive("1", "charge.succeeded", shop.charge(1000))
    with shop.world.connect() as conn:
        conn.execute("update duebook.pending_event set tries = 1")
    assert shop.read(NO_TRIES_LEFT).given_up == 1


def test_a_run_that_breaks_off_leaves_the_event_for_its_lease_and_no_effect(shop: Shop) -> None:
    charge = shop.charge(1000)
    shop.book(1, 1000, charge)
    shop.stub.books.clock.set_to(int((START + timedelta(days=3)).timestamp()))
    shop.receive("1", "charge.succeeded", charge)

    claim = dataclasses.replace(REQUEST, lease=timedelta(hours=1))
    source = shop.world.source

    def dying(name: str, account: Any) -> Any:
        raise KeyboardInterrupt

    shop.world.source = dying
    with pytest.raises(KeyboardInterrupt):
        shop.read(claim)
    shop.world.source = source
    assert shop.effects() == {}
    assert shop.read().claimed == 0  # its lease runs
    shop.make_due()
    assert shop.read().intents == 1


def test_readers_at_the_same_moment_share_the_events(shop: Shop) -> None:
    for number in range(12):
        charge = shop.charge(1000 + number)
        shop.book(number, 1000 + number, charge)
        shop.receive(str(number), "charge.succeeded", charge)
    shop.stub.books.clock.set_to(int((START + timedelta(days=3)).timestamp()))
    small = dataclasses.replace(REQUEST, batch_size=2)
    with ThreadPoolExecutor() as pool:
        reports = [one.result() for one in [pool.submit(shop.read, small) for _ in range(3)]]
    assert sum(report.read for report in reports) == 12
    assert sum(report.intents for report in reports) == 12
    assert set(shop.effects().values()) == {"read"}


def test_an_event_that_another_reader_is_just_claiming_is_passed_over(shop: Shop) -> None:
    for name in ("1", "2"):
        shop.receive(name, "balance.available", None)
    with shop.world.connect() as other, other.transaction():
        other.execute("select 1 from duebook.pending_event where event_id = 'evt_1' for update")
        assert shop.read().claimed == 1
        assert shop.effects() == {"evt_2": "ignored"}
    assert shop.read().claimed == 1


def test_only_the_account_that_was_asked_for_is_read(shop: Shop) -> None:
    shop.receive("1", "balance.available", None)
    shop.store("msg_1", {}, endpoint="files", account="adyen", scheme="standard")
    report = shop.read(dataclasses.replace(REQUEST, account="adyen"))
    assert (report.claimed, report.pending) == (1, 0)
    assert shop.effects() == {"msg_1": "ignored"}


def test_an_api_that_can_not_be_asked_by_id_says_so(shop: Shop) -> None:
    shop.receive("1", "charge.succeeded", "ch_1")
    shop.world.source = lambda name, account: object()  # type: ignore[assignment, return-value]
    assert shop.read(NO_TRIES_LEFT).given_up == 1
    assert "can't be asked about single payments" in shop.world.value(
        "select reason from duebook.event_effect"
    )
