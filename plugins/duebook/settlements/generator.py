"""Made-up settlements in the providers' documented formats, and the books that belong to them.

The demo, the drills and the benchmark read what is written here. Everything follows from the seed:
the same call writes the same bytes on every machine. Rows are streamed, so size costs time only.

Formats: https://docs.adyen.com/reporting/settlement-reconciliation/transaction-level/settlement-details-report,
https://docs.stripe.com/api. The Stripe half is a plan that is carried out through Stripe's own
library, against a server that stands in for Stripe.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import stripe

from duebook.domain.money import exponent, to_major
from duebook.errors import InputError, UnavailableError

LEDGER_COLUMNS: Final = (
    "account_id",
    "payment_id",
    "reference",
    "amount",
    "currency",
    "status",
    "expected_at",
    "provider_account",
)
CONTACT_COLUMNS: Final = ("account_id", "channel", "address", "zone", "locale", "region")
ADYEN_COLUMNS: Final = (
    "Company Account",
    "Merchant Account",
    "Psp Reference",
    "Merchant Reference",
    "Payment Method",
    "Creation Date",
    "TimeZone",
    "Type",
    "Modification Reference",
    "Gross Currency",
    "Gross Debit (GC)",
    "Gross Credit (GC)",
    "Exchange Rate",
    "Net Currency",
    "Net Debit (NC)",
    "Net Credit (NC)",
    "Commission (NC)",
    "Markup (NC)",
    "Scheme Fees (NC)",
    "Interchange (NC)",
    "Payment Method Variant",
    "Modification Merchant Reference",
    "Batch Number",
    "Reserved4",
    "Reserved5",
    "Reserved6",
    "Reserved7",
    "Reserved8",
    "Reserved9",
    "Reserved10",
    "Booking Date",
    "Booking Date TimeZone",
)
"""Version 1 of the settlement details report, and the booking date that an account may add."""

CSV_SETTLEMENT_COLUMNS: Final[Mapping[str, str]] = {
    "entry_id": "Entry",
    "type": "Type",
    "batch_ref": "Batch",
    "payment_ref": "Reference",
    "amount": "Gross",
    "fee": "Fee",
    "net": "Net",
    "currency": "Currency",
    "occurred_at": "Occurred",
    "status": "Status",
}
"""The `columns` of a csv provider account that reads `generate_csv_settlement`."""

CSV_SETTLEMENT_TYPES: Final[Mapping[str, str]] = {"sale": "charge"}
CSV_SETTLEMENT_STATUSES: Final[Mapping[str, str]] = {"settled": "settled"}

_ZONES: Final = (
    ("Europe/Amsterdam", "nl-NL", "NL"),
    ("Europe/Berlin", "de-DE", "DE"),
    ("America/New_York", "en-US", "US"),
    ("Asia/Kolkata", "en-IN", "IN"),
    ("Australia/Lord_Howe", "en-AU", "AU"),
)
_METHODS: Final = (("visa", "visastandardcredit"), ("mc", "mcstandarddebit"), ("ideal", "ideal"))
_CHUNK_ROWS: Final = 5_000
_MASK: Final = 2**64 - 1
_TEST_CARD: Final = "4242424242424242"
_DISPUTED_TEST_CARD: Final = "4000000000000259"


@dataclass(frozen=True, slots=True)
class Breaks:
    """How many differences between settlement and books are made on purpose, of each kind.

    `missing_at_provider` payments were expected with the others and `pending` ones are expected in
    30 days; neither is settled. They fall on the first payments in the order of the fields, so that
    no payment has two.
    """

    missing_in_ledger: int = 0
    amount_mismatch: int = 0
    currency_mismatch: int = 0
    status_mismatch: int = 0
    duplicate_reference: int = 0
    missing_at_provider: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class BookedPayment:
    """One row of a ledger CSV before its breaks; `status` is what the books should say."""

    account_id: str
    payment_id: str
    reference: str
    amount_minor: int
    currency: str
    status: str


@dataclass(frozen=True, slots=True)
class AdyenSettlement:
    """What was written. Amounts in minor units of `currency`, net sums per type signed."""

    path: Path
    ledger_path: Path
    contacts_path: Path
    currency: str
    rows: int
    rows_by_type: Mapping[str, int]
    net_by_type: Mapping[str, int]
    ledger_rows: int

    @property
    def payout_minor(self) -> int:
        """What the batch pays out: the payout row closes the batch to zero."""
        return -self.net_by_type["MerchantPayout"]


@dataclass(frozen=True, slots=True)
class CsvSettlement:
    """What was written; `changed` rows differ from the same call with a ratio of 0."""

    path: Path
    rows: int
    changed: int


def generate_adyen_settlement(
    seed: int,
    payments: int,
    batch_number: int,
    folder: Path,
    *,
    day: date = date(2026, 3, 2),
    currency: str = "EUR",
    zone: str = "Europe/Amsterdam",
    accounts: int = 50,
    account_prefix: str = "adyen-account",
    provider_account: str = "adyen",
    refund_every: int = 20,
    chargeback_every: int = 150,
    digits: int = 7,
    breaks: Breaks = Breaks(),
) -> AdyenSettlement:
    """Write a settlement details report and the ledger and contacts CSV that belong to it.

    They are called `settlement_detail_report_batch_<n>.csv`, `ledger_batch_<n>.csv` and
    `contacts_<prefix>.csv`. Amounts have `digits` digits in minor units. Every `refund_every`-th
    payment is refunded (half of them in part), every `chargeback_every`-th charged back; 0: none.
    Raises InputError when there are fewer payments than breaks.
    """
    folder.mkdir(parents=True, exist_ok=True)
    batch = _AdyenBatch(
        seed=seed,
        number=batch_number,
        payments=payments,
        day=day,
        currency=currency,
        zone=zone,
        refund_every=refund_every,
        chargeback_every=chargeback_every,
        digits=digits,
    )
    path = folder / f"settlement_detail_report_batch_{batch_number}.csv"
    rows = write_rows(path, ADYEN_COLUMNS, batch.rows())
    ledger_path = folder / f"ledger_batch_{batch_number}.csv"
    contacts_path = folder / f"contacts_{account_prefix}.csv"
    ledger_rows = write_ledger(
        ledger_path,
        batch.booked_payments(account_prefix, accounts),
        payments=payments,
        expected_at=datetime.combine(day, time(23, 0), UTC),
        provider_account=provider_account,
        breaks=breaks,
        money_of="adyen",
    )
    write_contacts(contacts_path, accounts, account_prefix)
    return AdyenSettlement(
        path=path,
        ledger_path=ledger_path,
        contacts_path=contacts_path,
        currency=currency,
        rows=rows,
        rows_by_type=batch.rows_by_type,
        net_by_type=batch.net_by_type,
        ledger_rows=ledger_rows,
    )


@dataclass(slots=True)
class _AdyenBatch:
    """Draws the rows of one settlement batch and adds them up."""

    seed: int
    number: int
    payments: int
    day: date
    currency: str
    zone: str
    refund_every: int
    chargeback_every: int
    digits: int
    rows_by_type: dict[str, int] = field(default_factory=dict)
    net_by_type: dict[str, int] = field(default_factory=dict)

    def draw(self, number: int, purpose: int) -> int:
        return mix(self.seed * 1_000_003 + self.number, number * 8 + purpose)

    def amount(self, number: int) -> int:
        return drawn_amount(self.draw(number, 0), self.digits)

    def reference(self, number: int) -> str:
        return f"ORDER-{self.number}-{number:08d}"

    def is_refunded(self, number: int) -> bool:
        return self.refund_every > 0 and number % self.refund_every == self.refund_every - 1

    def is_charged_back(self, number: int) -> bool:
        every = self.chargeback_every
        return every > 0 and number % every == every // 2 and not self.is_refunded(number)

    def refund(self, number: int) -> int:
        amount = self.amount(number)
        return amount if self.draw(number, 1) % 2 else amount // 3

    def booked_payments(self, account_prefix: str, accounts: int) -> Iterator[BookedPayment]:
        """What the books hold for the batch's payments."""
        for number in range(self.payments):
            yield BookedPayment(
                account_id=f"{account_prefix}-{number % accounts:05d}",
                payment_id=f"{self.number}-{number:08d}",
                reference=self.reference(number),
                amount_minor=self.amount(number),
                currency=self.currency,
                status=self.booked_status(number),
            )

    def booked_status(self, number: int) -> str:
        if self.is_charged_back(number):
            return "charged_back"
        if not self.is_refunded(number):
            return "settled"
        whole = self.refund(number) == self.amount(number)
        return "refunded" if whole else "partially_refunded"

    def rows(self) -> Iterator[Sequence[object]]:
        for number in range(self.payments):
            yield self._row("Settled", number, self.amount(number))
            if self.is_refunded(number):
                yield self._row("Refunded", number, -self.refund(number))
            if self.is_charged_back(number):
                yield self._row("Chargeback", number, -self.amount(number))
        # What the scheme asks for each row, collected into one row of the account itself.
        fee = 11 * sum(self.rows_by_type.values())
        month = f"{self.day:%B} {self.day:%d} {self.day:%Y}"
        yield self._account_row("Fee", f"Transaction Fees {month}", -fee)
        payout = sum(self.net_by_type.values())
        words = f"TX{self.draw(0, 7) % 10**12:012d}XT batch {self.number}, EXAMPLE_ECOM"
        yield self._account_row("MerchantPayout", words, -payout)

    def _row(self, type_: str, number: int, gross: int) -> Sequence[object]:
        method, variant = _METHODS[self.draw(number, 2) % len(_METHODS)]
        commission, markup, scheme, interchange = self._fees(type_, method, gross)
        net = gross - commission - markup - scheme - interchange
        self._count(type_, net)
        local = self._local(number)
        psp = 10**15 + self.number % 10**6 * 10**9 + number * 4
        modification = psp + ("Settled", "Refunded", "Chargeback").index(type_) + 1
        return (
            "Example",
            "EXAMPLE_ECOM",
            psp,
            self.reference(number),
            method,
            f"{local:%Y-%m-%d %H:%M:%S}",
            local.tzname(),
            type_,
            modification,
            self.currency,
            self._major(-gross),
            self._major(gross),
            "1",
            self.currency,
            self._major(-net),
            self._major(net),
            self._major(commission),
            self._major(markup),
            self._major(scheme),
            self._major(interchange),
            variant,
            "<auto>" if type_ == "Settled" else self.reference(number),
            self.number,
            *[""] * 7,
            *self._booking(),
        )

    def _fees(self, type_: str, method: str, gross: int) -> tuple[int, int, int, int]:
        """Commission, markup, scheme fees, interchange: positive, in the net currency."""
        if type_ == "Refunded":
            return 0, 0, 0, 0
        if type_ == "Chargeback":
            return 1500, 0, 0, 0
        if method == "ideal":
            return 29, 0, 0, 0
        return 0, gross * 6 // 1000, gross // 1000, gross * 2 // 1000

    def _account_row(self, type_: str, words: str, net: int) -> Sequence[object]:
        self._count(type_, net)
        date_, zone = self._booking()
        return (
            *("Example", "EXAMPLE_ECOM", "", "", "", date_, zone, type_, words),
            *("", "", "", "", self.currency, self._major(-net), self._major(net)),
            *("", "", "", "", "", "", self.number),
            *[""] * 7,
            *(date_, zone),
        )

    def _count(self, type_: str, net: int) -> None:
        self.rows_by_type[type_] = self.rows_by_type.get(type_, 0) + 1
        self.net_by_type[type_] = self.net_by_type.get(type_, 0) + net

    def _major(self, minor: int) -> str:
        """Nothing for what is not positive: a debit and a credit are never both filled."""
        return major_text(minor, exponent(self.currency, "adyen")) if minor > 0 else ""

    def _local(self, number: int) -> datetime:
        # After 04:00 no zone of the payments is in a gap or an overlap.
        second = 4 * 3600 + number * (19 * 3600) // max(self.payments, 1)
        clock = time(second // 3600, second // 60 % 60, second % 60)
        return datetime.combine(self.day, clock, ZoneInfo(self.zone))

    def _booking(self) -> tuple[str, str]:
        booked = datetime.combine(self.day + timedelta(days=1), time(23, 50), ZoneInfo(self.zone))
        return f"{booked:%Y-%m-%d %H:%M:%S}", booked.tzname() or ""


def write_ledger(
    path: Path,
    booked: Iterable[BookedPayment],
    *,
    payments: int,
    expected_at: datetime,
    provider_account: str,
    breaks: Breaks = Breaks(),
    money_of: str | None = None,
) -> int:
    """Write the ledger CSV of `payments` booked payments, with its breaks; rows written.

    `money_of` is the provider whose decimals the amounts have (as `exponent` takes it).
    """
    _refuse_too_many(breaks, payments)
    late = expected_at + timedelta(days=30)

    def rows() -> Iterator[Sequence[object]]:
        kinds = _breaks_in_order(breaks)
        unsettled: list[BookedPayment] = []
        for payment in booked:
            if len(unsettled) < breaks.missing_at_provider + breaks.pending:
                unsettled.append(payment)
            for told in _with_break(payment, next(kinds, None)):
                yield _ledger_row(told, expected_at, provider_account, money_of)
        for number, payment in enumerate(unsettled):
            told = replace(
                payment,
                payment_id=f"{payment.payment_id}-unsettled",
                reference=f"{payment.reference}-unsettled",
                status="settled",
            )
            expected = expected_at if number < breaks.missing_at_provider else late
            yield _ledger_row(told, expected, provider_account, money_of)

    return write_rows(path, LEDGER_COLUMNS, rows())


def _with_break(payment: BookedPayment, kind: str | None) -> Iterator[BookedPayment]:
    if kind == "amount_mismatch":
        yield replace(payment, amount_minor=payment.amount_minor + 1)
    elif kind == "currency_mismatch":
        yield replace(payment, currency="USD" if payment.currency != "USD" else "CHF")
    elif kind == "status_mismatch":
        yield replace(payment, status="failed")
    elif kind != "missing_in_ledger":
        yield payment
    if kind == "duplicate_reference":
        yield replace(payment, payment_id=f"{payment.payment_id}-again")


def _ledger_row(
    payment: BookedPayment, expected_at: datetime, provider_account: str, money_of: str | None
) -> Sequence[object]:
    return (
        payment.account_id,
        payment.payment_id,
        payment.reference,
        major_text(payment.amount_minor, exponent(payment.currency, money_of)),
        payment.currency,
        payment.status,
        f"{expected_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        provider_account,
    )


def write_contacts(path: Path, accounts: int, account_prefix: str) -> int:
    """Write the contacts CSV: one e-mail address an account, in several zones; rows written."""

    def rows() -> Iterator[Sequence[object]]:
        for number in range(accounts):
            zone, locale, region = _ZONES[number % len(_ZONES)]
            account_id = f"{account_prefix}-{number:05d}"
            yield account_id, "email", f"{account_id}@payers.example", zone, locale, region

    return write_rows(path, CONTACT_COLUMNS, rows())


def generate_csv_settlement(
    seed: int,
    rows: int,
    changed_ratio: float,
    path: Path,
    *,
    currency: str = "EUR",
    rows_per_batch: int = 10_000,
) -> CsvSettlement:
    """Write a generic settlement CSV of ten columns (`CSV_SETTLEMENT_COLUMNS`), one sale a row.

    `round(rows * changed_ratio)` rows, evenly spread, have another gross, fee and net than the file
    of the same seed with a ratio of 0. `generate_csv_ledger` writes the books of the latter.
    """
    changed = min(round(rows * changed_ratio), rows)
    digits = exponent(currency)
    start = datetime(2026, 3, 2, tzinfo=UTC)
    path.parent.mkdir(parents=True, exist_ok=True)

    def lines() -> Iterator[str]:
        stamp, stamped = "", -1
        for number in range(rows):
            is_changed = number * changed // rows != (number + 1) * changed // rows
            gross = drawn_amount(mix(seed, number), 7) + (10_000 if is_changed else 0)
            fee = gross * 14 // 1000 + 25
            if number // 1000 != stamped:
                stamped = number // 1000
                stamp = f"{start + timedelta(seconds=stamped):%Y-%m-%dT%H:%M:%SZ}"
            yield (
                f"E{number:010d},sale,B{number // rows_per_batch:06d},R{number:010d},"
                f"{major_text(gross, digits)},{major_text(fee, digits)},"
                f"{major_text(gross - fee, digits)},{currency},{stamp},settled\n"
            )

    header = ",".join(CSV_SETTLEMENT_COLUMNS.values())
    write_lines(path, chain([f"{header}\n"], lines()))
    return CsvSettlement(path=path, rows=rows, changed=changed)


def generate_csv_ledger(
    seed: int,
    rows: int,
    path: Path,
    *,
    currency: str = "EUR",
    accounts: int = 10_000,
    provider_account: str = "bench",
) -> int:
    """Write the ledger CSV that `generate_csv_settlement` (ratio 0) of that seed settles."""
    digits = exponent(currency)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        f"account-{number % accounts:06d},P{number:010d},R{number:010d},"
        f"{major_text(drawn_amount(mix(seed, number), 7), digits)},{currency},settled,"
        f"2026-03-02T00:00:00Z,{provider_account}\n"
        for number in range(rows)
    )
    write_lines(path, chain([",".join(LEDGER_COLUMNS) + "\n"], lines))
    return rows


