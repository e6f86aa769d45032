"""E-mail over SMTP: what each misbehaviour of a server means for the promise."""

from __future__ import annotations

import asyncio
import email
import email.policy
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from structlog.testing import capture_logs

from duebook.channels.base import ChannelConnection, Message, SendResult
from duebook.channels.email import EmailChannel, EmailOptions
from duebook.errors import ConfigurationError, UnavailableError
from tests.channels.servers import (
    HANG,
    HANG_UP,
    PIPELINING,
    WAIT,
    Certificate,
    HostileServer,
    Script,
    hostile,
    make_certificate,
)
from tests.channels.test_conformance import LOGIN, SENDER, message
from tests.smtp_sink import SmtpSink

ECHO = "550 5.1.1 <customer1@example.org>: no such user, amount EUR 1234567.89"
T = TypeVar("T")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def options(port: int, **changes: Any) -> EmailOptions:
    fields: dict[str, Any] = {
        "host": "localhost",
        "port": port,
        "security": "plain",
        "sender": SENDER,
        "io_timeout": timedelta(seconds=10),
    }
    return EmailOptions(**(fields | changes))


def against(
    script: Script,
    act: Callable[[EmailChannel, HostileServer], Awaitable[T]],
    **changes: Any,
) -> T:
    async def run() -> T:
        async with hostile(script) as server:
            channel = EmailChannel(options(server.port, **changes))
            await channel.open()
            try:
                return await act(channel, server)
            finally:
                await channel.close()

    return asyncio.run(run())


def send_one(script: Script, sent: Message | None = None, **changes: Any) -> SendResult:
    async def act(channel: EmailChannel, server: HostileServer) -> SendResult:
        return await channel.send(sent or message())

    return against(script, act, **changes)


@pytest.mark.parametrize(
    ("script", "status", "code"),
    [
        # Before the text: certainly not taken.
        (Script(greeting=HANG_UP), "later", "connection"),
        (Script(greeting="421 4.3.2 closing"), "later", "421 4.3.2"),
        (Script(greeting="554 5.7.1 you are on a list"), "later", "554 5.7.1"),
        (Script(greeting="not smtp at all"), "later", "-1"),
        (Script(ehlo=HANG_UP), "later", "connection"),
        (Script(mail=HANG_UP), "later", "connection"),
        (Script(mail="421 4.7.0 too many"), "later", "421 4.7.0"),
        (Script(mail="450 4.7.1 greylisted"), "later", "450 4.7.1"),
        (Script(mail="553 5.1.8 bad sender"), "later", "553 5.1.8"),
        (Script(mail="530 5.7.0 log in first"), "later", "530 5.7.0"),
        (Script(mail="552 5.3.4 too large"), "refused", "552 5.3.4"),
        (Script(rcpt=HANG_UP), "later", "connection"),
        (Script(rcpt="421 4.3.2 closing"), "later", "421 4.3.2"),
        (Script(rcpt="450 4.2.1 busy"), "later", "450 4.2.1"),
        (Script(rcpt="452 4.2.2 full"), "later", "452 4.2.2"),
        (Script(rcpt="550 5.1.1 no such user"), "refused", "550 5.1.1"),
        (Script(rcpt="550 no such user"), "refused", "550"),
        (Script(rcpt="550-5.1.1 no\r\n550 5.1.1 such user"), "refused", "550 5.1.1"),
        (Script(rcpt="550 5.4.4 called transient elsewhere"), "refused", "550 5.4.4"),
        (Script(rcpt="550 4.2.2 full for now"), "later", "550 4.2.2"),
        (Script(rcpt="450 5.1.1 soft bounce"), "later", "450 5.1.1"),
        (Script(rcpt="554 5.7.1 not by our policy"), "refused", "554 5.7.1"),
        (Script(rcpt="garbage"), "later", "connection"),
        (Script(data=HANG_UP), "later", "connection"),
        (Script(data="451 4.3.0 try later"), "later", "451 4.3.0"),
        (Script(data="554 5.5.1 no valid recipients"), "refused", "554 5.5.1"),
        (Script(data="250 what"), "later", "250"),
        # From the text on: the answer decides, and no answer is doubt.
        (Script(hang_up_in_text=True), "unknown", "connection"),
        (Script(end=HANG_UP), "unknown", "connection"),
        (Script(end="garbage"), "unknown", "connection"),
        (Script(end="354 go on"), "unknown", "354"),
        (Script(end="421 4.3.2 shutting down"), "later", "421 4.3.2"),
        (Script(end="450 4.7.1 wait"), "later", "450 4.7.1"),
        (Script(end="452 4.3.1 disk full"), "later", "452 4.3.1"),
        (Script(end="550 5.7.1 spam"), "refused", "550 5.7.1"),
        (Script(end="554 5.6.0 bad content"), "refused", "554 5.6.0"),
        (Script(), "accepted", "250 2.0.0"),
    ],
    ids=lambda value: str(value)[:120],
)
@pytest.mark.parametrize("ehlo", [Script.ehlo, PIPELINING], ids=["one by one", "pipelined"])
def test_what_a_server_does_means(script: Script, status: str, code: str, ehlo: str) -> None:
    if script.ehlo == Script.ehlo:
        script = replace(script, ehlo=ehlo)
    result = send_one(script)
    assert (result.status, result.code) == (status, code)


