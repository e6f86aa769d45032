"""Webhooks against real servers: what is sent, what each answer means, and where none may lead."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, cast

import pytest
import structlog.testing
from aiohttp import ThreadedResolver
from standardwebhooks import WebhookVerificationError

from duebook.channels.base import ChannelConnection, Message, SendResult, message_id_for
from duebook.channels.endpoints import EndpointError, Reach, parse_endpoint
from duebook.channels.webhook import RETRY_WAITS, WebhookChannel, WebhookOptions, webhook_id_of
from duebook.channels.webhook_secrets import endpoint_secret
from duebook.errors import ConfigurationError
from tests.channels.servers import Certificate, make_certificate
from tests.webhook_sink import Answer, WebhookSink

MASTER = "a master key of at least 32 bytes, of a test"
OLDER = "the master key before it, of a test as well"
FACTS = {
    "payment_id": "pay_1",
    "amount_minor": 123450,
    "currency": "EUR",
    "occurred_at": "2026-11-03T10:00:00Z",
}


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("webhook-tls"))


@pytest.fixture
def sink() -> Iterator[WebhookSink]:
    with WebhookSink() as running:
        yield running


def message(url: str, number: int = 1, **changes: Any) -> Message:
    key = f"payment_settled:webhook:stripe:pay_{number}:txn_{number}:v1"
    fields: dict[str, Any] = {
        "operation_key": key,
        "message_id": message_id_for("acct_1", key, None),
        "recipient": url,
        "subject": "unused",
        "text": "unused",
        "account_id": "acct_1",
        "kind": "payment_settled",
        "facts": FACTS,
    }
    return Message(**(fields | changes))


def channel(**options: Any) -> WebhookChannel:
    fields: dict[str, Any] = {
        "master_keys": (MASTER,),
        "io_timeout": timedelta(seconds=10),
        "allow_private": True,
    }
    return WebhookChannel(WebhookOptions(**(fields | options)))


def send(*messages: Message, over: WebhookChannel | None = None) -> list[SendResult]:
    """Each message after the other, over one open channel."""

    async def act() -> list[SendResult]:
        chosen = over or channel()
        await chosen.open()
        try:
            return [await chosen.send(each) for each in messages]
        finally:
            await chosen.close()

    return asyncio.run(act())


def secret_of(url: str, account_id: str = "acct_1", master: str = MASTER) -> str:
    identity = parse_endpoint(url, Reach(allow_private=True)).identity
    return endpoint_secret(master, account_id, identity)


class TestWhatIsSent:
    def test_a_customer_verifies_it_with_the_library_of_the_specification(
        self, sink: WebhookSink
    ) -> None:
        result = send(message(sink.url))[0]
        post = sink.posts[0]
        assert (result.status, result.provider_message_id) == ("accepted", post.webhook_id)
        assert post.verify(secret_of(sink.url)) == {
            "type": "payment_settled",
            "timestamp": "2026-11-03T10:00:00Z",
            "data": FACTS,
        }
        assert post.headers["content-type"] == "application/json"

    @pytest.mark.parametrize(
        "wrong",
        [
            {"account_id": "acct_2"},
            {"url_path": "/other"},
            {"master": OLDER},
        ],
    )
    def test_nobody_elses_secret_verifies_it(
        self, sink: WebhookSink, wrong: dict[str, str]
    ) -> None:
        send(message(sink.url))
        url = sink.url.replace("/hooks", wrong.pop("url_path", "/hooks"))
        with pytest.raises(WebhookVerificationError):
            sink.posts[0].verify(secret_of(url, **wrong))

    def test_a_query_is_sent_and_changes_no_secret(self, sink: WebhookSink) -> None:
        send(message(f"{sink.url}?shop=1"))
        sink.posts[0].verify(secret_of(sink.url))

    def test_while_keys_change_both_verify_it(self, sink: WebhookSink) -> None:
        send(message(sink.url), over=channel(master_keys=(MASTER, OLDER)))
        post = sink.posts[0]
        assert len(post.headers["webhook-signature"].split(" ")) == 2
        for master in (MASTER, OLDER):
            post.verify(secret_of(sink.url, master=master))

    def test_each_try_of_a_key_has_the_same_id_and_every_key_its_own(
        self, sink: WebhookSink
    ) -> None:
        one, two = message(sink.url, 1), message(sink.url, 2)
        send(one, one, two)
        assert sink.ids == [webhook_id_of(one), webhook_id_of(one), webhook_id_of(two)]
        assert sink.ids[0] != sink.ids[2]
        # The specification signs id.timestamp.body: a dot could be cut in two ways.
        assert not any("." in each or "acct_1" in each for each in sink.ids)

    def test_a_message_without_a_time_of_its_own_has_that_of_its_try(
        self, sink: WebhookSink
    ) -> None:
        send(message(sink.url, facts={"title": "Rent"}))
        document = sink.posts[0].document
        at = datetime.fromisoformat(document["timestamp"])
        assert at.timestamp() == int(sink.posts[0].headers["webhook-timestamp"])

    @pytest.mark.parametrize("fact", [1.5, object(), float("nan")])
    def test_a_fact_without_an_exact_form_is_not_sent(self, sink: WebhookSink, fact: Any) -> None:
        result = send(message(sink.url, facts={"amount_minor": fact}))[0]
        assert (result.status, result.code) == ("refused", "facts")
        assert sink.count == 0

    def test_connections_are_kept(self, certificate: Certificate) -> None:
        accepted = 0

        async def act() -> None:
            nonlocal accepted

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                nonlocal accepted
                accepted += 1
                while await _read_request(reader):
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                writer.close()

            async with raw_server(serve) as url:
                chosen = channel()
                await chosen.open()
                for number in range(5):
                    assert (await chosen.send(message(url, number))).status == "accepted"
                await chosen.close()

        asyncio.run(act())
        assert accepted == 1

    def test_over_tls_the_certificate_is_looked_at(self, certificate: Certificate) -> None:
        with WebhookSink(tls=certificate.server_context()) as sink:
            trusting = channel(ca_file=certificate.ca_file)
            assert send(message(sink.url), over=trusting)[0].status == "accepted"
            result = send(message(sink.url))[0]
        assert (result.status, result.code, result.scope) == ("later", "tls", "message")
        assert sink.count == 1


class TestAnswers:
    @pytest.mark.parametrize(
        ("status", "expected"),
        [
            (200, "accepted"),
            (202, "accepted"),
            (204, "accepted"),
            (301, "later"),
            (307, "later"),
            (400, "later"),
            (401, "later"),
            (403, "later"),
            (404, "later"),
            (413, "later"),
            (418, "later"),
            (429, "later"),
            (500, "later"),
            (502, "later"),
            (503, "later"),
            (504, "later"),
            (410, "refused"),
        ],
    )
    def test_what_a_status_means(self, sink: WebhookSink, status: int, expected: str) -> None:
        headers = {"Location": f"{sink.url}/elsewhere"} if 300 <= status < 400 else {}
        sink.answer = lambda post, number: Answer(status, headers)
        result = send(message(sink.url))[0]
        assert (result.status, result.code) == (expected, str(status))
        # One customer's endpoint rests nobody else's messages, and no redirect is followed.
        assert result.status != "later" or (result.scope, result.burns_try) == ("message", True)
        assert sink.count == 1
        assert result.suppress == ("gone" if status == 410 else None)

    @pytest.mark.parametrize(
        ("value", "wait"),
        [
            ("120", timedelta(minutes=2)),
            ("99999999999999", timedelta(days=1)),
            ("yesterday", None),
            ("-5", None),
        ],
    )
    def test_retry_after_is_kept_within_reason(
        self, sink: WebhookSink, value: str, wait: timedelta | None
    ) -> None:
        sink.answer = lambda post, number: Answer(429, {"Retry-After": value})
        assert send(message(sink.url))[0].retry_after == wait

    def test_retry_after_may_be_a_date(self, sink: WebhookSink) -> None:
        at = datetime.fromtimestamp(time.time() + 90, UTC)
        sink.answer = lambda post, number: Answer(
            503, {"Retry-After": format_datetime(at, usegmt=True)}
        )
        wait = send(message(sink.url))[0].retry_after
        assert wait is not None
        assert timedelta(seconds=60) < wait <= timedelta(seconds=90)

    def test_the_receiver_may_end_a_message(self, sink: WebhookSink) -> None:
        abort = {"webhook-delivery": "abort-message"}
        sink.answer = lambda post, number: Answer(500 if number else 200, abort)
        first, second = send(message(sink.url, 1), message(sink.url, 2))
        assert first.status == "accepted"
        assert (second.status, second.code, second.suppress) == ("refused", "500 abort", None)

    def test_what_an_answer_says_is_repeated_nowhere(self, sink: WebhookSink) -> None:
        sink.answer = lambda post, number: Answer(
            500, {"X-Said": "jane@example.org"}, b"jane@example.org owes 1234567.89"
        )
        with structlog.testing.capture_logs() as logs:
            result = send(message(sink.url))[0]
        for text in (repr(result), repr(logs), repr(message(sink.url)), repr(channel())):
            assert "jane" not in text
            assert "localhost" not in text

    @pytest.mark.parametrize("size", [0, 1000, 64 * 1024, 65 * 1024, 4_000_000])
    def test_the_body_of_an_answer_is_bounded(self, sink: WebhookSink, size: int) -> None:
        sink.answer = lambda post, number: Answer(200, body=b"x" * size)
        results = send(*(message(sink.url, number) for number in range(3)))
        assert {result.status for result in results} == {"accepted"}


async def _read_request(reader: asyncio.StreamReader) -> bytes:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        )
        return head + await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def raw_server(serve: Serve) -> AsyncIterator[str]:
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await serve(reader, writer)
        writer.transport.abort()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://localhost:{server.sockets[0].getsockname()[1]}/hooks"
    finally:
        for task in tasks:
            task.cancel()
        server.close()
        await asyncio.sleep(0)


def send_to(serve: Serve, count: int = 1, **options: Any) -> list[SendResult]:
    """So many messages to a server that misbehaves, one after the other."""

    async def act() -> list[SendResult]:
        async with raw_server(serve) as url:
            chosen = channel(**{"io_timeout": timedelta(seconds=0.5), **options})
            await chosen.open()
            try:
                return [await chosen.send(message(url, number)) for number in range(count)]
            finally:
                await chosen.close()

    return asyncio.run(act())


class TestLosses:
    """After the request was handed over it may have been received; before, it was not."""

    def test_nobody_there_is_certainly_not_received(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            url = f"http://localhost:{taken.getsockname()[1]}/"
            result = send(message(url))[0]
        assert (result.status, result.code, result.scope) == ("later", "connection", "message")

    def test_a_name_that_nobody_knows_is_certainly_not_received(self) -> None:
        result = send(message("https://nobody.invalid/hooks"))[0]
        assert (result.status, result.code, result.scope) == ("later", "dns", "message")

    def test_a_handshake_that_never_ends_is_certainly_not_received(self) -> None:
        async def act() -> SendResult:
            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await asyncio.Event().wait()

            async with raw_server(serve) as url:
                chosen = channel(io_timeout=timedelta(seconds=0.3))
                await chosen.open()
                result = await chosen.send(message(url.replace("http:", "https:")))
                await chosen.close()
                return result

        result = asyncio.run(act())
        assert (result.status, result.code) == ("later", "timeout")

    def test_silence_after_the_request_may_be_an_acceptance(self) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _read_request(reader)
            await asyncio.Event().wait()

        result = send_to(serve)[0]
        assert (result.status, result.code) == ("unknown", "timeout")

    def test_a_loss_after_the_request_may_be_an_acceptance(self) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _read_request(reader)

        result = send_to(serve)[0]
        assert (result.status, result.code) == ("unknown", "connection")

    def test_an_answer_that_is_not_http_may_be_an_acceptance(self) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _read_request(reader)
            writer.write(b"220 mail.example ESMTP\r\n\r\n")
            await writer.drain()
            await asyncio.Event().wait()

        result = send_to(serve)[0]
        assert (result.status, result.code) == ("unknown", "answer")

    def test_a_head_without_end_is_given_up(self) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _read_request(reader)
            writer.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                writer.write(b"X-Filler: " + b"x" * 4000 + b"\r\n")
                await writer.drain()
                await asyncio.sleep(0)

        result = send_to(serve, io_timeout=timedelta(seconds=10))[0]
        assert (result.status, result.code) == ("unknown", "answer")

    def test_a_head_that_drips_ends_with_the_time_out(self) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _read_request(reader)
            writer.write(b"HTTP/1.1 200 OK\r\n")
            for number in range(1000):
                writer.write(f"X-{number}: x\r\n"[number % 3 :].encode())
                await writer.drain()
                await asyncio.sleep(0.05)

        result = send_to(serve)[0]
        assert (result.status, result.code) == ("unknown", "timeout")

    def test_a_body_that_drips_takes_nothing_back(self) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await _read_request(reader):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                for _ in range(1000):
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.05)

        loop_time = send_to(serve, io_timeout=timedelta(seconds=30))
        assert [result.status for result in loop_time] == ["accepted"]

    def test_a_kept_connection_that_is_lost_costs_no_message(self) -> None:
        """A server may close an idle connection at any moment: the next one gets another."""
        served = 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal served
            await _read_request(reader)
            served += 1
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            await writer.drain()

        async def act() -> list[str]:
            async with raw_server(serve) as url:
                chosen = channel()
                await chosen.open()
                found: list[str] = []
                for number in range(3):
                    found.append((await chosen.send(message(url, number))).status)
                    for _ in range(20):
                        await asyncio.sleep(0.001)
                await chosen.close()
                return found

        assert asyncio.run(act()) == ["accepted"] * 3
        assert served == 3

    def test_an_endpoint_that_is_silent_rests_and_keeps_nobody_waiting(self) -> None:
        asked = 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal asked
            await _read_request(reader)
            asked += 1
            await asyncio.Event().wait()

        results = send_to(serve, count=20, io_timeout=timedelta(seconds=1.1))
        assert asked == 1
        assert [each.code for each in results] == ["timeout"] + ["resting"] * 19
        for rested in results[1:]:
            assert (rested.status, rested.scope, rested.burns_try) == ("later", "message", False)
            assert rested.retry_after is not None
            assert timedelta(0) < rested.retry_after <= timedelta(seconds=5)

    def test_many_at_once_wait_for_each_other(self, sink: WebhookSink) -> None:
        async def act() -> list[SendResult]:
            chosen = channel(max_connections=3)
            await chosen.open()
            results = await asyncio.gather(*(chosen.send(message(sink.url, n)) for n in range(50)))
            await chosen.close()
            return list(results)

        assert {each.status for each in asyncio.run(act())} == {"accepted"}
        assert len(set(sink.ids)) == 50


PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "2002:a00:1::",
    "2001:0:a00:1::",
    "2001:db8::1",
    "3fff::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "100::1",
    "5f00::1",
]
PUBLIC = ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::101:101",
          "::ffff:1.1.1.1"]  # fmt: skip


def host_of(address: str) -> str:
    return f"[{address}]" if ":" in address else address


class TestReach:
    @pytest.mark.parametrize("address", PRIVATE)
    def test_a_url_with_a_private_address_is_refused(self, address: str) -> None:
        result = send(message(f"https://{host_of(address)}/"), over=channel(allow_private=False))[0]
        assert (result.status, result.code) == ("refused", "url")

    @pytest.mark.parametrize("address", PUBLIC)
    def test_a_url_with_a_public_address_is_none_of_them(self, address: str) -> None:
        assert parse_endpoint(f"https://{host_of(address)}/", Reach()).url.raw_host

    def test_a_network_of_the_operators_own_is_refused_too(self) -> None:
        options = WebhookOptions.from_connection(
            ChannelConnection("", password=MASTER, extra={"refuse_networks": ["1.1.1.0/24"]}),
            io_timeout=timedelta(seconds=1),
        )
        for address in ("1.1.1.1", "::ffff:1.1.1.1"):
            with pytest.raises(EndpointError):
                parse_endpoint(f"https://{host_of(address)}/", options.reach)

    @pytest.mark.parametrize(
        "host",
        [
            "2130706433",
            "0x7f000001",
            "127.1",
            "0177.0.0.1",
            "127.0.0.1.",
            "localhost",
            "localhost.",
        ],
    )
    def test_no_other_spelling_of_this_machine_gets_through(self, host: str) -> None:
        """A server is there, and is never reached."""
        with WebhookSink() as sink:
            url = f"https://{host}:{sink.port}/"
            result = send(message(url), over=channel(allow_private=False))[0]
        assert result.status in ("later", "refused")
        assert result.code in ("private_address", "url", "dns")
        assert sink.count == 0

    @pytest.mark.parametrize("addresses", [["10.0.0.1"], ["::1", "127.0.0.1"], ["169.254.169.254"]])
    def test_a_name_that_leads_to_a_private_network_is_not_followed(
        self, monkeypatch: pytest.MonkeyPatch, addresses: list[str]
    ) -> None:
        resolves_to(monkeypatch, addresses)
        url = "https://rebinding.example/hooks"
        result = send(message(url), over=channel(allow_private=False))[0]
        assert (result.status, result.code, result.scope) == ("later", "private_address", "message")

    def test_what_a_name_meant_before_does_not_count(
        self, monkeypatch: pytest.MonkeyPatch, sink: WebhookSink
    ) -> None:
        """The address of the socket is looked at, whatever let it through before."""
        monkeypatch.setattr(
            "duebook.channels.endpoints.GuardedResolver._is_allowed", lambda self, host: True
        )
        resolves_to(monkeypatch, ["127.0.0.1"])
        url = f"https://rebinding.example:{sink.port}/hooks"
        result = send(message(url), over=channel(allow_private=False))[0]
        assert (result.status, result.code) == ("later", "private_address")
        assert sink.count == 0

    @pytest.mark.parametrize(
        "url",
        [
            "http://example.org/hooks",
            "ftp://example.org/",
            "file:///etc/passwd",
            "gopher://example.org/",
            "//example.org/hooks",
            "example.org/hooks",
            "https://",
            "https:///hooks",
            "https://user:secret@example.org/",
            "https://user@example.org/",
            "https://example.org/#fragment",
            "https://example.org:99999/",
            "https://exa mple.org/",
            "https://example.org/\r\nX-Injected: 1",
            "https://example.org/\x00",
            "https://[::1/",
            "https://example.org/" + "x" * 3000,
            "",
            "jane@example.org",
        ],
    )
    def test_what_is_no_such_url_is_refused_and_not_repeated(self, url: str) -> None:
        result = send(message(url))[0]
        assert (result.status, result.code, result.suppress) == ("refused", "url", None)
        assert "example" not in repr(result)

    def test_plain_http_needs_leave_and_this_machine(self, sink: WebhookSink) -> None:
        assert send(message(sink.url), over=channel(allow_private=False))[0].status == "refused"
        assert send(message("http://example.org/"), over=channel())[0].status == "refused"
        assert send(message(sink.url))[0].status == "accepted"

    @pytest.mark.parametrize(
        ("one", "other", "is_same"),
        [
            ("https://Example.org/hooks", "https://example.org:443/hooks", True),
            ("https://example.org/hooks?a=1", "https://example.org/hooks?b=2", True),
            ("https://bücher.example/", "https://xn--bcher-kva.example/", True),
            ("https://example.org/hooks", "https://example.org/Hooks", False),
            ("https://example.org/hooks", "https://example.org:8443/hooks", False),
        ],
    )
    def test_an_endpoint_is_its_origin_and_path(self, one: str, other: str, is_same: bool) -> None:
        identities = {parse_endpoint(each, Reach()).identity for each in (one, other)}
        assert (len(identities) == 1) is is_same


def resolves_to(monkeypatch: pytest.MonkeyPatch, addresses: list[str]) -> None:
    """As if a name server said so."""

    async def resolve(
        self: ThreadedResolver, host: str, port: int = 0, family: int = 0
    ) -> list[dict[str, Any]]:
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": 0,
            }
            for address in addresses
        ]

    monkeypatch.setattr(ThreadedResolver, "resolve", cast("Any", resolve))


class TestOptions:
    def options(self, **connection: Any) -> WebhookOptions:
        return WebhookOptions.from_connection(
            ChannelConnection("", **({"password": MASTER} | connection)),
            io_timeout=timedelta(seconds=5),
        )

    def test_a_connection_says_what_the_channel_is(self) -> None:
        options = self.options(
            extra={"previous": OLDER, "max_connections": "7", "allow_private": "true"}
        )
        assert options.master_keys == (MASTER, OLDER)
        assert (options.max_connections, options.allow_private) == (7, True)
        assert options.retry_waits == RETRY_WAITS
        assert not self.options().allow_private

    @pytest.mark.parametrize(
        "connection",
        [
            {"password": None},
            {"password": "short"},
            {"extra": {"previous": "short"}},
            {"extra": {"previous": [1]}},
            {"extra": {"max_connections": "0"}},
            {"extra": {"allow_private": "perhaps"}},
            {"extra": {"refuse_networks": ["1.1.1.1/24"]}},
        ],
    )
    def test_what_is_wrong_with_it_is_said_without_the_key(self, connection: Any) -> None:
        with pytest.raises(ConfigurationError) as error:
            self.options(**connection)
        assert "short" not in str(error.value)
        assert MASTER not in str(error.value)

    def test_the_keys_are_in_no_repr(self) -> None:
        assert MASTER not in repr(self.options())

    def test_a_secret_is_what_its_documentation_says(self) -> None:
        """Published, so that another system can make the same."""
        secret = endpoint_secret(MASTER, "acct_1", "https://example.org:443/hooks")
        assert secret == "whsec_wiAtK5NX88TUXbcRccHaKekf5oYQbH7H8jh7jzXEijY="
        assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32

    def test_a_ca_file_that_is_not_there_is_named_by_its_setting(self) -> None:
        with pytest.raises(ConfigurationError, match="ca_file"):
            asyncio.run(WebhookChannel(self.options(extra={"ca_file": "/nowhere"})).verify())

    def test_a_document_is_json_of_one_line(self, sink: WebhookSink) -> None:
        send(message(sink.url, facts={"title": "Grüße\n\u2028", "amount_minor": 2**53 + 1}))
        body = sink.posts[0].body
        assert b"\n" not in body
        assert json.loads(body)["data"]["amount_minor"] == 2**53 + 1
