"""Made-up payouts of GoCardless, Square and Braintree as documented, and their books.

As in `generator`, everything follows from the seed. What the formats are is said in the modules
that read them, each with its sources.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, Literal

from duebook.domain.money import exponent
from duebook.settlements.generator import (
    BookedPayment,
    Breaks,
    drawn_amount,
    major_text,
    mix,
    write_contacts,
    write_ledger,
    write_lines,
    write_rows,
)

PayoutForm = Literal[
    "gocardless_json", "gocardless_csv", "square_json", "braintree_flat", "braintree_icplus"
]
GOCARDLESS_COLUMNS: Final = (
    "customers.id",
    "resources.type",
    "resources.description",
    "resources.created_at",
    "resources.charge_date",
    "resources.status",
    "resources.reference",
    "gross_amount",
    "gocardless_fees",
    "app_fees",
    "net_amount",
    "currency",
    "payouts.id",
    "payouts.arrival_date",
    "creditors.id",
    "payments.id",
    "refunds.id",
    "mandates.id",
    "subscriptions.id",
)
BRAINTREE_COLUMNS: Final = (
    "Merchant Account ID",
    "Transaction ID",
    "Original Transaction ID",
    "Transaction Type",
    "Presentment Currency",
    "Settlement Currency",
    "Settlement Amount",
    "Settlement Date",
    "Disbursement Date",
    "Payment Instrument",
    "Card Brand",
    "Card Type",
    "First 6 of CC",
    "Issuing Bank",
    "Refunded Amount",
    "Exchange Rate",
    "Order ID",
    "Acquirer Reference Number",
    "Card Issuing Country",
    "Discount",
    "Discount Credit",
    "Per Transaction Fee",
    "Per Transaction Fee Credit",
)
_FLAT: Final = (
    "Original Sale Amount",
    "Refund Type",
    "Multicurrency Fee Amount",
    "Multicurrency Fee Credit",
    "Braintree Total Amount",
    "Total Fee Amount",
)
_INTERCHANGE: Final = (
    "Interchange Description",
    "Interchange Currency",
    "Est. Interchange Total Amount",
    "Braintree Total Amount",
    "Est. Total Fee Amount",
)
_PAGE: Final = {"gocardless_json": 500, "square_json": 100}


@dataclass(frozen=True, slots=True)
class MadeMoney:
    """One money row; a refund's gross is negative. The fee is a cost, in tenths of a minor unit."""

    reference: str
    kind: Literal["charge", "refund"]
    gross: int
    fee_tenths: int

    @property
    def fee(self) -> int:
        """The fee in whole minor units, as every format but GoCardless's answers has it."""
        return self.fee_tenths // 10


@dataclass(frozen=True, slots=True)
class MadePayout:
    """What is paid out together; `money` makes its rows anew each time it is called."""

    ref: str
    currency: str
    day: date
    money: Callable[[], Iterable[MadeMoney]]

    @property
    def exact_tenths(self) -> int:
        """What the rows come to."""
        return sum(row.gross * 10 - row.fee_tenths for row in self.money())

    @property
    def amount(self) -> int:
        """What is paid, parts of a minor unit rounded once."""
        return (self.exact_tenths + 5) // 10

    @property
    def whole_amount(self) -> int:
        """What is paid where each fee is whole."""
        return sum(row.gross - row.fee for row in self.money())


@dataclass(frozen=True, slots=True)
class PayoutFile:
    """What was written, in minor units of `currency`."""

    path: Path
    ledger_path: Path
    contacts_path: Path
    currency: str
    charges: int
    charged_minor: int
    refunds: int
    refunded_minor: int
    payout_minor: int
    ledger_rows: int


def generate_payout(
    seed: int,
    payments: int,
    number: int,
    folder: Path,
    form: PayoutForm,
    *,
    day: date = date(2026, 3, 2),
    currency: str = "EUR",
    accounts: int = 50,
    provider_account: str | None = None,
    refund_every: int = 20,
    digits: int = 6,
    breaks: Breaks | None = None,
) -> PayoutFile:
    """Write one payout in that form, and the ledger and contacts CSV that belong to it.

    Every `refund_every`-th payment is refunded, half of them in part; 0: none. GoCardless's answers
    have fees with half a minor unit. Raises InputError when there are fewer payments than breaks.
    """
    provider = form.partition("_")[0]
    folder.mkdir(parents=True, exist_ok=True)
    draw = _Draw(seed * 1_000_003 + number, number, payments, refund_every, digits)
    payout = MadePayout(f"{_PREFIX[form]}{number:06d}", currency, day, draw.money)
    path = folder / f"{form}_{number}.{'json' if form in _PAGE else 'csv'}"
    write_payout(path, payout, form)
    ledger_path = folder / f"ledger_{form}_{number}.csv"
    prefix = f"{provider}-account"
    ledger_rows = write_ledger(
        ledger_path,
        draw.booked(prefix, accounts, currency),
        payments=payments,
        expected_at=datetime.combine(day, time(23, 0), UTC),
        provider_account=provider_account or provider,
        breaks=breaks or Breaks(),
    )
    contacts_path = folder / f"contacts_{prefix}.csv"
    write_contacts(contacts_path, accounts, prefix)
    charges = [row.gross for row in payout.money() if row.kind == "charge"]
    refunds = [row.gross for row in payout.money() if row.kind == "refund"]
    return PayoutFile(
        path=path,
        ledger_path=ledger_path,
        contacts_path=contacts_path,
        currency=currency,
        charges=len(charges),
        charged_minor=sum(charges),
        refunds=len(refunds),
        refunded_minor=-sum(refunds),
        payout_minor=payout.amount if form == "gocardless_json" else payout.whole_amount,
        ledger_rows=ledger_rows,
    )


