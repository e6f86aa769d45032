"""Stripe over its API: balance transactions, payouts, refunds and disputes.

A balance transaction is the money row; the other objects say what it belongs to. Sources:
https://docs.stripe.com/api/balance_transactions, https://docs.stripe.com/reports/reporting-categories,
https://docs.stripe.com/payouts/reconciliation, https://docs.stripe.com/rate-limits.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import stripe

from duebook.errors import ConfigurationError
from duebook.settlements.base import (
    BatchFact,
    Cursor,
    EntryStatus,
    EntryType,
    RejectedRow,
    SettlementEntry,
)
from duebook.settlements.stripe_api import (
    LINK_PREFIXES,
    Json,
    Patience,
    Payment,
    StripeReader,
    id_of,
    make_stripe_client,
    source_id_of,
)
from duebook.settlements.stripe_events import charges_and_payouts, rows_about

__all__ = ["Patience", "StripePull", "StripeSource", "make_stripe_client"]

WALK_ABOVE: Final = 20
"""More pending ids than this are looked for in pages before they are asked for one by one."""

BY_CATEGORY: Final[Mapping[str, EntryType]] = {
    "charge": "charge",
    "charge_failure": "charge",
    "partial_capture_reversal": "charge",
    "refund": "refund",
    "refund_failure": "refund",
    "dispute": "chargeback",
    "dispute_reversal": "chargeback_reversal",
    "fee": "fee",
    "network_cost": "fee",
    "tax": "fee",
    "payout": "payout",
    "payout_reversal": "adjustment",
    "platform_earning": "adjustment",
    "platform_earning_refund": "adjustment",
    "other_adjustment": "adjustment",
    "contribution": "adjustment",
    "climate_order_purchase": "adjustment",
    "climate_order_refund": "adjustment",
    "anticipation_repayment": "adjustment",
    "advance": "transfer",
    "advance_funding": "transfer",
    "financing_payout": "transfer",
    "financing_payout_reversal": "transfer",
    "financing_paydown": "transfer",
    "financing_paydown_reversal": "transfer",
    "connect_collection_transfer": "transfer",
    "topup": "transfer",
    "topup_reversal": "transfer",
    "transfer": "transfer",
    "transfer_reversal": "transfer",
    "connect_reserved_funds": "reserve",
    "risk_reserved_funds": "reserve",
}
"""Reporting category to entry type; a failed payout's money comes back as an adjustment, since it
is paid out again by a later payout. A category that is not here is kept as `other`."""

BY_TYPE: Final[Mapping[str, EntryType]] = {
    "charge": "charge",
    "payment": "charge",
    "payment_failure_refund": "charge",
    "refund": "refund",
    "payment_refund": "refund",
    "refund_failure": "refund",
    "payment_reversal": "refund",
    "stripe_fee": "fee",
    "stripe_fx_fee": "fee",
    "tax_fee": "fee",
    "payout": "payout",
    "payout_cancel": "adjustment",
    "payout_failure": "adjustment",
    "adjustment": "adjustment",
    "application_fee": "adjustment",
    "application_fee_refund": "adjustment",
    "contribution": "adjustment",
    "topup": "transfer",
    "topup_reversal": "transfer",
    "transfer": "transfer",
    "transfer_cancel": "transfer",
    "transfer_failure": "transfer",
    "transfer_refund": "transfer",
    "connect_collection_transfer": "transfer",
    "payment_network_reserve_hold": "reserve",
    "payment_network_reserve_release": "reserve",
    "payout_minimum_balance_hold": "reserve",
    "payout_minimum_balance_release": "reserve",
    "reserve_hold": "reserve",
    "reserve_release": "reserve",
    "reserve_transaction": "reserve",
    "reserved_funds": "reserve",
}
"""Balance transaction type to entry type, for a row without a reporting category."""

_STATUS: Final[Mapping[str, EntryStatus]] = {"pending": "pending", "available": "settled"}
_CURRENCY: Final = re.compile(r"[a-z]{3}\Z")
_REFERENCE: Final = re.compile(r"charge|payment_intent|metadata\.[^.]{1,40}")
_BIGINT: Final = 2**63
_LAST_INSTANT: Final = 253_402_300_799  # 9999-12-31T23:59:59Z


class StripeSource:
    """An ApiSource over one Stripe account.

    `reference` says what a payment is known by in the books: `charge` (its id), `payment_intent`,
    or `metadata.<key>` of the charge.
    """

    def __init__(
        self,
        client: stripe.StripeClient,
        *,
        reference: str = "charge",
        patience: Patience | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not _REFERENCE.fullmatch(reference):
            raise ConfigurationError(
                "reference of a Stripe account is charge, payment_intent or metadata.<key>"
            )
        self._reference = reference
        self._reader = StripeReader(
            client,
            patience or Patience(),
            sleep,
            wants_metadata=reference.startswith("metadata."),
        )

    def pull(
        self,
        *,
        cursor: Cursor | None,
        pending_ids: Sequence[str],
        open_batches: Sequence[str],
        look_back: timedelta,
        now: datetime,
    ) -> StripePull:
        """Start one read; nothing is asked before `entries` is iterated.

        Iterating raises UnavailableError (Stripe away, or too busy for too long),
        ConfigurationError (key refused) or InputError (an answer that is not Stripe's).
        """
        return StripePull(
            self._reader,
            self._reference,
            cursor=cursor,
            pending_ids=pending_ids,
            open_batches=open_batches,
            look_back=look_back,
            now=now,
        )

    def pull_subjects(self, *, subjects: Sequence[str], now: datetime) -> StripeSubjectPull:
        """Start reading what these ids (charges, payment intents, refunds, disputes, payouts) are
        about; raises as `pull` does, and InputError for one that Stripe does not know.
        """
        return StripeSubjectPull(self._reader, self._reference, subjects=subjects, now=now)


class StripePull:
    """One read, newest to oldest; positions count the rows as they arrive, from 1.

    A row may come more than once (overlapping pages, a payout's items, a pending id): the one with
    the highest position is the newest word of this pull.
    """

    def __init__(
        self,
        reader: StripeReader,
        reference: str,
        *,
        cursor: Cursor | None,
        pending_ids: Sequence[str],
        open_batches: Sequence[str],
        look_back: timedelta,
        now: datetime,
    ) -> None:
        self._reader = reader
        self._start = cursor
        self._since = None if cursor is None else int((cursor.position - look_back).timestamp())
        self._pending = dict.fromkeys(pending_ids)
        self._open_batches = open_batches
        self._now = now
        self._shape = _Shape(reference, _microseconds(now), reader.payment_of)
        self._position = 0
        self._newest: int | None = None
        self._linked: set[str] = set()
        self._rejects: list[RejectedRow] = []
        self._batches: list[BatchFact] = []
        self._entries = self._read()

    @property
    def entries(self) -> Iterator[SettlementEntry]:
        return self._entries

    @property
    def rejects(self) -> Sequence[RejectedRow]:
        return self._rejects

    @property
    def batches(self) -> Sequence[BatchFact]:
        """Payouts seen or asked for, each once, in the order of asking."""
        return self._batches

    @property
    def pages_read(self) -> int:
        """Pages and single objects that were asked for, by all pulls of this source."""
        return self._reader.requests

    @property
    def cursor(self) -> Cursor:
        """The newest creation time seen, on Stripe's own clock; it never goes back.

        Our clock is not taken: rows that Stripe dates before it could still be unseen.
        """
        if self._newest is None:
            return self._start or Cursor(datetime.fromtimestamp(0, UTC))
        newest = Cursor(datetime.fromtimestamp(self._newest, UTC))
        if self._start is not None and self._start.position > newest.position:
            return self._start
        return newest

    def _read(self) -> Iterator[SettlementEntry]:
        for row in self._reader.rows("balance_transactions", self._since):
            self._note_created(row)
            yield from self._entry(row, None)
        for payout in self._payouts():
            yield from self._items_of(payout)
        yield from self._linked_rows()
        yield from self._still_pending()

    def _note_created(self, row: Json) -> None:
        created = row.get("created")
        if type(created) is int and 0 <= created <= _LAST_INSTANT:
            self._newest = created if self._newest is None else max(created, self._newest)

    def _entry(self, row: Json, batch_ref: str | None) -> Iterator[SettlementEntry]:
        self._position += 1
        entry_id = row.get("id")
        if isinstance(entry_id, str):
            self._pending.pop(entry_id, None)
            if self._since is not None and source_id_of(row).startswith(LINK_PREFIXES):
                self._linked.add(entry_id)
        try:
            yield self._shape.entry(row, self._position, batch_ref)
        except _BadRow as bad:
            self._rejects.append(
                RejectedRow(self._position, bad.column, bad.value, bad.reason, bad.expected)
            )

    def _payouts(self) -> Iterator[Json]:
        """Payouts made since the cursor, then the ones that were not complete before."""
        seen: set[str] = set()
        for payout in self._reader.rows("payouts", self._since):
            seen.add(str(payout.get("id")))
            yield payout
        for payout_id in self._open_batches:
            if payout_id not in seen and payout_id.startswith("po_"):
                payout_or_none = self._reader.one("payouts", payout_id)
                if payout_or_none is not None:
                    yield payout_or_none

    def _items_of(self, payout: Json) -> Iterator[SettlementEntry]:
        try:
            fact = _batch_fact(payout)
        except _BadRow as bad:
            self._position += 1
            self._rejects.append(
                RejectedRow(
                    self._position,
                    f"payout.{bad.column}",
                    bad.value,
                    bad.reason,
                    bad.expected,
                )
            )
            return
        if fact.is_itemisable and fact.is_complete:
            items = self._reader.rows("balance_transactions", None, payout=fact.batch_ref)
            for row in items:
                yield from self._entry(row, fact.batch_ref)
        self._batches.append(fact)

    def _linked_rows(self) -> Iterator[SettlementEntry]:
        """Rows that a refund or dispute of the window names and the list did not show.

        Only a narrow window is worth it: the first pull, and one from a server that can't filter,
        have just read everything.
        """
        if self._since is None or not self._reader.filters_created:
            return
        for kind in ("refunds", "disputes"):
            for thing in self._reader.rows(kind, self._since):
                for entry_id in _rows_named_by(thing):
                    if entry_id not in self._linked:
                        yield from self._by_id(entry_id)

    def _still_pending(self) -> Iterator[SettlementEntry]:
        """Every entry that was pending and did not come by: by page while dense, then by id."""
        if len(self._pending) > WALK_ABOVE and self._since is not None:
            for page in self._reader.pages_before(self._since):
                hits = [row for row in page if row.get("id") in self._pending]
                for row in hits:
                    yield from self._entry(row, None)
                if len(hits) < 2 or not self._pending:
                    break
        for entry_id in list(self._pending):
            if entry_id in self._pending:
                yield from self._by_id(entry_id)

    def _by_id(self, entry_id: str) -> Iterator[SettlementEntry]:
        self._pending.pop(entry_id, None)
        row = self._reader.one("balance_transactions", entry_id)
        if row is not None:
            yield from self._entry(row, None)
            return
        self._position += 1
        self._rejects.append(
            RejectedRow(
                self._position,
                "id",
                entry_id,
                "Stripe does not know this balance transaction any more",
                "a balance transaction that was listed before",
            )
        )


class StripeSubjectPull(StripePull):
    """One read of a few payments and payouts, by their ids."""

    def __init__(
        self, reader: StripeReader, reference: str, *, subjects: Sequence[str], now: datetime
    ) -> None:
        super().__init__(
            reader,
            reference,
            cursor=None,
            pending_ids=(),
            open_batches=(),
            look_back=timedelta(0),
            now=now,
        )
        self._subjects = subjects

    def _read(self) -> Iterator[SettlementEntry]:
        charges, payouts = charges_and_payouts(self._reader, self._subjects)
        for charge in charges:
            for row in rows_about(self._reader, charge):
                yield from self._entry(row, None)
        for payout in payouts:
            for row in self._reader.rows("balance_transactions", None, source=id_of(payout)):
                yield from self._entry(row, None)
            yield from self._items_of(payout)


class _BadRow(Exception):
    def __init__(self, column: str, value: object, reason: str, expected: str) -> None:
        super().__init__(reason)
        self.column = column
        self.value = None if value is None else _storable(str(value))[:200]
        self.reason = reason
        self.expected = expected


class _Shape:
    """Makes an entry of a balance transaction."""

    def __init__(
        self, reference: str, source_order: int, payment_of: Callable[[Json], Payment | None]
    ) -> None:
        self._reference = reference
        self._source_order = source_order
        self._payment_of = payment_of

    def entry(self, row: Json, position: int, batch_ref: str | None) -> SettlementEntry:
        """Read one row; raises _BadRow for the first field that can't be used."""
        currency = _currency(row)
        status = _text(row, "status")
        if status not in _STATUS:
            raise _BadRow("status", status, "unknown status", "pending or available")
        entry_type = _entry_type(row)
        entry_id = _text(row, "id")
        gross, fee, net = (_amount(row, column) for column in ("amount", "fee", "net"))
        occurred_at, available_at = _instant(row, "created"), _instant(row, "available_on")
        payment = self._payment_of(row)
        if entry_type == "payout":
            batch_ref = source_id_of(row) or batch_ref
        return SettlementEntry(
            line_no=position,
            entry_id=entry_id,
            entry_type=entry_type,
            provider_type=_text(row, "type"),
            batch_ref=batch_ref,
            payment_ref=self._known_by(payment),
            provider_payment_ref=payment.charge if payment else None,
            gross_minor=gross,
            fee_minor=fee,
            net_minor=net,
            currency=currency,
            net_currency=currency,
            entry_status=_STATUS[status],
            occurred_at=occurred_at,
            available_at=available_at,
            source_order=self._source_order,
            body=_body(row),
        )

    def _known_by(self, payment: Payment | None) -> str | None:
        if payment is None:
            return None
        if self._reference == "charge":
            return payment.charge
        if self._reference == "payment_intent":
            return payment.payment_intent
        known_by = payment.metadata.get(self._reference.removeprefix("metadata."))
        return _storable(known_by)[:200] if known_by else None


def _entry_type(row: Json) -> EntryType:
    category = row.get("reporting_category")
    if isinstance(category, str) and category:
        return BY_CATEGORY.get(category, "other")
    return BY_TYPE.get(str(row.get("type")), "other")


def _text(row: Json, column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value or len(value) > 255 or value != _storable(value):
        raise _BadRow(column, value, "missing" if value is None else "not a text", "a text")
    return value


def _storable(value: str) -> str:
    """JSON may hold a NUL or half a surrogate pair, which PostgreSQL can't keep."""
    return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _whole(row: Json, column: str, expected: str) -> int:
    value = row.get(column)
    if type(value) is not int:
        reason = "missing" if value is None else "not a whole number"
        raise _BadRow(column, value, reason, expected)
    return value


def _amount(row: Json, column: str) -> int:
    expected = "a whole number of minor units"
    value = _whole(row, column, expected)
    if not -_BIGINT < value < _BIGINT:
        raise _BadRow(column, value, "out of range", expected)
    return value


def _instant(row: Json, column: str) -> datetime:
    expected = "seconds since 1970 in UTC"
    value = _whole(row, column, expected)
    if not 0 <= value <= _LAST_INSTANT:
        raise _BadRow(column, value, "out of range", expected)
    return datetime.fromtimestamp(value, UTC)


def _currency(row: Json) -> str:
    value = row.get("currency")
    if not isinstance(value, str) or not _CURRENCY.match(value.lower()):
        reason = "missing" if value is None else "not a currency code"
        raise _BadRow("currency", value, reason, "three letters")
    return value.upper()


def _microseconds(instant: datetime) -> int:
    return (instant - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def _rows_named_by(thing: Json) -> Iterator[str]:
    """The balance transactions of a refund (one, and one when it failed) or of a dispute."""
    several = thing.get("balance_transactions")
    named = several if isinstance(several, list) else []
    for row in (*named, thing.get("balance_transaction"), thing.get("failure_balance_transaction")):
        if entry_id := id_of(row):
            yield entry_id


def _batch_fact(payout: Json) -> BatchFact:
    automatic = payout.get("automatic") is True
    status = payout.get("reconciliation_status")
    return BatchFact(
        batch_ref=_text(payout, "id"),
        currency=_currency(payout),
        is_itemisable=automatic,
        is_complete=automatic and status in ("completed", None),
        provider_status=_text(payout, "status"),
        expected_at=_instant(payout, "arrival_date") if payout.get("arrival_date") else None,
    )


def _body(row: Json) -> Json:
    """The fields worth keeping as evidence; an allow-list, so that nothing personal comes along.

    Only what does not change later is taken from the source. `exchange_rate` is text, digit by
    digit as it came.
    """
    body: Json = {
        name: row[name]
        for name in ("type", "reporting_category", "balance_type", "exchange_rate")
        if row.get(name) is not None
    }
    if source_id := source_id_of(row):
        body["source"] = source_id
    fees = row.get("fee_details")
    if isinstance(fees, list) and fees:
        body["fee_details"] = [
            {name: fee[name] for name in ("type", "amount", "currency") if name in fee}
            for fee in fees
            if isinstance(fee, dict)
        ]
    source = row.get("source")
    if isinstance(source, dict):
        body.update(_body_of_source(source))
    return body


def _body_of_source(source: Json) -> Json:
    kind = source.get("object")
    if kind in ("charge", "refund", "dispute"):
        body = {
            "customer_facing_amount": source.get("amount"),
            "customer_facing_currency": source.get("currency"),
            "charge": id_of(source if kind == "charge" else source.get("charge")),
            "payment_intent": id_of(source.get("payment_intent")),
            "reason": source.get("reason") if kind != "charge" else None,
        }
    elif kind == "payout":
        body = {"automatic": source.get("automatic"), "method": source.get("method")}
    else:
        return {}
    return {name: value for name, value in body.items() if value not in (None, "")}
