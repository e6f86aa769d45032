"""Square: payout entries, as its API answers them.

A file holds pages of ListPayoutEntries, or one entry a line; the answer of GetPayout or
ListPayouts, where it is there too, becomes the row that closes the payout's batch. Amounts are
whole minor units. Whether a fee is written as a cost or as a deduction is not asked: gross, fee and
net stand beside each other, and a row in which they fit neither way is rejected. Source:
https://developer.squareup.com/reference/square/objects/PayoutEntry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from duebook.config import CsvColumns
from duebook.settlements.base import EntryType
from duebook.settlements.delimited import BrokenRow, DataRow, ScannedFile
from duebook.settlements.json_answers import (
    Json,
    members,
    no_answer,
    read_answers,
    scan_answers,
    text_at,
)

WHAT: Final = "Square's payout entries"
COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "entry_id_1": "id",
        "type": "type",
        "gross": "gross_amount_money",
        "fee": "fee_amount_money",
        "net": "net_amount_money",
        "currency": "gross_amount_money.currency",
        "payment_ref": "payment_id",
        "batch_ref": "payout_id",
        "occurred_at": "effective_at",
    }
)
FIELDS: Final = tuple(COLUMNS)
DIALECT: Final = CsvColumns(
    entry_id="id",
    type="type",
    gross="gross_amount_money",
    currency="currency",
    occurred_at="effective_at",
    minor_units=True,
)
_WORDS: Final[Mapping[EntryType, str]] = {
    "charge": "CHARGE",
    "refund": "REFUND",
    "chargeback": "DISPUTE OPEN_DISPUTE",
    "fee": """
        APP_FEE_REFUND APP_FEE_REVENUE DEPOSIT_FEE DEPOSIT_FEE_REVERSED FEE FREE_PROCESSING
        GIFT_CARD_LOAD_FEE GIFT_CARD_LOAD_FEE_REFUND LOCAL_OFFERS_FEE PAID_SERVICE_FEE
        PAID_SERVICE_FEE_REFUND PROCESSING_FEE PROCESSING_FEE_REFUND SUBSCRIPTION_FEE
        SUBSCRIPTION_FEE_PAID_REFUND SUBSCRIPTION_FEE_REFUND TAX_ON_FEE THIRD_PARTY_FEE
        THIRD_PARTY_FEE_REFUND UNDO_GIFT_CARD_LOAD_FEE_REFUND UNDO_PROCESSING_FEE_REFUND
    """,
    "payout": "PAYOUT",
    "transfer": """
        AUTOMATIC_SAVINGS AUTOMATIC_SAVINGS_REVERSED BALANCE_FOLDERS_TRANSFER
        BALANCE_FOLDERS_TRANSFER_REVERSED CREDIT_CARD_REPAYMENT CREDIT_CARD_REPAYMENT_REVERSED
        GIFT_CARD_POOL_TRANSFER GIFT_CARD_POOL_TRANSFER_REVERSED MONEY_TRANSFER
        MONEY_TRANSFER_REVERSAL PERCENTAGE_PROCESSING_REPAYMENT
        PERCENTAGE_PROCESSING_REPAYMENT_REVERSED SQUARE_CAPITAL_PAYMENT
        SQUARE_CAPITAL_REVERSED_PAYMENT SQUARE_PAYROLL_TRANSFER SQUARE_PAYROLL_TRANSFER_REVERSED
    """,
    "reserve": "HOLD_ADJUSTMENT RELEASE_ADJUSTMENT RESERVE_HOLD RESERVE_RELEASE",
    "conversion": "AUTOMATIC_BITCOIN_CONVERSIONS AUTOMATIC_BITCOIN_CONVERSIONS_REVERSED",
    "adjustment": """
        ADJUSTMENT ESCHEATMENT INITIAL_BALANCE_CHANGE LOCAL_OFFERS_CASHBACK OTHER_ADJUSTMENT
        PERCENTAGE_PROCESSING_DEACTIVATION PERCENTAGE_PROCESSING_ENROLLMENT REDEMPTION_CODE
        RETURNED_PAYOUT
    """,
    "other": "OTHER",
}
TYPES: Final[Mapping[str, EntryType]] = MappingProxyType(
    {word: entry_type for entry_type, words in _WORDS.items() for word in words.split()}
)
"""Square's activity types. A dispute that was won gives back what its opening took: both are
chargebacks, with opposite signs."""

_WHOLE: Final = re.compile(r"-?\d{1,18}\Z", re.ASCII)


def scan_entries(path: Path) -> ScannedFile:
    """Look at a file of answers once.

    Raises UnknownLayoutError when its first one is of no payout, InputError when it can't be read
    as a whole.
    """
    return scan_answers(path, WHAT, FIELDS, _is_ours, read_entries)


def _is_ours(first: Json) -> bool:
    if "payout_entries" in first or "gross_amount_money" in first:
        return True
    return any("amount_money" in each for each in _payouts(first))


def _payouts(found: Json) -> list[Json]:
    return [*members(found, "payout"), *members(found, "payouts")]


def _entries(found: Json) -> list[Json]:
    return [found] if "payout_id" in found else members(found, "payout_entries")


def read_entries(file: ScannedFile) -> Iterator[DataRow | BrokenRow]:
    """Every entry, its cells in the order of FIELDS, and a row for each payout that is told."""
    number = 0
    for answer in read_answers(file, WHAT):
        found = answer.value or {}
        rows = [_payout_row(each) for each in _payouts(found)]
        rows += [_entry_row(each) for each in _entries(found)]
        if not rows and not {"payout_entries", "payouts"} & found.keys():
            number += 1
            yield no_answer(number, answer, WHAT)
        for cells in rows:
            number += 1
            yield DataRow(number, cells)


def _entry_row(entry: Json) -> list[str | None]:
    gross, fee, net = (
        text_at(entry, name, "amount")
        for name in ("gross_amount_money", "fee_amount_money", "net_amount_money")
    )
    return [
        text_at(entry, "id"),
        text_at(entry, "type"),
        gross,
        _cost(gross, fee, net),
        net,
        _currency(entry, "gross_amount_money"),
        _payment_id(entry),
        text_at(entry, "payout_id"),
        text_at(entry, "effective_at"),
    ]


def _payout_row(payout: Json) -> list[str | None]:
    """What leaves for the bank; it closes the batch."""
    amount = text_at(payout, "amount_money", "amount")
    if amount is not None and _WHOLE.match(amount):
        amount = str(-int(amount))
    payout_id = text_at(payout, "id")
    currency = _currency(payout, "amount_money")
    when = text_at(payout, "created_at") or text_at(payout, "arrival_date")
    return [payout_id, "PAYOUT", amount, None, amount, currency, None, payout_id, when]


def _cost(gross: str | None, fee: str | None, net: str | None) -> str | None:
    """The fee as a cost; one that fits neither way is made no amount: its row is rejected."""
    if fee is None or not all(text and _WHOLE.match(text) for text in (gross, fee, net)):
        return fee
    kept = int(gross or 0) - int(net or 0)
    if abs(int(fee)) != abs(kept):
        return f"{fee}, although gross less net is {kept}"
    return str(kept)


def _currency(holder: Json, name: str) -> str | None:
    return text_at(holder, name, "currency") or text_at(holder, name, "currency_code")


def _payment_id(entry: Json) -> str | None:
    """Of whichever details the entry's type has."""
    for name, details in entry.items():
        if name.startswith("type_") and name.endswith("_details"):
            found = text_at(details, "payment_id")
            if found is not None:
                return found
    return None
