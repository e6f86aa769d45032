"""What a person decides: about a key in doubt, or that what has ended is promised once more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg.errors
import psycopg.rows

from duebook.channels.base import message_id_for
from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.errors import InputError, RefusedError
from duebook.services.incident import require_no_incident

DOUBTS_SHOWN: Final = 1000
_HOW: Final = "resolved"


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a person says of one key: whether the provider accepted it, and why that is known.

    `account_id` is needed only where several accounts have the key in doubt.
    """

    operation_key: str
    accepted: bool
    why: str
    by: str
    account_id: str | None = None


def resolve(connect: Connect, resolution: Resolution) -> dict[str, Any]:
    """End the doubt about one key: `{"account_id", "operation_key", "done": "sent" | "due"}`.

    Raises InputError for a reason that says nothing or a key of several accounts, RefusedError for
    a key that is not in doubt (any more).
    """
    if not resolution.why.strip():
        raise InputError("--reason: expected why that is known; it is kept with your name")
    with connect() as conn, conn.transaction():
        found = conn.execute(
            query("list_key_doubts"),
            {"operation_key": resolution.operation_key, "account_id": resolution.account_id},
        ).fetchall()
        if len(found) > 1:
            accounts = ", ".join(row[0] for row in found)
            raise InputError(f"the key is in doubt for several accounts, name one: {accounts}")
        if not found and resolution.account_id is not None:
            others = conn.execute(
                query("list_key_doubts"),
                {"operation_key": resolution.operation_key, "account_id": None},
            ).fetchall()
            if others:
                owners = ", ".join(row[0] for row in others)
                raise InputError(
                    f"the key is not in doubt for account {resolution.account_id}, but for {owners}"
                )
        done = None
        if found:
            account_id, intent_id = found[0]
            row = conn.execute(
                query("resolve_in_doubt"),
                {
                    "account_ids": [account_id],
                    "intent_ids": [intent_id],
                    "accepted": resolution.accepted,
                    "not_before": None,
                    "how": _HOW,
                    "why": resolution.why.strip(),
                    "resolved_by": resolution.by,
                },
            ).fetchone()
            done = row[2] if row is not None else None
        if done not in ("sent", "due"):
            raise RefusedError(
                f"{resolution.operation_key} is not in doubt; `duebook explain` says where it is"
            )
    return {"account_id": account_id, "operation_key": resolution.operation_key, "done": done}


def resend(
    connect: Connect,
    operation_key: str,
    *,
    why: str,
    by: str,
    account_id: str | None = None,
    number: int | None = None,
) -> dict[str, Any]:
    """Promise once more what has ended: `{"account_id", "operation_key", "new_key"}`.

    A deliberate new occurrence with a key of its own, due now. `number` says which repeat of the
    key is meant: the same one again does nothing and gives the same answer. Raises InputError for a
    reason that says nothing or an unknown key, RefusedError for a key that has not ended, and while
    an incident is open.
    """
    if not why.strip():
        raise InputError("--reason: expected why it is sent again; it is kept with your name")
    require_no_incident(connect, "resend")
    with connect() as conn, conn.transaction():
        owners = [
            row[0]
            for row in conn.execute(query("list_key_owners"), {"operation_key": operation_key})
            if account_id in (None, row[0])
        ]
        if len(owners) > 1:
            raise InputError(f"several accounts have the key, name one: {', '.join(owners)}")
        if not owners:
            raise InputError(f"{operation_key}: nobody was promised anything under this key")
        try:
            row = conn.execute(
                query("resend_intent"),
                {
                    "account_id": owners[0],
                    "operation_key": operation_key,
                    "reason": why.strip(),
                    "resent_by": by,
                    "number": number,
                },
            ).fetchone()
        except psycopg.errors.ObjectNotInPrerequisiteState as error:
            raise RefusedError(error.diag.message_primary or "refused") from None
    assert row is not None
    return {"account_id": owners[0], "operation_key": operation_key, "new_key": row[0]}


def list_doubts(connect: Connect, mail_senders: Mapping[str, str | None]) -> Sequence[Any]:
    """Each intent in doubt with all that is known of it, the oldest first, at most 1,000.

    `message_id` is what the provider's own log has it under.
    """
    with connect() as conn, conn.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        rows = cursor.execute(query("list_doubts_in_full"), {"row_limit": DOUBTS_SHOWN}).fetchall()
    return [
        {
            **row,
            "message_id": message_id_for(
                row["account_id"], row["operation_key"], mail_senders.get(row["channel"])
            ),
        }
        for row in rows
    ]
