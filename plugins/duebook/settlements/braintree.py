"""Braintree's transaction-level fee report: one row a transaction of a disbursement.

It comes in two forms, for flat rates (`Total Fee Amount`) and for interchange plus (`Est. Total Fee
Amount`, an estimate of Braintree's own). Amounts are major units in the settlement currency. The
direction is said by `Transaction Type`, whether or not a credit is written with its sign. PayPal
and directly processed American Express are not in this report, nor are disputes. Sources:
https://developer.paypal.com/braintree/articles/control-panel/reporting/transaction-level-fee-report,
https://developer.paypal.com/braintree/docs/reference/response/transaction-level-fee-report-row.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from duebook.config import CsvColumns
from duebook.settlements.base import EntryType
from duebook.settlements.delimited import (
    Layout,
    ScannedFile,
    Translate,
    UnknownLayoutError,
    scan_translated,
)

WHAT: Final = "the columns of Braintree's transaction-level fee report"
FEES: Final = ("Total Fee Amount", "Est. Total Fee Amount")
TYPES: Final[Mapping[str, EntryType]] = MappingProxyType({"sale": "charge", "credit": "refund"})
_ACCOUNTS: Final = ("Merchant Account ID", "Merchant Account Token")
_OUT: Final = "credit"


def columns_of(fee: str) -> Mapping[str, str]:
    """Field to column of the form with this fee column, as an error names it."""
    return MappingProxyType(
        {
            "entry_id_1": "Transaction ID",
            "entry_id_2": "Transaction Type",
            "gross": "Settlement Amount",
            "fee": fee,
            "currency": "Settlement Currency",
            "payment_ref": "Order ID",
            "provider_payment_ref": "Original Transaction ID",
            "batch_ref": "Disbursement Date",
            "occurred_at": "Settlement Date",
        }
    )


def dialect_of(fee: str) -> CsvColumns:
    """How the form with this fee column writes its numbers and dates."""
    return CsvColumns(
        entry_id=("Transaction ID", "Transaction Type"),
        type="Transaction Type",
        gross="Settlement Amount",
        fee=fee,
        currency="Settlement Currency",
        occurred_at="Settlement Date",
    )


def scan_report(path: Path, *, fee: str) -> ScannedFile:
    """Look at a report of the form with this fee column once.

    Raises UnknownLayoutError when it is no such report, InputError when it can't be read as a
    whole.
    """
    fault: UnknownLayoutError | None = None
    for account in _ACCOUNTS:
        try:
            return scan_translated(path, _layout(fee, account), tuple(columns_of(fee)), _translator)
        except UnknownLayoutError as error:
            fault = fault or error
    assert fault is not None
    raise fault


def _layout(fee: str, account: str) -> Layout:
    columns = {
        "id": "Transaction ID",
        "original": "Original Transaction ID",
        "type": "Transaction Type",
        "amount": "Settlement Amount",
        "fee": fee,
        "currency": "Settlement Currency",
        "settled": "Settlement Date",
        "disbursed": "Disbursement Date",
        "account": account,
        "order": "Order ID",
    }
    return Layout(WHAT, columns, frozenset(columns) - {"original", "order"})


def _translator() -> Translate:
    return _translated


def _translated(cells: Mapping[str, str | None]) -> list[str | None]:
    kind = cells.get("type")
    batch = ":".join(part for part in (cells.get("disbursed"), cells.get("account")) if part)
    return [
        cells.get("id"),
        kind,
        _directed(cells.get("amount"), (kind or "").strip().lower()),
        cells.get("fee"),
        cells.get("currency"),
        cells.get("order"),
        cells.get("original") or cells.get("id"),
        batch or None,
        cells.get("settled"),
    ]


def _directed(amount: str | None, kind: str) -> str | None:
    """What is written, a credit with the sign of what goes out."""
    if amount is None or kind != _OUT:
        return amount
    return f"-{amount.removeprefix('-')}"