@pytest.mark.parametrize(
    ("script", "status"),
    [
        (Script(greeting=HANG), "later"),
        (Script(mail=HANG), "later"),
        (Script(rcpt=HANG), "later"),
        (Script(data=HANG), "later"),
        (Script(end=HANG), "unknown"),
    ],
    ids=["greeting", "mail", "rcpt", "data", "end"],
)
@pytest.mark.parametrize("ehlo", [Script.ehlo, PIPELINING], ids=["one by one", "pipelined"])
def test_a_silent_server_is_left_in_time(script: Script, status: str, ehlo: str) -> None:
    result = send_one(replace(script, ehlo=ehlo), io_timeout=timedelta(seconds=0.3))
    assert (result.status, result.code in ("timeout", "connection")) == (status, True)


def test_no_server_at_all_is_later() -> None:
    async def run() -> SendResult:
        async with hostile(Script()) as server:
            port = server.port
        channel = EmailChannel(options(port))
        await channel.open()
        return await channel.send(message())

    result = asyncio.run(run())
    assert (result.status, result.code) == ("later", "connection")


def test_a_cancelled_send_leaves_nothing_for_the_next() -> None:
    async def act(channel: EmailChannel, server: HostileServer) -> str:
        sending = asyncio.create_task(channel.send(message(1)))
        async with asyncio.timeout(5):
            while not server.texts:
                await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        return (await channel.send(message(2))).status

    assert against(Script(end=HANG, only_first=True), act) == "accepted"


def test_a_connection_is_used_again() -> None:
    async def act(channel: EmailChannel, server: HostileServer) -> int:
        for number in range(5):
            assert (await channel.send(message(number))).status == "accepted"
        return server.connections

    assert against(Script(), act) == 1


def test_a_connection_is_used_for_so_many_and_no_more() -> None:
    async def act(channel: EmailChannel, server: HostileServer) -> int:
        for number in range(5):
            assert (await channel.send(message(number))).status == "accepted"
        return server.connections

    assert against(Script(), act, messages_per_connection=2) == 3


def test_connections_are_no_more_than_allowed() -> None:
    async def act(channel: EmailChannel, server: HostileServer) -> int:
        await asyncio.gather(*(channel.send(message(n)) for n in range(40)))
        assert len(server.texts) == 40
        return server.connections

    assert against(Script(), act, max_connections=3) == 3


def test_a_refused_recipient_does_not_spoil_the_next() -> None:
    async def act(channel: EmailChannel, server: HostileServer) -> list[str]:
        first = await channel.send(message(1))
        server.script.rcpt = "250 2.1.5 Ok"
        second = await channel.send(message(2))
        assert "RSET" in server.commands
        assert server.connections == 1
        return [first.status, second.status]

    assert against(Script(rcpt="550 5.1.1 no"), act) == ["refused", "accepted"]


def test_an_idle_connection_that_the_server_closed_is_no_failure() -> None:
    async def act(channel: EmailChannel, server: HostileServer) -> list[str]:
        return [(await channel.send(message(n))).status for n in range(3)]

    assert against(Script(hang_up_after_each=True), act) == ["accepted"] * 3


def test_an_idle_connection_that_says_421_is_made_anew() -> None:
    async def act(channel: EmailChannel, server: HostileServer) -> tuple[str, int]:
        await channel.send(message(1))
        server.script.mail = "421 4.4.2 idle for too long"
        server.script.only_first = True
        second = await channel.send(message(2))
        return second.status, len(server.texts)

    assert against(Script(), act) == ("accepted", 2)


