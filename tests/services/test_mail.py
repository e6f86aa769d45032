"""Mail from the promise to its end: real database, real sender, a real server that misbehaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from duebook.channels.email import EmailChannel, EmailOptions
from duebook.db.connect import connect_url
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from tests.due_work import add_due, places, value
from tests.services.test_deliver import hasten, outcomes
from tests.smtp_sink import HANG_UP, SmtpSink

Conn = psycopg.Connection[Any]
Run = Callable[[], SweepReport]
BAD = "a000000@example.test"


@contextmanager
def mailing(conn: Conn, url: str, count: int, sink: SmtpSink) -> Iterator[Run]:
    """`count` accounts with a notice each, due by mail; sweeps send them to the server."""
    add_due(conn, count, accounts=count, channel="email")
    conn.execute("update duebook.contact set address = account_id || '@example.test'")
    with sink:
        yield lambda: sweep_mail(url, sink)


def sweep_mail(url: str, sink: SmtpSink) -> SweepReport:
    """One sweep that mails to the server."""
    mail = EmailOptions(
        host="127.0.0.1",
        port=sink.port,
        security="plain",
        sender="Shop <billing@shop.example>",
        max_connections=2,
        io_timeout=timedelta(seconds=10),
    )
    return sweep(
        partial(connect_url, url, autocommit=True),
        SweepRequest(environment="test", batch_size=100),
        {"email": EmailChannel(mail)},
    )


def only_bad(reply: str, times: int = 1000) -> Callable[[str], str | None]:
    """The reply to one address, so many times."""
    left = iter([reply] * times)
    return lambda address: next(left, None) if address == BAD else None


@pytest.mark.parametrize(
    ("stage", "reply", "suppression"),
    [
        ("at_recipient", "550 5.1.1 user unknown", "550 5.1.1"),
        ("at_recipient", "550 5.1.10 null MX", "550 5.1.10"),
        ("at_recipient", "550 5.2.1 mailbox disabled", "550 5.2.1"),
        ("at_recipient", "552 5.2.2 mailbox full", None),
        ("at_recipient", "550 5.4.4 no such host", None),
        ("at_recipient", "550 5.7.1 not from you", None),
        ("at_text", "554 5.7.1 looks like spam", None),
        ("at_text", "554 refused", None),
        ("at_text", "550 5.1.1 user unknown", "550 5.1.1"),
    ],
)
def test_a_refusal_ends_its_own_key_alone_and_tells_why(
    conn: Conn, database_url: str, stage: str, reply: str, suppression: str | None
) -> None:
    hooks: dict[str, Any] = {stage: only_bad(reply)}
    with mailing(conn, database_url, 6, sink := SmtpSink(**hooks)) as run:
        run()
    assert outcomes(conn) == {("expired", "refused"): 1, ("sent", None): 5}
    assert sorted(mail["to"] for mail in sink.messages) == [
        f"a00000{n}@example.test" for n in range(1, 6)
    ]
    found = conn.execute("select account_id, channel, reason from duebook.suppression").fetchall()
    assert found == ([("a000000", "email", suppression)] if suppression else [])


def test_one_envelope_a_recipient_so_that_half_a_refusal_cannot_be_counted_as_sent(
    conn: Conn, database_url: str
) -> None:
    sink = SmtpSink(at_recipient=only_bad("550 5.1.1 user unknown"))
    with mailing(conn, database_url, 2, sink) as run:
        run()
    assert [mail["rcpt_to"] for mail in sink.messages] == [["a000001@example.test"]]
    assert value(conn, "select account_id from duebook.outcome where result = 'sent'") == "a000001"
    refused = "select account_id from duebook.outcome where reason = 'refused'"
    assert value(conn, refused) == "a000000"


def test_who_is_greylisted_is_tried_again_alone_and_is_the_same_mail(
    conn: Conn, database_url: str
) -> None:
    sink = SmtpSink(at_recipient=only_bad("451 4.7.1 greylisted, come back", times=1))
    with mailing(conn, database_url, 4, sink) as run:
        run()
        assert outcomes(conn) == {("sent", None): 3}
        assert conn.execute("select account_id, tries from duebook.due").fetchall() == [
            ("a000000", 1)
        ]
        assert value(conn, "select reason from duebook.intent_change") == "retry"
        assert (
            value(conn, "select count(*) from duebook.budget where paused_until is not null") == 0
        )
        hasten(conn)
        run()
    assert outcomes(conn) == {("sent", None): 4}
    assert len({mail["message_id"] for mail in sink.messages}) == len(sink.messages) == 4


@pytest.mark.parametrize(
    "reply", ["421 4.7.0 too many", "454 4.7.0 not now", "450 4.7.28 slow down"]
)
def test_a_throttle_rests_the_channel_and_burns_no_try(
    conn: Conn, database_url: str, reply: str
) -> None:
    is_throttling = [True]
    sink = SmtpSink(at_recipient=lambda address: reply if is_throttling[0] else None)
    with mailing(conn, database_url, 20, sink) as run:
        run()
        assert places(conn) == {"due": 20}
        assert value(conn, "select max(tries) from duebook.due") == 0
        assert value(conn, "select paused_until > clock_timestamp() from duebook.budget")
        tried = "select count(*) from duebook.attempt_result where provider_code is not null"
        assert 0 < value(conn, tried) <= 4
        assert run().counts.claimed == 0
        is_throttling[0] = False
        while places(conn) != {"outcome": 20}:
            hasten(conn)
            assert run().counts.sent > 0
    assert outcomes(conn) == {("sent", None): 20}
    assert len(sink.messages) == 20


def test_a_server_that_drops_after_the_text_leaves_doubt_and_no_second_mail(
    conn: Conn, database_url: str
) -> None:
    sink = SmtpSink(at_text=only_bad(HANG_UP))
    with mailing(conn, database_url, 5, sink) as run:
        run()
        hasten(conn)
        run()
    assert places(conn) == {"outcome": 4, "in_doubt": 1}
    assert value(conn, "select account_id from duebook.in_doubt") == "a000000"
    result = "select result, provider_code from duebook.attempt_result where result <> 'sent'"
    assert conn.execute(result).fetchall() == [("unknown", "connection")]
    assert [mail["to"] for mail in sink.messages].count(BAD) == 1
    assert len(sink.messages) == 5
