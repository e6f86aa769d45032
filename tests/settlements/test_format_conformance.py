"""What holds for every kind of file: a Format that is registered without a case here fails."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duebook.config import ProviderAccountConfig
from duebook.errors import InputError
from duebook.settlements.delimited import BrokenRow, UnknownLayoutError, tolerant_rows
from duebook.settlements.formats import Format, formats_of, recognise
from duebook.settlements.generator import generate_adyen_settlement
from duebook.settlements.generator_payouts import PayoutForm, generate_payout
from tests.settlement_files import World, make_world
from tests.settlement_forms import (
    MAPPED,
    Table,
    as_mapped,
    as_paypal,
    as_stripe,
    csv_text,
    draw,
    json_text,
    paypal_text,
)

MONEY = draw(3)
NOVEL, BAD = "novel", "12x4"
Rows = list[list[str]]


# ---- texts, and how one cell of them is changed -------------------------------------------------


def table_of(text: str) -> Rows:
    return list(csv.reader(io.StringIO(text)))


def text_of(rows: Rows) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def header_at(rows: Rows, column: str) -> int:
    return next(at for at, row in enumerate(rows) if column in row)


def edit_table(text: str, column: str, value: str) -> tuple[str, int]:
    """The cell of the first row that has one, and its line."""
    rows = table_of(text)
    header = header_at(rows, column)
    cell = rows[header].index(column)
    line = next(at for at in range(header + 1, len(rows)) if rows[at][cell])
    rows[line][cell] = value
    return text_of(rows), line + 1


def reorder_table(text: str, column: str, fixed: int = 0) -> str:
    rows = table_of(text)
    width = len(rows[header_at(rows, column)])
    order = [*range(fixed), *reversed(range(fixed, width))]
    return text_of([[row[at] for at in order] if len(row) == width else row for row in rows])


def documents(text: str) -> list[dict[str, Any]]:
    return [json.loads(line, parse_float=Decimal) for line in text.splitlines()]


def lines_of(found: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(each, default=str) + "\n" for each in found)


def edit_json(text: str, column: str, value: str) -> tuple[str, int]:
    """A cell of the first money row, and its number: the payout's own answer is a row before."""
    found = documents(text)
    pages = [page for each in found for page in each.values() if isinstance(page, list)]
    row = pages[0][0] if pages else found[0]
    *path, last = column.split(".")
    for name in path:
        row = row[name]
    row[last] = value
    return lines_of(found), 2 if pages else 1


def reorder_json(text: str, column: str, fixed: int = 0) -> str:
    del column, fixed

    def reversed_keys(found: Any) -> Any:
        if isinstance(found, list):
            return [reversed_keys(each) for each in found]
        if isinstance(found, dict):
            return {name: reversed_keys(found[name]) for name in reversed(found)}
        return found

    return lines_of([reversed_keys(each) for each in documents(text)])


# ---- what a text comes to, without the code that is tested --------------------------------------


def cents(text: str) -> int:
    return int(Decimal(text or "0") * 100)


def sum_table(text: str, plus: str, minus: str = "") -> tuple[int, int]:
    """Rows, and the net of all of them in minor units."""
    rows = table_of(text)
    header, *data = rows[header_at(rows, plus) :]
    made = [dict(zip(header, row, strict=True)) for row in data]
    return len(made), sum(cents(row[plus]) - cents(row[minus] if minus else "") for row in made)


def sum_braintree(text: str, fee: str) -> tuple[int, int]:
    header, *data = table_of(text)
    made = [dict(zip(header, row, strict=True)) for row in data]
    signs = {"sale": 1, "credit": -1}
    net = sum(
        signs[row["Transaction Type"]] * cents(row["Settlement Amount"]) - cents(row[fee])
        for row in made
    )
    return len(made), net


def sum_stripe(text: str) -> tuple[int, int]:
    return sum_table(text, "net")