class TestPipelining:
    def test_no_text_is_sent_before_it_is_asked_for(self) -> None:
        async def act(channel: EmailChannel, server: HostileServer) -> SendResult:
            return await channel.send(message())

        async def run() -> tuple[SendResult, HostileServer]:
            async with hostile(Script(ehlo=PIPELINING, data=HANG)) as server:
                channel = EmailChannel(options(server.port, io_timeout=timedelta(seconds=0.3)))
                await channel.open()
                result = await act(channel, server)
                await channel.close()
                return result, server

        result, server = asyncio.run(run())
        assert (result.status, result.code) == ("later", "timeout")
        assert [line.split()[0] for line in server.commands] == ["EHLO", "MAIL", "RCPT", "DATA"]
        assert server.texts == []

    @pytest.mark.parametrize(
        "data", ["354 go on", "503 5.5.1 no valid recipients"], ids=["354", "503"]
    )
    def test_a_refused_recipient_costs_neither_a_mail_nor_the_connection(self, data: str) -> None:
        async def act(channel: EmailChannel, server: HostileServer) -> list[str | None]:
            server.script.data = data
            first = await channel.send(message(1))
            server.script.data = Script.data
            second = await channel.send(message(2))
            assert server.connections == 1
            assert [text for text in server.texts if text] == server.texts[-1:]
            return [first.code, second.code]

        refused = frozenset({"customer1@example.org"})
        script = Script(ehlo=PIPELINING, refused=refused)
        assert against(script, act) == ["550 5.1.1", "250 2.0.0"]

    def test_a_text_for_which_the_sender_was_refused_is_not_sent_empty_either(self) -> None:
        async def act(channel: EmailChannel, server: HostileServer) -> list[str | None]:
            first = await channel.send(message(1))
            server.script.mail = Script.mail
            second = await channel.send(message(2))
            assert len(server.texts) == 1
            assert b"R-2" in server.texts[0]
            return [first.code, second.code]

        script = Script(ehlo=PIPELINING, mail="552 5.3.4 too large")
        assert against(script, act) == ["552 5.3.4", "250 2.0.0"]

    def test_each_of_many_gets_its_own_answer_over_one_connection(self) -> None:
        numbers = range(100)
        refused = {n for n in numbers if n % 7 in (1, 2)}

        async def act(channel: EmailChannel, server: HostileServer) -> list[str]:
            results = await asyncio.gather(*(channel.send(message(n)) for n in numbers))
            assert server.connections == 1
            taken = [text for text in server.texts if text]
            assert len(taken) == len(numbers) - len(refused)
            for number in set(numbers) - refused:
                (text,) = (each for each in taken if b"payment R-%d\r\n" % number in each)
                assert b"To: customer%d@example.org\r\n" % number in text
            return [result.status for result in results]

        addresses = frozenset(f"customer{n}@example.org" for n in refused)
        script = Script(ehlo=PIPELINING, refused=addresses)
        expected = ["refused" if n in refused else "accepted" for n in numbers]
        assert (
            against(script, act, max_connections=1, messages_per_connection=len(numbers))
            == expected
        )

    def test_the_next_mail_is_under_way_while_one_waits_for_its_answer(self) -> None:
        async def act(channel: EmailChannel, server: HostileServer) -> list[str]:
            async with asyncio.TaskGroup() as group:
                sends = [group.create_task(channel.send(message(n))) for n in (1, 2)]
                # The server has read the first text; the second envelope is in its socket.
                await until(lambda: bool(server.texts))
                server.release()
            assert server.connections == 1
            return [send.result().status for send in sends]

        script = Script(ehlo=PIPELINING, end=WAIT)
        assert against(script, act, max_connections=1) == ["accepted"] * 2

    def test_one_that_is_given_up_behind_another_does_not_disturb_it(self) -> None:
        async def act(channel: EmailChannel, server: HostileServer) -> list[str]:
            first = asyncio.create_task(channel.send(message(1)))
            second = asyncio.create_task(channel.send(message(2)))
            await until(lambda: bool(server.texts))
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            server.release()
            third = await channel.send(message(3))
            assert [b"R-2\r\n" in text for text in server.texts] == [False, False]
            return [(await first).status, third.status]

        script = Script(ehlo=PIPELINING, end=WAIT)
        assert against(script, act, max_connections=1) == ["accepted"] * 2

    def test_one_behind_a_lost_one_is_sent_by_another_connection(self) -> None:
        async def act(channel: EmailChannel, server: HostileServer) -> list[str]:
            results = await asyncio.gather(*(channel.send(message(n)) for n in (1, 2)))
            assert sum(b"R-2\r\n" in text for text in server.texts) == 1
            return [result.status for result in results]

        script = Script(ehlo=PIPELINING, end=HANG_UP, only_first=True)
        assert against(script, act, max_connections=1) == ["unknown", "accepted"]

    def test_a_server_that_closes_after_so_many_is_no_failure(self) -> None:
        async def act(channel: EmailChannel, server: HostileServer) -> set[str]:
            results = await asyncio.gather(*(channel.send(message(n)) for n in range(20)))
            assert len(server.texts) == 20
            return {result.status for result in results}

        script = Script(ehlo=PIPELINING, hang_up_after_each=True)
        assert against(script, act, max_connections=2) == {"accepted"}

    def test_it_can_be_switched_off(self) -> None:
        made = EmailOptions.from_connection(
            ChannelConnection("smtp.example", extra={"pipelining": "false"}),
            sender="a@b.example",
            io_timeout=timedelta(seconds=1),
        )
        assert not made.pipelining


