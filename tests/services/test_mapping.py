"""A mapping that can't be right is refused before anything is read in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duebook.config import ProviderAccountConfig
from duebook.errors import RefusedError
from duebook.services.mapping import MappingCheck, check_mapping, check_samples
from tests.settlement_files import World
from tests.settlement_forms import MAPPED


def account(currency: str = "EUR", **columns: Any) -> dict[str, Any]:
    return {
        "provider": "csv",
        "mode": "dry_run",
        "settle_within": "P3D",
        "zone": "UTC",
        "columns": {
            "entry_id": "id",
            "amount": "amount",
            "currency_code": currency,
            "occurred_at": "when",
            "delimiter": ";",
            **columns,
        },
    }


def text(*amounts: str) -> str:
    rows = [f"e{number};{amount};2026-03-02" for number, amount in enumerate(amounts)]
    return "\n".join(["id;amount;when", *rows]) + "\n"


def check(folder: Path, settings: dict[str, Any], *amounts: str) -> MappingCheck:
    path = folder / "sample.csv"
    path.write_text(text(*amounts))
    return check_mapping(path, ProviderAccountConfig.model_validate(settings))


POINT = {"decimal": ".", "thousands": ""}
COMMA = {"decimal": ",", "thousands": ""}
GERMAN = {"decimal": ",", "thousands": "."}
ENGLISH = {"decimal": ".", "thousands": ","}


@pytest.mark.parametrize(
    ("columns", "amount", "readings", "options"),
    [
        (
            POINT,
            "1.058",
            '1.058 EUR (more than 2 decimals) with decimal = ".", thousands = "", and '
            '1058 EUR with decimal = ",", thousands = "."',
            "columns.decimal and columns.thousands decide",
        ),
        (
            POINT,
            "1.050",
            '1.05 EUR with decimal = ".", thousands = "", and '
            '1050 EUR with decimal = ",", thousands = "."',
            "columns.decimal and columns.thousands decide",
        ),
        (
            COMMA,
            "1.058",
            'no number with decimal = ",", thousands = "", and '
            '1058 EUR with decimal = ",", thousands = "."',
            "columns.thousands decides",
        ),
        (
            ENGLISH,
            "12,50",
            'no number with decimal = ".", thousands = ",", and '
            '12.5 EUR with decimal = ",", thousands = ""',
            "columns.decimal and columns.thousands decide",
        ),
    ],
)
def test_a_refusal_names_the_line_both_readings_and_what_decides(
    tmp_path: Path, columns: dict[str, str], amount: str, readings: str, options: str
) -> None:
    found = check(tmp_path, account(**columns), "7", amount).refusal()
    assert found == f"sample.csv, line 3, column 'amount': '{amount}' is {readings}: {options}"


@pytest.mark.parametrize(
    ("currency", "columns", "amounts"),
    [
        ("EUR", POINT, ["12.50", "1058", "1234.5"]),
        ("EUR", POINT, ["12.50", "1.050"]),  # The first row settles where decimals begin.
        ("EUR", GERMAN, ["1.058"]),  # It can't be three decimals of a euro.
        ("EUR", GERMAN, ["1.058", "12,50"]),
        ("EUR", ENGLISH, ["1,058", "1,058.20"]),
        ("KWD", POINT, ["0.500", "1.058"]),
        ("KWD", GERMAN, ["1.058", "1.058,500"]),
        ("JPY", GERMAN, ["1.058"]),
    ],
)
def test_a_mapping_that_is_right_passes(
    tmp_path: Path, currency: str, columns: dict[str, str], amounts: list[str]
) -> None:
    found = check(tmp_path, account(currency, **columns), *amounts)
    assert (found.refusal(), found.exit_code) == (None, 0)


@pytest.mark.parametrize(
    ("currency", "columns"),
    [("KWD", POINT), ("KWD", GERMAN), ("JPY", POINT), ("JPY", COMMA)],
)
def test_what_is_an_amount_either_way_is_refused_until_a_row_settles_it(
    tmp_path: Path, currency: str, columns: dict[str, str]
) -> None:
    refusal = check(tmp_path, account(currency, **columns), "1.058").refusal()
    assert refusal is not None
    assert refusal.startswith("sample.csv, line 2, column 'amount': '1.058' is ")


def test_a_missing_thousands_mark_is_found_although_the_decimals_are_settled(
    tmp_path: Path,
) -> None:
    refusal = check(tmp_path, account(**POINT), "12.50", "1,058.20").refusal()
    assert refusal is not None
    assert "line 3" in refusal
    assert refusal.endswith("columns.thousands decides")


def test_a_row_that_nothing_can_read_is_set_aside_and_refuses_nothing(tmp_path: Path) -> None:
    found = check(tmp_path, account(**POINT), "12.50", "many", "1.058")
    assert (found.refusal(), found.exit_code) == (None, 1)
    assert [cell.line_no for cell in found.unreadable] == [3, 4]


def test_a_column_that_holds_no_amounts_is_refused(tmp_path: Path) -> None:
    refusal = check(tmp_path, account(**POINT), "paid", "open").refusal()
    assert refusal is not None
    assert refusal.startswith("sample.csv, line 2, column 'amount': 'paid' is no amount")


def test_numbers_of_a_typed_file_are_in_no_notation(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    amounts = pa.array(["1.058"]).cast(pa.decimal128(9, 3))
    pq.write_table(pa.table({"id": ["e"], "amount": amounts, "when": ["2026-03-02"]}), path)
    settings = ProviderAccountConfig.model_validate(account("KWD", **POINT))
    found = check_mapping(path, settings)
    assert (found.amounts, found.rows, found.refusal()) == (0, 1, None)


# ---- on the way of a run ------------------------------------------------------------------------


def test_a_run_refuses_what_may_be_misread_and_applies_nothing(world: World) -> None:
    world.configure(provider_accounts={"odd": account(**POINT)})
    with pytest.raises(RefusedError) as refused:
        world.reconcile(world.text(text("1.050"), "night.csv"), account="odd")
    said = str(refused.value)
    assert said.startswith("night.csv, line 2, column 'amount': an amount may be read in two ways")
    assert "1.05" not in said, "an error goes into logs, which hold no amount"
    assert world.value("select count(*) from duebook.settlement_file") == 0
    assert world.value("select count(*) from duebook.settlement_entry") == 0


def test_a_run_sets_one_odd_row_aside_where_another_settles_it(world: World) -> None:
    world.configure(provider_accounts={"odd": account(**POINT)})
    report = world.reconcile(world.text(text("12.50", "1.058", "7,50")), account="odd")
    assert (report.entries_new, report.quarantined) == (1, 2)


@pytest.mark.parametrize(
    ("columns", "amounts", "minor", "aside"),
    [
        (ENGLISH, ["1,058.20", "10,58", "1,00,000.00"], [105820, 10000000], ["10,58"]),
        (GERMAN, ["1.058,20", "10.58", "1.058", "-1.058"], [-105800, 105800, 105820], ["10.58"]),
        (COMMA, ["12,50", "10.58", "1.050"], [1250], ["1.050", "10.58"]),
        (
            {"decimal": ".", "thousands": "'"},
            ["1'058.20", "10'58", "'5", "5."],
            [500, 105820],
            ["'5", "10'58"],
        ),
        ({"decimal": ",", "thousands": " "}, ["1 058,20", "10 58"], [105820], ["10 58"]),
    ],
)
def test_separators_that_stand_elsewhere_make_no_number(
    world: World, columns: dict[str, str], amounts: list[str], minor: list[int], aside: list[str]
) -> None:
    """Taken away wherever they stand, they made 1,058 of 10.58."""
    world.configure(provider_accounts={"odd": account(**columns)})
    report = world.reconcile(world.text(text(*amounts)), account="odd")
    found = world.rows("select gross_minor from duebook.settlement_entry order by 1")
    assert [row["gross_minor"] for row in found] == minor
    kept = world.rows("select value, reason from duebook.quarantined_row order by 1")
    assert [row["value"].partition(" where ")[0] for row in kept] == aside
    assert {row["reason"] for row in kept} == {"not a number"}
    assert report.quarantined == len(aside)


def test_what_the_check_reads_is_what_a_run_reads(
    world: World, conn: psycopg.Connection[Any]
) -> None:
    """The two readers of numbers, Python's and SQL's, agree on every text of a small alphabet."""
    from itertools import product

    from duebook.domain.notation import NOTATIONS, read_number

    del world
    made = ["".join(letters) for size in range(1, 7) for letters in product("10,.", repeat=size)]
    for notation in NOTATIONS:
        found = conn.execute(
            "select t, duebook.plain_number(t, %s, %s) from unnest(%s::text[]) as t",
            (notation.decimal, notation.thousands, made),
        ).fetchall()
        for written, plain in found:
            reading = read_number(written, notation)
            readable = plain.replace(".", "", 1).isdigit()
            assert readable == (reading is not None), (written, notation, plain)
            if reading is not None:
                assert float(plain) == float(reading.amount)


def test_apply_looks_at_the_newest_file_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text(text("12.50"))
    (tmp_path / "other.csv").write_text("nothing\nthat is known\n")
    settings = {**account(**POINT), "folder": str(tmp_path), "pattern": "old*.csv"}
    check_samples({"odd": ProviderAccountConfig.model_validate(settings)})
    (tmp_path / "old2.csv").write_text(text("1.058"))
    with pytest.raises(RefusedError, match=r"^provider account odd: old2\.csv, line 2"):
        check_samples({"odd": ProviderAccountConfig.model_validate(settings)})
    settings["pattern"] = "other.csv"
    check_samples({"odd": ProviderAccountConfig.model_validate(settings)})
    without = {**MAPPED, "folder": str(tmp_path / "nowhere")}
    check_samples({"odd": ProviderAccountConfig.model_validate(without)})