def sum_paypal(text: str) -> tuple[int, int]:
    rows = table_of(text)
    at = {name: number for number, name in enumerate(rows[header_at(rows, "Transaction ID")])}
    signs = {"CR": 1, "DR": -1, "": 0}
    made = [row for row in rows if row[0] == "SB"]
    net = sum(
        signs[row[at["Transaction Debit or Credit"]]] * int(row[at["Gross Transaction Amount"]])
        + signs[row[at["Fee Debit or Credit"]]] * int(row[at["Fee Amount"]] or 0)
        for row in made
    )
    return len(made), net


def sum_mapped(found: Iterator[Mapping[str, str]]) -> tuple[int, int]:
    made = [{name: cell.replace(",", ".") for name, cell in row.items()} for row in found]
    net = sum(cents(row["in"]) - cents(row["out"]) - cents(row["cost"]) for row in made)
    return len(made), net


def sum_gocardless(text: str) -> tuple[int, int]:
    """With the payout's own row, which takes all, and the one of what was rounded."""
    payout, *pages = documents(text)
    items = [Decimal(item["amount"]) for page in pages for item in page["payout_items"]]
    parts = [item for item in items if item != int(item)]
    rounding = sum(items) - sum(int(item) for item in items)
    assert parts, "no fee has half a penny, so nothing is shown"
    whole = sum(items).to_integral_value(ROUND_HALF_UP)  # type: ignore[union-attr]
    return len(items) + 1 + bool(rounding), int(whole) - payout["payouts"]["amount"]


def sum_square(text: str) -> tuple[int, int]:
    payout, *pages = documents(text)
    nets = [e["net_amount_money"]["amount"] for page in pages for e in page["payout_entries"]]
    return len(nets) + 1, sum(nets) - payout["payout"]["amount_money"]["amount"]


