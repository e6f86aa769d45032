"""Whether the mapping of an account can be right for a file: looked at before anything is read in.

Where each amount stands for itself nothing is asked. Where one could be read in two ways, a row
that can't settles it ("12.50" has its decimals behind a point); without such a row the mapping is
refused, with the line and both readings. Nothing is stored, and no database is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, Final

from duebook.config import CsvColumns, ProviderAccountConfig
from duebook.domain.money import UnknownCurrencyError, exponent
from duebook.domain.notation import (
    NOTATIONS,
    Doubt,
    Notation,
    contradicted_by,
    find_doubt,
    is_proof,
    read_number,
)
from duebook.errors import ConfigurationError, InputError, RefusedError
from duebook.settlements.delimited import DataRow, ScannedFile, tolerant_rows
from duebook.settlements.formats import Format, formats_of, recognise

SAMPLE_ROWS: Final = 5_000
_AMOUNTS: Final = ("gross", "debit", "credit", "fee", "net")
_SHOWN: Final = 10
_EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class AmountCell:
    """One amount as the file writes it."""

    line_no: int
    column: str
    text: str
    currency: str
    digits: int


@dataclass(frozen=True, slots=True)
class Fault:
    """One amount that the mapping may misread, or can't read although another could."""

    cell: AmountCell
    doubt: Doubt
    notation: Notation

    def where(self, name: str) -> str:
        """Which file, line and column; no amount."""
        return f"{name}, line {self.cell.line_no}, column {self.cell.column!r}"

    @property
    def options(self) -> str:
        """The options of the mapping that decide between the readings."""
        other = self.doubt.others[0][0]
        found = [
            f"columns.{option}"
            for option in ("decimal", "thousands")
            if getattr(other, option) != getattr(self.notation, option)
        ]
        return f"{' and '.join(found)} decide{'s' if len(found) == 1 else ''}"

    def message(self, name: str) -> str:
        """One line: where it is, its two readings, and which option decides."""
        other, reading = self.doubt.others[0]
        return (
            f"{self.where(name)}: {self.cell.text!r} is {self._own()} with {self.notation}, and "
            f"{_plain(reading.amount)} {self.cell.currency} with {other}: {self.options}"
        )

    def _own(self) -> str:
        cell, own = self.cell, self.doubt.own
        if own is None:
            return "no number"
        found = f"{_plain(own.amount)} {cell.currency}"
        return found if self.doubt.is_possible else f"{found} (more than {cell.digits} decimals)"


@dataclass(slots=True)
class MappingCheck:
    """What was seen of one file; `proof` is an amount that settles how numbers are written."""

    file: str
    format: str
    is_mapped: bool
    notation: Notation | None = None
    rows: int = 0
    amounts: int = 0
    proof: AmountCell | None = None
    faults: list[Fault] = field(default_factory=list)
    unreadable: list[AmountCell] = field(default_factory=list)
    examples: list[tuple[AmountCell, Decimal]] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """1: rows will be set aside."""
        return int(bool(self.unreadable))

    @property
    def is_unreadable(self) -> bool:
        """Whether no amount at all can be read."""
        return self.amounts > 0 and len(self.unreadable) == self.amounts

    def refusal(self) -> str | None:
        """Why the mapping can't be right, in one line; None when it can."""
        if self.faults:
            return self.faults[0].message(self.file)
        if self.is_unreadable:
            first = self.unreadable[0]
            return (
                f"{self.file}, line {first.line_no}, column {first.column!r}: {first.text!r} is no "
                f"amount with {self.notation}, nor is any other of the first {self.rows} rows"
            )
        return None

    def to_json(self) -> dict[str, Any]:
        """The document of `duebook mapping check --json`."""
        proof = self.proof
        return {
            "file": self.file,
            "format": self.format,
            "is_mapped": self.is_mapped,
            "rows": self.rows,
            "amounts": self.amounts,
            "proved_by": proof and {"line": proof.line_no, "value": proof.text},
            "examples": [
                {
                    "line": cell.line_no,
                    "column": cell.column,
                    "value": cell.text,
                    "is_read_as": f"{_plain(amount)} {cell.currency}",
                }
                for cell, amount in self.examples
            ],
            "unreadable": [
                {"line": cell.line_no, "column": cell.column, "value": cell.text}
                for cell in self.unreadable[:_SHOWN]
            ],
        }


def check_mapping(
    path: Path, account: ProviderAccountConfig, *, limit: int | None = None
) -> MappingCheck:
    """Look at the amounts of a file, at most those of the first `limit` rows.

    Raises InputError when it can't be read as a whole, or is none of the account's formats.
    """
    file, reader = recognise(path, formats_of(account))
    return check_scanned(file, reader, account, limit=limit)


