"""Holds made in SQL, as an application makes them, and what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql

from duebook.db.connect import connect_url
from duebook.db.sql import query
from duebook.services.internal import INTERNAL
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from tests.conftest import ENVIRONMENT, Databases
from tests.due_work import value

Conn = psycopg.Connection[Any]
HOUR = timedelta(hours=1)
_KEPT = {"environment", "currency_exponent", "alembic_version", "applied_object"}


@pytest.fixture(scope="module")
def shared_database(databases: Databases, template_database: str) -> Iterator[str]:
    """One database for a whole file: to copy one for each of many small tests takes longer."""
    url = databases.create(template_database)
    with connect_url(url, autocommit=True) as conn:
        conn.execute("select duebook.accept_environment(%s, true, 'pytest')", [ENVIRONMENT])
    yield url
    databases.drop(url)


@pytest.fixture
def database_url(shared_database: str) -> str:
    """The file's database, emptied: in place of one of the test's own."""
    with connect_url(shared_database, autocommit=True) as conn:
        tables = conn.execute(
            "select tablename from pg_tables where schemaname = 'duebook'"
            " and not tablename = any(%s) order by tablename",
            [list(_KEPT)],
        ).fetchall()
        filled = conn.execute(
            sql.SQL(" union all ").join(
                sql.SQL("(select {} from {} limit 1)").format(name, sql.Identifier("duebook", name))
                for (name,) in tables
            )
        ).fetchall()
        for (name,) in filled:
            conn.execute(sql.SQL("truncate {} cascade").format(sql.Identifier("duebook", name)))
    return shared_database


def create(conn: Conn, hold: str = "h1", *, account: str = "a", **content: Any) -> str:
    """A hold of ten minutes, or as `content` (parameters without p_, p_for being `lasts`) says.

    Returns created or existed.
    """
    if "expires_at" not in content:
        content = {"lasts": timedelta(minutes=10), **content}
    names = ["for" if name == "lasts" else name for name in content]
    named = "".join(f", p_{name} => %s" for name in names)
    statement = f"select done from duebook.create_hold(%s, %s{named})"
    return str(value(conn, statement, account, hold, *content.values()))


def confirm(conn: Conn, hold: str = "h1", payment: str | None = None) -> str:
    return str(value(conn, "select duebook.confirm_hold('a', %s, %s)", hold, payment))


def cancel(conn: Conn, hold: str = "h1") -> str:
    return str(value(conn, "select duebook.cancel_hold('a', %s, 'changed his mind')", hold))


def state(conn: Conn, hold: str = "h1") -> str:
    return str(value(conn, "select state from duebook_reports.holds where hold = %s", hold))


def make_older(conn: Conn, hold: str | None = None, by: timedelta = HOUR) -> None:
    """As if the open hold, or all of them, had been created, and were due, that much earlier."""
    values = {"hold": hold, "by": by}
    with conn.transaction():
        conn.execute(
            "update duebook.hold set created_at = created_at - %(by)s,"
            " expires_at = expires_at - %(by)s"
            " where confirmed_at is null and cancelled_at is null and expired_at is null"
            " and (%(hold)s::text is null or hold = %(hold)s)",
            values,
        )
        conn.execute(
            "update duebook.intent as i set notify_at = h.expires_at,"
            " operation_key = duebook.hold_expiry_key(h.hold, h.expires_at)"
            " from duebook.hold as h"
            " where i.kind = 'hold_expiry' and i.account_id = h.account_id"
            " and i.subject = 'hold:' || h.hold and i.notify_at <> h.expires_at"
        )
        conn.execute(
            "update duebook.due as d set due_at = i.notify_at from duebook.intent as i"
            " where d.kind = 'hold_expiry' and d.account_id = i.account_id"
            " and d.intent_id = i.intent_id"
        )


def endings(conn: Conn) -> dict[tuple[str, str | None], int]:
    """How the promises of expiry ended, and how many."""
    rows = conn.execute(
        "select result, reason, count(*) from duebook.outcome"
        " where kind = 'hold_expiry' group by result, reason"
    )
    return {(result, reason): count for result, reason, count in rows}


def claim(conn: Conn, *, offset: timedelta = timedelta(0), size: int = 500) -> tuple[int, UUID]:
    """One claim of internal work, as a sender makes it: batch and token."""
    token = uuid4()
    row = conn.execute(
        query("claim_batch"),
        {
            "token": token,
            "sender": "test",
            "channel": INTERNAL,
            "batch_size": size,
            "lease": timedelta(minutes=1),
            "max_age": timedelta(minutes=15),
            "safe_retry_for": None,
            "due_offset": offset,
            "alone": False,
        },
    ).fetchone()
    assert row is not None
    assert row[0] is not None, "nothing was claimed"
    return row[0], token


def finish(
    conn: Conn, batch: tuple[int, UUID], *, offset: timedelta = timedelta(0)
) -> tuple[str, int, int, int, int]:
    """The one transaction of a batch: state, done, expired, skipped, held."""
    row = conn.execute(
        query("finish_internal_batch"),
        {"batch_id": batch[0], "token": batch[1], "due_offset": offset},
    ).fetchone()
    assert row is not None
    return row[0], row[1], row[2], row[3], row[4]


def sweep_internal(url: str, **request: Any) -> SweepReport:
    """One sweep that serves no channel: what it does is internal."""
    return sweep(
        partial(connect_url, url, autocommit=True),
        SweepRequest(**{"environment": "test", **request}),
        {},
    )
