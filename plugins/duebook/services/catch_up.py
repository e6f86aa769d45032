"""Catching up: what the policy says about a window's missed intents, and when each of them may go.

An intent is missed when it is found more than two sweeps after its time. The policy is its kind's,
for a reminder its schedule's. What it lets go keeps the policy's rate: each takes a slot of its
kind's pace, in the transaction that opens the window, and is put off when its slot lies ahead. A
window without a missed intent asks the database nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import psycopg
import structlog

from duebook.db.sql import query
from duebook.domain.catch_up import MISSED_AFTER, CatchUpPolicy, judge, most_sent
from duebook.domain.gate import Decision
from duebook.domain.keys import KeyFormatError, ReminderKey, parse_key
from duebook.services.flush import Claimed, Window
from duebook.services.judge import Policies, gate, judge_rows

_log = structlog.get_logger(__name__)

_OF_THE_POLICY: Final = frozenset({"too_late", "superseded", "skipped"})
_Facts = Mapping[tuple[str, int], Claimed]


def catching_up(safety: timedelta) -> Callable[[psycopg.Connection[Any], Window], Window]:
    """What completes a window; `safety` is how long after its opening its I/O may still end."""
    return partial(complete_window, safety=safety)


def complete_window(conn: psycopg.Connection[Any], window: Window, *, safety: timedelta) -> Window:
    """The window with newer occurrences, policies and slots of what was missed in it.

    Each decision of a policy is kept as an audit event `catch_up`.
    """
    now = window.now
    missed_before = now - MISSED_AFTER
    missed = [
        row for row in window.rows if row.due_at < missed_before and row.operation_key is not None
    ]
    if not missed and not any(row.is_catching_up for row in window.rows):
        return window
    policies = Policies(window.rules)
    missed = [row for row in missed if policies.knows(row.kind)]
    known = {_key(row): row for row in _with_newer(conn, missed, policies, now)}
    completed = replace(window, rows=[known.get(_key(row), row) for row in window.rows])
    to_send, _ = judge_rows(completed.rows, policies, now, safety)
    paced = [row for row in to_send if _key(row) in known or row.is_catching_up]
    slotted = {_key(row): row for row in _with_slots(conn, paced, known, policies, now)}
    completed = replace(completed, rows=[slotted.get(_key(row), row) for row in completed.rows])
    _keep_decisions(
        conn, [row for row in completed.rows if _key(row) in known], policies, now, safety
    )
    return completed


def _key(row: Claimed) -> tuple[str, int]:
    return row.account_id, row.intent_id


def _with_newer(
    conn: psycopg.Connection[Any], missed: Sequence[Claimed], policies: Policies, now: datetime
) -> Iterable[Claimed]:
    """The missed intents with how many newer ones are due: by the calendar, else by their rows."""
    of_schedules = {_key(row): row for row in _with_schedules(conn, missed, now)}
    yield from of_schedules.values()
    by_row = [
        (row, most_sent(policies.catch_up(row.kind)))
        for row in missed
        if _key(row) not in of_schedules
    ]
    counts = _count_newer(conn, by_row, now)
    for row, _ in by_row:
        yield row._replace(newer_due=counts.get(_key(row), 0))


def _with_schedules(
    conn: psycopg.Connection[Any], missed: Sequence[Claimed], now: datetime
) -> Iterable[Claimed]:
    """The missed reminders whose schedule is there, with its policy and the calendar's count."""
    reminders = [(row, key) for row in missed if (key := _reminder(row)) is not None]
    if not reminders:
        return
    # Reading rules takes the calendar's libraries, which no other window needs.
    from duebook.domain.calendar import count_due_after
    from duebook.services.schedule import rules_of

    rules = rules_of(conn, sorted({(row.account_id, key.schedule) for row, key in reminders}))
    for row, key in reminders:
        found = rules.get((row.account_id, key.schedule))
        if found is None:
            continue
        rule, policy = found
        try:
            newer = count_due_after(rule, key.nominal_on, now, most_sent(policy))
        except Exception as error:  # one bad rule never stops a window
            _log.error("calendar_failed", schedule=key.schedule, error=type(error).__name__)
            newer = 0
        yield row._replace(newer_due=newer, policy=policy)


