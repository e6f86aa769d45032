"""SMS by Twilio's library against a local server of its protocol."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from aiohttp import web

from duebook.channels.base import Message, SendResult
from duebook.channels.sms import SmsChannel, SmsOptions
from duebook.channels.sms_segments import count_segments
from duebook.errors import ConfigurationError, UnavailableError
from tests.due_work import add_due, add_kind, places, run_sweep, value
from tests.twilio_server import ACCOUNT, TOKEN, TwilioServer, error

Conn = psycopg.Connection[Any]

NUMBER = "+15005550006"
MESSAGE = Message("settled:sms:1", "<1@x>", NUMBER, "Subject", "Your payment has arrived.\n")


@pytest.fixture
def server() -> Iterator[TwilioServer]:
    with TwilioServer() as started:
        yield started


def options(server: TwilioServer, **other: Any) -> SmsOptions:
    return SmsOptions(
        **{
            "account_sid": ACCOUNT,
            "auth_token": TOKEN,
            "messaging_service_sid": "MG1",
            "base_url": server.url,
            "io_timeout": timedelta(seconds=10),
            **other,
        }
    )


def send(server: TwilioServer, *messages: Message, **other: Any) -> list[SendResult]:
    async def run() -> list[SendResult]:
        channel = SmsChannel(options(server, **other))
        await channel.open()
        try:
            return [await channel.send(message) for message in messages]
        finally:
            await channel.close()

    return asyncio.run(run())


def test_a_message_is_made_with_its_sender_and_callback(server: TwilioServer) -> None:
    callback = "https://shop.example/webhooks/sms"
    (result,) = send(server, MESSAGE, status_callback=callback)
    assert (result.status, result.code) == ("accepted", "queued")
    (sms,) = server.made
    assert result.provider_message_id == sms.sid
    assert (sms.to, sms.body) == (NUMBER, "Your payment has arrived.")
    assert sms.form["MessagingServiceSid"] == "MG1"
    assert sms.form["StatusCallback"] == callback


@pytest.mark.parametrize(
    ("answer", "status", "scope", "other"),
    [
        (error(400, 21610), "refused", "channel", {"opts_out": True}),
        (error(400, 21211), "refused", "channel", {"suppress": "21211"}),
        (error(400, 21614), "refused", "channel", {"suppress": "21614"}),
        (error(400, 21408), "refused", "channel", {"suppress": None}),
        (error(400, 30610), "later", "message", {"burns_try": False}),
        (error(400, 21611), "later", "channel", {}),
        (error(401, 20003), "later", "channel", {}),
        (error(503, 20503), "later", "channel", {}),
        (error(500, 20500), "unknown", "channel", {}),
        (web.Response(status=502, text="<html>"), "unknown", "channel", {}),
        (web.Response(status=201, text="<html>"), "unknown", "channel", {}),
        (web.Response(status=400, text=""), "refused", "channel", {"suppress": None}),
        (error(429, 20429, **{"Retry-After": "7"}), "later", "channel", {}),
    ],
)
def test_each_error_means_what_its_code_says(
    server: TwilioServer, answer: web.Response, status: str, scope: str, other: dict[str, Any]
) -> None:
    # A response is sent once; this one each time anew.
    fields = (answer.status, answer.text, dict(answer.headers))
    server.answer = lambda form: web.Response(
        status=fields[0],
        text=fields[1],
        headers={k: v for k, v in fields[2].items() if k == "Retry-After"},
        content_type="application/json",
    )
    (result,) = send(server, MESSAGE)
    assert (result.status, result.scope) == (status, scope)
    for name, expected in other.items():
        assert getattr(result, name) == expected
    if fields[0] == 429:
        assert result.retry_after == timedelta(seconds=7)


def test_a_loss_after_the_request_is_unknown_and_before_it_later(server: TwilioServer) -> None:
    server.hang_up_after = True
    (result,) = send(server, MESSAGE)
    assert (result.status, len(server.made)) == ("unknown", 1)
    gone = replace(options(server), base_url="http://127.0.0.1:1")
    (result,) = send(server, MESSAGE, base_url=gone.base_url)
    assert (result.status, result.scope) == ("later", "channel")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (replace(MESSAGE, recipient="0151 1234567"), "number"),
        (replace(MESSAGE, recipient="+1"), "number"),
        (replace(MESSAGE, recipient=f"{NUMBER}\n"), "number"),
        (replace(MESSAGE, text="x" * 460), "segments"),
        (replace(MESSAGE, text="  "), "segments"),
    ],
)
def test_what_can_not_go_is_refused_before_it_is_tried(
    server: TwilioServer, message: Message, code: str
) -> None:
    (result,) = send(server, message)
    assert (result.status, result.code, server.tried) == ("refused", code, [])


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("", 0),
        ("x" * 160, 1),
        ("x" * 161, 2),
        ("x" * 306, 2),
        ("x" * 307, 3),
        ("€" * 80, 1),
        ("€" * 81, 2),
        # Two septets that do not fit into the rest of a segment begin the next.
        ("x" * 152 + "€" + "x" * 152, 3),
        ("ж" * 70, 1),
        ("ж" * 71, 2),
        ("😀" * 35, 1),
        ("😀" * 36, 2),
        ("ж" * 66 + "😀" + "ж" * 66, 3),
    ],
)
def test_segments_are_counted_as_networks_do(text: str, segments: int) -> None:
    assert count_segments(text) == segments


def test_nothing_that_is_said_names_a_number_or_the_token(
    server: TwilioServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.answer = lambda form: error(400, 21211)
    results = send(server, MESSAGE)
    told = caplog.text + repr(results) + repr(options(server)) + repr(MESSAGE)
    assert NUMBER not in told
    assert TOKEN not in told


def test_it_says_whether_the_account_works(server: TwilioServer) -> None:
    good, bad = options(server), options(server, auth_token="wrong")
    assert "active" in asyncio.run(SmsChannel(good).verify())
    with pytest.raises(UnavailableError, match="20003"):
        asyncio.run(SmsChannel(bad).verify())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"password": None}, "auth token"),
        ({"extra": {}}, "either"),
        ({"extra": {"from": "+1", "messaging_service_sid": "MG1"}}, "either"),
    ],
)
def test_a_connection_that_lacks_something_is_refused(changed: dict[str, Any], said: str) -> None:
    connection = SimpleNamespace(
        **{"host": "", "port": None, "login": ACCOUNT, "password": TOKEN, "extra": {}, **changed}
    )
    with pytest.raises(ConfigurationError, match=said):
        SmsOptions.from_connection(connection, io_timeout=timedelta(seconds=1), max_segments=3)


class TestEndToEnd:
    """From the due row to the outcome, with a real database."""

    @pytest.fixture(autouse=True)
    def due(self, conn: Conn) -> None:
        add_kind(conn, channel="sms")
        add_due(conn, 3, accounts=3, channel="sms")
        conn.execute("update duebook.contact set address = '+1500555000' || right(account_id, 1)")

    def run(self, url: str, server: TwilioServer) -> Any:
        return run_sweep(url, SmsChannel(options(server)))

    def test_each_is_sent_once_in_few_words(
        self, conn: Conn, database_url: str, server: TwilioServer
    ) -> None:
        assert self.run(database_url, server).counts.sent == 3
        assert {sms.body for sms in server.made} == {
            f"We have received your payment ref-a{number} of EUR 42.00. Thank you."
            for number in (1, 2, 3)
        }
        sids = conn.execute("select provider_message_id from duebook.outcome").fetchall()
        assert {sid for (sid,) in sids} == {sms.sid for sms in server.made}

    def test_each_refusal_ends_as_its_code_says(
        self, conn: Conn, database_url: str, server: TwilioServer
    ) -> None:
        codes = {"+15005550000": 21610, "+15005550001": 21614, "+15005550002": 30610}
        server.answer = lambda form: error(400, codes[form["To"]])
        self.run(database_url, server)
        assert places(conn) == {"outcome": 2, "due": 1}
        ended = conn.execute("select account_id, reason from duebook.outcome order by 1").fetchall()
        assert ended == [("a000000", "opted_out"), ("a000001", "refused")]
        assert conn.execute("select account_id, kind, granted from duebook.consent").fetchall() == [
            ("a000000", "*", False)
        ]
        assert conn.execute("select account_id, reason from duebook.suppression").fetchall() == [
            ("a000001", "21614")
        ]
        assert conn.execute(
            "select tries, due_at > clock_timestamp() + interval '50 minutes' from duebook.due"
        ).fetchone() == (0, True)

    def test_what_may_have_been_made_is_in_doubt_and_never_made_again(
        self, conn: Conn, database_url: str, server: TwilioServer
    ) -> None:
        server.hang_up_after = True
        self.run(database_url, server)
        server.hang_up_after = False
        self.run(database_url, server)
        assert places(conn) == {"in_doubt": 3}
        assert len({sms.to for sms in server.made}) == len(server.made) == 3

    def test_a_throttle_rests_the_channel_and_burns_no_try(
        self, conn: Conn, database_url: str, server: TwilioServer
    ) -> None:
        server.answer = lambda form: error(429, 20429, **{"Retry-After": "600"})
        self.run(database_url, server)
        assert places(conn) == {"due": 3}
        assert value(conn, "select max(tries) from duebook.due") == 0
        assert value(
            conn,
            "select paused_until > clock_timestamp() + interval '9 minutes' from duebook.budget",
        )


def test_the_answers_of_the_server_are_json(server: TwilioServer) -> None:
    assert json.loads(str(error(400, 21211).text))["code"] == 21211