@pytest.mark.parametrize("ehlo", [Script.ehlo, PIPELINING], ids=["one by one", "pipelined"])
def test_a_reply_that_nobody_asked_for_is_never_taken_for_the_next(ehlo: str) -> None:
    async def act(channel: EmailChannel, server: HostileServer) -> list[str | None]:
        first = await channel.send(message(1))
        second = await channel.send(message(2))
        assert server.connections == 2
        return [first.code, second.code]

    script = Script(ehlo=ehlo, end="250 2.0.0 Ok\r\n550 5.7.1 stray", only_first=True)
    assert against(script, act) == ["250 2.0.0", "250 2.0.0"]


DSN = "250-hostile.localhost\r\n250-PIPELINING\r\n250 DSN"


@pytest.mark.parametrize(
    ("ehlo", "wanted", "recipient", "mail", "rcpt"),
    [
        (
            DSN,
            True,
            "a+b@example.org",
            " RET=HDRS ENVID={id}",
            " NOTIFY=FAILURE,DELAY ORCPT=rfc822;a+2Bb@example.org",
        ),
        (DSN, False, "a+b@example.org", "", ""),
        (PIPELINING, True, "a+b@example.org", "", ""),
    ],
    ids=["asked for", "not wanted", "not known"],
)
def test_delivery_reports_are_asked_for_by_the_message_id(
    ehlo: str, wanted: bool, recipient: str, mail: str, rcpt: str
) -> None:
    sent = message(recipient=recipient)

    async def act(channel: EmailChannel, server: HostileServer) -> str | None:
        result = await channel.send(sent)
        ours = sent.message_id.strip("<>")
        assert server.commands[1:3] == [
            f"MAIL FROM:<billing@shop.example>{mail.format(id=ours)}",
            f"RCPT TO:<{recipient}>{rcpt}",
        ]
        return result.provider_message_id

    assert against(Script(ehlo=ehlo), act, delivery_reports=wanted) == sent.message_id


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


@pytest.mark.parametrize("script", [Script(rcpt=ECHO), Script(end=ECHO), Script(mail=ECHO)])
def test_nothing_personal_is_passed_on(script: Script) -> None:
    with capture_logs() as logs:
        result = send_one(script)
    for text in (repr(result), str(logs)):
        assert "@" not in text
        assert "1234567" not in text


def test_the_text_arrives_as_it_was_written() -> None:
    text = "Grüße,\n\n.dot\n..two\n.\nFrom the shop " + "long " * 300 + "\r\nend\rof\n"
    subject = ("Zahlung für Größe ✓ " * 8).strip()
    with SmtpSink() as sink:
        run_against(sink, message(subject=subject, text=text, html="<p>ü</p>"))
    (mail,) = sink.messages
    assert mail["subject"] == subject
    assert mail["text"].splitlines() == text.replace("\r\n", "\n").replace("\r", "\n").splitlines()
    assert mail["html"].strip() == "<p>ü</p>"
    assert mail["rcpt_to"] == ["customer1@example.org"]
    assert mail["mail_from"] == "billing@shop.example"
    assert mail["message_id"] == message().message_id


