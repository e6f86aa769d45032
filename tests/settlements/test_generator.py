"""Generated settlements: the providers' formats, closing batches, the books' breaks, the seed."""

from __future__ import annotations

import csv
import hashlib
import os
import signal
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from duebook.errors import InputError, UnavailableError
from duebook.settlements.generator import (
    ADYEN_COLUMNS,
    CONTACT_COLUMNS,
    CSV_SETTLEMENT_COLUMNS,
    LEDGER_COLUMNS,
    Breaks,
    fill_stripe,
    generate_adyen_settlement,
    generate_csv_ledger,
    generate_csv_settlement,
    generate_stripe_plan,
    write_contacts,
    write_stripe_ledger,
)
from duebook.settlements.stripe import StripeSource, make_stripe_client
from tests.stripe_stub import StripeStub

ROOT = Path(__file__).resolve().parents[2]
REAL_REPORT = ROOT.parent / "shared/data/settlements/adyen/settlement_detail_report_batch_380.csv"
FEES = ("Commission (NC)", "Markup (NC)", "Scheme Fees (NC)", "Interchange (NC)")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def amount(row: dict[str, str], column: str) -> Decimal:
    return Decimal(row[column] or "0")


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    """The checksums change only when the format is meant to."""
    adyen = generate_adyen_settlement(
        7, 300, 501, tmp_path, breaks=Breaks(1, 1, 1, 1, 1, 2, 3), accounts=20
    )
    settlement = generate_csv_settlement(7, 1_000, 0.01, tmp_path / "csv" / "settlement.csv")
    generate_csv_ledger(7, 1_000, tmp_path / "csv" / "ledger.csv")
    assert {
        "report": checksum(adyen.path),
        "ledger": checksum(adyen.ledger_path),
        "contacts": checksum(adyen.contacts_path),
        "csv": checksum(settlement.path),
        "csv ledger": checksum(tmp_path / "csv" / "ledger.csv"),
        "plan": hashlib.sha256(repr(generate_stripe_plan(7)).encode()).hexdigest()[:16],
    } == GOLDEN


GOLDEN = {
    "report": "ef99938b84560004",
    "ledger": "47bcd206a96399fe",
    "contacts": "817126e4d1126071",
    "csv": "276c27a1dabaa156",
    "csv ledger": "dbb8951d9e6385ae",
    "plan": "8bf2b415950ba080",
}


def test_another_seed_writes_other_amounts(tmp_path: Path) -> None:
    one = generate_adyen_settlement(1, 50, 501, tmp_path / "one")
    two = generate_adyen_settlement(2, 50, 501, tmp_path / "two")
    same = {r["Gross Credit (GC)"] for r in rows_of(one.path)} & {
        r["Gross Credit (GC)"] for r in rows_of(two.path)
    }
    assert same == {""}


def test_an_adyen_batch_closes_to_zero_and_says_what_it_holds(tmp_path: Path) -> None:
    made = generate_adyen_settlement(3, 400, 502, tmp_path)
    rows = rows_of(made.path)
    net = Counter[str]()
    for row in rows:
        net[row["Type"]] += int(
            100 * (amount(row, "Net Credit (NC)") - amount(row, "Net Debit (NC)"))
        )
    assert sum(net.values()) == 0
    assert dict(net) == made.net_by_type
    assert Counter(row["Type"] for row in rows) == made.rows_by_type
    assert set(made.rows_by_type) == {"Settled", "Refunded", "Chargeback", "Fee", "MerchantPayout"}
    assert made.rows == len(rows)
    assert made.payout_minor > 0


def test_each_adyen_row_is_gross_less_its_fees_and_has_its_own_key(tmp_path: Path) -> None:
    rows = rows_of(generate_adyen_settlement(3, 400, 502, tmp_path).path)
    for row in rows:
        if not row["Psp Reference"]:
            continue
        gross = amount(row, "Gross Credit (GC)") - amount(row, "Gross Debit (GC)")
        net = amount(row, "Net Credit (NC)") - amount(row, "Net Debit (NC)")
        assert gross - sum(amount(row, fee) for fee in FEES) == net
        assert not (row["Gross Credit (GC)"] and row["Gross Debit (GC)"])
        assert len(row["Psp Reference"]) == 16
    keys = [(r["Psp Reference"], r["Modification Reference"], r["Type"]) for r in rows]
    assert len(set(keys)) == len(keys)
    assert {row["TimeZone"] for row in rows} == {"CET"}


