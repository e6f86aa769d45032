"""Money: whole minor units and a currency, exact in both directions, never a float.

Exponents come from ISO 4217 (list one, with recently withdrawn codes kept so that history can be
read). Providers that count differently have their own rows:

- Stripe (docs.stripe.com/currencies): MGA has no decimals; ISK and UGX are sent with two decimals
  although the currencies have none. HUF and TWD charges have two decimals as in ISO; only their
  payouts must be whole, which is a rule for amounts and not another exponent.
- Adyen (docs.adyen.com/development-resources/currency-codes): CLP and ISK have two decimals, CVE
  and IDR none.
- PayPal (developer.paypal.com/reference/currency-codes): HUF, JPY and TWD take no decimals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from duebook.errors import InputError

_BY_EXPONENT: Final = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    2: """
        AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP
        BYN BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR
        FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IRR JMD KES KGS KHR
        KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR
        MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK
        SGD SHP SLE SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN
        UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG ZWL
    """,
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}

ISO_EXPONENTS: Final[Mapping[str, int]] = MappingProxyType(
    {code: digits for digits, codes in _BY_EXPONENT.items() for code in codes.split()}
)
PROVIDER_EXPONENTS: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {
        "stripe": MappingProxyType({"ISK": 2, "MGA": 0, "UGX": 2}),
        "adyen": MappingProxyType({"CLP": 2, "CVE": 0, "IDR": 0, "ISK": 2}),
        "paypal": MappingProxyType({"HUF": 0, "JPY": 0, "TWD": 0}),
    }
)

# Amounts are stored as bigint.
LARGEST_MINOR: Final = 2**63 - 1
_MAJOR = re.compile(r"[+-]?[0-9]{1,19}(?:\.[0-9]{0,19})?", re.ASCII)


class UnknownCurrencyError(InputError):
    """The currency has no known exponent, so an amount in it can't be read."""


class AmountError(InputError):
    """The text is not an exact amount of that currency."""


def exponent(currency: str, provider: str | None = None) -> int:
    """Decimals of one major unit: 2 for EUR, 0 for JPY, 3 for KWD.

    `provider` names whose minor units are meant (stripe, adyen, paypal); its own differences win.
    Raises UnknownCurrencyError; nothing is guessed, since a wrong guess is off by a factor of 100.
    """
    own = PROVIDER_EXPONENTS.get(provider or "", {}).get(currency)
    if own is not None:
        return own
    try:
        return ISO_EXPONENTS[currency]
    except KeyError:
        raise UnknownCurrencyError("currency: not an upper-case ISO 4217 code") from None


def to_minor(major: str | Decimal, digits: int) -> int:
    """Exact minor units of a major amount written with a dot: ("12.3", 2) is 1230.

    `digits` is the exponent. More decimals than the currency has are accepted only when the rest
    is zeros ("12.300"): nothing is rounded. Raises AmountError, without repeating the amount.
    """
    if isinstance(major, Decimal):
        if not major.is_finite():
            raise AmountError("amount: not a finite number")
        text = format(major, "f")
    elif isinstance(major, str):
        text = major.strip()
    else:
        raise AmountError("amount: give text or Decimal, never a float")
    if not _MAJOR.fullmatch(text):
        raise AmountError("amount: expected digits with at most one decimal point")
    whole, _, fraction = text.partition(".")
    if fraction[digits:].strip("0"):
        raise AmountError(f"amount: more than {digits} decimals")
    minor = int(whole + fraction[:digits].ljust(digits, "0"))
    if abs(minor) > LARGEST_MINOR:
        raise AmountError("amount: too large")
    return minor


def to_major(minor: int, digits: int) -> Decimal:
    """Exact major amount with `digits` decimals: (1230, 2) is Decimal("12.30")."""
    magnitude = tuple(int(digit) for digit in str(abs(minor)))
    return Decimal((1 if minor < 0 else 0, magnitude, -digits))


def format_money(minor: int, currency: str, digits: int | None = None) -> str:
    """Money for people: (123450, "EUR") is "EUR 1,234.50".

    `digits` is the exponent that `minor` was written with, by default ISO's. A provider's extra
    decimals are shown only when they are not zero: Stripe's ISK 10000 with exponent 2 is "ISK 100".
    Raises UnknownCurrencyError.
    """
    shown = exponent(currency)
    counted = shown if digits is None else digits
    figures = str(abs(minor)).rjust(counted + 1, "0")
    whole, fraction = figures[: len(figures) - counted], figures[len(figures) - counted :]
    while len(fraction) > shown and fraction.endswith("0"):
        fraction = fraction[:-1]
    fraction = fraction.ljust(shown, "0")
    sign = "-" if minor < 0 else ""
    decimals = f".{fraction}" if fraction else ""
    return f"{currency} {sign}{int(whole):,}{decimals}"
