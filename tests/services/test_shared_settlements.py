"""Every real file loads, and what was loaded comes to what the file says by itself.

The oracle is Python's csv and Decimal over the raw file, by nothing of the product.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.settlement_files import SHARED, World, shared_file

Totals = Counter[tuple[str, str]]
ADYEN = ["100", "238", "380", "666"]
HUNDREDTHS = Decimal("0.01")


def loaded(world: World, account: str) -> Totals:
    """Net by the provider's own type and net currency, in minor units, of what is current."""
    found: Totals = Counter()
    for row in world.rows(
        "select provider_type, net_currency, sum(net_minor)::bigint as net_minor"
        " from duebook_reports.settlement_entries where provider_account = %s and is_current"
        " group by 1, 2",
        account,
    ):
        found[row["provider_type"], row["net_currency"]] += row["net_minor"]
    return found


def table(path: Path, *, header: int = 1, delimiter: str = ",") -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        lines = [row for row in csv.reader(stream, delimiter=delimiter)]
    names = [name.strip() for name in lines[header - 1]]
    for row in lines[header:]:
        if any(row):
            yield dict(zip(names, row, strict=False))


def minor(text: str) -> int:
    return int((Decimal(text or "0") / HUNDREDTHS).to_integral_exact())


@pytest.mark.parametrize("number", ADYEN)
def test_adyen_reports(world: World, number: str) -> None:
    path = shared_file("adyen", f"settlement_detail_report_batch_{number}.csv")
    world.reconcile(path)
    assert loaded(world, "adyen") == adyen_totals(path)


@pytest.mark.parametrize("path", sorted(SHARED.glob("adyen/wmf_*.csv")), ids=lambda p: p.stem)
def test_adyen_scenarios(world: World, path: Path) -> None:
    world.reconcile(path)
    assert loaded(world, "adyen") == adyen_totals(path)


def adyen_totals(path: Path) -> Totals:
    found: Totals = Counter()
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    header = next(n for n, line in enumerate(lines, 1) if "Psp Reference" in line)
    width = len(next(csv.reader([lines[header - 1]])))
    for row in table(path, header=header):
        if len(row) != width:
            continue  # the ragged row, which is in quarantine
        net = minor(row["Net Credit (NC)"]) - minor(row["Net Debit (NC)"])
        found[row["Type"], row["Net Currency"]] += net
    return found


@pytest.mark.parametrize("path", sorted(SHARED.glob("paypal/wmf_*.csv")), ids=lambda p: p.stem)
def test_paypal_settlement_reports(world: World, path: Path) -> None:
    report = world.reconcile(path, account="paypal")
    assert report.quarantined == 0
    assert report.unknown_types == {}
    found: Totals = Counter()
    columns: list[str] = []
    for row in csv.reader(path.read_text(encoding="utf-8-sig").splitlines()):
        if row[0] == "CH":
            columns = [name.strip() for name in row]
        if row[0] != "SB":
            continue
        cells = dict(zip(columns, row, strict=True))
        gross = int(cells["Gross Transaction Amount"])
        fee = int(cells["Fee Amount"] or 0)
        net = gross if cells["Transaction Debit or Credit"] == "CR" else -gross
        net += fee if cells["Fee Debit or Credit"] == "CR" else -fee
        found[cells["Transaction Event Code"], cells["Gross Transaction Currency"]] += net
    assert loaded(world, "paypal") == found


def test_a_trailer_that_disagrees_with_its_rows_is_flagged_and_refuses_nothing(
    world: World,
) -> None:
    report = world.reconcile(shared_file("paypal", "wmf_stl.csv"), account="paypal")
    assert report.entries_new == 5
    assert report.exit_code == 1
    flagged = {(each["currency"], each["section"]) for each in report.file_checks}
    assert flagged == {("AUD", "section 1"), ("AUD", "report")}
    [fees] = [
        each
        for each in report.file_checks
        if each["section"] == "report" and each["check_name"] == "fee_debit"
    ]
    assert (fees["stated_minor"], fees["computed_minor"]) == (600, 300)
    assert world.value("select count(*) from duebook_reports.settlement_file_checks") == 16


