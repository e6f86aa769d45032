"""GoCardless: the items of a payout, as its API answers or as its dashboard exports them.

The API's items name neither their payout nor a currency, so a file holds the answer of
`GET /payouts/:id` before that payout's pages of `GET /payout_items?payout=:id`. Amounts are text in
minor units, with one decimal where a fee is a part of a penny; what the payout pays is their sum,
rounded once. A part of a minor unit is no money that can be kept, so items are cut to whole ones
and what that comes to stands in a row of its own, `rounding`, by which the payout closes.

The export ("payout breakdown, transactions") is a table in major units, a row a payment or refund
with its fees. The sign says which way a payment's money went: `resources.status` is the status of
today, not of this payout. Sources: https://developer.gocardless.com/api-reference/#payout-items and
https://support.gocardless.com/hc/en-us/articles/17144251867548-Payout-breakdown-reports-Transactions.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from duebook.config import CsvColumns
from duebook.settlements.base import EntryType
from duebook.settlements.delimited import (
    BrokenRow,
    DataRow,
    Layout,
    ScannedFile,
    scan_translated,
)
from duebook.settlements.json_answers import (
    Json,
    members,
    no_answer,
    read_answers,
    scan_answers,
    text_at,
)

WHAT: Final = "GoCardless's answers: a payout, then its payout_items"
EXPORT_WHAT: Final = "the columns of GoCardless's payout transactions"
ROUNDING: Final = "rounding"
COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "entry_id_1": "links",
        "type": "type",
        "gross": "amount",
        "fee": "amount",
        "currency": "currency",
        "payment_ref": "links.payment",
        "provider_payment_ref": "links.refund",
        "batch_ref": "payouts.id",
        "occurred_at": "created_at",
    }
)
FIELDS: Final = tuple(COLUMNS)
DIALECT: Final = CsvColumns(
    entry_id="links",
    type="type",
    gross="amount",
    fee="fee",
    currency="currency",
    occurred_at="created_at",
    minor_units=True,
)
EXPORT_COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "entry_id_1": "payments.id",
        "type": "resources.type",
        "gross": "gross_amount",
        "net": "net_amount",
        "currency": "currency",
        "payment_ref": "payments.id",
        "provider_payment_ref": "refunds.id",
        "batch_ref": "payouts.id",
        "occurred_at": "payouts.arrival_date",
    }
)
EXPORT_FIELDS: Final = tuple(EXPORT_COLUMNS)
EXPORT_DIALECT: Final = CsvColumns(
    entry_id="payments.id",
    type="resources.type",
    gross="gross_amount",
    net="net_amount",
    currency="currency",
    occurred_at="payouts.arrival_date",
)
_EXPORT_LAYOUT: Final = Layout(
    EXPORT_WHAT,
    {
        "type": "resources.type",
        "gross": "gross_amount",
        "net": "net_amount",
        "currency": "currency",
        "payout": "payouts.id",
        "arrival": "payouts.arrival_date",
        "payment": "payments.id",
        "refund": "refunds.id",
    },
    frozenset({"type", "gross", "net", "currency", "payout", "arrival", "payment"}),
)
TYPES: Final[Mapping[str, EntryType]] = MappingProxyType(
    {
        "payment_paid_out": "charge",
        "payment_failed": "chargeback",
        "payment_charged_back": "chargeback",
        "payment_refunded": "refund",
        "refund": "refund",
        "refund_funds_returned": "refund",
        "gocardless_fee": "fee",
        "app_fee": "fee",
        "surcharge_fee": "fee",
        "revenue_share": "adjustment",
        ROUNDING: "adjustment",
        "payout": "payout",
        "payment": "charge",
        "payment (debit)": "chargeback",
    }
)
"""A payment that fails after it was paid out is taken back by the bank, like a chargeback; a refund
whose money returned is a refund the other way. `payment` and `payment (debit)` are the export's."""

_FEES: Final = frozenset({"gocardless_fee", "app_fee", "surcharge_fee"})
_AMOUNT: Final = re.compile(r"-?\d{1,16}(?:\.\d{1,4})?\Z", re.ASCII)


def scan_items(path: Path) -> ScannedFile:
    """Look at a file of answers once.

    Raises UnknownLayoutError when its first one is of no payout, InputError when it can't be read
    as a whole.
    """
    return scan_answers(path, WHAT, FIELDS, _is_ours, read_items)


def scan_export(path: Path, delimiter: str = ",") -> ScannedFile:
    """Look at an exported table once; raises as `scan_items` does."""
    layout = Layout(EXPORT_WHAT, _EXPORT_LAYOUT.columns, _EXPORT_LAYOUT.required, delimiter)
    return scan_translated(path, layout, EXPORT_FIELDS, lambda: partial(_exported, Counter()))


def _is_ours(first: Json) -> bool:
    if "payout_items" in first:
        return True
    payouts = members(first, "payouts")
    return bool(payouts) and all("amount_money" not in each for each in payouts)


