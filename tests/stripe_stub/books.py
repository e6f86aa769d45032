"""The account behind the stub: charges, refunds, disputes, payouts and every money row of them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

Json = dict[str, Any]

DAY = 86_400
ZERO_DECIMAL = frozenset({"bif", "clp", "jpy", "krw", "vnd", "xaf", "xof", "xpf"})
CARDS: Mapping[str, str] = {
    "tok_visa": "4242424242424242",
    "tok_createDispute": "4000000000000259",
    "pm_card_visa": "4242424242424242",
    "pm_card_createDispute": "4000000000000259",
    "pm_card_chargeDeclined": "4000000000000002",
    "tok_chargeDeclined": "4000000000000002",
}
DISPUTED = "4000000000000259"
DECLINED = "4000000000000002"
LIST_FILTERS: Mapping[str, frozenset[str]] = {
    "balance_transaction": frozenset({"currency", "source", "type", "payout"}),
    "charge": frozenset({"customer", "payment_intent"}),
    "dispute": frozenset({"charge", "payment_intent"}),
    "payout": frozenset({"status", "destination"}),
    "refund": frozenset({"charge", "payment_intent"}),
}
PAGING = frozenset({"limit", "starting_after", "ending_before", "created", "expand"})


class StripeRefusal(Exception):
    """An error answer in Stripe's words."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        kind = "card_error" if status == 402 else "invalid_request_error"
        body = {"type": kind, "message": message, "param": param, "code": code}
        self.body: Json = {"error": {name: text for name, text in body.items() if text}}


class Clock:
    """Epoch seconds; runs with the machine's clock until it is set, then stands."""

    def __init__(self, now: datetime | None) -> None:
        self._set_to = None if now is None else int(now.timestamp())

    def now(self) -> int:
        return int(time.time()) if self._set_to is None else self._set_to

    def set_to(self, now: int | None) -> None:
        """Stop the clock at `now`, or let it run (None)."""
        self._set_to = now


