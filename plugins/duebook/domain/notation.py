"""How a file writes numbers, and which other ways would read the same text as another amount.

"1.058" is a thousand and fifty-eight where a point parts thousands, and no amount of a currency
with two decimals where it parts decimals; "1.050" is both, a factor of a thousand apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Final


@dataclass(frozen=True, slots=True)
class Notation:
    """What parts decimals, and what parts thousands ("": nothing)."""

    decimal: str
    thousands: str

    def __str__(self) -> str:
        return f'decimal = "{self.decimal}", thousands = "{self.thousands}"'


@dataclass(frozen=True, slots=True)
class Reading:
    """An amount as one notation reads it, and with how many decimals it was written."""

    amount: Decimal
    decimals: int

    def fits(self, digits: int) -> bool:
        """Whether it is an exact amount of a currency with so many decimals."""
        exponent = self.amount.normalize().as_tuple().exponent
        return isinstance(exponent, int) and -exponent <= digits

    def is_usual(self, digits: int) -> bool:
        """Whether such a currency's amounts are written like that."""
        return self.decimals <= digits


NOTATIONS: Final = tuple(
    Notation(decimal, thousands)
    for decimal in (".", ",")
    for thousands in ("", ",", ".", " ", "'")
    if thousands != decimal
)


@cache
def _pattern(notation: Notation) -> re.Pattern[str]:
    groups = r"[0-9]+"
    if notation.thousands:
        # Groups of three, or of two before the last three as in India; none begins with a zero.
        part = re.escape(notation.thousands)
        groups = rf"[0-9]+|[1-9][0-9]{{0,2}}(?:{part}[0-9]{{2,3}})*{part}[0-9]{{3}}"
    point = re.escape(notation.decimal)
    return re.compile(rf"([+-]?)({groups})?(?:{point}([0-9]*))?\Z")


def read_number(text: str, notation: Notation) -> Reading | None:
    """The number that a text is in that notation; None when it is none."""
    match = _pattern(notation).match(text.strip())
    if match is None or len(text) > 40:
        return None
    sign, whole, fraction = match.groups()
    if not whole and not fraction:
        return None
    digits = (whole or "0").replace(notation.thousands, "") if notation.thousands else whole or "0"
    return Reading(Decimal(f"{sign}{digits}.{fraction or '0'}"), len(fraction or ""))


@dataclass(frozen=True, slots=True)
class Doubt:
    """A text that a notation does not read, or that another may read as another amount.

    `own` is how it reads it, possible or not in a currency of `digits` decimals.
    """

    text: str
    digits: int
    own: Reading | None
    others: tuple[tuple[Notation, Reading], ...]

    @property
    def is_possible(self) -> bool:
        """Whether the notation reads it as an exact amount."""
        return self.own is not None and self.own.fits(self.digits)

    def without(self, excluded: Sequence[Notation]) -> Doubt:
        """The same with only those other notations that are left."""
        left = tuple(each for each in self.others if each[0] not in excluded)
        return Doubt(self.text, self.digits, self.own, left)


def find_doubt(text: str, notation: Notation, digits: int) -> Doubt | None:
    """Why a text may not be what `notation` reads it as, for a currency with so many decimals.

    None when it is an exact amount, and no other notation reads it as another as usual as it is.
    """
    own = read_number(text, notation)
    is_possible = own is not None and own.fits(digits)
    others: dict[Decimal, tuple[Notation, Reading]] = {}
    for each in NOTATIONS:
        found = read_number(text, each)
        if found is None or not found.fits(digits) or not found.is_usual(digits):
            continue
        if not is_possible or own is None or found.amount != own.amount:
            others.setdefault(found.amount, (each, found))
    if is_possible and not others:
        return None
    return Doubt(text, digits, own, tuple(others.values()))


def is_proof(text: str, notation: Notation, digits: int) -> bool:
    """Whether a text shows by its own separators that it is written in that notation."""
    marks = (notation.decimal, notation.thousands)
    is_marked = any(mark and mark in text for mark in marks)
    return is_marked and find_doubt(text, notation, digits) is None


def contradicted_by(text: str, notation: Notation) -> list[Notation]:
    """The notations that don't read a text as `notation` does."""
    own = read_number(text, notation)
    found = ((each, read_number(text, each)) for each in NOTATIONS)
    return [
        each for each, other in found if own is None or other is None or other.amount != own.amount
    ]
