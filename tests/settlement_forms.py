"""The same money in the words of each provider, for tests that hold all formats to one thing."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.settlement_files import ADYEN_HEADER, adyen_row

PAYMENTS = 12


@dataclasses.dataclass(frozen=True, slots=True)
class Money:
    """One money row, in the words of no provider; amounts in cents."""

    number: int
    kind: str
    cents: int
    fee: int
    day: int


def draw(seed: int) -> list[Money]:
    """Charges, some of them partly or wholly refunded, on five days."""
    dice = random.Random(seed)
    rows: list[Money] = []
    for number in range(PAYMENTS):
        cents = dice.randint(100, 99_999)
        day = dice.randint(1, 4)
        rows.append(Money(number, "charge", cents, dice.randint(0, 99), day))
        if dice.random() < 0.4:
            back = cents if dice.random() < 0.5 else dice.randint(1, cents - 1)
            rows.append(Money(number, "refund", -back, 0, day + 1))
    dice.shuffle(rows)
    return rows


def major(cents: int) -> str:
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02}"


# ---- the formats: rows of one day as a table ----------------------------------------------------

Table = tuple[list[str], list[list[str]]]


def as_adyen(rows: Sequence[Money], day: int) -> Table:
    """Batches are days."""
    made = [
        adyen_row(
            "Settled" if row.kind == "charge" else "Refunded",
            major(row.cents),
            psp=f"PSP{row.number}",
            reference=f"REF{row.number}",
            fee=major(row.fee) if row.fee else "",
            batch=day,
        )
        for row in rows
    ]
    return ADYEN_HEADER, [[each.get(name, "") for name in ADYEN_HEADER] for each in made]


def as_stripe(rows: Sequence[Money], day: int) -> Table:
    header = [
        "balance_transaction_id",
        "created_utc",
        "currency",
        "gross",
        "fee",
        "net",
        "reporting_category",
        "charge_id",
        "automatic_payout_id",
    ]
    return header, [
        [
            f"txn_{row.kind}_{row.number}",
            f"2026-03-{day:02} 10:00:00",
            "eur",
            major(row.cents),
            major(row.fee),
            major(row.cents - row.fee),
            row.kind,
            f"REF{row.number}",
            f"po_{day}",
        ]
        for row in rows
    ]


def as_mapped(rows: Sequence[Money], day: int) -> Table:
    header = ["id", "what", "in", "out", "cost", "currency", "order", "when"]
    return header, [
        [
            f"{row.kind}-{row.number}",
            row.kind,
            major(row.cents).replace(".", ",") if row.cents > 0 else "",
            major(-row.cents).replace(".", ",") if row.cents < 0 else "",
            major(row.fee).replace(".", ","),
            "EUR",
            f"REF{row.number}",
            f"{day:02}.03.2026",
        ]
        for row in rows
    ]


def as_gocardless_export(rows: Sequence[Money], day: int) -> Table:
    header = [
        "resources.type",
        "gross_amount",
        "gocardless_fees",
        "net_amount",
        "currency",
        "payouts.id",
        "payouts.arrival_date",
        "payments.id",
        "refunds.id",
    ]
    return header, [
        [
            "payment" if row.kind == "charge" else "refund",
            major(row.cents),
            major(-row.fee),
            major(row.cents - row.fee),
            "EUR",
            f"PO{day}",
            f"2026-03-{day:02}",
            f"REF{row.number}",
            "" if row.kind == "charge" else f"RF{row.number}",
        ]
        for row in rows
    ]


def as_gocardless_items(rows: Sequence[Money], day: int) -> Table:
    """A fee is an item of its own."""
    made = []
    for row in rows:
        kind = "payment_paid_out" if row.kind == "charge" else "refund"
        made.append([f"{row.cents}.0", kind, f"REF{row.number}", str(day)])
        if row.fee:
            made.append([f"-{row.fee}.0", "gocardless_fee", f"REF{row.number}", str(day)])
    return ["amount", "type", "payment", "day"], made


def as_square(rows: Sequence[Money], day: int) -> Table:
    header = ["id", "payout_id", "effective_at", "type", "gross", "fee", "net", "payment_id"]
    return header, [
        [
            f"poe_{row.kind}_{row.number}",
            f"po_{day}",
            f"2026-03-{day:02}T10:00:00Z",
            row.kind.upper(),
            str(row.cents),
            str(row.fee),
            str(row.cents - row.fee),
            f"REF{row.number}",
        ]
        for row in rows
    ]


def as_braintree(rows: Sequence[Money], day: int) -> Table:
    header = [
        "Merchant Account ID",
        "Transaction ID",
        "Original Transaction ID",
        "Transaction Type",
        "Settlement Currency",
        "Settlement Amount",
        "Settlement Date",
        "Disbursement Date",
        "Order ID",
        "Total Fee Amount",
    ]
    return header, [
        [
            "example",
            f"bt{row.kind}{row.number}",
            "",
            "sale" if row.kind == "charge" else "credit",
            "EUR",
            major(abs(row.cents)),
            f"2026-03-{day:02}",
            f"2026-03-{day + 2:02}",
            f"REF{row.number}",
            major(row.fee),
        ]
        for row in rows
    ]


PAYPAL_HEADER = (
    "CH,Transaction ID,Invoice ID,PayPal Reference ID,PayPal Reference ID Type,"
    "Transaction Event Code,Transaction Initiation Date,Transaction Completion Date,"
    "Transaction Debit or Credit,Gross Transaction Amount,Gross Transaction Currency,"
    "Fee Debit or Credit,Fee Amount,Fee Currency"
).split(",")


def as_paypal(rows: Sequence[Money], day: int) -> Table:
    return PAYPAL_HEADER, [
        [
            "SB",
            f"TX{row.kind}{row.number}",
            f"REF{row.number}",
            "",
            "",
            "T0006" if row.kind == "charge" else "T1107",
            *[f"2026/03/{day:02} 10:00:00 -0800"] * 2,
            "CR" if row.cents > 0 else "DR",
            str(abs(row.cents)),
            "EUR",
            "DR" if row.fee else "",
            str(row.fee) if row.fee else "",
            "EUR" if row.fee else "",
        ]
        for row in rows
    ]


def csv_text(table: Table) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table[0], *table[1]])
    return text.getvalue()


def paypal_text(table: Table) -> str:
    """With its records around the rows, and the totals that they come to."""
    at = {name: number for number, name in enumerate(table[0])}
    day = table[1][0][at["Transaction Completion Date"]][:10] if table[1] else "2026/03/01"
    sums = {(sign, name): 0 for sign in ("CR", "DR") for name in ("gross", "fee")}
    for row in table[1]:
        sums[row[at["Transaction Debit or Credit"]], "gross"] += int(
            row[at["Gross Transaction Amount"]]
        )
        if row[at["Fee Amount"]]:
            sums[row[at["Fee Debit or Credit"]], "fee"] += int(row[at["Fee Amount"]])
    totals = [
        sums["CR", "gross"],
        sums["DR", "gross"],
        sums["CR", "fee"],
        sums["DR", "fee"],
    ]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [
            ["RH", f"{day} 22:00:00 -0800", "A", "ACCOUNT", "009"],
            ["FH", "01"],
            ["SH", f"{day} 00:00:00 -0800", f"{day} 23:59:59 -0800", "ACCOUNT", ""],
            *[table[0], *table[1]],
            ["SF", "EUR", *totals],
            ["SC", len(table[1])],
            ["RF", "EUR", *totals],
            ["RC", len(table[1])],
            ["FF", len(table[1]) + 8],
        ]
    )
    return text.getvalue()


def json_text(table: Table) -> str:
    header, rows = table
    return "".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows)


def gocardless_text(table: Table) -> str:
    """The answer of the payout, then a page of its items."""
    header, rows = table
    items = [dict(zip(header, row, strict=True)) for row in rows]
    day = items[0]["day"]
    payout = {
        "id": f"PO{day}",
        "amount": sum(int(item["amount"].removesuffix(".0")) for item in items),
        "currency": "EUR",
        "created_at": f"2026-03-0{day}T10:00:00.000Z",
        "status": "paid",
    }
    for item in items:
        del item["day"]
    page = [{**item, "links": {"payment": item.pop("payment")}} for item in items]
    answers = [{"payouts": payout}, {"payout_items": page, "meta": {"limit": 500}}]
    return "".join(json.dumps(each) + "\n" for each in answers)


def square_entries(table: Table) -> list[dict[str, Any]]:
    header, rows = table
    made = []
    for row in rows:
        entry: dict[str, Any] = {}
        for name, cell in zip(header, row, strict=True):
            if name in ("gross", "fee", "net"):
                entry[f"{name}_amount_money"] = {"amount": int(cell), "currency": "EUR"}
            elif name == "payment_id":
                entry[f"type_{row[header.index('type')].lower()}_details"] = {name: cell}
            else:
                entry[name] = cell
        made.append(entry)
    return made


def square_text(table: Table) -> str:
    """One answer over many lines, as it is when somebody looked at it."""
    return json.dumps({"payout_entries": square_entries(table), "cursor": ""}, indent=2) + "\n"


def square_lines(table: Table) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in square_entries(table))


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """How one provider tells it."""

    account: str
    table: Callable[[Sequence[Money], int], Table]
    text: Callable[[Table], str]
    fixed: int = 0
    """So many columns keep their place."""


FORMS = {
    "adyen": Form("adyen", as_adyen, csv_text),
    "stripe": Form("stripe", as_stripe, csv_text),
    "mapped": Form("mapped", as_mapped, csv_text),
    "paypal": Form("paypal", as_paypal, paypal_text, fixed=1),
    "json": Form("mapped", as_mapped, json_text),
    "gocardless": Form("gocardless", as_gocardless_items, gocardless_text),
    "gocardless export": Form("gocardless", as_gocardless_export, csv_text),
    "square": Form("square", as_square, square_text),
    "square lines": Form("square", as_square, square_lines),
    "braintree": Form("braintree", as_braintree, csv_text),
}

MAPPED: dict[str, Any] = {
    "provider": "csv",
    "mode": "dry_run",
    "settle_within": "P3D",
    "zone": "UTC",
    "columns": {
        "entry_id": "id",
        "type": "what",
        "debit": "out",
        "credit": "in",
        "fee": "cost",
        "currency": "currency",
        "payment_ref": "order",
        "occurred_at": "when",
        "decimal": ",",
        "dates": "day_first",
    },
    "types": {"charge": "charge", "refund": "refund"},
}
