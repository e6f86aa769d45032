"""What every channel promises, tried on every channel."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from duebook.channels.base import Channel, Message, SendResult, message_id_for
from duebook.channels.email import EmailChannel, EmailOptions
from duebook.channels.noop import NoopChannel
from duebook.channels.sms import SmsChannel, SmsOptions
from duebook.channels.webhook import WebhookChannel, WebhookOptions
from tests.channels.servers import Certificate, make_certificate
from tests.smtp_sink import SmtpSink
from tests.twilio_server import ACCOUNT, TOKEN, TwilioServer
from tests.webhook_sink import WebhookSink

SENDER = "Shöp <billing@shop.example>"
LOGIN = ("duebook", "correct horse")
MASTER_KEY = "a master key of at least 32 bytes, of a test"
Case = tuple[Channel, Callable[[], int]]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def message(number: int = 1, **changes: Any) -> Message:
    key = f"payment_settled:email:stripe:pay_{number}:txn_{number}:v1"
    fields: dict[str, Any] = {
        "operation_key": key,
        "message_id": message_id_for("acct_1", key, SENDER),
        "recipient": f"customer{number}@example.org",
        "subject": f"We have received your payment R-{number}",
        "text": "Hello,\n\n.a line that starts with a dot\n",
    }
    return Message(**(fields | changes))


@contextlib.contextmanager
def email_case(options: dict[str, Any], sink: SmtpSink) -> Iterator[Case]:
    with sink:
        fields: dict[str, Any] = {
            "host": "localhost",
            "port": sink.port,
            "security": "plain",
            "sender": SENDER,
            "io_timeout": timedelta(seconds=10),
            "max_connections": 4,
        }
        channel = EmailChannel(EmailOptions(**(fields | options)))
        yield channel, lambda: len(sink.messages)


class _ToNumber(SmsChannel):
    """Sends everything to one number, whoever it is for."""

    async def send(self, message: Message) -> SendResult:
        return await super().send(replace(message, recipient="+15005550006"))


@contextlib.contextmanager
def sms_case() -> Iterator[Case]:
    with TwilioServer() as server:
        options = SmsOptions(ACCOUNT, TOKEN, sender="+15005550001", base_url=server.url)
        yield _ToNumber(options), lambda: len(server.made)


class _ToSink(WebhookChannel):
    """Posts everything to one endpoint, whoever it is for."""

    url = ""

    async def send(self, message: Message) -> SendResult:
        return await super().send(replace(message, recipient=self.url))


@contextlib.contextmanager
def webhook_case(certificate: Certificate) -> Iterator[Case]:
    with WebhookSink(tls=certificate.server_context()) as sink:
        options = WebhookOptions(
            master_keys=(MASTER_KEY,), allow_private=True, ca_file=certificate.ca_file
        )
        channel = _ToSink(options)
        channel.url = sink.url
        yield channel, lambda: sink.count


@pytest.fixture(
    params=[
        *("email plain", "email one by one", "email starttls+login", "email tls+login"),
        *("noop", "sms", "webhook"),
    ]
)
def case(request: pytest.FixtureRequest, certificate: Certificate) -> Iterator[Case]:
    secured = {"login": LOGIN[0], "password": LOGIN[1], "ca_file": certificate.ca_file}
    opened: contextlib.AbstractContextManager[Case]
    match request.param:
        case "email plain":
            opened = email_case({}, SmtpSink())
        case "email one by one":
            opened = email_case({}, SmtpSink(pipelining=False))
        case "email starttls+login":
            sink = SmtpSink(login=LOGIN, security="starttls", tls=certificate.server_context())
            opened = email_case({"security": "starttls", **secured}, sink)
        case "email tls+login":
            sink = SmtpSink(login=LOGIN, security="tls", tls=certificate.server_context())
            opened = email_case({"security": "tls", **secured}, sink)
        case "sms":
            opened = sms_case()
        case "webhook":
            opened = webhook_case(certificate)
        case _:
            noop = NoopChannel()
            opened = contextlib.nullcontext((noop, lambda: noop.sent))
    with opened as made:
        yield made


def test_it_says_what_it_is(case: Case) -> None:
    channel, _ = case
    assert channel.name
    assert channel.io_timeout > timedelta(0)
    assert channel.max_concurrency >= 1
    assert channel.idempotent == (channel.safe_retry_for is not None)


def test_a_message_is_accepted_once_with_an_id(case: Case) -> None:
    channel, received = case

    async def act() -> None:
        await channel.open()
        result = await channel.send(message())
        assert result.status == "accepted"
        assert result.provider_message_id
        assert result.retry_after is None
        await channel.close()

    asyncio.run(act())
    assert received() == 1


def test_many_at_once_are_each_accepted_once(case: Case) -> None:
    channel, received = case

    async def act() -> None:
        await channel.open()
        results = await asyncio.gather(*(channel.send(message(n)) for n in range(60)))
        assert {result.status for result in results} == {"accepted"}
        await channel.close()

    asyncio.run(act())
    assert received() == 60


def test_verify_reaches_the_server_and_sends_nothing(case: Case) -> None:
    channel, received = case
    line = asyncio.run(channel.verify())
    assert "\n" not in line
    assert LOGIN[1] not in line
    assert MASTER_KEY not in line
    assert received() == 0


def test_it_can_be_closed_twice_and_opened_again(case: Case) -> None:
    channel, received = case

    async def act() -> None:
        for _ in range(2):
            await channel.open()
            assert (await channel.send(message())).status == "accepted"
            await channel.close()
            await channel.close()

    asyncio.run(act())
    assert received() == 2


def test_sending_on_a_closed_channel_is_a_mistake(case: Case) -> None:
    channel, received = case
    with pytest.raises(RuntimeError):
        asyncio.run(channel.send(message()))
    assert received() == 0


def test_a_message_does_not_show_its_contents() -> None:
    shown = repr(message(subject="EUR 1234567.89", headers={"X": "y"}))
    assert "@example.org" not in shown
    assert "1234567" not in shown


def test_the_message_id_is_stable_and_tells_nothing() -> None:
    one = message_id_for("acct_1", "remind:email:s:2026-11-01", SENDER)
    assert one == message_id_for("acct_1", "remind:email:s:2026-11-01", "billing@shop.example")
    assert one != message_id_for("acct_2", "remind:email:s:2026-11-01", SENDER)
    assert one.endswith("@shop.example>")
    assert "acct_1" not in one


def test_an_out_file_has_one_line_a_message(tmp_path: Path) -> None:
    out = tmp_path / "mails.jsonl"
    with email_case({}, SmtpSink(out=out)) as (channel, _):

        async def act() -> None:
            await channel.open()
            await channel.send(message(1))
            await channel.send(message(2))
            await channel.close()

        asyncio.run(act())
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2