@pytest.mark.skipif(not REAL_REPORT.exists(), reason="the real report is not here")
def test_the_columns_are_those_of_a_real_report() -> None:
    with REAL_REPORT.open(newline="") as file:
        assert set(next(csv.reader(file))) == set(ADYEN_COLUMNS)


def test_a_summer_batch_in_yen_has_no_decimals(tmp_path: Path) -> None:
    made = generate_adyen_settlement(
        3, 40, 503, tmp_path, day=date(2026, 7, 1), currency="JPY", chargeback_every=0
    )
    rows = rows_of(made.path)
    assert {row["TimeZone"] for row in rows} == {"CEST"}
    assert all("." not in row["Net Credit (NC)"] for row in rows)
    assert "Chargeback" not in made.rows_by_type


def test_amounts_are_distinctive(tmp_path: Path) -> None:
    made = generate_adyen_settlement(3, 500, 504, tmp_path, digits=8)
    amounts = [row["Gross Credit (GC)"] for row in rows_of(made.path) if row["Type"] == "Settled"]
    assert {len(text) for text in amounts} == {9}
    assert len(set(amounts)) == len(amounts)
    assert not any(text.endswith("0") for text in amounts)


def test_the_books_differ_only_where_it_is_wanted(tmp_path: Path) -> None:
    breaks = Breaks(
        missing_in_ledger=2,
        amount_mismatch=3,
        currency_mismatch=1,
        status_mismatch=1,
        duplicate_reference=2,
        missing_at_provider=4,
        pending=5,
    )
    plain = generate_adyen_settlement(3, 100, 505, tmp_path / "plain")
    broken = generate_adyen_settlement(3, 100, 505, tmp_path / "broken", breaks=breaks)
    assert broken.path.read_bytes() == plain.path.read_bytes()

    books = {row["payment_id"]: row for row in rows_of(broken.ledger_path)}
    before = {row["payment_id"]: row for row in rows_of(plain.ledger_path)}
    assert tuple(next(iter(books.values()))) == LEDGER_COLUMNS
    assert len(before.keys() - books.keys()) == 2
    shared = before.keys() & books.keys()
    for column, differ in (("amount", 3), ("currency", 1), ("status", 1), ("reference", 0)):
        assert sum(before[key][column] != books[key][column] for key in shared) == differ
    extra = [books[key] for key in books.keys() - before.keys()]
    again = [row for row in extra if row["payment_id"].endswith("-again")]
    assert len(again) == 2
    assert {row["reference"] for row in again} <= {row["reference"] for row in before.values()}
    unsettled = Counter(
        row["expected_at"] for row in extra if row["payment_id"].endswith("-unsettled")
    )
    assert unsettled == {"2026-03-02T23:00:00Z": 4, "2026-04-01T23:00:00Z": 5}
    assert broken.ledger_rows == len(books)


def test_every_settled_payment_is_booked_with_its_status(tmp_path: Path) -> None:
    made = generate_adyen_settlement(3, 400, 506, tmp_path)
    settled = {
        row["Merchant Reference"]: row["Gross Credit (GC)"]
        for row in rows_of(made.path)
        if row["Type"] == "Settled"
    }
    books = rows_of(made.ledger_path)
    assert {row["reference"]: row["amount"] for row in books} == settled
    statuses = Counter(row["status"] for row in books)
    assert statuses["charged_back"] == made.rows_by_type["Chargeback"]
    refunded = statuses["refunded"] + statuses["partially_refunded"]
    assert refunded == made.rows_by_type["Refunded"]
    assert statuses["refunded"] > 0
    assert statuses["partially_refunded"] > 0
    accounts = {row["account_id"] for row in rows_of(made.contacts_path)}
    assert {row["account_id"] for row in books} == accounts


def test_more_breaks_than_payments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too few"):
        generate_adyen_settlement(3, 2, 507, tmp_path, breaks=Breaks(amount_mismatch=3))


def test_contacts_have_zones(tmp_path: Path) -> None:
    assert write_contacts(tmp_path / "contacts.csv", 7, "acct") == 7
    rows = rows_of(tmp_path / "contacts.csv")
    assert tuple(rows[0]) == CONTACT_COLUMNS
    assert len({row["address"] for row in rows}) == 7
    assert len({row["zone"] for row in rows}) == 5


