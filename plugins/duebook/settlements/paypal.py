"""PayPal's settlement report (STL): typed records, read into the columns of a mapped file.

RH and FH open a file, SH a section, CH names the columns of its rows, SB is a row; SF (a currency
of the section) and RF (a currency of the report) state what the rows should come to. Amounts are
unsigned hundredths in every currency, yen included; their sign stands in a column of its own. A
day's report may come in several files, each whole in itself. Source:
https://developer.paypal.com/docs/reports/sftp-reports/settlement-report/.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Final

from duebook.config import CsvColumns
from duebook.errors import InputError
from duebook.settlements.base import EntryType, FileCheck
from duebook.settlements.delimited import (
    BrokenRow,
    DataRow,
    ScannedFile,
    read_records,
    scan_records,
)

WHAT: Final = "the records of PayPal's settlement report"
COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "entry_id_1": "Transaction ID",
        "entry_id_2": "Transaction Event Code",
        "gross": "Gross Transaction Amount",
        "fee": "Fee Amount",
        "currency": "Gross Transaction Currency",
        "net_currency": "Fee Currency",
        "payment_ref": "Invoice ID",
        "provider_payment_ref": "PayPal Reference ID",
        "batch_ref": "SH",
        "occurred_at": "Transaction Completion Date",
        "updated_at": "RH",
    }
)
FIELDS: Final = tuple(COLUMNS)
"""One transaction may come under two codes (a hold and its release), so both are its identity."""

DIALECT: Final = CsvColumns(
    entry_id=("Transaction ID", "Transaction Event Code"),
    type="Transaction Event Code",
    gross=COLUMNS["gross"],
    currency=COLUMNS["currency"],
    occurred_at=COLUMNS["occurred_at"],
)
_GROSS_SIGN: Final = "Transaction Debit or Credit"
_FEE_SIGN: Final = "Fee Debit or Credit"
_REFERENCE_TYPE: Final = "PayPal Reference ID Type"
_NEEDED: Final = (
    *(header for header in COLUMNS.values() if header not in ("SH", "RH")),
    _GROSS_SIGN,
    _FEE_SIGN,
    _REFERENCE_TYPE,
)
_OPENS: Final = frozenset({"RH", "FH", "SH", "CH"})
_CLOSES: Final = frozenset({"SC", "RC", "FF"})
_TOTALS: Final = frozenset({"SF", "RF"})
_INSTANT: Final = re.compile(r"(\d{4})/(\d{2})/(\d{2}) (\d{2}:\d{2}:\d{2}) ([+-]\d{2}):?(\d{2})\Z")
_AMOUNT: Final = re.compile(r"\d{1,16}\Z")
_PAYMENT, _WITHDRAWAL = "T00", "T04"


def _codes(entry_type: EntryType, first: int, last: int) -> dict[str, EntryType]:
    return {f"T{number:04}": entry_type for number in range(first, last + 1)}


TYPES: Final[Mapping[str, EntryType]] = MappingProxyType(
    {
        **_codes("charge", 0, 22),
        **_codes("fee", 100, 114),
        **_codes("conversion", 200, 202),
        **_codes("transfer", 300, 303),
        **_codes("payout", 400, 403),
        **_codes("transfer", 500, 505),
        **_codes("adjustment", 600, 600),
        **_codes("adjustment", 700, 702),
        **_codes("adjustment", 800, 807),
        **_codes("adjustment", 900, 905),
        **_codes("transfer", 1000, 1001),
        **_codes("adjustment", 1100, 1100),
        **_codes("adjustment", 1101, 1104),
        **_codes("adjustment", 1105, 1105),
        "T1106": "chargeback",
        "T1107": "refund",
        **_codes("fee", 1108, 1109),
        **_codes("reserve", 1110, 1113),
        "T1114": "chargeback",
        "T1115": "adjustment",
        "T1116": "refund",
        "T1117": "adjustment",
        "T1118": "adjustment",
        "T1119": "refund",
        "T1200": "adjustment",
        "T1201": "chargeback",
        "T1202": "chargeback_reversal",
        **_codes("adjustment", 1203, 1205),
        "T1207": "chargeback",
        "T1208": "adjustment",
        **_codes("reserve", 1500, 1503),
        "T1900": "adjustment",
        **_codes("transfer", 2001, 2003),
        **_codes("reserve", 2101, 2106),
        "T9800": "adjustment",
        "T9900": "other",
    }
)
"""Event code to entry type; a code that is not here is kept as `other` and flagged. A withdrawal
(T04…) pays out; a currency conversion is a pair of T0200 with the payment as its reference."""


def scan_report(path: Path) -> ScannedFile:
    """Look at a file once, start to end.

    Raises UnknownLayoutError for a file that does not begin with a record of this report, and
    InputError for one that can't be read as a whole.
    """
    return scan_records(path, WHAT, FIELDS, _is_report, read_report)


def _is_report(cells: Sequence[str]) -> bool:
    return bool(cells) and cells[0].strip().upper() in _OPENS and len(cells) > 1


@dataclass(slots=True)
class _Totals:
    """What rows of one currency come to, hundredths; withdrawals are left out, as PayPal does."""

    gross_credit: int = 0
    gross_debit: int = 0
    fee_credit: int = 0
    fee_debit: int = 0


@dataclass(slots=True)
class _Report:
    """Where the reading stands: what the last opening records said, and the sums since."""

    file: ScannedFile
    generated: str | None = None
    batch_ref: str | None = None
    columns: Mapping[str, int] = field(default_factory=dict)
    width: int = 0
    section_no: int = 0
    rows: int = 0
    section: dict[str, _Totals] = field(default_factory=lambda: defaultdict(_Totals))
    report: dict[str, _Totals] = field(default_factory=lambda: defaultdict(_Totals))
    has_footer: bool = False


def read_report(file: ScannedFile) -> Iterator[DataRow | BrokenRow]:
    """Every row, its cells in the order of FIELDS; what the report states is put in `file.checks`.

    Raises InputError for a section whose columns are not all there.
    """
    report = _Report(file)
    file.checks.clear()
    for line_no, raw, cells in read_records(file):
        if cells is None:
            yield BrokenRow(line_no, raw, raw[:200], "badly quoted", WHAT)
            continue
        if not any(cell.strip() for cell in cells):
            continue
        kind = cells[0].strip().upper()
        if kind == "SB":
            yield _row(report, line_no, raw, cells)
        elif kind in _OPENS:
            _open(report, kind, line_no, cells)
        elif kind in _TOTALS:
            _compare(report, kind, cells)
        elif kind not in _CLOSES:
            yield BrokenRow(line_no, raw, cells[0][:200], "unknown record type", WHAT)
    _end_section(report)


def _open(report: _Report, kind: str, line_no: int, cells: Sequence[str]) -> None:
    if kind == "RH":
        report.generated = _instant(cells[1])
    elif kind == "SH":
        _end_section(report)
        report.section_no += 1
        report.batch_ref = _batch_ref(cells)
    elif kind == "CH":
        names = [cell.strip().casefold() for cell in cells]
        missing = next((each for each in _NEEDED if each.casefold() not in names), None)
        if missing is not None:
            where = f"{report.file.name}, line {line_no}"
            raise InputError(f"{where}: column {missing!r} is missing; expected {WHAT}")
        report.columns = {header: names.index(header.casefold()) for header in _NEEDED}
        report.width = len(cells)


def _batch_ref(cells: Sequence[str]) -> str | None:
    """The day on which the section's period ends, and whose account it is."""
    end = cells[2].strip() if len(cells) > 2 else ""
    account = cells[3].strip() if len(cells) > 3 else ""
    day = end[:10].replace("/", "-")
    return ":".join(part for part in (day, account) if part) or None


