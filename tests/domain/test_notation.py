"""Numbers in the notations of files, and texts that two of them read differently."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duebook.domain.notation import (
    NOTATIONS,
    Notation,
    contradicted_by,
    find_doubt,
    is_proof,
    read_number,
)

POINT, COMMA = Notation(".", ""), Notation(",", "")
ENGLISH, GERMAN = Notation(".", ","), Notation(",", ".")


@pytest.mark.parametrize(
    ("text", "notation", "amount"),
    [
        ("1,058.20", ENGLISH, "1058.20"),
        ("1.058,20", GERMAN, "1058.20"),
        ("-1.058.000", GERMAN, "-1058000"),
        ("1'058.2", Notation(".", "'"), "1058.2"),
        ("1 058,20", Notation(",", " "), "1058.20"),
        ("1,00,000.00", ENGLISH, "100000.00"),
        ("+.5", POINT, "0.5"),
        ("5.", POINT, "5"),
        ("10,58", ENGLISH, None),
        ("0,500", ENGLISH, None),
        ("1,0580", ENGLISH, None),
        ("1.058", COMMA, None),
        ("1,,058", ENGLISH, None),
        ("", POINT, None),
        (".", POINT, None),
        ("-", POINT, None),
        ("1e3", POINT, None),
        ("NaN", POINT, None),
        ("１", POINT, None),
    ],
)
def test_a_text_is_read_by_its_notation(text: str, notation: Notation, amount: str | None) -> None:
    found = read_number(text, notation)
    assert (None if found is None else found.amount) == (amount and Decimal(amount))


def readings(text: str, notation: Notation, digits: int) -> tuple[str | None, list[str]] | None:
    doubt = find_doubt(text, notation, digits)
    if doubt is None:
        return None
    own = None if doubt.own is None else str(doubt.own.amount)
    return own, [str(reading.amount) for _, reading in doubt.others]


@pytest.mark.parametrize(
    ("text", "notation", "digits", "expected"),
    [
        # Three decimals are no euros: only the thousands are left.
        ("1.058", POINT, 2, ("1.058", ["1058.0"])),
        ("1.058", COMMA, 2, (None, ["1058.0"])),
        ("1,058", POINT, 2, (None, ["1058.0"])),
        ("1,058", COMMA, 2, ("1.058", ["1058.0"])),
        # Read as written it is an amount, and by a thousand too small.
        ("1.050", POINT, 2, ("1.050", ["1050.0"])),
        ("1.058", GERMAN, 2, None),
        ("1.050", GERMAN, 2, None),
        ("1,058", ENGLISH, 2, None),
        # Both are dinars.
        ("1.058", POINT, 3, ("1.058", ["1058.0"])),
        ("1.058", GERMAN, 3, ("1058.0", ["1.058"])),
        ("1.058", POINT, 0, ("1.058", ["1058.0"])),
        # Nothing else than it says.
        ("12.50", POINT, 2, None),
        ("12,50", GERMAN, 2, None),
        ("0.500", POINT, 3, None),
        ("1234.500", POINT, 3, None),
        ("12.3000", POINT, 2, None),
        ("1058", POINT, 2, None),
        # The other mark, the other thousands.
        ("12,50", POINT, 2, (None, ["12.50"])),
        ("12,50", ENGLISH, 2, (None, ["12.50"])),
        ("1,058.20", POINT, 2, (None, ["1058.20"])),
        ("many", POINT, 2, (None, [])),
        ("12.345678", POINT, 2, ("12.345678", [])),
    ],
)
def test_a_text_is_in_doubt_where_another_notation_reads_another_amount(
    text: str, notation: Notation, digits: int, expected: tuple[str | None, list[str]] | None
) -> None:
    assert readings(text, notation, digits) == expected


def test_a_row_that_can_be_read_in_one_way_settles_the_others() -> None:
    assert is_proof("12.50", POINT, 2)
    assert not is_proof("1058", POINT, 2)
    assert not is_proof("1.050", POINT, 2)
    excluded = contradicted_by("12.50", POINT)
    doubt = find_doubt("1.050", POINT, 2)
    assert doubt is not None
    assert doubt.without(excluded).others == ()
    # It says nothing of what parts thousands before the same point.
    missing = find_doubt("1,058.20", POINT, 2)
    assert missing is not None
    assert [each for each, _ in missing.without(excluded).others] == [ENGLISH]


@given(
    st.decimals(-(10**9), 10**9, places=2, allow_nan=False, allow_infinity=False),
    st.sampled_from(NOTATIONS),
    st.booleans(),
)
def test_what_a_notation_writes_it_reads(
    amount: Decimal, notation: Notation, is_grouped: bool
) -> None:
    text = f"{amount:,.2f}" if is_grouped else f"{amount:.2f}"
    marks = {",": notation.thousands, ".": notation.decimal}
    written = "".join(marks.get(letter, letter) for letter in text)
    found = read_number(written, notation)
    assert found is not None
    assert found.amount == amount
    # Two decimals can be read in no other way.
    assert find_doubt(written, notation, 2) is None
