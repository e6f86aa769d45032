"""Proves the invariants that no foreign key holds: one SQL file each, returning what offends.

They run in one read-only snapshot, so that work going on meanwhile is no violation. Each is
described in docs/invariants.md, with what to do when it does not hold.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg

from duebook.db.connect import Connect
from duebook.db.sql import query

INVARIANTS: Final = {
    "every intent stands somewhere": "find_intents_in_no_place",
    "no intent stands in two places": "find_intents_in_two_places",
    "what has ended moves no more": "find_ended_intents_still_moving",
    "what moves has an intent": "find_moving_rows_without_intent",
    "every batch has its attempts": "find_batches_without_attempts",
    "every attempt has an intent": "find_attempts_without_intent",
    "every attempt has a place": "find_attempts_in_no_place",
    "what may have been sent is not due": "find_doubts_in_due",
    "every result has an attempt": "find_results_without_attempt",
    "every outcome has its intent": "find_outcomes_without_intent",
    "no outcome is in the future": "find_future_outcomes",
    "what was sent has a result": "find_sent_without_result",
    "no key was sent twice": "find_keys_sent_twice",
    "the time line is complete": "find_timeline_gaps",
    "budgets are within bounds": "find_budgets_out_of_bounds",
    "every occurrence has its intent": "find_occurrences_without_intent",
    "every hold is promised to expire": "find_holds_without_intent",
    "no hold is expired and confirmed": "find_holds_expired_and_confirmed",
    "no hold is overdue by an hour": "find_holds_overdue",
    "no hold is refunded and held again": "find_holds_refunded_and_reheld",
    "a resource is the sum of its confirmed holds": "find_resources_that_differ",
    "every intent of a run has its ledger change": "find_intents_without_change",
    "no key has two senders": "find_keys_of_two_senders",
    "the settled side is the sum of its entries": "find_positions_that_differ",
    "a batch is the sum of its entries": "find_batches_that_differ",
}
KEYS_SHOWN: Final = 100


def check(connect: Connect) -> dict[str, Any]:
    """`{"violations": [{"invariant", "keys"}], "checked": n}`; at most a hundred keys each.

    A key is `<account> <operation key>`, or what names the row where there is no key.
    """
    with connect() as conn:
        conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        conn.read_only = True
        with conn.transaction():
            violations = find_violations(conn)
    return {"violations": violations, "checked": len(INVARIANTS)}


def find_violations(conn: psycopg.Connection[Any]) -> list[dict[str, Any]]:
    """`[{"invariant", "keys"}]` of what does not hold, as the transaction of `conn` sees it."""
    found = [
        (invariant, conn.execute(query(name), {"row_limit": KEYS_SHOWN}).fetchall())
        for invariant, name in INVARIANTS.items()
    ]
    return [
        {"invariant": invariant, "keys": [f"{account} {key}" for account, key in rows]}
        for invariant, rows in found
        if rows
    ]