def run_against(sink: SmtpSink, sent: Message, **changes: Any) -> SendResult:
    async def run() -> SendResult:
        channel = EmailChannel(options(sink.port, **changes))
        await channel.open()
        try:
            return await channel.send(sent)
        finally:
            await channel.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    "changes",
    [
        {"recipient": "a@example.org>\r\nRCPT TO:<b@example.org"},
        {"recipient": "a@example.org\nBcc: b@example.org"},
        {"recipient": "a@example.org> SIZE=1"},
        {"recipient": "a@example.org, b@example.org"},
        {"recipient": "Name <a@example.org>"},
        {"recipient": "no-at-sign"},
        {"recipient": "@example.org"},
        {"recipient": "a@"},
        {"recipient": "a@-bad-.example"},
        {"recipient": "a" * 65 + "@example.org"},
        {"recipient": ""},
        {"subject": "hello\r\nBcc: b@example.org"},
        {"subject": "hello\n\nbody"},
        {"subject": "hello\u2028world"},
        {"subject": "\ud800"},
        {"text": "\ud800"},
        {"message_id": "<a@b>\r\nX: y"},
        {"headers": {"X-Ref": "a\r\nBcc: b@example.org"}},
        {"headers": {"List-Unsubscribe": "<https://a.example>\r\n\r\nbody"}},
        {"headers": {"List-Unsubscribe": "<https://a.example>\n\tX: b@example.org"}},
        {"headers": {"List-Unsubscribe-Post": "List-Unsubscribe=One-Click\x00"}},
        {"headers": {"X:Y": "b@example.org"}},
        {"headers": {"From": "b@example.org"}},
        {"headers": {"X Ref": "a"}},
        {"headers": {"Bcc": "b@example.org"}},
        {"headers": {"Content-Type": "text/html"}},
    ],
    ids=str,
)
def test_injection_and_nonsense_are_refused_before_the_server(changes: dict[str, Any]) -> None:
    async def act(channel: EmailChannel, server: HostileServer) -> SendResult:
        result = await channel.send(message(**changes))
        assert server.connections == 0
        return result

    result = against(Script(), act)
    assert result.status == "refused"
    assert "example" not in repr(result)