def check_scanned(
    file: ScannedFile,
    reader: Format,
    account: ProviderAccountConfig,
    *,
    limit: int | None = SAMPLE_ROWS,
) -> MappingCheck:
    """The same for a file that was recognised already."""
    columns = account.columns
    is_mapped = columns is not None and reader.dialect is columns
    check = MappingCheck(file.name, reader.name, is_mapped)
    if columns is None or not is_mapped:
        return check
    check.notation = Notation(columns.decimal, columns.thousands)
    doubts: list[Fault] = []
    excluded: set[Notation] = set()
    for cell in _cells(file, reader, account, columns, check, limit):
        check.amounts += 1
        doubt = find_doubt(cell.text, check.notation, cell.digits)
        own = read_number(cell.text, check.notation)
        if own is not None and len(check.examples) < _EXAMPLES:
            check.examples.append((cell, own.amount))
        if doubt is not None:
            doubts.append(Fault(cell, doubt, check.notation))
        elif len(excluded) < len(NOTATIONS) - 1 and is_proof(
            cell.text, check.notation, cell.digits
        ):
            check.proof = check.proof or cell
            excluded.update(contradicted_by(cell.text, check.notation))
    _settle(check, doubts, tuple(excluded))
    return check


def _settle(check: MappingCheck, doubts: Sequence[Fault], excluded: Sequence[Notation]) -> None:
    """Keep what the rows that are beyond doubt don't settle."""
    for each in doubts:
        left = each.doubt.without(excluded)
        if left.others:
            check.faults.append(Fault(each.cell, left, each.notation))
        elif not left.is_possible:
            check.unreadable.append(each.cell)


def _cells(
    file: ScannedFile,
    reader: Format,
    account: ProviderAccountConfig,
    columns: CsvColumns,
    check: MappingCheck,
    limit: int | None,
) -> Iterator[AmountCell]:
    """The amounts that are text; numbers of a typed file are in no notation."""
    for row in islice((file.read or tolerant_rows)(file), limit):
        if not isinstance(row, DataRow):
            continue
        check.rows += 1
        cells = dict(zip(file.fields, row.cells, strict=True))
        for of, name in reader.same_as.items():
            cells[of] = cells.get(name)
        for name in _AMOUNTS:
            text = cells.get(name)
            currency = _currency_of(name, cells, columns)
            digits = _digits(currency, account.provider, columns)
            if text and digits is not None and name not in file.typed:
                named = reader.columns.get(name, name)
                yield AmountCell(row.line_no, named, text.strip(), currency, digits)


def _currency_of(name: str, cells: Mapping[str, str | None], columns: CsvColumns) -> str:
    own = cells.get("net_currency") if name in ("fee", "net") else None
    return (own or cells.get("currency") or columns.currency_code or "").strip().upper()


def _digits(currency: str, provider: str, columns: CsvColumns) -> int | None:
    try:
        return 0 if columns.minor_units else exponent(currency, provider)
    except UnknownCurrencyError:
        # The row is set aside for its currency.
        return None


def _plain(amount: Decimal) -> str:
    whole = amount == amount.to_integral_value()
    return format(amount.quantize(Decimal(1)) if whole else amount.normalize(), "f")


def require_possible(
    file: ScannedFile, reader: Format, account: ProviderAccountConfig
) -> MappingCheck:
    """Look at the first rows of a file that is about to be taken.

    Raises RefusedError when nothing in them settles how its numbers are written and the mapping
    may misread one. Where something does, odd rows are set aside one by one instead.
    """
    check = check_scanned(file, reader, account)
    if check.proof is None and check.faults:
        first = check.faults[0]
        # Errors go into logs, which hold no amounts.
        raise RefusedError(
            f"{first.where(file.name)}: an amount may be read in two ways, and {first.options}; "
            "see both with `duebook mapping check`; nothing was applied"
        )
    return check


def check_samples(accounts: Mapping[str, ProviderAccountConfig]) -> None:
    """Look at the newest file in the folder of each account that has a mapping.

    Raises RefusedError for a mapping that can't be right for it. A file that can't be read is the
    next run's matter.
    """
    for name, account in accounts.items():
        sample = _newest(account)
        if account.columns is None or sample is None:
            continue
        try:
            file, reader = recognise(sample, formats_of(account))
            require_possible(file, reader, account)
        except RefusedError as error:
            raise RefusedError(f"provider account {name}: {error}") from None
        except (InputError, ConfigurationError):
            continue


def _newest(account: ProviderAccountConfig) -> Path | None:
    folder = account.folder
    if not isinstance(folder, Path) or not folder.is_dir():
        # What is elsewhere is looked at when it is taken.
        return None
    files = [path for path in folder.glob(account.pattern) if path.is_file()]
    return max(files, key=lambda path: path.stat().st_mtime_ns, default=None)