@pytest.mark.parametrize(("ratio", "changed"), [(0, 0), (0.01, 50), (1, 5_000), (0.0001, 0)])
def test_a_csv_settlement_changes_the_share_of_rows_that_is_asked_for(
    tmp_path: Path, ratio: float, changed: int
) -> None:
    base = generate_csv_settlement(9, 5_000, 0, tmp_path / "base.csv")
    new = generate_csv_settlement(9, 5_000, ratio, tmp_path / "new.csv")
    assert new.changed == changed
    pairs = list(zip(rows_of(base.path), rows_of(new.path), strict=True))
    differing = [(old, now) for old, now in pairs if old != now]
    assert len(differing) == changed
    for old, now in differing:
        assert old["Entry"] == now["Entry"]
        assert Decimal(now["Gross"]) - Decimal(old["Gross"]) == 100
        assert Decimal(now["Gross"]) - Decimal(now["Fee"]) == Decimal(now["Net"])
    assert len(CSV_SETTLEMENT_COLUMNS) == 10


def test_the_csv_ledger_is_what_the_csv_settlement_settles(tmp_path: Path) -> None:
    settlement = generate_csv_settlement(9, 500, 0, tmp_path / "settlement.csv")
    generate_csv_ledger(9, 500, tmp_path / "ledger.csv")
    settled = {row["Reference"]: row["Gross"] for row in rows_of(settlement.path)}
    assert {row["reference"]: row["amount"] for row in rows_of(tmp_path / "ledger.csv")} == settled


def test_size_costs_no_memory(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        generate_csv_settlement(9, 60_000, 0.01, tmp_path / "settlement.csv")
        generate_adyen_settlement(9, 20_000, 508, tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000


# -- Stripe ----------------------------------------------------------------------------------------


def test_a_plan_is_carried_out_and_reads_back_the_same(tmp_path: Path) -> None:
    start = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
    plan = generate_stripe_plan(5, charges=60, refund_every=10, disputes=2)
    told: list[tuple[int, int]] = []
    with StripeStub(now=start) as stub:
        client = make_stripe_client("sk_test_stub", base_address=stub.address)
        fill = fill_stripe(client, plan, progress=lambda done, of: told.append((done, of)))
        pull = StripeSource(client).pull(
            cursor=None, pending_ids=[], open_batches=[], look_back=timedelta(0), now=start
        )
        entries = list(pull.entries)
    assert told == [(done, 66) for done in range(1, 67)]
    charged = {e.payment_ref: e.gross_minor for e in entries if e.entry_type == "charge"}
    assert charged == {
        fill.charge_ids[charge.payment_id]: charge.amount_minor for charge in plan.charges
    }
    refunded = {e.payment_ref: -e.gross_minor for e in entries if e.entry_type == "refund"}
    assert refunded == {
        fill.charge_ids[refund.payment_id]: refund.amount_minor for refund in plan.refunds
    }
    assert sum(e.entry_type == "chargeback" for e in entries) == 2
    assert len(plan.refunds) == len(fill.refund_ids) == 6

    written = write_stripe_ledger(
        tmp_path / "ledger.csv", plan, fill, expected_at=start, breaks=Breaks(missing_in_ledger=1)
    )
    books = rows_of(tmp_path / "ledger.csv")
    assert written == len(books) == 59
    assert {row["reference"] for row in books} < set(fill.charge_ids.values())
    statuses = Counter(row["status"] for row in books)
    # The payment that the books miss is one of the two disputed ones.
    assert statuses == {
        "settled": 52,
        "charged_back": 1,
        "refunded": 3,
        "partially_refunded": 3,
    }
    assert {row["provider_account"] for row in books} == {"stripe"}


def test_a_server_that_refuses_is_one_line() -> None:
    with StripeStub() as stub:
        client = make_stripe_client("pk_not_secret", base_address=stub.address)
        with pytest.raises(UnavailableError, match=r"can't be filled \(HTTP 401\)") as caught:
            fill_stripe(client, generate_stripe_plan(5, charges=1))
    assert caught.value.__context__ is None


@pytest.fixture
def localstripe_address() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.stripe_stub.localstripe"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)
        process.stdout.close()


def test_a_plan_fills_localstripe_with_manual_payouts(localstripe_address: str) -> None:
    plan = generate_stripe_plan(6, charges=30, payouts=2)
    client = make_stripe_client("sk_test_local", base_address=localstripe_address)
    fill = fill_stripe(client, plan)
    assert len(fill.charge_ids) == 30
    assert len(fill.payout_ids) == 2
    assert all(charge.startswith("ch_") for charge in fill.charge_ids.values())
    paid = client.v1.payouts.list().data
    assert {payout.automatic for payout in paid} == {False}
