"""Holds from the command line: reservations with a fixed end.

The functions `duebook.create_hold`, `confirm_hold`, `cancel_hold` and `set_hold_resource` do the
work, and are an application's way to it, in its own transaction. What they refuse is one clear line
here. Who sweeps them: `duebook.services.internal`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import errors
from psycopg.rows import dict_row

from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.errors import InputError, RefusedError
from duebook.services.story import plain

if TYPE_CHECKING:
    from duebook.config import Config

REFUND_KIND: Final = "hold_refund"
STATES: Final = ("open", "expired", "confirmed", "reheld", "refunded", "cancelled")
# What a caller of confirm may rely on: the hold is his.
HELD: Final = frozenset({"confirmed", "already_confirmed", "reheld"})
_REFUSED: Final = (
    errors.UniqueViolation,
    errors.CheckViolation,
    errors.NoDataFound,
    errors.ObjectNotInPrerequisiteState,
)


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """What to hold: until `expires_at` (aware), or for `hold_for` from now; exactly one of them."""

    account_id: str
    hold: str
    expires_at: datetime | None = None
    hold_for: timedelta | None = None
    resource: str | None = None
    quantity: int = 1
    payment_id: str | None = None


def create(connect: Connect, request: HoldRequest, *, by: str) -> dict[str, Any]:
    """Create a hold. Returns `{account_id, hold, done, expires_at, operation_key, state}`.

    `done` is created or existed. Raises InputError (a wrong field, by name), RefusedError (the
    hold exists with other content; its resource is full).
    """
    values = {
        "account_id": request.account_id,
        "hold": request.hold,
        "expires_at": request.expires_at,
        "hold_for": request.hold_for,
        "resource": request.resource,
        "quantity": request.quantity,
        "payment_id": request.payment_id,
        "by": by,
    }
    with connect() as conn:
        done = _call(conn, "create_hold", values)
        state = _read(conn, request.account_id, request.hold)["state"]
    names = {"account_id": request.account_id, "hold": request.hold}
    return _document({**names, **done, "state": state})


def confirm(
    connect: Connect,
    account_id: str,
    hold: str,
    *,
    payment_id: str | None = None,
    by: str,
    config: Config | None = None,
) -> dict[str, Any]:
    """Confirm a hold, with the payment for it if one came.

    Returns `{account_id, hold, answer, state, payment_id, operation_key, refund_key}`; `answer` is
    confirmed, already_confirmed, expired, cancelled, reheld or refund. The kind of the refund's
    notice is put in from `config` where the database does not have it. Raises InputError,
    RefusedError (no such hold; another payment's).
    """
    from duebook.services.apply import put_missing_kind

    values = {"account_id": account_id, "hold": hold, "payment_id": payment_id, "by": by}
    with connect() as conn, conn.transaction():
        if config is not None and payment_id is not None:
            put_missing_kind(conn, config, REFUND_KIND, by=by)
        answer = _call(conn, "confirm_hold", values)["answer"]
        stored = _read(conn, account_id, hold)
    return _shown(answer, stored)


def cancel(connect: Connect, account_id: str, hold: str, *, reason: str, by: str) -> dict[str, Any]:
    """Cancel a hold. Returns as `confirm`; `answer` is cancelled, already_cancelled, confirmed or
    refund. Raises InputError, RefusedError (no such hold).
    """
    values = {"account_id": account_id, "hold": hold, "reason": reason, "by": by}
    with connect() as conn, conn.transaction():
        answer = _call(conn, "cancel_hold", values)["answer"]
        stored = _read(conn, account_id, hold)
    return _shown(answer, stored)


def set_resource(
    connect: Connect, resource: str, capacity: int | None, *, by: str
) -> dict[str, Any]:
    """State how much of a resource there is; None: no limit.

    Returns `{resource, done, capacity, confirmed, open, free}`: quantities taken now, by the clock.
    Raises InputError.
    """
    values = {"resource": resource, "capacity": capacity, "by": by}
    with connect() as conn, conn.transaction():
        done = _call(conn, "set_hold_resource", values)["done"]
        stored = _row(conn, "read_hold_resource", {"resource": resource})
    taken = stored["confirmed"] + stored["open"]
    free = None if capacity is None else max(0, capacity - taken)
    return _document({**stored, "done": done, "free": free})


def list_holds(
    connect: Connect,
    *,
    account_id: str | None = None,
    resource: str | None = None,
    state: str | None = None,
    most: int = 100,
) -> list[dict[str, Any]]:
    """At most `most` holds as the report has them, the next to expire first. Raises InputError."""
    if state is not None and state not in STATES:
        raise InputError(f"state: {state!r} is none of {', '.join(STATES)}")
    values = {"account_id": account_id, "resource": resource, "state": state, "row_limit": most}
    with connect() as conn, conn.cursor(row_factory=dict_row) as cursor:
        return [_document(row) for row in cursor.execute(query("list_holds"), values)]


def _call(conn: psycopg.Connection[Any], name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """One call; what the database refuses is told in its own sentence."""
    try:
        return _row(conn, name, values)
    except errors.InvalidParameterValue as error:
        raise InputError(f"hold: {error.diag.message_primary}") from None
    except errors.DataError as error:
        # What can't even be handed over: a zero byte, an instant out of range.
        raise InputError(f"hold: not readable ({type(error).__name__})") from None
    except _REFUSED as error:
        detail = f" ({error.diag.message_detail})" if error.diag.message_detail else ""
        raise RefusedError(f"hold: {error.diag.message_primary}{detail}") from None


def _read(conn: psycopg.Connection[Any], account_id: str, hold: str) -> dict[str, Any]:
    return _row(conn, "read_hold", {"account_id": account_id, "hold": hold})


def _row(conn: psycopg.Connection[Any], name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(query(name), values).fetchone()
    assert row is not None, f"{name} returns one row"
    return row


def _shown(answer: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    names = (
        "account_id", "hold", "state", "payment_id", "expires_at", "operation_key", "refund_key",
    )  # fmt: skip
    return _document({"answer": answer, **{name: stored[name] for name in names}})


def _document(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON carries it: instants in UTC, ISO 8601."""
    document: dict[str, Any] = plain(row)
    return document
