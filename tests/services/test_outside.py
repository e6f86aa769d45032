"""Books and sends of a database elsewhere, by a query over an Airflow connection."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from duebook.connections import ConnectionSpec
from duebook.errors import ConfigurationError, InputError, UnavailableError
from duebook.services.imports import import_ledger
from duebook.services.outside import given_rows, rows_as_file
from tests.conftest import DuebookCli
from tests.settlement_files import World

BOOKS = (
    "select account_id, payment_id, reference, amount_minor, currency, status, expected_at,"
    " provider_account from shop_order order by payment_id"
)


@pytest.fixture
def shop(make_database: Callable[[], str]) -> ConnectionSpec:
    """A shop's own PostgreSQL, with a table of orders."""
    import psycopg

    url = make_database()
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(
            "create table shop_order (account_id text, payment_id text, reference text,"
            " amount_minor bigint, amount numeric, price double precision, currency text,"
            " status text, expected_at timestamptz, provider_account text)"
        )
        conn.execute(
            "insert into shop_order values"
            " ('a', 'p1', 'R1', 1000, 10.00, 10, 'EUR', 'paid', '2026-03-01 10:00+01', 'adyen'),"
            " ('b', 'p2', 'R;\"2', 0, 0.10, 0.1, 'EUR', 'paid', '2026-03-02 10:00+01', null),"
            " ('c', 'p3', 'R3', 5, 0.05, 0.05, 'XQX', 'paid', '2026-03-02 10:00+01', 'adyen')"
        )
    parts = urlsplit(url.replace("@/", "@host/"))
    host = dict(pair.split("=") for pair in parts.query.split("&"))
    return ConnectionSpec(
        conn_id="shop",
        conn_type="postgres",
        host=host["host"],
        port=int(host["port"]),
        login=parts.username,
        password=parts.password,
        schema=parts.path[1:],
    )


def ask_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "orders.sql"
    path.write_text(text)
    return path


def test_the_rows_of_a_query_are_booked_and_a_bad_one_is_named(
    world: World, shop: ConnectionSpec, tmp_path: Path
) -> None:
    statement = ask_file(tmp_path, BOOKS)
    for expected in ((2, 0), (0, 0)):
        with rows_as_file("shop", lambda _: shop, statement) as path:
            report = import_ledger(world.connect, path, world.config)
        assert (report.added, report.changed) == expected
        assert [(each.line_no, each.column, each.value) for each in report.faults] == [
            (4, "currency", "XQX")
        ]
        assert report.file == "orders.csv"
    booked = world.rows("select * from duebook.ledger_payment order by payment_id")
    assert [(row["reference"], row["amount_minor"]) for row in booked] == [
        ("R1", 1000),
        ('R;"2', 0),
    ]
    assert booked[0]["expected_at"].isoformat() == "2026-03-01T09:00:00+00:00"


def test_an_exact_numeric_is_taken_and_a_float_is_refused(
    world: World, shop: ConnectionSpec, tmp_path: Path
) -> None:
    exact = ask_file(tmp_path, BOOKS.replace("amount_minor,", "amount,"))
    with rows_as_file("shop", lambda _: shop, exact) as path:
        assert import_ledger(world.connect, path, world.config).added == 2
    assert (
        world.value("select amount_minor from duebook.ledger_payment where payment_id = 'p2'") == 10
    )
    inexact = ask_file(tmp_path, BOOKS.replace("amount_minor,", "price as amount,"))
    with (
        pytest.raises(InputError, match=r"orders.sql, row 1, column amount: a float is not exact"),
        rows_as_file("shop", lambda _: shop, inexact),
    ):
        pass


def test_another_kind_of_database_is_read_too(world: World, tmp_path: Path) -> None:
    place = tmp_path / "shop.db"
    with sqlite3.connect(place) as lite:
        lite.execute("create table t (account_id, payment_id, reference, amount_minor, currency)")
        lite.execute("insert into t values ('a', 'p1', 'R1', 250, 'EUR')")
    lite.close()
    spec = ConnectionSpec(conn_id="lite", conn_type="sqlite", schema=str(place))
    statement = ask_file(
        tmp_path, "select *, 'paid' as status, '2026-03-01T00:00:00Z' as expected_at from t"
    )
    with rows_as_file("lite", lambda _: spec, statement) as path:
        assert import_ledger(world.connect, path, world.config).added == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select nothing from nowhere", 'orders.sql: relation "nowhere" does not exist'),
        ("selekt", "orders.sql: syntax error"),
        ("create table made_here (x int)", 'orders.sql: syntax error at or near "create"'),
    ],
)
def test_a_query_that_can_not_be_right_is_one_clear_line(
    shop: ConnectionSpec, tmp_path: Path, text: str, message: str
) -> None:
    with (
        pytest.raises(InputError) as refused,
        rows_as_file("shop", lambda _: shop, ask_file(tmp_path, text)),
    ):
        pass
    assert message in str(refused.value)
    assert shop.password is not None
    assert shop.password not in str(refused.value)


def named(spec: ConnectionSpec | None, conn_id: str) -> ConnectionSpec | None:
    assert conn_id == "shop"
    return spec


def test_what_is_not_there_is_said(shop: ConnectionSpec, tmp_path: Path) -> None:
    statement = ask_file(tmp_path, "select 1")
    away = ConnectionSpec("shop", "postgres", "127.0.0.1", 9, "x", "y", "z")
    cases: list[tuple[type[Exception], str, Any]] = [
        (ConfigurationError, "set AIRFLOW_CONN_SHOP", None),
        (UnavailableError, "the database of this query is away", away),
        (ConfigurationError, "no driver for teradata", ConnectionSpec("shop", "teradata", "h")),
    ]
    for kind, message, spec in cases:
        with (
            pytest.raises(kind, match=message),
            rows_as_file("shop", partial(named, spec), statement),
        ):
            pass
    with (
        pytest.raises(InputError, match="No such file"),
        given_rows(None, "shop", tmp_path / "no.sql", lambda _: shop),
    ):
        pass
    with (
        pytest.raises(InputError, match="expected a file, or --connection with --query"),
        given_rows(None, "shop", None, lambda _: shop),
    ):
        pass


def test_the_command_line_takes_a_query(
    duebook_cli: DuebookCli, shop: ConnectionSpec, tmp_path: Path
) -> None:
    fields = {
        "conn_type": "postgres",
        "host": shop.host,
        "port": shop.port,
        "login": shop.login,
        "password": shop.password,
        "schema": shop.schema,
    }
    duebook_cli.environment["AIRFLOW_CONN_SHOP"] = json.dumps(fields)
    statement = ask_file(tmp_path, BOOKS)
    done = duebook_cli.in_process(
        "ledger", "import", "--connection", "shop", "--query", statement, "--json"
    )
    assert (done.code, done.json["new"], done.json["quarantined"]) == (1, 2, 1)
    neither = duebook_cli.in_process("ledger", "import")
    assert neither.code == 2
    assert "expected a file, or --connection with --query" in neither.stderr