@dataclass(frozen=True, slots=True)
class _Draw:
    """Draws the money of one payout."""

    seed: int
    number: int
    payments: int
    refund_every: int
    digits: int

    def amount(self, at: int) -> int:
        return drawn_amount(mix(self.seed, at * 8), self.digits)

    def reference(self, at: int) -> str:
        return f"PM{self.number:04d}{at:08d}"

    def refund(self, at: int) -> int:
        if not self.refund_every or at % self.refund_every != self.refund_every - 1:
            return 0
        return self.amount(at) // (1 if mix(self.seed, at * 8 + 1) % 2 else 3)

    def money(self) -> Iterator[MadeMoney]:
        for at in range(self.payments):
            gross = self.amount(at)
            fee_tenths = (gross // 100 + 20) * 10 + (5 if at % 3 == 0 else 0)
            yield MadeMoney(self.reference(at), "charge", gross, fee_tenths)
            if back := self.refund(at):
                yield MadeMoney(self.reference(at), "refund", -back, 0)

    def booked(self, prefix: str, accounts: int, currency: str) -> Iterator[BookedPayment]:
        for at in range(self.payments):
            back, gross = self.refund(at), self.amount(at)
            status = "settled" if not back else "partially_refunded"
            yield BookedPayment(
                account_id=f"{prefix}-{at % accounts:05d}",
                payment_id=f"{self.number}-{at:08d}",
                reference=self.reference(at),
                amount_minor=gross,
                currency=currency,
                status="refunded" if back == gross else status,
            )


def write_payout(path: Path, payout: MadePayout, form: PayoutForm) -> None:
    """Write one payout in that form."""
    if form in _PAGE:
        answers = gocardless_answers if form == "gocardless_json" else square_answers
        lines = (json.dumps(each, separators=(",", ":")) + "\n" for each in answers(payout))
        write_lines(path, lines)
        return
    columns, rows = payout_table(payout, form)
    write_rows(path, columns, rows)


def payout_table(
    payout: MadePayout, form: PayoutForm
) -> tuple[Sequence[str], Iterator[Sequence[object]]]:
    """The columns and rows of a form that is a table."""
    if form == "gocardless_csv":
        return GOCARDLESS_COLUMNS, _gocardless_rows(payout)
    own = _FLAT if form == "braintree_flat" else _INTERCHANGE
    columns = (*BRAINTREE_COLUMNS, *own)
    rows = (_braintree_row(payout, row) for row in payout.money())
    return columns, ([row.get(column, "") for column in columns] for row in rows)


def gocardless_answers(payout: MadePayout) -> Iterator[Mapping[str, Any]]:
    """The payout as `GET /payouts/:id` answers, then its items, page by page."""
    yield {
        "payouts": {
            "id": payout.ref,
            "amount": payout.amount,
            "arrival_date": f"{payout.day + timedelta(days=1)}",
            "created_at": f"{payout.day}T09:30:00.000Z",
            "currency": payout.currency,
            "deducted_fees": sum(row.fee for row in payout.money()),
            "payout_type": "merchant",
            "reference": f"REF-{payout.ref}",
            "status": "paid",
            "fx": {"fx_currency": None, "fx_amount": None, "exchange_rate": None},
            "links": {"creditor": "CR000099999999", "creditor_bank_account": "BA000099999999"},
        }
    }
    items = chain.from_iterable(_gocardless_items(row) for row in payout.money())
    for page in _pages(items, _PAGE["gocardless_json"]):
        yield {"payout_items": page, "meta": {"cursors": {"before": None, "after": None}}}


def _gocardless_items(row: MadeMoney) -> Iterator[Mapping[str, Any]]:
    links = {"payment": row.reference, "mandate": f"MD{row.reference[2:]}"}
    if row.kind == "refund":
        refund = {**links, "refund": f"RF{row.reference[2:]}"}
        yield {"amount": f"{row.gross}.0", "type": "refund", "links": refund, "taxes": []}
        return
    yield {"amount": f"{row.gross}.0", "type": "payment_paid_out", "links": links, "taxes": []}
    if row.fee_tenths:
        fee = f"-{row.fee_tenths // 10}.{row.fee_tenths % 10}"
        yield {"amount": fee, "type": "gocardless_fee", "links": links, "taxes": []}


def _gocardless_rows(payout: MadePayout) -> Iterator[Sequence[object]]:
    for row in payout.money():
        digits = exponent(payout.currency)
        is_refund = row.kind == "refund"
        yield (
            f"CU{row.reference[2:]}",
            "refund" if is_refund else "payment",
            "",
            f"{payout.day - timedelta(days=5)}T10:00:00.000Z",
            "" if is_refund else f"{payout.day - timedelta(days=2)}",
            "paid" if is_refund else "paid_out",
            "",
            major_text(row.gross, digits),
            major_text(-row.fee, digits),
            major_text(0, digits),
            major_text(row.gross - row.fee, digits),
            payout.currency,
            payout.ref,
            f"{payout.day + timedelta(days=1)}",
            "CR000099999999",
            row.reference,
            f"RF{row.reference[2:]}" if is_refund else "",
            f"MD{row.reference[2:]}",
            "",
        )


def square_answers(payout: MadePayout) -> Iterator[Mapping[str, Any]]:
    """The payout as GetPayout answers, then its entries, page by page."""
    yield {
        "payout": {
            "id": payout.ref,
            "status": "PAID",
            "location_id": "L88917AVBK2S5",
            "created_at": f"{payout.day}T18:00:00Z",
            "updated_at": f"{payout.day}T18:30:00Z",
            "amount_money": _square_money(payout, payout.whole_amount),
            "type": "BATCH",
            "arrival_date": f"{payout.day + timedelta(days=1)}",
        }
    }
    entries = (_square_entry(payout, row) for row in payout.money())
    for page in _pages(entries, _PAGE["square_json"]):
        yield {"payout_entries": page, "cursor": ""}


def _square_entry(payout: MadePayout, row: MadeMoney) -> Mapping[str, Any]:
    details: dict[str, str] = {"payment_id": row.reference}
    if row.kind == "refund":
        details["refund_id"] = f"{row.reference}_R"
    return {
        "id": f"poe_{row.kind}_{row.reference}",
        "payout_id": payout.ref,
        "effective_at": f"{payout.day}T16:00:00Z",
        "type": row.kind.upper(),
        "gross_amount_money": _square_money(payout, row.gross),
        "fee_amount_money": _square_money(payout, row.fee),
        "net_amount_money": _square_money(payout, row.gross - row.fee),
        f"type_{row.kind}_details": details,
    }


def _square_money(payout: MadePayout, minor: int) -> Mapping[str, Any]:
    return {"amount": minor, "currency": payout.currency}


def _braintree_row(payout: MadePayout, row: MadeMoney) -> Mapping[str, str]:
    digits = exponent(payout.currency)
    is_refund = row.kind == "refund"
    transaction = f"{row.reference.lower()}{'r' if is_refund else ''}"
    fee = major_text(row.fee, digits)
    back = major_text(-row.gross if is_refund else 0, digits)
    return {
        "Merchant Account ID": f"example_{payout.currency}",
        "Transaction ID": transaction,
        "Original Transaction ID": row.reference.lower() if is_refund else "",
        "Transaction Type": "credit" if is_refund else "sale",
        "Presentment Currency": payout.currency,
        "Settlement Currency": payout.currency,
        "Settlement Amount": major_text(abs(row.gross), digits),
        "Settlement Date": f"{payout.day}",
        "Disbursement Date": f"{payout.day + timedelta(days=2)}",
        "Payment Instrument": "credit_card",
        "Card Brand": "Visa",
        "Card Type": "credit",
        "Refunded Amount": back,
        "Exchange Rate": "1.0",
        "Order ID": row.reference,
        "Card Issuing Country": "NLD",
        "Discount": "0.0",
        "Discount Credit": "0.0",
        "Per Transaction Fee": fee,
        "Per Transaction Fee Credit": "0.0",
        "Braintree Total Amount": fee,
        "Total Fee Amount": fee,
        "Est. Total Fee Amount": fee,
    }


def _pages(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    left = iter(items)
    while page := list(islice(left, size)):
        yield page


_PREFIX: Final[Mapping[PayoutForm, str]] = {
    "gocardless_json": "PO",
    "gocardless_csv": "PO",
    "square_json": "po_",
    "braintree_flat": "BT",
    "braintree_icplus": "BT",
}