def _reminder(row: Claimed) -> ReminderKey | None:
    try:
        key = parse_key(row.operation_key or "")
    except KeyFormatError:
        return None
    return key if isinstance(key, ReminderKey) else None


def _count_newer(
    conn: psycopg.Connection[Any], rows: Sequence[tuple[Claimed, int]], now: datetime
) -> dict[tuple[str, int], int]:
    if not rows:
        return {}
    found = conn.execute(
        query("read_missed_facts"),
        {
            "account_ids": [row.account_id for row, _ in rows],
            "intent_ids": [row.intent_id for row, _ in rows],
            "most": [most for _, most in rows],
            "now": now,
        },
    )
    return {(account_id, intent_id): newer for account_id, intent_id, newer in found}


def _with_slots(
    conn: psycopg.Connection[Any],
    rows: Sequence[Claimed],
    missed: _Facts,
    policies: Policies,
    now: datetime,
) -> Iterable[Claimed]:
    if not rows:
        return
    chosen = [_policy_of(row, policies) for row in rows]
    limits = [
        min(row.give_up_at, row.due_at + policy.window) if _key(row) in missed else row.give_up_at
        for row, policy in zip(rows, chosen, strict=True)
    ]
    answer = conn.execute(
        query("take_catch_up_slots"),
        {
            "paces": [row.kind for row in rows],
            "rates": [policy.spread_per_minute for policy in chosen],
            "limits": limits,
            "now": now,
        },
    ).fetchone()
    assert answer is not None
    for row, slot_at in zip(rows, answer[0], strict=True):
        # No slot before its limit: the gate ends what can't be sent before it is too late.
        yield row._replace(slot_at=slot_at or row.give_up_at)


def _policy_of(row: Claimed, policies: Policies) -> CatchUpPolicy:
    return row.policy or policies.catch_up(row.kind)


def _keep_decisions(
    conn: psycopg.Connection[Any],
    rows: Sequence[Claimed],
    policies: Policies,
    now: datetime,
    safety: timedelta,
) -> None:
    kept = [
        {
            "account_id": row.account_id,
            "operation_key": row.operation_key,
            "detail": _detail(row, policies, now),
        }
        for row in rows
        if _is_of_the_policy(gate(row, policies, now, safety))
    ]
    if kept:
        conn.execute(query("write_catch_up_decisions"), {"decisions": json.dumps(kept)})


def _is_of_the_policy(decision: Decision) -> bool:
    return (
        decision.action == "send"
        or decision.reason == "spread"
        or (decision.action == "expire" and decision.reason in _OF_THE_POLICY)
    )


def _detail(row: Claimed, policies: Policies, now: datetime) -> dict[str, Any]:
    policy = _policy_of(row, policies)
    verdict = judge(policy, due_at=row.due_at, newer_due=row.newer_due, now=now)
    slot_at = row.slot_at
    if now >= row.give_up_at or (slot_at is not None and slot_at >= row.give_up_at):
        verdict = "too_late"
    detail: dict[str, Any] = {
        "verdict": verdict,
        "due_at": row.due_at.astimezone(UTC).isoformat(),
        "late_s": int((now - row.due_at).total_seconds()),
        "catch_up": policy.mode,
        "window_s": int(policy.window.total_seconds()),
        "max_occurrences": policy.max_occurrences,
        "spread_per_minute": policy.spread_per_minute,
        "newer_due": row.newer_due,
        "policy_of": "kind" if row.policy is None else "schedule",
    }
    if verdict == "send" and slot_at is not None:
        detail["slot_at"] = slot_at.astimezone(UTC).isoformat()
    return detail
