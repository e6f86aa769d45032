"""Finds amounts and addresses in texts, in whatever form they were written.

A number is found by its digits: with or without decimals, thousands grouped by point, comma, blank
or apostrophe. So `81234.57`, `81,234.57`, `81.234,57`, `8123457` and `8.123.457` are one amount.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

FEWEST_DIGITS = 7
MOST_PIECES = 8
_SEPARATOR = "[.,'_ \u00a0\u2009\u202f]"
_NUMBER = re.compile(rf"[0-9]+(?:{_SEPARATOR}[0-9]+)*")
_ESCAPED_BLANK = re.compile(r"\\u(?:00a0|2009|202f)", re.IGNORECASE)
_PIECE = re.compile("[0-9]+")
_INSTANT = re.compile(
    r"\d{4}-\d\d-\d\d[T _]\d\d:?\d\d:?\d\d(?:[.,]\d+)?|\d\d:\d\d:\d\d(?:[.,]\d+)?"
)
_ADDRESS = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+[A-Za-z0-9]")


@dataclass(slots=True)
class Secrets:
    """What must not be found: amounts by their digits (minor units), and addresses."""

    amounts: set[str] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)

    def add_ledger(self, path: Path) -> None:
        """The amounts of a ledger CSV; each has digits enough to be told from other numbers."""
        for row in _rows(path):
            digits = re.sub("[^0-9]", "", row.get("amount_minor") or row["amount"])
            assert len(digits) >= FEWEST_DIGITS, f"{path.name} has an amount that any number may be"
            self.amounts.add(digits)

    def add_contacts(self, path: Path) -> None:
        self.addresses |= {row["address"].lower() for row in _rows(path)}

    def add_amounts(self, minor: Iterable[int]) -> None:
        """Further amounts, of whatever sign; those too short to be told apart are left out."""
        self.amounts |= {str(abs(m)) for m in minor if len(str(abs(m))) >= FEWEST_DIGITS}

    def found_in(self, text: str) -> set[str]:
        """Every amount and address that stands in `text`, as it stands there."""
        plain = _ESCAPED_BLANK.sub(" ", _INSTANT.sub("<instant>", text))
        addresses = _ADDRESS.findall(plain.replace("%40", "@"))
        found = {address for address in addresses if address.lower() in self.addresses}
        for number in _NUMBER.finditer(plain):
            if len(number.group()) >= FEWEST_DIGITS:
                found |= {shown for shown, digits in _readings(number) if self._is(digits)}
        return found

    def _is(self, digits: str) -> bool:
        # Decimals of a currency that has none, or none written, are no other amount.
        return digits in self.amounts or (digits.endswith("00") and digits[:-2] in self.amounts)


def _readings(number: re.Match[str]) -> Iterator[tuple[str, str]]:
    """Each number that a run of grouped digits can be read as, and its digits alone."""
    text, pieces = number.group(), list(_PIECE.finditer(number.group()))
    is_in_word = _is_letter(number.string, number.start() - 1) or _is_letter(
        number.string, number.end()
    )
    for first in range(len(pieces)):
        for last in range(first, min(first + MOST_PIECES, len(pieces))):
            groups = [piece.group() for piece in pieces[first : last + 1]]
            if len(groups) == 1 and is_in_word:
                # A checksum or a uuid, where any seven digits may stand.
                continue
            if not all(len(group) == 3 for group in groups[1:-1]):
                continue
            if len(groups) > 1 and len(groups[-1]) not in (2, 3):
                continue
            yield text[pieces[first].start() : pieces[last].end()], "".join(groups)


def _is_letter(text: str, position: int) -> bool:
    return 0 <= position < len(text) and text[position].isalpha()


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))