@dataclass(frozen=True, slots=True)
class PlannedCharge:
    """One charge to make; `is_disputed` uses the card that Stripe's test mode disputes."""

    account_id: str
    payment_id: str
    amount_minor: int
    currency: str
    is_disputed: bool = False


@dataclass(frozen=True, slots=True)
class PlannedRefund:
    """One refund of a planned charge."""

    payment_id: str
    amount_minor: int


@dataclass(frozen=True, slots=True)
class PlannedPayout:
    """One manual payout."""

    amount_minor: int
    currency: str


@dataclass(frozen=True, slots=True)
class StripePlan:
    """What is to happen at Stripe, in this order: charges, refunds, payouts."""

    charges: tuple[PlannedCharge, ...]
    refunds: tuple[PlannedRefund, ...]
    payouts: tuple[PlannedPayout, ...]
    accounts: int
    account_prefix: str


@dataclass(frozen=True, slots=True)
class StripeFill:
    """What was made: ids by payment id, in the plan's order."""

    charge_ids: Mapping[str, str]
    payment_intent_ids: Mapping[str, str]
    refund_ids: tuple[str, ...]
    payout_ids: tuple[str, ...]


def generate_stripe_plan(
    seed: int,
    *,
    charges: int = 300,
    refund_every: int = 15,
    disputes: int = 1,
    payouts: int = 0,
    currency: str = "EUR",
    accounts: int = 50,
    account_prefix: str = "stripe-account",
    digits: int = 7,
) -> StripePlan:
    """Plan charges, refunds (half of them in part), disputes, and manual payouts.

    Automatic payouts need no plan: the account's schedule makes them.
    """
    made = tuple(
        PlannedCharge(
            account_id=f"{account_prefix}-{number % accounts:05d}",
            payment_id=f"stripe-{seed}-{number:08d}",
            amount_minor=drawn_amount(mix(seed, number * 8), digits),
            currency=currency,
            is_disputed=number < disputes,
        )
        for number in range(charges)
    )
    refunded = made[max(disputes, refund_every - 1) :: refund_every] if refund_every else ()
    return StripePlan(
        charges=made,
        refunds=tuple(
            PlannedRefund(charge.payment_id, charge.amount_minor // (1 if number % 2 else 3))
            for number, charge in enumerate(refunded)
        ),
        payouts=tuple(
            PlannedPayout(drawn_amount(mix(seed, number * 8 + 1), digits), currency)
            for number in range(payouts)
        ),
        accounts=accounts,
        account_prefix=account_prefix,
    )


def fill_stripe(
    client: stripe.StripeClient,
    plan: StripePlan,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> StripeFill:
    """Carry a plan out through Stripe's library; `progress(done, of)` after each request.

    For servers that stand in for Stripe (cards go by number). Raises UnavailableError when one
    refuses or is away; what was made until then stays.
    """
    try:
        return _fill(client, plan, progress or (lambda done, of: None))
    except stripe.StripeError as error:
        status = f"HTTP {error.http_status}" if error.http_status else "no connection"
        line = f"the Stripe server can't be filled ({status})"
    raise UnavailableError(line)


def _fill(
    client: stripe.StripeClient, plan: StripePlan, progress: Callable[[int, int], None]
) -> StripeFill:
    card = _payment_method(client, _TEST_CARD)
    disputed_card = _payment_method(client, _DISPUTED_TEST_CARD)
    total = len(plan.charges) + len(plan.refunds) + len(plan.payouts)
    charge_ids: dict[str, str] = {}
    intent_ids: dict[str, str] = {}
    for done, charge in enumerate(plan.charges, start=1):
        intent = client.v1.payment_intents.create(
            {
                "amount": charge.amount_minor,
                "currency": charge.currency.lower(),
                "payment_method": disputed_card if charge.is_disputed else card,
                "confirm": True,
                "metadata": {"payment_id": charge.payment_id},
            }
        )
        intent_ids[charge.payment_id] = intent.id
        charge_ids[charge.payment_id] = _charge_id(intent.latest_charge)
        progress(done, total)
    refund_ids = []
    for refund in plan.refunds:
        made = client.v1.refunds.create(
            {"charge": charge_ids[refund.payment_id], "amount": refund.amount_minor}
        )
        refund_ids.append(made.id)
        progress(len(plan.charges) + len(refund_ids), total)
    payout_ids = []
    for payout in plan.payouts:
        paid = client.v1.payouts.create(
            {"amount": payout.amount_minor, "currency": payout.currency.lower()}
        )
        payout_ids.append(paid.id)
        progress(len(plan.charges) + len(refund_ids) + len(payout_ids), total)
    return StripeFill(charge_ids, intent_ids, tuple(refund_ids), tuple(payout_ids))


def _payment_method(client: stripe.StripeClient, number: str) -> str:
    card: Any = {"number": number, "exp_month": 12, "exp_year": 2039, "cvc": "123"}
    return client.v1.payment_methods.create({"type": "card", "card": card}).id


def _charge_id(latest_charge: object) -> str:
    return (
        latest_charge if isinstance(latest_charge, str) else str(getattr(latest_charge, "id", ""))
    )


def write_stripe_ledger(
    path: Path,
    plan: StripePlan,
    fill: StripeFill,
    *,
    expected_at: datetime,
    provider_account: str = "stripe",
    breaks: Breaks = Breaks(),
) -> int:
    """Write the ledger CSV of a plan that was carried out; references are charge ids."""
    refunded = {refund.payment_id: refund.amount_minor for refund in plan.refunds}

    def status(charge: PlannedCharge) -> str:
        if charge.is_disputed:
            return "charged_back"
        amount = refunded.get(charge.payment_id, 0)
        if amount == 0:
            return "settled"
        return "refunded" if amount == charge.amount_minor else "partially_refunded"

    booked = (
        BookedPayment(
            account_id=charge.account_id,
            payment_id=charge.payment_id,
            reference=fill.charge_ids[charge.payment_id],
            amount_minor=charge.amount_minor,
            currency=charge.currency,
            status=status(charge),
        )
        for charge in plan.charges
    )
    return write_ledger(
        path,
        booked,
        payments=len(plan.charges),
        expected_at=expected_at,
        provider_account=provider_account,
        breaks=breaks,
        money_of="stripe",
    )


def _breaks_in_order(breaks: Breaks) -> Iterator[str]:
    for kind in (
        "missing_in_ledger",
        "amount_mismatch",
        "currency_mismatch",
        "status_mismatch",
        "duplicate_reference",
    ):
        yield from [kind] * getattr(breaks, kind)


def _refuse_too_many(breaks: Breaks, payments: int) -> None:
    wanted = sum(1 for _ in _breaks_in_order(breaks))
    if max(wanted, breaks.missing_at_provider + breaks.pending) > payments:
        raise InputError(f"{payments} payments are too few for the breaks that are wanted")


def mix(seed: int, number: int) -> int:
    """A well mixed 64-bit number (SplitMix64): any row can be drawn without the ones before."""
    value = (seed * 0xD1342543DE82EF95 + (number + 1) * 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def drawn_amount(drawn: int, digits: int) -> int:
    """An amount of that many digits that no round number is."""
    lowest: int = 10 ** (digits - 1)
    amount = lowest + drawn % (9 * lowest)
    return amount - amount % 10 + 1 + (drawn >> 40) % 9


def major_text(minor: int, digits: int) -> str:
    """Minor units as a decimal amount with so many decimals."""
    # The fast way for what nearly every row has; the exact same text.
    if digits == 2 and minor >= 0:
        return f"{minor // 100}.{minor % 100:02d}"
    return format(to_major(minor, digits), "f")


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Write a CSV file of these columns; rows written."""
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            writer.writerow(row)
            count += 1
    return count


def write_lines(path: Path, lines: Iterator[str]) -> None:
    """Write these lines, each with its end, in chunks."""
    with path.open("w", encoding="utf-8", newline="") as file:
        chunk: list[str] = []
        for line in lines:
            chunk.append(line)
            if len(chunk) == _CHUNK_ROWS:
                file.write("".join(chunk))
                chunk.clear()
        file.write("".join(chunk))