def _row(report: _Report, line_no: int, raw: str, cells: Sequence[str]) -> DataRow | BrokenRow:
    if not report.columns:
        return BrokenRow(line_no, raw, "SB", "a row before its columns are named", "a CH record")
    if len(cells) != report.width:
        counted = f"{len(cells)} cells"
        expected = f"{report.width} cells, as in the CH record"
        return BrokenRow(line_no, raw, counted, f"{counted} of {report.width}", expected)

    def cell(header: str) -> str:
        return cells[report.columns[header]].strip()

    report.rows += 1
    gross = _signed(cell("Gross Transaction Amount"), cell(_GROSS_SIGN), "CR")
    fee = _signed(cell("Fee Amount"), cell(_FEE_SIGN), "DR")
    currency = cell("Gross Transaction Currency")
    code = cell("Transaction Event Code").upper()
    _add(report, code, currency, gross, fee)
    # A reference of type TXN is the payment that the row is about; another names an agreement, and
    # a payment is about itself.
    is_about_other = cell(_REFERENCE_TYPE) == "TXN" and not code.startswith(_PAYMENT)
    reference = cell("PayPal Reference ID") if is_about_other else ""
    return DataRow(
        line_no,
        [
            each or None
            for each in (
                cell("Transaction ID"),
                cell("Transaction Event Code"),
                gross,
                fee,
                currency,
                cell("Fee Currency") or currency,
                cell("Invoice ID"),
                reference or cell("Transaction ID"),
                report.batch_ref,
                _instant(cell("Transaction Completion Date")),
                report.generated,
            )
        ],
    )


