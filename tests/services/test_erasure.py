"""A person is erased: nothing says who it was, and every outcome stays."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from duebook.errors import InputError
from duebook.services.check import check
from duebook.services.consent import erase_person
from tests.doubt_work import connector
from tests.due_work import ScriptedChannel, add_due, places, run_sweep, value

Conn = psycopg.Connection[Any]
ADDRESS = "somebody@example.test"


@pytest.fixture
def account(conn: Conn, database_url: str) -> str:
    add_due(conn, 2, accounts=1)
    run_sweep(database_url, ScriptedChannel())
    add_due(conn, 1, accounts=1, payments_from=7)
    conn.execute("update duebook.contact set address = %s", [ADDRESS])
    conn.execute(
        "insert into duebook.quarantined_row (source_kind, file_name, line_no, value, reason,"
        " expected, raw) values ('contacts', 'c.csv', 2, %s, 'x', 'y', %s)",
        [ADDRESS, f"a000000,noop,{ADDRESS},Mars/Base,en,"],
    )
    return "a000000"


def erase(url: str, account: str) -> dict[str, Any]:
    return erase_person(connector(url), account_id=account, reason="asked to", by="ada")


def dumped(conn: Conn) -> str:
    """Every row of every table, as text."""
    tables = conn.execute(
        "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname = 'duebook'"
    ).fetchall()
    rows = [conn.execute(f"select t::text from {name} as t").fetchall() for (name,) in tables]
    return "\n".join(row for found in rows for (row,) in found)


def test_the_address_is_nowhere_and_the_outcomes_are(
    conn: Conn, database_url: str, account: str
) -> None:
    assert ADDRESS in dumped(conn)
    erased = erase(database_url, account)["erased"]
    assert (erased["contacts"], erased["quarantined_rows"], erased["waiting_intents"]) == (1, 1, 1)
    assert ADDRESS not in dumped(conn)
    assert places(conn) == {"outcome": 3}
    assert conn.execute(
        "select result, reason, count(*) from duebook.outcome group by 1, 2 order by 1"
    ).fetchall() == [("expired", "cancelled", 1), ("sent", None, 2)]
    assert (
        value(conn, "select actor from duebook.audit_event where action = 'erase_person'") == "ada"
    )
    assert check(connector(database_url))["violations"] == []


def test_again_it_finds_nothing(conn: Conn, database_url: str, account: str) -> None:
    erase(database_url, account)
    assert set(erase(database_url, account)["erased"].values()) == {0}


def test_others_are_left_alone(conn: Conn, database_url: str, account: str) -> None:
    add_due(conn, 1, prefix="other")
    erase(database_url, account)
    assert value(conn, "select count(*) from duebook.contact where account_id like 'other%%'") == 1
    assert places(conn) == {"outcome": 3, "due": 1}


def test_an_account_that_is_not_known_is_said(database_url: str) -> None:
    with pytest.raises(InputError, match="'nobody' is not known"):
        erase(database_url, "nobody")