# ---- the cases ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One Format. `kind` and `amount` are its columns of type and amount as the file has them,
    `named` is how an error names the latter.
    """

    account: Mapping[str, Any]
    text: Callable[[Path], str]
    sums: Callable[[str], tuple[int, int]]
    kind: str
    amount: str
    named: str = ""
    is_json: bool = False
    is_binary: bool = False
    as_bytes: Callable[[str], bytes] = str.encode
    fixed: int = 0

    def edit(self, text: str, column: str, value: str) -> tuple[str, int]:
        return (edit_json if self.is_json else edit_table)(text, column, value)

    def reorder(self, text: str) -> str:
        return (reorder_json if self.is_json else reorder_table)(text, self.kind, self.fixed)


def account(provider: str, **others: Any) -> dict[str, Any]:
    return {
        "provider": provider,
        "mode": "dry_run",
        "settle_within": "P3D",
        "zone": "UTC",
        **others,
    }


def payout(form: PayoutForm) -> Callable[[Path], str]:
    return lambda folder: generate_payout(7, 30, 1, folder, form, refund_every=7).path.read_text()


def told(table: Callable[..., Table], text: Callable[[Table], str]) -> Callable[[Path], str]:
    return lambda folder: text(table(MONEY, 2))


def stripe_local(folder: Path) -> str:
    del folder
    return csv_text(as_stripe(MONEY, 2)).replace("created_utc", "created", 1)


def adyen(folder: Path) -> str:
    return generate_adyen_settlement(7, 30, 1, folder, refund_every=7).path.read_text()


def parquet_of(text: str) -> bytes:
    """The same table, all of it text."""
    header, *rows = table_of(text)
    columns = {name: [row[at] or None for row in rows] for at, name in enumerate(header)}
    buffer = io.BytesIO()
    pq.write_table(pa.table({n: pa.array(c, pa.string()) for n, c in columns.items()}), buffer)
    return buffer.getvalue()


def rows_of(text: str) -> Iterator[dict[str, str]]:
    return csv.DictReader(io.StringIO(text))


CASES = {
    "Adyen settlement detail report": Case(
        account("adyen"),
        adyen,
        lambda text: sum_table(text, "Net Credit (NC)", "Net Debit (NC)"),
        "Type",
        "Gross Credit (GC)",
    ),
    "PayPal settlement report": Case(
        account("paypal"),
        told(as_paypal, paypal_text),
        sum_paypal,
        "Transaction Event Code",
        "Gross Transaction Amount",
        fixed=1,
    ),
    "Stripe itemised report (created_utc)": Case(
        account("stripe"), told(as_stripe, csv_text), sum_stripe, "reporting_category", "gross"
    ),
    "Stripe itemised report (created)": Case(
        account("stripe"), stripe_local, sum_stripe, "reporting_category", "gross"
    ),
    "GoCardless payout items (JSON)": Case(
        account("gocardless"),
        payout("gocardless_json"),
        sum_gocardless,
        "type",
        "amount",
        is_json=True,
    ),
    "GoCardless payout transactions (CSV)": Case(
        account("gocardless"),
        payout("gocardless_csv"),
        lambda text: sum_table(text, "net_amount"),
        "resources.type",
        "gross_amount",
    ),
    "Square payout entries (JSON)": Case(
        account("square"),
        payout("square_json"),
        sum_square,
        "type",
        "gross_amount_money.amount",
        "gross_amount_money",
        is_json=True,
    ),
    "Braintree transaction-level fee report (Total Fee Amount)": Case(
        account("braintree"),
        payout("braintree_flat"),
        lambda text: sum_braintree(text, "Total Fee Amount"),
        "Transaction Type",
        "Settlement Amount",
    ),
    "Braintree transaction-level fee report (Est. Total Fee Amount)": Case(
        account("braintree"),
        payout("braintree_icplus"),
        lambda text: sum_braintree(text, "Est. Total Fee Amount"),
        "Transaction Type",
        "Settlement Amount",
    ),
    "Parquet by the columns that duebook.toml maps": Case(
        MAPPED,
        told(as_mapped, csv_text),
        lambda text: sum_mapped(rows_of(text)),
        "what",
        "in",
        as_bytes=parquet_of,
        is_binary=True,
    ),
    "JSON lines by the columns that duebook.toml maps": Case(
        MAPPED,
        told(as_mapped, json_text),
        lambda text: sum_mapped(iter(documents(text))),
        "what",
        "in",
        is_json=True,
    ),
    "the columns that duebook.toml maps": Case(
        MAPPED,
        told(as_mapped, csv_text),
        lambda text: sum_mapped(rows_of(text)),
        "what",
        "in",
    ),
}
cases = pytest.mark.parametrize("name", CASES)


def registered() -> dict[str, Format]:
    """Every Format, by its name."""
    field = ProviderAccountConfig.model_fields["provider"]
    documents = [MAPPED, *(account(name) for name in get_args(field.annotation) if name != "csv")]
    return {
        each.name: each
        for document in documents
        for each in formats_of(ProviderAccountConfig.model_validate(document))
    }


FORMATS = registered()


def test_every_format_has_its_case() -> None:
    assert FORMATS.keys() == CASES.keys()


def write(folder: Path, text: str, as_bytes: Callable[[str], bytes] = str.encode) -> Path:
    path = folder / "told.txt"
    path.write_bytes(as_bytes(text))
    return path


def cells(path: Path, reader: Format) -> list[dict[str, str | None]]:
    """What of each row is read, whatever stands beside it."""
    file = reader.scan(path)
    made = []
    for row in (file.read or tolerant_rows)(file):
        assert not isinstance(row, BrokenRow), row
        made.append(
            {
                field: cell
                for field, cell in zip(file.fields, row.cells, strict=True)
                if not field.startswith("extra_")
            }
        )
    return made


@cases
def test_it_recognises_its_own_file_and_no_other_s(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, CASES[name].text(tmp_path), CASES[name].as_bytes)
    assert recognise(path, list(FORMATS.values()))[1].name == name
    for other, reader in FORMATS.items():
        if other != name:
            with pytest.raises(InputError if CASES[name].is_binary else UnknownLayoutError):
                reader.scan(path)


GARBAGE = ("", "\n\n", "{", "[]", "[1, 2]", '{"payouts": 3}', "a,b\n1,2\n", "null")
WAYS = ("byte order mark", "line ends", "columns", "blank lines")


# A broken line of JSON lines is said row by row.
@pytest.mark.parametrize(
    ("name", "garbage"),
    [
        (name, garbage)
        for name, garbage in itertools.product(CASES, GARBAGE)
        if not (name.startswith("JSON lines") and garbage == "{")
    ],
)
def test_what_is_no_settlement_is_refused_whole(name: str, garbage: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^told\.txt"):
        FORMATS[name].scan(write(tmp_path, garbage))


# What is binary has no lines.
@pytest.mark.parametrize(
    ("name", "way"),
    [
        (name, way)
        for name, way in itertools.product(CASES, WAYS)
        if way == "columns" or not CASES[name].is_binary
    ],
)
def test_told_otherwise_it_says_the_same(name: str, way: str, tmp_path: Path) -> None:
    case, reader = CASES[name], FORMATS[name]
    text = case.text(tmp_path)
    plainly = cells(write(tmp_path, text, case.as_bytes), reader)
    otherwise = {
        "byte order mark": f"\ufeff{text}",
        "line ends": text.replace("\n", "\r\n"),
        "columns": case.reorder(text),
        "blank lines": f"\n{text}\n\n",
    }[way]
    assert otherwise != text
    made = cells(write(tmp_path, otherwise, case.as_bytes), reader)
    assert made == plainly
    assert len(made) >= len(MONEY) or len(made) >= 30


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> World:
    return make_world(database_url, tmp_path)


def reconcile(world: World, case: Case, text: str) -> Any:
    world.configure(provider_accounts={"told": case.account})
    return world.reconcile(write(world.folder, text, case.as_bytes), account="told")


@cases
def test_totals_are_what_the_file_comes_to(name: str, world: World) -> None:
    case = CASES[name]
    text = case.text(world.folder)
    report = reconcile(world, case, text)
    assert (report.quarantined, report.unknown_types) == (0, {})
    found = world.rows(
        "select count(*)::int, sum(net_minor)::int as net from duebook.settlement_entry"
    )
    assert tuple(found[0].values()) == case.sums(text)
    # Nothing else than gross less fee.
    assert not world.rows(
        "select entry_id from duebook.settlement_entry where currency = net_currency"
        " and entry_type in ('charge', 'refund') and gross_minor - fee_minor <> net_minor"
    )


@cases
def test_an_unknown_type_is_kept_and_a_bad_amount_set_aside(name: str, world: World) -> None:
    case = CASES[name]
    text = case.text(world.folder)
    rows, _ = case.sums(text)
    novel, _ = case.edit(text, case.kind, NOVEL)
    report = reconcile(world, case, novel)
    kept = world.rows(
        "select provider_type, entry_type from duebook.settlement_entry where entry_type = 'other'"
    )
    assert [row["provider_type"].lower() for row in kept] == [NOVEL]
    assert {word.lower() for word in report.unknown_types} == {NOVEL}
    assert (report.entries_new, report.quarantined) == (rows, 0)

    bad, line = case.edit(text, case.amount, BAD)
    line -= case.is_binary  # Rows without a header above them.
    report = reconcile(world, case, bad)
    assert report.quarantined == 1
    aside = world.rows(
        "select file_name, line_no, column_name, value, reason, expected"
        " from duebook.quarantined_row"
    )
    assert len(aside) == 1
    assert aside[0]["file_name"] == "told.txt"
    assert aside[0]["line_no"] == line
    assert aside[0]["column_name"] == (case.named or case.amount)
    assert aside[0]["value"].startswith(BAD)
    assert aside[0]["reason"] == "not a number"
    assert aside[0]["expected"].startswith("a decimal amount")