def _signed(amount: str, sign: str, positive: str) -> str:
    """Hundredths with their sign apart, as a decimal amount.

    What lacks a known sign, or is no whole number, is made no amount: it is rejected as it stands.
    """
    if not amount:
        return ""
    if not _AMOUNT.match(amount) or sign.upper() not in ("CR", "DR"):
        return f"{amount} {sign or 'without CR or DR'}"
    digits = amount.rjust(3, "0")
    return f"{'' if sign.upper() == positive else '-'}{digits[:-2]}.{digits[-2:]}"


def _instant(text: str) -> str:
    """2026/01/06 00:00:30 -0800 in the form of ISO 8601; what is another form stays as it is."""
    found = _INSTANT.match(text.strip())
    if found is None:
        return text.strip()
    year, month, day, clock, hours, minutes = found.groups()
    return f"{year}-{month}-{day} {clock}{hours}:{minutes}"


def _hundredths(amount: str) -> int:
    return int(amount.replace(".", ""))


def _add(report: _Report, code: str, currency: str, gross: str, fee: str) -> None:
    if code.startswith(_WITHDRAWAL):
        return
    try:
        amount, cost = _hundredths(gross or "0"), _hundredths(fee or "0")
    except ValueError:
        return
    for totals in (report.section[currency], report.report[currency]):
        totals.gross_credit += max(amount, 0)
        totals.gross_debit += max(-amount, 0)
        totals.fee_debit += max(cost, 0)
        totals.fee_credit += max(-cost, 0)


def _compare(report: _Report, kind: str, cells: Sequence[str]) -> None:
    """Hold what a footer states against its rows: gross credits and debits, then the fees.

    The fees are stated as credits, then debits; reports that have them the other way round exist,
    so either order is taken.
    """
    if kind == "SF":
        report.has_footer = True
        name, sums = f"section {report.section_no}", report.section
    else:
        name, sums = "report", report.report
    if len(cells) < 6:
        return
    currency = cells[1].strip()
    counted = sums.get(currency, _Totals())
    try:
        credit, debit, fee_credit, fee_debit = (int(cell) for cell in cells[2:6])
    except ValueError:
        report.file.checks.append(FileCheck(name, currency, "totals", None, None))
        return
    if (fee_debit, fee_credit) == (counted.fee_credit, counted.fee_debit):
        fee_credit, fee_debit = fee_debit, fee_credit
    stated = {
        "gross_credit": (credit, counted.gross_credit),
        "gross_debit": (debit, counted.gross_debit),
        "fee_credit": (fee_credit, counted.fee_credit),
        "fee_debit": (fee_debit, counted.fee_debit),
    }
    for check, (says, comes_to) in stated.items():
        report.file.checks.append(FileCheck(name, currency, check, _major(says), _major(comes_to)))


def _major(hundredths: int) -> Decimal:
    return Decimal(hundredths).scaleb(-2)


def _end_section(report: _Report) -> None:
    if report.rows and not report.has_footer:
        section = f"section {report.section_no}"
        report.file.checks.append(FileCheck(section, None, "section_footer", None, None))
    report.rows, report.has_footer = 0, False
    report.section.clear()
