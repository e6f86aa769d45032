"""What people do with discrepancies, and entries matched by hand.

The functions `duebook.deal_with_discrepancy`, `force_match` and `unmatch` do the work, and are an
application's way to it, in its own transaction. What they refuse is one clear line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg import errors
from psycopg.rows import dict_row

from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.errors import InputError, RefusedError

ACTS: Final = ("acknowledge", "assign", "resolve", "ignore", "write_off", "reopen")
STATES: Final = ("open", "acknowledged", "resolved", "ignored", "written_off", "closed")
KINDS: Final = (
    "missing_in_ledger",
    "missing_at_provider",
    "amount_mismatch",
    "currency_mismatch",
    "status_mismatch",
    "duplicate_reference",
    "unexplained_remainder",
)


def deal_with(
    connect: Connect,
    provider_account: str,
    kind: str,
    subject: str,
    act: str,
    *,
    by: str,
    reason: str | None = None,
    assignee: str | None = None,
) -> dict[str, Any]:
    """Do one of ACTS. Returns `{provider_account, kind, subject, status}`.

    Raises InputError (no such discrepancy, a wrong field) and RefusedError (its status does not
    allow that).
    """
    values = {
        "provider_account": provider_account,
        "kind": kind,
        "subject": subject,
        "act": act,
        "by": by,
        "reason": reason,
        "assignee": assignee,
    }
    status = _call(connect, "deal_with_discrepancy", values)
    names = {"provider_account": provider_account, "kind": kind, "subject": subject}
    return {**names, "status": status}


def force_match(
    connect: Connect,
    provider_account: str,
    entry_id: str,
    account_id: str,
    payment_id: str,
    *,
    by: str,
    reason: str,
) -> dict[str, Any]:
    """Match an entry with a payment; `done` is matched or existed. The next run applies it.

    Raises InputError for an entry or payment that is not known, RefusedError for a payout.
    """
    values = {
        "provider_account": provider_account,
        "entry_id": entry_id,
        "account_id": account_id,
        "payment_id": payment_id,
        "by": by,
        "reason": reason,
    }
    done = _call(connect, "force_match", values)
    names = {key: values[key] for key in values if key not in ("by", "reason")}
    return {**names, "done": done}


def unmatch(
    connect: Connect, provider_account: str, entry_id: str, *, by: str, reason: str
) -> dict[str, Any]:
    """Take a match by hand back; `done` is unmatched. Raises InputError where there is none."""
    names = {"provider_account": provider_account, "entry_id": entry_id}
    return {**names, "done": _call(connect, "unmatch", {**names, "by": by, "reason": reason})}


def list_discrepancies(
    connect: Connect,
    *,
    provider_account: str | None = None,
    kind: str | None = None,
    status: str | None = None,
    limit: int = 100,
) -> dict[str, Any]:
    """Discrepancies that stand, the severest and oldest first: `{discrepancies, total}`.

    `status` None: open and acknowledged ones.
    """
    values = {
        "provider_account": provider_account,
        "kind": kind,
        "status": status,
        "row_limit": limit,
    }
    with connect() as conn, conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(query("list_discrepancies"), values).fetchall()
    total = rows[0]["total"] if rows else 0
    return {"discrepancies": [_without_total(row) for row in rows], "total": total}


def show_discrepancy(
    connect: Connect, provider_account: str, kind: str, subject: str
) -> dict[str, Any]:
    """One discrepancy with its events, oldest first. Raises InputError when it is not known."""
    values = {"provider_account": provider_account, "kind": kind, "subject": subject}
    with connect() as conn, conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(query("read_discrepancy"), values).fetchone()
        if row is None:
            raise InputError(f"there is no discrepancy {kind} of {subject} at {provider_account}")
        events = cursor.execute(query("list_discrepancy_events"), values).fetchall()
    return {**row, "events": events}


def _without_total(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "total"}


def _call(connect: Connect, name: str, values: Mapping[str, Any]) -> str:
    try:
        with connect() as conn:
            row = conn.execute(query(name), values).fetchone()
    except errors.NoDataFound as error:
        raise InputError(_said(error)) from None
    except errors.CheckViolation as error:
        raise RefusedError(_said(error)) from None
    assert row is not None, "a function returns one row"
    return str(row[0])


def _said(error: psycopg.Error) -> str:
    return error.diag.message_primary or "refused"