def test_headers_of_one_click_unsubscribing_arrive_whole_and_folded() -> None:
    # RFC 8058: both as they are, or a provider offers no button; 998 characters a line, RFC 5322.
    url = "https://shop.example/u/" + "0123456789abcdef" * 58
    headers = {
        "List-Unsubscribe": f"<{url}>, <mailto:unsubscribe@shop.example?subject=stop>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }
    raw = parsed(message(headers=headers))
    read = email.message_from_bytes(raw, policy=email.policy.default)
    assert {name: read[name] for name in headers} == headers
    assert read.defects == []
    head = raw.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert max(map(len, head)) <= 998
    assert b"List-Unsubscribe-Post: List-Unsubscribe=One-Click" in head
    assert all(len(line) <= 78 for line in head if url.encode() not in line)


def parsed(sent: Message) -> bytes:
    async def act(channel: EmailChannel, server: HostileServer) -> bytes:
        assert (await channel.send(sent)).status == "accepted"
        return server.texts[0]

    return against(Script(ehlo=PIPELINING), act)


def test_an_international_domain_is_sent_in_its_ascii_form() -> None:
    with SmtpSink() as sink:
        assert run_against(sink, message(recipient="kunde@straße.example")).status == "accepted"
    assert sink.messages[0]["rcpt_to"] == ["kunde@xn--strae-oqa.example"]


def test_an_international_local_part_needs_smtputf8() -> None:
    sent = message(recipient="grüße@example.org")
    with SmtpSink() as sink:
        assert run_against(sink, sent).status == "accepted"
    assert sink.messages[0]["rcpt_to"] == ["grüße@example.org"]
    refused = send_one(Script(), sent)
    assert (refused.status, refused.code) == ("refused", "smtputf8")


def test_stray_dots_in_an_address_are_carried() -> None:
    with SmtpSink() as sink:
        assert run_against(sink, message(recipient="a..b.@example.org")).status == "accepted"
    assert sink.messages[0]["rcpt_to"] == ["a..b.@example.org"]


def test_a_message_beyond_the_servers_limit_is_refused() -> None:
    with SmtpSink() as sink:
        result = run_against(sink, message(text="x" * 2**21))
    assert (result.status, result.code) == ("refused", "size")


class TestSecurity:
    def test_a_wrong_password_is_ours_and_no_refusal(self, certificate: Certificate) -> None:
        sink = SmtpSink(login=LOGIN, security="starttls", tls=certificate.server_context())
        secured = {"security": "starttls", "ca_file": certificate.ca_file}
        with sink:
            result = run_against(sink, message(), login=LOGIN[0], password="wrong", **secured)
            assert result.status == "later"
            channel = EmailChannel(options(sink.port, login=LOGIN[0], password="wrong", **secured))
            with pytest.raises(UnavailableError) as error:
                asyncio.run(channel.verify())
        assert "wrong" not in str(error.value)
        assert "\n" not in str(error.value)

    def test_a_certificate_that_is_not_trusted_is_not_talked_to(
        self, certificate: Certificate
    ) -> None:
        for security in ("starttls", "tls"):
            sink = SmtpSink(security=security, tls=certificate.server_context())
            with sink:
                result = run_against(sink, message(), security=security)
            assert (result.status, result.code) == ("later", "tls")
            assert sink.messages == []

    def test_a_certificate_of_another_name_is_not_talked_to(
        self, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        other = make_certificate(tmp_path_factory.mktemp("tls"), name="mail.example")
        with SmtpSink(security="starttls", tls=other.server_context()) as sink:
            result = run_against(sink, message(), security="starttls", ca_file=other.ca_file)
        assert (result.status, result.code) == ("later", "tls")

    def test_starttls_that_is_not_offered_is_not_done_without(self) -> None:
        with SmtpSink() as sink:
            result = run_against(sink, message(), security="starttls")
        assert (result.status, result.code) == ("later", "tls")
        assert sink.messages == []

    @pytest.mark.parametrize(
        ("host", "port", "extra", "expected"),
        [
            ("smtp.example", None, {}, ("starttls", 587)),
            ("smtp.example", 25, {}, ("starttls", 25)),
            ("smtp.example", 465, {}, ("tls", 465)),
            ("localhost", 1025, {}, ("plain", 1025)),
            ("127.0.0.1", None, {}, ("plain", 25)),
            ("::1", 1025, {}, ("plain", 1025)),
            ("localhost", 1025, {"security": "starttls"}, ("starttls", 1025)),
            ("smtp.example", 25, {"security": "plain"}, ("plain", 25)),
            ("smtp.example", None, {"disable_ssl": "true"}, ("starttls", 587)),
            ("smtp.example", None, {"disable_tls": True}, ("tls", 465)),
            (
                "smtp.example",
                None,
                {"disable_ssl": "true", "disable_tls": "True"},
                ("plain", 25),
            ),
            ("127.0.0.1.evil.example", None, {}, ("starttls", 587)),
        ],
    )
    def test_plain_text_is_for_loopback_or_asked_for(
        self, host: str, port: int | None, extra: dict[str, Any], expected: tuple[str, int]
    ) -> None:
        made = EmailOptions.from_connection(
            ChannelConnection(host, port, extra=extra),
            sender="a@b.example",
            io_timeout=timedelta(seconds=1),
        )
        assert (made.security, made.port) == expected

    @pytest.mark.parametrize(
        ("connection", "sender"),
        [
            (ChannelConnection(""), "a@b.example"),
            (ChannelConnection("smtp.example", extra={"security": "none"}), "a@b.example"),
            (ChannelConnection("smtp.example", extra={"disable_ssl": "maybe"}), "a@b.example"),
            (ChannelConnection("smtp.example", extra={"max_connections": "many"}), "a@b.example"),
            (ChannelConnection("smtp.example"), "nobody"),
            (ChannelConnection("smtp.example"), "a@b.example\r\nBcc: c@d.example"),
        ],
    )
    def test_a_wrong_setting_is_named(self, connection: ChannelConnection, sender: str) -> None:
        with pytest.raises(ConfigurationError):
            EmailChannel(
                EmailOptions.from_connection(
                    connection, sender=sender, io_timeout=timedelta(seconds=1)
                )
            )

    def test_a_password_is_not_shown(self) -> None:
        assert "correct horse" not in repr(options(25, login="a", password="correct horse"))
        shown = repr(ChannelConnection("h", login="a", password="correct horse"))
        assert "correct horse" not in shown