class Books:
    """Everything the account holds; not thread-safe (the server holds its lock).

    `settle_after` is the time from a charge to `available`; `payouts_daily` makes an automatic
    payout of what is available at every midnight UTC that the clock passes.
    """

    def __init__(
        self,
        *,
        now: datetime | None = None,
        settle_after: timedelta = timedelta(days=2),
        payouts_daily: bool = True,
        seed: int = 0,
    ) -> None:
        self.clock = Clock(now)
        self._settle_after = int(settle_after.total_seconds())
        self._payouts_daily = payouts_daily
        self._seed = seed
        self._count = 0
        self._objects: dict[str, Json] = {}
        self._order: dict[str, list[str]] = {}
        self._payout_of: dict[str, str] = {}
        self._midnight = self.clock.now() // DAY

    # -- storing and finding ------------------------------------------------------------------

    def _new_id(self, prefix: str) -> str:
        self._count += 1
        digest = hashlib.sha256(f"{self._seed}:{self._count}".encode()).hexdigest()
        return f"{prefix}_3Stub{digest[:19]}"

    def _store(self, prefix: str, thing: Json) -> Json:
        stored = {"id": self._new_id(prefix), "created": self.clock.now(), **thing}
        self._objects[stored["id"]] = stored
        self._order.setdefault(stored["object"], []).append(stored["id"])
        return stored

    def get(self, kind: str, object_id: str) -> Json:
        """One object as the API shows it now."""
        found = self._objects.get(object_id)
        if found is None or found["object"] != kind:
            raise StripeRefusal(
                404, f"No such {kind}: '{object_id}'", param="id", code="resource_missing"
            )
        return self._as_of_now(found)

    def _as_of_now(self, thing: Json) -> Json:
        now = self.clock.now()
        if thing["object"] == "balance_transaction" and "status" not in thing:
            status = "available" if thing["available_on"] <= now else "pending"
            return {**thing, "status": status}
        if thing["object"] == "payout" and thing["status"] == "pending":
            return {**thing, "status": "paid" if thing["arrival_date"] <= now else "in_transit"}
        return dict(thing)

    def expanded(self, thing: Json, paths: Sequence[str]) -> Json:
        """Replace ids along each path (`source`, `data.source`) by their objects."""
        for path in paths:
            head, _, tail = path.partition(".")
            value = thing.get(head)
            if isinstance(value, str) and value in self._objects:
                value = self._as_of_now(self._objects[value])
            if isinstance(value, list):
                value = [self.expanded(item, [tail]) if tail else item for item in value]
            elif isinstance(value, dict) and tail:
                value = self.expanded(value, [tail])
            thing = {**thing, head: value}
        return thing

    def listed(self, kind: str, url: str, query: Json) -> Json:
        """One page, newest first, with the documented filters; unknown parameters are refused."""
        unknown = set(query) - PAGING - LIST_FILTERS[kind]
        if unknown:
            name = sorted(unknown)[0]
            raise StripeRefusal(
                400, f"Received unknown parameter: {name}", param=name, code="parameter_unknown"
            )
        rows = [self._objects[row_id] for row_id in reversed(self._order.get(kind, []))]
        # Stable, so that rows of one second stay in the order of their making.
        rows.sort(key=lambda row: row["created"], reverse=True)
        rows = [row for row in rows if self._passes(row, kind, query)]
        page, has_more = _page(rows, query)
        data = [self._as_of_now(row) for row in page]
        return {"object": "list", "url": url, "has_more": has_more, "data": data}

    def _passes(self, row: Json, kind: str, query: Json) -> bool:
        for name, wanted in query.items():
            if name == "created" and not _in_range(row["created"], wanted):
                return False
            if name == "payout":
                if self._payout_of.get(row["id"]) != self._automatic(wanted):
                    return False
            elif name in LIST_FILTERS[kind] and row.get(name) != wanted:
                return False
        return True

    def _automatic(self, payout_id: str) -> str:
        payout = self.get("payout", payout_id)
        if not payout["automatic"]:
            raise StripeRefusal(
                400,
                "Balance transaction history can only be filtered on automatic transfers, "
                "not manual.",
                param="payout",
            )
        return payout_id

    # -- money rows ---------------------------------------------------------------------------

    def add_money(
        self,
        *,
        amount: int,
        currency: str,
        type: str,
        category: str,
        source: str | None,
        fee: int = 0,
        available_on: int | None = None,
        **fields: Any,
    ) -> Json:
        """Write one balance transaction; further fields override (or spoil) what it holds."""
        now = self.clock.now()
        fees = [{"amount": fee, "currency": currency, "type": "stripe_fee", "application": None}]
        return self._store(
            "txn",
            {
                "object": "balance_transaction",
                "amount": amount,
                "fee": fee,
                "net": amount - fee,
                "currency": currency,
                "type": type,
                "reporting_category": category,
                "source": source,
                "available_on": now if available_on is None else available_on,
                "exchange_rate": None,
                "fee_details": fees if fee else [],
                "description": None,
                "balance_type": "payments",
                **fields,
            },
        )

    def _fee(self, amount: int, currency: str) -> int:
        """2.9 % and 30 of the minor unit, as the published standard price; no fixed part in yen."""
        fixed = 0 if currency in ZERO_DECIMAL else 30
        return (amount * 29 + 500) // 1000 + fixed

    # -- charges ------------------------------------------------------------------------------

    def create_payment_method(self, card_number: str) -> Json:
        card = {"brand": "visa", "last4": card_number[-4:], "exp_month": 12, "exp_year": 2039}
        made = self._store(
            "pm", {"object": "payment_method", "type": "card", "card": card, "livemode": False}
        )
        self._objects[made["id"]] = {**made, "_number": card_number}
        return made

    def create_charge(
        self,
        *,
        amount: int,
        currency: str,
        method: str,
        capture: bool = True,
        metadata: Mapping[str, str] | None = None,
        payment_intent: str | None = None,
        email: str | None = None,
    ) -> Json:
        """Charge a card; a test card may decline it or raise a dispute at once."""
        number = self._card_number(method)
        if number == DECLINED:
            raise StripeRefusal(402, "Your card was declined.", code="card_declined")
        charge = self._store(
            "ch",
            {
                "object": "charge",
                "amount": amount,
                "amount_captured": 0,
                "amount_refunded": 0,
                "balance_transaction": None,
                "billing_details": {"email": email, "name": "Jenny Rosen", "phone": None},
                "captured": False,
                "currency": currency,
                "description": None,
                "disputed": False,
                "livemode": False,
                "metadata": dict(metadata or {}),
                "paid": True,
                "payment_intent": payment_intent,
                "payment_method": method,
                "receipt_email": email,
                "refunded": False,
                "status": "succeeded",
            },
        )
        if capture:
            self.capture(charge["id"], None)
        if number == DISPUTED and capture:
            self.dispute(charge["id"])
        return self.get("charge", charge["id"])

    def _card_number(self, method: str) -> str:
        if method in CARDS:
            return CARDS[method]
        stored = self._objects.get(method)
        if stored is None or "_number" not in stored:
            raise StripeRefusal(
                400, f"No such PaymentMethod: '{method}'", param="source", code="resource_missing"
            )
        return str(stored["_number"])

    def capture(self, charge_id: str, amount: int | None) -> Json:
        """Capture; less than authorised is the whole charge and a reversal of the rest."""
        self.get("charge", charge_id)
        charge = self._objects[charge_id]
        if charge["captured"]:
            raise StripeRefusal(
                400, "Charge has already been captured.", code="charge_already_captured"
            )
        captured = charge["amount"] if amount is None else amount
        if not 0 < captured <= charge["amount"]:
            raise StripeRefusal(400, "Amount is more than authorised", param="amount")
        row = self.add_money(
            amount=charge["amount"],
            currency=charge["currency"],
            type="charge",
            category="charge",
            source=charge_id,
            fee=self._fee(captured, charge["currency"]),
            available_on=self.clock.now() + self._settle_after,
        )
        charge.update(captured=True, amount_captured=captured, balance_transaction=row["id"])
        if captured < charge["amount"]:
            self._refund(charge, charge["amount"] - captured, "partial_capture_reversal")
        return self.get("charge", charge_id)

    def create_payment_intent(
        self,
        *,
        amount: int,
        currency: str,
        method: str,
        capture: bool,
        metadata: Mapping[str, str] | None,
        email: str | None,
    ) -> Json:
        """A confirmed intent: its charge is made at once."""
        intent = self._store(
            "pi",
            {
                "object": "payment_intent",
                "amount": amount,
                "currency": currency,
                "capture_method": "automatic" if capture else "manual",
                "latest_charge": None,
                "livemode": False,
                "metadata": dict(metadata or {}),
                "payment_method": method,
                "receipt_email": email,
                "status": "succeeded" if capture else "requires_capture",
            },
        )
        charge = self.create_charge(
            amount=amount,
            currency=currency,
            method=method,
            capture=capture,
            metadata=metadata,
            payment_intent=intent["id"],
            email=email,
        )
        intent["latest_charge"] = charge["id"]
        return dict(intent)

    def capture_payment_intent(self, intent_id: str, amount: int | None) -> Json:
        self.get("payment_intent", intent_id)
        intent = self._objects[intent_id]
        self.capture(intent["latest_charge"], amount)
        intent["status"] = "succeeded"
        return dict(intent)

    # -- refunds and disputes -----------------------------------------------------------------

    def refund(
        self, charge_id: str, amount: int | None, metadata: Mapping[str, str] | None = None
    ) -> Json:
        self.get("charge", charge_id)
        charge = self._objects[charge_id]
        left = charge["amount_captured"] - charge["amount_refunded"]
        wanted = left if amount is None else amount
        if not 0 < wanted <= left:
            raise StripeRefusal(
                400,
                f"Charge {charge_id} has nothing like that left to refund.",
                param="amount",
                code="charge_already_refunded",
            )
        charge["amount_refunded"] += wanted
        charge["refunded"] = charge["amount_refunded"] == charge["amount_captured"]
        return self._refund(charge, wanted, "refund", metadata)

    def _refund(
        self,
        charge: Json,
        amount: int,
        category: str,
        metadata: Mapping[str, str] | None = None,
    ) -> Json:
        refund = self._store(
            "re",
            {
                "object": "refund",
                "amount": amount,
                "charge": charge["id"],
                "currency": charge["currency"],
                "metadata": dict(metadata or {}),
                "payment_intent": charge["payment_intent"],
                "reason": None,
                "status": "succeeded",
            },
        )
        row = self.add_money(
            amount=-amount,
            currency=charge["currency"],
            type="refund",
            category=category,
            source=refund["id"],
        )
        refund["balance_transaction"] = row["id"]
        return dict(refund)

    def fail_refund(self, refund_id: str) -> Json:
        """The bank sends a refund back: its money returns as `refund_failure`."""
        self.get("refund", refund_id)
        refund = self._objects[refund_id]
        row = self.add_money(
            amount=refund["amount"],
            currency=refund["currency"],
            type="refund_failure",
            category="refund_failure",
            source=refund_id,
        )
        refund.update(status="failed", failure_balance_transaction=row["id"])
        return dict(refund)

    def dispute(self, charge_id: str, *, fee: int = 1500) -> Json:
        """The cardholder's bank takes the money back, and Stripe its fee."""
        self.get("charge", charge_id)
        charge = self._objects[charge_id]
        dispute = self._store(
            "dp",
            {
                "object": "dispute",
                "amount": charge["amount_captured"],
                "balance_transactions": [],
                "charge": charge_id,
                "currency": charge["currency"],
                "evidence": {"customer_email_address": charge["receipt_email"]},
                "livemode": False,
                "metadata": {},
                "payment_intent": charge["payment_intent"],
                "reason": "fraudulent",
                "status": "needs_response",
            },
        )
        charge["disputed"] = True
        self._dispute_money(dispute, -dispute["amount"], "dispute", fee)
        return dict(dispute)

    def _dispute_money(self, dispute: Json, amount: int, category: str, fee: int) -> None:
        row = self.add_money(
            amount=amount,
            currency=dispute["currency"],
            type="adjustment",
            category=category,
            source=dispute["id"],
            fee=fee,
        )
        dispute["balance_transactions"].append(row)

    def update_dispute(self, dispute_id: str, evidence: Mapping[str, Any]) -> Json:
        """Evidence `winning_evidence` or `losing_evidence` decides it, as in Stripe's test mode."""
        self.get("dispute", dispute_id)
        dispute = self._objects[dispute_id]
        word = evidence.get("uncategorized_text")
        if word == "winning_evidence" and dispute["status"] == "needs_response":
            dispute["status"] = "won"
            self._dispute_money(dispute, dispute["amount"], "dispute_reversal", 0)
        elif word == "losing_evidence":
            dispute["status"] = "lost"
        return dict(dispute)

    def close_dispute(self, dispute_id: str) -> Json:
        self.get("dispute", dispute_id)
        dispute = self._objects[dispute_id]
        dispute["status"] = "lost"
        return dict(dispute)

    # -- payouts ------------------------------------------------------------------------------

    def create_payout(
        self, *, amount: int, currency: str, automatic: bool = False, complete: bool = True
    ) -> Json:
        """A payout and its own money row; a manual one can't be itemised."""
        arrival = self.clock.now() + DAY
        reconciliation = "completed" if complete else "in_progress"
        payout = self._store(
            "po",
            {
                "object": "payout",
                "amount": amount,
                "arrival_date": arrival,
                "automatic": automatic,
                "currency": currency,
                "description": "STRIPE PAYOUT" if automatic else None,
                "destination": "ba_3Stub",
                "failure_balance_transaction": None,
                "livemode": False,
                "metadata": {},
                "method": "standard",
                "reconciliation_status": reconciliation if automatic else "not_applicable",
                "source_type": "card",
                "status": "pending",
                "type": "bank_account",
            },
        )
        row = self.add_money(
            amount=-amount,
            currency=currency,
            type="payout",
            category="payout",
            source=payout["id"],
            available_on=arrival,
            description="STRIPE PAYOUT" if automatic else None,
        )
        payout["balance_transaction"] = row["id"]
        return self.get("payout", payout["id"])

    def run_payouts(self, *, complete: bool = True) -> list[Json]:
        """Pay out what is available and not paid out, one automatic payout a currency.

        A currency whose sum is not positive is carried on. `complete=False` leaves the payout
        with reconciliation in progress.
        """
        waiting: dict[str, list[Json]] = {}
        for row in self._unpaid():
            waiting.setdefault(row["currency"], []).append(row)
        made = []
        for currency, rows in waiting.items():
            total = sum(row["net"] for row in rows)
            if total <= 0:
                continue
            payout = self.create_payout(
                amount=total, currency=currency, automatic=True, complete=complete
            )
            for row_id in (*(row["id"] for row in rows), payout["balance_transaction"]):
                self._payout_of[row_id] = payout["id"]
            made.append(payout)
        return made

    def _unpaid(self) -> Iterator[Json]:
        now = self.clock.now()
        for row_id in self._order.get("balance_transaction", []):
            row = self._objects[row_id]
            if row_id in self._payout_of or row["type"] == "payout":
                continue
            if row["available_on"] <= now:
                yield row

    def complete_payout(self, payout_id: str) -> Json:
        """Reconciliation of an automatic payout ends (`payout.reconciliation_completed`)."""
        self.get("payout", payout_id)
        self._objects[payout_id]["reconciliation_status"] = "completed"
        return self.get("payout", payout_id)

    def fail_payout(self, payout_id: str) -> Json:
        """The bank refuses a payout: its money comes back and waits for a later payout."""
        self.get("payout", payout_id)
        payout = self._objects[payout_id]
        row = self.add_money(
            amount=payout["amount"],
            currency=payout["currency"],
            type="payout_failure",
            category="payout_reversal",
            source=payout_id,
        )
        payout.update(status="failed", failure_balance_transaction=row["id"])
        return self.get("payout", payout_id)

    def set_clock(self, now: int | None) -> None:
        """Set the clock, and make the automatic payouts of each midnight that it passes."""
        target = int(time.time()) if now is None else now
        for midnight in range(self._midnight + 1, target // DAY + 1):
            self.clock.set_to(midnight * DAY)
            if self._payouts_daily:
                self.run_payouts()
        self._midnight = max(self._midnight, target // DAY)
        self.clock.set_to(now)

    def catch_up(self) -> None:
        """Make the payouts of midnights that a running clock has passed."""
        if self.clock.now() // DAY > self._midnight:
            running = self.clock.now()
            self.set_clock(running)
            self.clock.set_to(None)


def _in_range(created: int, wanted: Any) -> bool:
    if not isinstance(wanted, dict):
        return created == int(wanted)
    tests: Mapping[str, Callable[[int, int], bool]] = {
        "gt": int.__gt__,
        "gte": int.__ge__,
        "lt": int.__lt__,
        "lte": int.__le__,
    }
    return all(tests[name](created, int(bound)) for name, bound in wanted.items())


def _page(rows: list[Json], query: Json) -> tuple[list[Json], bool]:
    limit = int(query.get("limit", 10))
    if not 1 <= limit <= 100:
        raise StripeRefusal(400, "limit is from 1 to 100", param="limit")
    if "ending_before" in query:
        end = _index(rows, query["ending_before"], "ending_before")
        start = max(end - limit, 0)
        return rows[start:end], start > 0
    start = 0
    if "starting_after" in query:
        start = _index(rows, query["starting_after"], "starting_after") + 1
    return rows[start : start + limit], len(rows) > start + limit


def _index(rows: list[Json], row_id: str, param: str) -> int:
    for index, row in enumerate(rows):
        if row["id"] == row_id:
            return index
    raise StripeRefusal(400, f"No such object: '{row_id}'", param=param, code="resource_missing")
