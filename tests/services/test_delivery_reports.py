"""What a provider says later of a message that it accepted, also before its outcome is there."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from duebook.channels.base import SendResult
from tests.due_work import ScriptedChannel, add_due, places, run_sweep, value

Conn = psycopg.Connection[Any]

_REPORT = "select duebook.record_delivery_report('noop', %s, %s, %s, '2026-11-30Z', 'dsn', %s)"


@pytest.fixture
def sent(conn: Conn, database_url: str) -> Conn:
    add_due(conn, 1, prefix="b")
    channel = ScriptedChannel(lambda message, number: SendResult("accepted", "<one@x.example>"))
    run_sweep(database_url, channel)
    assert places(conn) == {"outcome": 1}
    return conn


def suppressed(conn: Conn) -> list[tuple[str, str, str, str]]:
    return conn.execute(
        "select account_id, channel, reason, source from duebook.suppression order by 1, 2"
    ).fetchall()


def test_a_bounce_suppresses_the_account_once(sent: Conn) -> None:
    report = ("<one@x.example>", "failed", "5.1.1", "5.1.1")
    assert value(sent, _REPORT, *report) == "recorded"
    assert suppressed(sent) == [("b000000", "noop", "5.1.1", "provider")]
    sent.execute("delete from duebook.suppression")
    # The same again does not undo what a person lifted.
    assert value(sent, _REPORT, *report) == "known"
    assert suppressed(sent) == []


def test_a_complaint_is_the_recipients(sent: Conn) -> None:
    value(sent, _REPORT, "<one@x.example>", "complained", None, "complaint")
    assert suppressed(sent) == [("b000000", "noop", "complaint", "recipient")]


def test_a_delay_suppresses_nobody(sent: Conn) -> None:
    assert value(sent, _REPORT, "<one@x.example>", "delayed", "4.4.1", None) == "recorded"
    assert suppressed(sent) == []


def test_a_report_that_overtakes_its_outcome_waits_for_it(conn: Conn, database_url: str) -> None:
    value(conn, _REPORT, "<one@x.example>", "failed", "5.1.1", "5.1.1")
    assert suppressed(conn) == []
    add_due(conn, 1, prefix="b")
    channel = ScriptedChannel(lambda message, number: SendResult("accepted", "<one@x.example>"))
    run_sweep(database_url, channel)
    run_sweep(database_url, channel)
    assert suppressed(conn) == [("b000000", "noop", "5.1.1", "provider")]
    assert value(conn, "select count(*) from duebook.pending_report") == 0


def test_a_message_that_is_not_ours_is_given_up(conn: Conn, database_url: str) -> None:
    value(conn, _REPORT, "<other@x.example>", "failed", "5.1.1", "5.1.1")
    conn.execute("update duebook.pending_report set give_up_at = now()")
    run_sweep(database_url, ScriptedChannel())
    assert value(conn, "select count(*) from duebook.pending_report") == 0
    assert suppressed(conn) == []
