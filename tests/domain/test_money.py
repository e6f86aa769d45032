"""Minor and major units are exact in both directions, for every currency and provider."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duebook.domain.money import (
    ISO_EXPONENTS,
    LARGEST_MINOR,
    AmountError,
    UnknownCurrencyError,
    exponent,
    format_money,
    to_major,
    to_minor,
)


@pytest.mark.parametrize(
    ("currency", "provider", "digits"),
    [
        ("EUR", None, 2),
        ("JPY", None, 0),
        ("KWD", None, 3),
        ("CLF", None, 4),
        ("MGA", None, 2),
        ("MGA", "stripe", 0),
        ("ISK", None, 0),
        ("ISK", "stripe", 2),
        ("UGX", "stripe", 2),
        ("HUF", "stripe", 2),
        ("TWD", "stripe", 2),
        ("TND", "stripe", 3),
        ("CLP", "adyen", 2),
        ("IDR", "adyen", 0),
        ("HUF", "paypal", 0),
        ("EUR", "stripe", 2),
        ("EUR", "a provider without differences", 2),
    ],
)
def test_exponent_is_that_of_the_provider_or_iso(
    currency: str, provider: str | None, digits: int
) -> None:
    assert exponent(currency, provider) == digits


@pytest.mark.parametrize("currency", ["", "eur", "ZZZ", "EURO", "E R"])
def test_an_unknown_currency_is_refused_and_never_guessed(currency: str) -> None:
    with pytest.raises(UnknownCurrencyError):
        exponent(currency, "stripe")


@pytest.mark.parametrize(
    ("major", "digits", "minor"),
    [
        ("12.30", 2, 1230),
        ("12.3", 2, 1230),
        ("12", 2, 1200),
        ("12.", 2, 1200),
        ("-0.01", 2, -1),
        ("+5", 0, 5),
        ("12.300", 2, 1230),
        ("100.00", 0, 100),
        ("0.250", 3, 250),
        (Decimal("1E+3"), 2, 100000),
        (Decimal("-0.5"), 2, -50),
        (" 7.00 ", 2, 700),
    ],
)
def test_a_major_amount_is_read_exactly(major: str | Decimal, digits: int, minor: int) -> None:
    assert to_minor(major, digits) == minor


@pytest.mark.parametrize(
    ("major", "digits"),
    [
        ("", 2),
        ("1,000.00", 2),
        ("1.234,56", 2),
        ("12.345", 2),
        ("1.5", 0),
        (".50", 2),
        ("1e3", 2),
        ("NaN", 2),
        ("--1", 2),
        ("1 000", 2),
        ("\u0661\u0662", 2),
        ("9" * 30, 2),
        ("92233720368547758.08", 2),
        (Decimal("NaN"), 2),
        (Decimal("Infinity"), 2),
        (0.1, 2),
        (True, 2),
    ],
)
def test_what_is_not_exact_is_refused_without_repeating_the_amount(
    major: object, digits: int
) -> None:
    with pytest.raises(AmountError) as error:
        to_minor(major, digits)  # type: ignore[arg-type]
    assert not str(major) or str(major) not in str(error.value)


@given(
    st.integers(min_value=-LARGEST_MINOR, max_value=LARGEST_MINOR),
    st.sampled_from(sorted(set(ISO_EXPONENTS.values()))),
)
def test_minor_and_major_are_inverses(minor: int, digits: int) -> None:
    assert to_minor(to_major(minor, digits), digits) == minor
    assert to_minor(format(to_major(minor, digits), "f"), digits) == minor


@pytest.mark.parametrize(
    ("minor", "currency", "digits", "text"),
    [
        (123450, "EUR", None, "EUR 1,234.50"),
        (5, "EUR", None, "EUR 0.05"),
        (-123450, "EUR", None, "EUR -1,234.50"),
        (0, "EUR", None, "EUR 0.00"),
        (1500, "JPY", None, "JPY 1,500"),
        (1234567, "KWD", None, "KWD 1,234.567"),
        (10000, "ISK", 2, "ISK 100"),
        (10050, "ISK", 2, "ISK 100.5"),
        (100, "IDR", 0, "IDR 100.00"),
        (LARGEST_MINOR, "EUR", None, "EUR 92,233,720,368,547,758.07"),
    ],
)
def test_money_reads_as_people_write_it(
    minor: int, currency: str, digits: int | None, text: str
) -> None:
    assert format_money(minor, currency, digits) == text