@dataclass(slots=True)
class _Payout:
    """The payout whose items are being read, and what they come to."""

    id: str
    currency: str | None
    occurred_at: str | None
    amount: Decimal | None
    exact: Decimal = Decimal(0)
    whole: int = 0
    items: int = 0
    seen: Counter[str] = field(default_factory=Counter)


def read_items(file: ScannedFile) -> Iterator[DataRow | BrokenRow]:
    """Every item, its cells in the order of FIELDS, and a row for each payout."""
    payout: _Payout | None = None
    number = 0
    for answer in read_answers(file, WHAT):
        found = answer.value
        items = _items(found)
        if found is None or not (items or "payout_items" in found or "payouts" in found):
            number += 1
            yield no_answer(number, answer, WHAT)
            continue
        payouts = [_payout(each) for each in members(found, "payouts")]
        if payouts:
            number, row = _close(payout, number)
            yield from row
            # Items that follow several payouts could be of any of them.
            payout = payouts[0] if len(payouts) == 1 else None
        for each in payouts:
            number += 1
            yield _payout_row(number, each)
        for item in items:
            number += 1
            yield _item_row(number, item, payout)
    yield from _close(payout, number)[1]


def _items(found: Json | None) -> list[Json]:
    if found is None:
        return []
    return [found] if "type" in found and "links" in found else members(found, "payout_items")


def _payout(found: Json) -> _Payout:
    amount = text_at(found, "amount") or ""
    return _Payout(
        id=text_at(found, "id") or "",
        currency=text_at(found, "currency"),
        occurred_at=text_at(found, "created_at") or text_at(found, "arrival_date"),
        amount=Decimal(amount) if _AMOUNT.match(amount) else None,
    )


def _payout_row(number: int, payout: _Payout) -> DataRow:
    """What leaves for the bank; it closes the batch."""
    gross = None if payout.amount is None else format(-payout.amount, "f")
    return _row(number, payout, payout.id, "payout", gross=gross)


def _item_row(number: int, item: Json, payout: _Payout | None) -> DataRow | BrokenRow:
    raw = json.dumps(item, ensure_ascii=False)
    if payout is None:
        reason = "an item whose payout is not named before it"
        return BrokenRow(number, raw, raw[:200], reason, WHAT)
    payout.items += 1
    kind = text_at(item, "type") or ""
    text = text_at(item, "amount")
    payment = text_at(item, "links", "payment")
    refund = text_at(item, "links", "refund")
    subject = refund or payment or text_at(item, "links", "mandate") or "account"
    entry_id = f"{payout.id}:{kind}:{subject}"
    payout.seen[entry_id] += 1
    if payout.seen[entry_id] > 1:
        entry_id = f"{entry_id}:{payout.seen[entry_id]}"
    gross, fee = text, None
    if text is not None and _AMOUNT.match(text):
        exact = Decimal(text)
        whole = int(exact.to_integral_value(ROUND_DOWN))
        payout.exact += exact
        payout.whole += whole
        gross, fee = ("0", str(-whole)) if kind.lower() in _FEES else (str(whole), None)
    return _row(number, payout, entry_id, kind, gross, fee, payment, refund)


def _row(
    number: int,
    payout: _Payout,
    entry_id: str,
    kind: str,
    gross: str | None,
    fee: str | None = None,
    payment: str | None = None,
    refund: str | None = None,
) -> DataRow:
    batch, when = payout.id or None, payout.occurred_at
    cells = [entry_id, kind, gross, fee, payout.currency, payment, refund or payment, batch, when]
    return DataRow(number, cells)


def _close(payout: _Payout | None, number: int) -> tuple[int, list[DataRow]]:
    """The last number that was given, and the row that parts of a minor unit come to, if any."""
    if payout is None or payout.items == 0:
        return number, []
    rounded = payout.exact.to_integral_value(ROUND_HALF_UP)
    if payout.amount is not None and abs(payout.amount - payout.exact) < 1:
        rounded = payout.amount
    parts = int(rounded) - payout.whole
    if parts == 0:
        return number, []
    row = _row(number + 1, payout, f"{payout.id}:{ROUNDING}", ROUNDING, str(parts))
    return number + 1, [row]


def _exported(seen: Counter[str], cells: Mapping[str, str | None]) -> list[str | None]:
    kind, gross = cells.get("type"), cells.get("gross")
    if (kind or "").lower() == "payment" and (gross or "").startswith("-"):
        kind = "payment (debit)"
    payout, payment, refund = cells.get("payout"), cells.get("payment"), cells.get("refund")
    entry_id = f"{payout}:{kind}:{refund or payment or 'account'}"
    seen[entry_id] += 1
    if seen[entry_id] > 1:
        entry_id = f"{entry_id}:{seen[entry_id]}"
    return [
        entry_id if payout else None,
        kind,
        gross,
        cells.get("net"),
        cells.get("currency"),
        payment,
        refund or payment,
        payout,
        cells.get("arrival"),
    ]