def test_a_report_without_its_footer_is_flagged_as_cut(world: World) -> None:
    report = world.reconcile(shared_file("paypal", "wmf_stl_brl_refund.csv"), account="paypal")
    assert report.entries_new == 3
    assert [each["check_name"] for each in report.file_checks] == ["section_footer"]


def test_the_legs_of_a_conversion_name_their_payment(world: World) -> None:
    world.reconcile(shared_file("paypal", "wmf_stl_currency_convert.csv"), account="paypal")
    legs = world.rows(
        "select entry_type, net_minor, net_currency from duebook.settlement_entry"
        " where provider_payment_ref = '1DV3' order by net_currency, net_minor"
    )
    assert [tuple(leg.values()) for leg in legs] == [
        ("conversion", -1840, "BRL"),
        ("charge", 1840, "BRL"),
        ("conversion", 327, "USD"),
    ]


@pytest.mark.parametrize(
    "name", ["settlement_report", "settlement_report_giving_basket", "payments_activity"]
)
def test_stripe_itemised_reports(world: World, name: str) -> None:
    path = shared_file("stripe", f"{name}.csv")
    report = world.reconcile(path, account="stripe")
    assert report.quarantined == 0
    found: Totals = Counter()
    for row in table(path):
        found[row["reporting_category"], row["currency"].upper()] += minor(row["net"])
    assert loaded(world, "stripe") == found


ACTIVITY = {
    "en": (
        "oca_statement_en",
        {
            "entry_id": "Transaction ID",
            "type": "Description",
            "amount": "Gross",
            "fee": "Fee",
            "net": "Net",
            "currency": "Currency",
            "payment_ref": "Invoice ID",
            "occurred_at": "Date",
            "occurred_time": "Time",
            "occurred_zone": "Time Zone",
            "thousands": ",",
            "fee_sign": "cost_is_negative",
            "dates": "month_first",
        },
    ),
    "es": (
        "oca_statement_es",
        {
            "entry_id": "Id. de transacción",
            "type": "Descripción",
            "amount": "Bruto",
            "fee": "Comisión",
            "net": "Neto",
            "currency": "Divisa",
            "payment_ref": "Id. de factura",
            "occurred_at": "Fecha",
            "occurred_time": "Hora",
            "occurred_zone": "Zona horaria",
            "decimal": ",",
            "thousands": ".",
            "fee_sign": "cost_is_negative",
            "dates": "day_first",
        },
    ),
}


def map_files(world: World, columns: Mapping[str, Any], **others: Any) -> None:
    """Read the files of an account `mapped` by these columns."""
    account = {
        "provider": "csv",
        "mode": "dry_run",
        "settle_within": "P3D",
        "zone": "UTC",
        "columns": dict(columns),
        **others,
    }
    world.configure(provider_accounts={"mapped": account})


@pytest.mark.parametrize("language", ACTIVITY)
def test_paypal_downloads_in_any_language(world: World, language: str) -> None:
    name, columns = ACTIVITY[language]
    path = shared_file("paypal", f"{name}.csv")
    map_files(world, columns)
    report = world.reconcile(path, account="mapped")
    thousands, decimal = str(columns["thousands"]), str(columns.get("decimal", "."))
    found: Totals = Counter()
    rows = 0
    for row in table(path):
        rows += 1
        key = row[str(columns["type"])], row[str(columns["currency"])]
        found[key] += minor(row[str(columns["net"])].replace(thousands, "").replace(decimal, "."))
    assert report.entries_new + report.quarantined == rows
    assert report.quarantined == 0
    assert loaded(world, "mapped") == found


