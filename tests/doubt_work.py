"""Keys in doubt, as a sender that died or an answer that never came leaves them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import psycopg

from duebook.channels.base import Message, SendResult
from duebook.db.connect import Connect, connect_url
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from tests.due_work import ScriptedChannel, add_due, value

Conn = psycopg.Connection[Any]


def connector(url: str) -> Connect:
    return partial(connect_url, url, autocommit=True)


def send(url: str, channel: ScriptedChannel | None = None) -> tuple[SweepReport, list[str]]:
    """One sweep; returns its report, and the keys that it sent."""
    channel = channel or ScriptedChannel()
    report = sweep(connector(url), SweepRequest(environment="test"), {channel.name: channel})
    return report, channel.log


def add_doubts(conn: Conn, url: str, count: int, **due: Any) -> list[str]:
    """`count` keys whose channel did not answer; returns them in order."""

    def no_answer(message: Message, number: int) -> SendResult:
        return SendResult("unknown", code="timeout", detail="no answer in time")

    add_due(conn, count, **due)
    send(url, ScriptedChannel(no_answer, name=due.get("channel", "noop")))
    keys: list[str] = value(
        conn,
        "select array_agg(i.operation_key order by i.intent_id)"
        " from duebook.in_doubt as u inner join duebook.intent as i using (account_id, intent_id)",
    )
    assert len(keys) == count
    return keys


def make_older(conn: Conn, by: timedelta) -> None:
    """As if every claim and every doubt had been so much earlier."""
    conn.execute(
        "update duebook.in_doubt set since = since - %(by)s, look_up_from = look_up_from - %(by)s",
        {"by": by},
    )
    conn.execute("update duebook.attempt set claimed_at = claimed_at - %s", [by])


def audited(conn: Conn, action: str) -> list[tuple[Any, ...]]:
    """(actor, subject, detail) of every act of a name, the oldest first."""
    return conn.execute(
        "select actor, subject, detail from duebook.audit_event where action = %s"
        " order by audit_event_id",
        [action],
    ).fetchall()
