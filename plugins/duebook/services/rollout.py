"""The reversible rollout: who stands in which mode, and ours beside what an old sender sent.

Whose a key is was decided when its change committed (`duebook.cohort_of`, `deciding_mode`) and
stays; only `move_keys` moves it, by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, Final, Literal

from psycopg.rows import dict_row

from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.services.imports import database_errors

VERDICTS: Final = (
    "both",
    "only_ours",
    "only_theirs",
    "earlier",
    "later",
    "waiting",
    "neither",
)
Row = dict[str, Any]


def rollout_status(
    connect: Connect, *, provider_account: str | None = None, limit: int = 14
) -> dict[str, Any]:
    """What stands now: provider accounts, cohorts and old senders, and the newest nights.

    `limit`: at most so many lines of nights. Raises UnavailableError.
    """
    values = {"provider_account": provider_account, "row_limit": limit}
    return {
        "provider_accounts": _rows(connect, "list_rollout_accounts"),
        "cohorts": _rows(connect, "list_cohorts"),
        "old_senders": _rows(connect, "list_rollout_senders"),
        "nights": [
            {"both" if name == "in_both" else name: value for name, value in row.items()}
            for row in _rows(connect, "count_rollout_nights", values)
        ],
    }


def whose(connect: Connect, account_id: str) -> dict[str, Any]:
    """Whose the next change of an account is at each provider account, and what decides it."""
    values = {"account_id": account_id}
    return {
        "account_id": account_id,
        "provider_accounts": _rows(connect, "read_deciding_cohort", values),
    }


def compare(
    connect: Connect,
    *,
    provider_account: str | None = None,
    night: date | None = None,
    account_id: str | None = None,
    verdict: str | None = None,
    limit: int = 100,
) -> dict[str, Any]:
    """Keys of the comparison, `{keys, total}`; without a verdict those where the two differ."""
    values = {
        "provider_account": provider_account,
        "night": night,
        "account_id": account_id,
        "verdict": verdict,
        "row_limit": limit,
    }
    rows = _rows(connect, "list_rollout_comparison", values)
    total = rows[0]["total"] if rows else 0
    return {"total": total, "keys": [{k: v for k, v in r.items() if k != "total"} for r in rows]}


def move_keys(
    connect: Connect,
    keys: Iterable[tuple[str, str]],
    to: Literal["live", "shadow"],
    *,
    by: str,
    reason: str,
) -> dict[str, Any]:
    """Move keys, as (account, operation key), to Duebook (live) or to the old sender (shadow).

    Each in a transaction of its own. Returns `{keys: [{account_id, operation_key, answer}]}`, the
    answers as `duebook.move_key` gives them.
    """
    moved = []
    with database_errors(), connect() as connection:
        for account_id, key in keys:
            values = {
                "account_id": account_id,
                "operation_key": key,
                "ownership": to,
                "reason": reason,
                "by": by,
            }
            row = connection.execute(query("move_key"), values).fetchone()
            assert row is not None, "a function returns one row"
            moved.append({"account_id": account_id, "operation_key": key, "answer": row[0]})
    return {"to": to, "keys": moved}


def _rows(connect: Connect, name: str, values: Mapping[str, Any] | None = None) -> list[Row]:
    with (
        database_errors(),
        connect() as connection,
        connection.cursor(row_factory=dict_row) as cursor,
    ):
        return cursor.execute(query(name), values).fetchall()
