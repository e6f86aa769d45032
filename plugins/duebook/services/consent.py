"""What recipients decided, and whom a channel must not reach; audited with who and why.

The functions `duebook.set_consent`, `suppress` and `lift_suppression` do the work, and are an
application's way to it. Every sender reads them again before each window.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import psycopg

from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.errors import InputError, RefusedError


def record_consent(
    connect: Connect,
    *,
    account_id: str,
    kind: str,
    channel: str,
    granted: bool,
    source: str,
    decided_at: datetime | None,
) -> dict[str, Any]:
    """Record one decision; kind and channel may be `*`.

    Returns `{account_id, kind, channel, granted, source, done}`; done is recorded, known, or older
    where a newer decision stands. Raises InputError (no such account, kind, channel; no source; a
    decision of the future), RefusedError (recorded otherwise for that instant).
    """
    values = {
        "account_id": account_id,
        "kind": kind,
        "channel": channel,
        "granted": granted,
        "source": source,
    }
    done = _act(connect, "set_consent", {**values, "decided_at": decided_at})
    return {**values, "done": done}


def put_suppression(
    connect: Connect, *, account_id: str, channel: str, reason: str, by: str
) -> dict[str, Any]:
    """Stop a channel for an account.

    Returns `{account_id, channel, done}`; done is suppressed or known. Raises InputError.
    """
    return _suppression(connect, "put_suppression", account_id, channel, reason, by)


def lift_suppression(
    connect: Connect, *, account_id: str, channel: str, reason: str, by: str
) -> dict[str, Any]:
    """Let a channel reach an account again; what ended meanwhile stays ended.

    Returns `{account_id, channel, done}`; done is lifted, or known where nothing was suppressed.
    Raises InputError.
    """
    return _suppression(connect, "lift_suppression", account_id, channel, reason, by)


def erase_person(connect: Connect, *, account_id: str, reason: str, by: str) -> dict[str, Any]:
    """Take out what says who an account is; what was promised, sent and settled stays.

    Returns `{account_id, erased: {what: rows}}`. Raises InputError.
    """
    values = {"account_id": account_id, "channel": "*", "reason": reason, "by": by}
    with connect() as conn, conn.transaction():
        _require_known(conn, values)
        try:
            erased = conn.execute(query("erase_person"), values).fetchall()
        except psycopg.errors.InvalidParameterValue as error:
            raise InputError(error.diag.message_primary or "not accepted") from None
    return {"account_id": account_id, "erased": dict(erased)}


def _suppression(
    connect: Connect, name: str, account_id: str, channel: str, reason: str, by: str
) -> dict[str, Any]:
    values = {"account_id": account_id, "channel": channel, "reason": reason, "by": by}
    done = _act(connect, name, values)
    return {"account_id": account_id, "channel": channel, "done": done}


def _act(connect: Connect, name: str, values: Mapping[str, Any]) -> str:
    with connect() as conn, conn.transaction():
        _require_known(conn, values)
        try:
            row = conn.execute(query(name), values).fetchone()
        except psycopg.errors.InvalidParameterValue as error:
            raise InputError(error.diag.message_primary or "not accepted") from None
        except psycopg.errors.UniqueViolation as error:
            raise RefusedError(error.diag.message_primary or "recorded otherwise") from None
    assert row is not None
    return str(row[0])


def _require_known(conn: psycopg.Connection[Any], values: Mapping[str, Any]) -> None:
    topic = {"kind": "*", **values}
    known = conn.execute(query("read_topic"), topic).fetchone()
    assert known is not None
    for is_known, name in zip(known, ("account_id", "kind", "channel"), strict=True):
        if not is_known:
            raise InputError(f"{name.removesuffix('_id')} {topic[name]!r} is not known here")
