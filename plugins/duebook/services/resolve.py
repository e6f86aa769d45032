"""What a person decides about a key in doubt, and what is known to decide it by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg.rows

from duebook.channels.base import message_id_for
from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.errors import InputError, RefusedError

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
