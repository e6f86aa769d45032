"""An SMTP server that keeps what it is sent: for tests, the demo and a look at what goes out.

python -m tests.smtp_sink --port 1025 --out mails.jsonl

One JSON line a message, written before the server says 250, so that its count is the truth. The
first line on stdout is {"listening": PORT}; SIGTERM or Ctrl-C ends it and prints {"received": N}.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import email
import email.policy
import json
import signal
import ssl
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import IO, Any, Literal, Self

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

HANG_UP = "HANG UP"
Oddity = Callable[[str], str | None]
Security = Literal["plain", "starttls", "tls"]


class _Handler:
    def __init__(self, sink: SmtpSink) -> None:
        self._sink = sink

    async def handle_EHLO(
        self, server: SMTP, session: Session, envelope: Envelope, name: str, replies: list[str]
    ) -> list[str]:
        session.host_name = name
        # It reads line by line from what has come, so that it can have come at once.
        return [replies[0], "250-PIPELINING", *replies[1:]] if self._sink.pipelining else replies

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        odd = self._sink.at_recipient(address)
        if odd is not None:
            return odd
        if address in self._sink.refused:
            # As many servers do, it repeats the address, which must not be passed on.
            return f"550 5.1.1 <{address}>: Recipient address rejected: User unknown"
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 2.1.5 Ok"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        await self._sink.take_time()
        odd = self._sink.at_text(envelope.rcpt_tos[0])
        if odd is not None:
            if odd == HANG_UP:
                self._sink.keep(session, envelope)
                assert isinstance(server.transport, asyncio.WriteTransport)
                server.transport.abort()
            return odd
        number = self._sink.keep(session, envelope)
        return f"250 2.0.0 Ok: queued as SINK{number:08d}"


class SmtpSink:
    """The server, in a thread of its own between __enter__ and __exit__.

    `at_recipient` and `at_text` are asked for another reply than the usual one, by the recipient;
    HANG_UP after a text: it is kept, and nothing is said.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        out: Path | None = None,
        login: tuple[str, str] | None = None,
        security: Security = "plain",
        tls: ssl.SSLContext | None = None,
        refuse: Collection[str] = (),
        pace: Path | None = None,
        pipelining: bool = True,
        at_recipient: Oddity = lambda address: None,
        at_text: Oddity = lambda address: None,
    ) -> None:
        self.port = port
        self.refused = frozenset(refuse)
        self.pipelining = pipelining
        self.at_recipient = at_recipient
        self.at_text = at_text
        self.messages: list[dict[str, Any]] = []
        self.connections = 0
        self._login = login
        self._security = security
        self._tls = tls
        self._out = out
        self._pace = pace
        self._turn = asyncio.Lock()
        self._file: IO[str] | None = None
        self._changed = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    async def take_time(self) -> None:
        """While the file `pace` is there: wait the seconds in it, one message after another."""
        async with self._turn:
            if self._pace is not None and self._pace.exists():
                await asyncio.sleep(float(self._pace.read_text()))

    def keep(self, session: Session, envelope: Envelope) -> int:
        """Store one message; returns its number from 1."""
        record = _record(session, envelope)
        record["tls"] = self._security == "tls" or session.ssl is not None
        with self._changed:
            record["n"] = len(self.messages) + 1
            self.messages.append(record)
            if self._file is not None:
                self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
                self._file.flush()
            self._changed.notify_all()
        return int(record["n"])

    def wait_for(self, count: int, seconds: float = 30) -> list[dict[str, Any]]:
        """The messages, once there are `count` of them. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.messages) >= count, seconds):
                raise TimeoutError(f"{len(self.messages)} of {count} messages after {seconds} s")
            return list(self.messages)

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve(ready)), daemon=True)
        self._thread.start()
        if not ready.wait(10):
            raise TimeoutError("the SMTP sink did not start")
        return self

    def __exit__(self, *exception: object) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join(10)

    async def serve(self, ready: threading.Event | None = None) -> None:
        """Serve until stop() or __exit__."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        with self._opened_file():
            server = await self._loop.create_server(
                self._protocol,
                "127.0.0.1",
                self.port,
                ssl=self._tls if self._security == "tls" else None,
            )
            self.port = server.sockets[0].getsockname()[1]
            if ready is not None:
                ready.set()
            else:
                print(json.dumps({"listening": self.port}), flush=True)
            await self._stop.wait()
            server.close()
            # Also those in the middle of a TLS handshake, which no protocol knows of yet.
            for transport in list(getattr(self._loop, "_transports", {}).values()):
                transport.abort()
            for _ in range(3):
                await asyncio.sleep(0)

    def stop(self) -> None:
        """End serve(); from its own event loop."""
        if self._stop is not None:
            self._stop.set()

    @contextlib.contextmanager
    def _opened_file(self) -> Iterator[None]:
        if self._out is None:
            yield
            return
        with self._out.open("a", encoding="utf-8") as self._file:
            yield

    def _protocol(self) -> SMTP:
        self.connections += 1
        with warnings.catch_warnings():
            # It warns of a login without TLS, and knows only of TLS by STARTTLS.
            warnings.simplefilter("ignore")
            return SMTP(
                _Handler(self),
                hostname="sink.localhost",
                enable_SMTPUTF8=True,
                data_size_limit=2**20,
                tls_context=self._tls if self._security == "starttls" else None,
                require_starttls=self._security == "starttls",
                auth_required=self._login is not None,
                auth_require_tls=self._security == "starttls",
                authenticator=self._authenticate if self._login else None,
            )

    def _authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object
    ) -> AuthResult:
        fits = (
            self._login is not None
            and isinstance(data, LoginPassword)
            and (data.login.decode(), data.password.decode()) == self._login
        )
        return AuthResult(success=fits, handled=False)


def _record(session: Session, envelope: Envelope) -> dict[str, Any]:
    content = envelope.original_content or b""
    message = email.message_from_bytes(content, policy=email.policy.default)
    text = message.get_body(("plain",))
    html = message.get_body(("html",))
    return {
        "mail_from": envelope.mail_from,
        "rcpt_to": list(envelope.rcpt_tos),
        "message_id": message["Message-ID"],
        "to": message["To"],
        "subject": message["Subject"],
        "text": text.get_content() if text is not None else None,
        "html": html.get_content() if html is not None else None,
        "size": len(content),
        "authenticated": bool(session.authenticated),
    }


async def _serve_until_signalled(sink: SmtpSink) -> None:
    loop = asyncio.get_running_loop()
    for kind in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(kind, sink.stop)
    await sink.serve()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.smtp_sink", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--out", type=Path, help="file to append one JSON line a message to")
    parser.add_argument("--auth", metavar="USER:PASSWORD", help="ask for this login")
    parser.add_argument(
        "--refuse", metavar="ADDRESS", action="append", default=[], help="say 550 to; repeatable"
    )
    parser.add_argument(
        "--pace", type=Path, help="a file: while it is there, each message takes the seconds in it"
    )
    given = parser.parse_args(arguments)
    user, _, password = (given.auth or "").partition(":")
    sink = SmtpSink(
        port=given.port,
        out=given.out,
        login=(user, password) if given.auth else None,
        refuse=given.refuse,
        pace=given.pace,
    )
    try:
        asyncio.run(_serve_until_signalled(sink))
    except OSError as error:
        print(f"smtp sink: {error.strerror or error}", file=sys.stderr)
        return 3
    print(json.dumps({"received": len(sink.messages)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