def test_the_paypal_activity_download_is_read_by_the_shipped_mapping(world: World) -> None:
    path = shared_file("paypal", "oca_activity_en.csv")
    report = world.reconcile(path, account="paypal")
    ignored = {"Denied", "Canceled", "Expired"}
    found: Totals = Counter()
    for row in table(path):
        if row["Status"] not in ignored:
            found[row["Type"], row["Currency"]] += minor(row["Net"].replace(",", ""))
    assert report.quarantined == 0
    assert loaded(world, "paypal") == found


GENERIC: dict[str, tuple[dict[str, Any], Callable[[dict[str, str]], int]]] = {
    "balance": (
        {"amount": "Amount", "currency_code": "USD"},
        lambda row: minor(row["Amount"].replace(",", "")),
    ),
    "debit_credit": (
        {"amount": "Amount", "direction": "D/C", "currency_code": "USD"},
        lambda row: abs(minor(row["Amount"].replace(",", ""))) * (-1 if row["D/C"] == "D" else 1),
    ),
    "debit_credit_amount": (
        {"debit": "Debit", "credit": "Credit", "currency_code": "USD"},
        lambda row: (
            minor(row["Credit"].replace(",", "")) - abs(minor(row["Debit"].replace(",", "")))
        ),
    ),
    "multi_currency": (
        {"amount": "Amount", "currency": "Currency"},
        lambda row: minor(row["Amount"].replace(",", "")),
    ),
    "original_currency": (
        {"amount": "Amount", "currency": "Currency"},
        lambda row: minor(row["Amount"].replace(",", "")),
    ),
    "sample_statement_en": (
        {"amount": "Amount", "currency": "Currency"},
        lambda row: minor(row["Amount"].replace(",", "")),
    ),
    "sample_statement_credit_card_inverse_sign_en": (
        {"amount": "Amount", "currency": "Currency", "amount_sign": "inverted"},
        lambda row: -minor(row["Amount"].replace(",", "")),
    ),
}


@pytest.mark.parametrize("name", GENERIC)
def test_bank_statements_by_mapping(world: World, name: str) -> None:
    columns, net = GENERIC[name]
    path = shared_file("generic", f"{name}.csv")
    statement = {"entry_id": ["Date", "Label"], "type": "Label", "occurred_at": "Date"}
    map_files(world, {**statement, **columns, "thousands": ",", "dates": "month_first"})
    report = world.reconcile(path, account="mapped")
    assert report.quarantined == 0
    found: Totals = Counter()
    for row in table(path):
        found[row["Label"], row.get("Currency") or "USD"] += net(row)
    assert loaded(world, "mapped") == found


def test_a_row_without_its_currency_is_kept_aside_and_named(world: World) -> None:
    map_files(
        world,
        {
            "entry_id": ["Date", "Label"],
            "amount": "Amount",
            "currency": "Currency",
            "occurred_at": "Date",
            "thousands": ",",
            "dates": "month_first",
        },
    )
    report = world.reconcile(
        shared_file("generic", "original_currency_empty.csv"), account="mapped"
    )
    assert (report.entries_new, report.quarantined) == (0, 1)
    [row] = world.rows("select line_no, column_name, reason from duebook.quarantined_row")
    assert tuple(row.values()) == (2, "Currency", "unknown currency")


def test_an_empty_statement_is_no_error(world: World) -> None:
    columns = {
        "entry_id": ["Date", "Label"],
        "amount": "Amount",
        "currency": "Currency",
        "occurred_at": "Date",
    }
    map_files(world, columns)
    report = world.reconcile(shared_file("generic", "empty_statement_en.csv"), account="mapped")
    assert (report.entries_new, report.quarantined) == (0, 0)
    report = world.reconcile(shared_file("paypal", "oca_empty_activity.csv"), account="paypal")
    assert (report.entries_new, report.quarantined) == (0, 0)


