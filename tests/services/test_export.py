"""Reports as files: exact, streamed, harmless to spreadsheets, and readable by analysts alone."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal
from pathlib import Path

import psycopg
import psycopg.conninfo
import pyarrow.parquet
import pytest

from duebook.errors import InputError
from duebook.reports import report_names, write_report
from tests.conftest import DuebookCli
from tests.settlement_files import World, adyen_row, booked

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "analyst-guide.md"
FORMULA = "=HYPERLINK(1)"


@pytest.fixture
def world(world: World) -> World:
    """A booked payment, an entry with a formula for a reference, and one that goes out."""
    world.book(booked(1, 9007199254740993))
    world.reconcile(
        world.adyen(
            adyen_row("Settled", "1.00", psp="PSP1", reference=FORMULA),
            adyen_row("Refunded", "-2.50", psp="PSP2", reference="-12 boxes"),
        )
    )
    return world


def exported(world: World, name: str, fmt: str = "csv", **options: object) -> bytes:
    stream = io.BytesIO()
    write_report(world.url, name, stream, fmt, **options)  # type: ignore[arg-type]
    return stream.getvalue()


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_a_cell_that_a_spreadsheet_would_run_is_made_text_and_numbers_stay_numbers(
    world: World,
) -> None:
    rows = {row["entry_type"]: row for row in rows_of(exported(world, "settlement_entries"))}
    assert rows["charge"]["payment_ref"] == f"'{FORMULA}"
    assert rows["refund"]["payment_ref"] == "'-12 boxes"
    assert (rows["refund"]["gross_minor"], rows["refund"]["gross"]) == ("-250", "-2.50")
    raw = rows_of(exported(world, "settlement_entries", raw=True))
    assert {row["payment_ref"] for row in raw} == {FORMULA, "-12 boxes"}


def test_every_report_is_written_in_every_format_with_the_same_rows(world: World) -> None:
    for name in report_names(world.url):
        table = rows_of(exported(world, name))
        documents = json.loads(exported(world, name, "json"))
        arrow = pyarrow.parquet.read_table(io.BytesIO(exported(world, name, "parquet")))
        assert len(table) == len(documents) == arrow.num_rows, name
        if documents:
            assert list(documents[0]) == arrow.column_names == list(table[0]), name


def test_money_is_exact_in_every_format(world: World) -> None:
    [row] = json.loads(exported(world, "ledger_vs_provider", "json"))
    assert (row["ledger_minor"], row["ledger_amount"]) == (9007199254740993, "90071992547409.93")
    [line] = rows_of(exported(world, "ledger_vs_provider"))
    assert line["ledger_amount"] == "90071992547409.93"
    content = exported(world, "ledger_vs_provider", "parquet")
    table = pyarrow.parquet.read_table(io.BytesIO(content))
    assert table["ledger_amount"][0].as_py() == Decimal("90071992547409.93")
    assert str(table.schema.field("expected_at").type) == "timestamp[us, tz=UTC]"


def test_only_rows_that_are_asked_for(world: World) -> None:
    content = exported(world, "settlement_entries", where={"entry_type": "refund"})
    assert [row["entry_type"] for row in rows_of(content)] == ["refund"]
    assert rows_of(exported(world, "settlement_entries", where={"entry_type": "' or true"})) == []


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("contact", {}, "unknown report contact; there are catch_up_decisions"),
        ("intents", {"fmt": "xls"}, "unknown format xls: expected one of csv, json, parquet"),
        ("intents", {"where": {"address": "x"}}, "report intents has no column address; it has"),
    ],
)
def test_what_there_is_not_is_named(
    world: World, name: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        exported(world, name, **options)  # type: ignore[arg-type]


def test_the_command_writes_whole_files_only(world: World, duebook_cli: DuebookCli) -> None:
    duebook_cli.environment["DUEBOOK_DATABASE_URL"] = world.url
    target = world.folder / "entries.csv"
    target.write_text("kept")
    wrong = duebook_cli.in_process("report", "nothing", "--output", target)
    assert (wrong.code, target.read_text()) == (2, "kept")
    done = duebook_cli.in_process("report", "settlement_entries", "--output", target, "--json")
    assert (done.code, done.json["rows"]) == (0, 2)
    assert len(rows_of(target.read_bytes())) == 2
    assert sorted(path.name for path in world.folder.glob(".*")) == []
    names = duebook_cli.in_process("report", "--json").json
    assert names == report_names(world.url)
    odd = duebook_cli.in_process("report", "intents", "--where", "kind")
    assert "--where kind: expected column=value" in odd.stderr


def test_the_recipe_of_the_guide_makes_a_login_that_reads_every_report_and_nothing_else(
    world: World,
) -> None:
    [recipe] = re.findall(r"```sql\n(create role ann .*?)```", GUIDE.read_text(), re.DOTALL)
    name = f"ann_{psycopg.conninfo.conninfo_to_dict(world.url)['dbname']}"
    recipe = recipe.replace(" ann ", f" {name} ")
    with world.connect() as conn:
        conn.execute(recipe.encode())
        try:
            login = {"user": name, "password": "change me"}
            url = psycopg.conninfo.make_conninfo(world.url, **login)
            assert_reads_reports_only(url)
        finally:
            conn.execute(f"drop role {name}".encode())


def assert_reads_reports_only(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        tables = conn.execute(
            "select schemaname, tablename from pg_tables where schemaname = 'duebook'"
        ).fetchall()
        views = conn.execute(
            "select viewname from pg_views where schemaname = 'duebook_reports'"
        ).fetchall()
        assert len(tables) > 40
        for schema, table in tables:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(f"select * from {schema}.{table}".encode())
        for (view,) in views:
            conn.execute(f"select * from {view}".encode())
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            conn.execute("create temporary table t (n integer)")
        assert conn.execute("show statement_timeout").fetchone() == ("5min",)
