"""Holds: created, confirmed, cancelled, expired; one end each, by the database's clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from duebook.db.connect import connect_url
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from tests.due_work import add_kind, places, value, wait_for

Conn = psycopg.Connection[Any]


@pytest.fixture
def run(database_url: str) -> Callable[..., SweepReport]:
    """One sweep with no channel at all: what it does is internal."""

    def run(**request: Any) -> SweepReport:
        return sweep(
            partial(connect_url, database_url, autocommit=True),
            SweepRequest(**{"environment": "test", **request}),
            {},
        )

    return run


def create(conn: Conn, hold: str = "h1", **other: Any) -> str:
    """A hold of account `a` for ten minutes, or as `other` says; what became of the call."""
    content = {"p_for": timedelta(minutes=10), **other}
    if "p_expires_at" in content:
        del content["p_for"]
    named = "".join(f", {name} => %({name})s" for name in content)
    row = conn.execute(
        f"select done from duebook.create_hold('a', %(hold)s{named})", {"hold": hold, **content}
    ).fetchone()
    assert row is not None
    return str(row[0])


def confirm(conn: Conn, hold: str = "h1", payment: str | None = None) -> str:
    return str(value(conn, "select duebook.confirm_hold('a', %s, %s)", hold, payment))


def cancel(conn: Conn, hold: str = "h1") -> str:
    return str(value(conn, "select duebook.cancel_hold('a', %s)", hold))


def state(conn: Conn, hold: str = "h1") -> str:
    return str(
        value(conn, "select state from duebook_reports.holds where account_id = 'a' and hold = %s", hold)
    )


def age(conn: Conn, by: timedelta = timedelta(hours=1)) -> None:
    """As if everything about holds had happened `by` earlier."""
    with conn.transaction():
        conn.execute(
            "update duebook.hold set created_at = created_at - %(by)s, expires_at = expires_at - %(by)s",
            {"by": by},
        )
        conn.execute(
            "update duebook.intent as i set notify_at = h.expires_at,"
            " operation_key = duebook.hold_expiry_key(h.hold, h.expires_at)"
            " from duebook.hold as h"
            " where i.kind = 'hold_expiry' and i.account_id = h.account_id"
            " and i.subject = 'hold:' || h.hold"
        )
        conn.execute(
            "update duebook.due set due_at = due_at - %(by)s where kind = 'hold_expiry'", {"by": by}
        )


def endings(conn: Conn) -> list[tuple[str, str | None]]:
    return conn.execute(
        "select result, reason from duebook.outcome where kind = 'hold_expiry'"
        " order by account_id, operation_key"
    ).fetchall()


def test_an_expired_hold_is_done_by_the_sweep(conn: Conn, run: Callable[..., SweepReport]) -> None:
    create(conn)
    assert run().to_json()["claimed"] == 0
    age(conn)
    report = run().to_json()
    assert (report["claimed"], report["done"], report["expired"]) == (1, 1, 0)
    assert endings(conn) == [("done", None)]
    assert value(conn, "select expired_at > expires_at from duebook.hold")
    assert places(conn) == {"outcome": 1}