def test_columns_without_a_header_are_numbers(world: World) -> None:
    columns = {
        "entry_id": "8",
        "type": "2",
        "amount": "4",
        "currency": "3",
        "occurred_at": "1",
        "thousands": ",",
        "dates": "month_first",
        "header": False,
    }
    map_files(world, columns)
    world.reconcile(shared_file("generic", "original_currency_no_header.csv"), account="mapped")
    assert loaded(world, "mapped") == {("Your payment", "EUR"): 152500}


def test_metadata_above_and_below_the_table_is_no_money(world: World) -> None:
    path = shared_file("generic", "meta_data_separated_credit_debit.csv")
    columns = {
        "entry_id": "Operation Number",
        "type": "Label",
        "debit": "Debit",
        "credit": "Credit",
        "currency_code": "EUR",
        "occurred_at": "Date",
        "decimal": ",",
        "dates": "day_first",
    }
    map_files(world, columns)
    report = world.reconcile(path, account="mapped")
    assert loaded(world, "mapped") == {
        ("LABEL 1", "EUR"): -5000,
        ("LABEL 2", "EUR"): -10000,
        ("LABEL 3", "EUR"): -8068,
        ("LABEL 4", "EUR"): 130000,
    }
    # The balance below the rows has the table's width, so it is kept aside as what it is: no row.
    assert report.quarantined == 1


MINOR = {"minor_units": True, "currency": "currency", "occurred_at": "created"}
RELATED: dict[str, dict[str, Any]] = {
    "balance_transaction": {"type": "type", "amount": "amount", "fee": "fee", "net": "net"},
    "charge": {"type": "status", "amount": "amount"},
    "dispute": {"type": "status", "amount": "amount"},
    "refund": {"type": "status", "amount": "amount"},
    "payout": {"type": "status", "amount": "amount"},
}


@pytest.mark.parametrize("name", RELATED)
def test_tables_in_minor_units_by_mapping(world: World, name: str) -> None:
    path = shared_file("stripe", f"dbt_stripe_seed_{name}_data.csv")
    columns = {"entry_id": "id", **MINOR, **RELATED[name]}
    map_files(world, columns)
    report = world.reconcile(path, account="mapped")
    found: Totals = Counter()
    for row in table(path):
        amount = row[str(columns.get("net", "amount"))]
        found[row[str(columns["type"])], row["currency"].upper()] += int(amount)
    assert report.quarantined == 0
    assert loaded(world, "mapped") == found


def test_objects_of_an_api_kept_as_json_lines(world: World) -> None:
    """Nested names by points, amounts as they are written, a line that is no JSON kept aside."""
    columns = {
        "entry_id": "id",
        "type": "kind",
        "amount": "money.value",
        "currency": "money.currency",
        "payment_ref": "source.reference",
        "occurred_at": "at",
    }
    map_files(world, columns, types={"charge": "charge"})
    path = world.text(
        '\ufeff{"id": "a", "kind": "charge", "money": {"value": 10.10, "currency": "EUR"},'
        ' "source": {"reference": "R1"}, "at": "2026-03-01T10:00:00Z"}\r\n'
        "\r\n"
        '{"id": "b", "kind": "charge", "money": {"value": 0.1, "currency": "EUR"}\r\n'
        '{"id": "c", "kind": "charge", "money": {"value": "7.005", "currency": "EUR"},'
        ' "at": "2026-03-01T10:00:00Z"}\r\n'
        '{"id": "d", "kind": "charge", "money": {"value": 90071992547409.93, "currency": "EUR"},'
        ' "at": "2026-03-01T10:00:00Z"}\r\n',
        "money.jsonl",
    )
    report = world.reconcile(path, account="mapped")
    assert (report.entries_new, report.quarantined) == (2, 2)
    assert loaded(world, "mapped") == {("charge", "EUR"): 1010 + 9007199254740993}
    rows = world.rows(
        "select line_no, column_name, reason from duebook.quarantined_row order by line_no"
    )
    assert [tuple(row.values()) for row in rows] == [
        (3, None, "no JSON"),
        (4, "money.value", "more decimals than the currency has"),
    ]
