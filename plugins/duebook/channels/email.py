"""E-mail over SMTP: a small pool of reused connections, one envelope per recipient.

The one thing that matters: before the message's text is handed to the connection, nothing can have
been accepted, and a lost connection is `later`. From then on, until the server answers, it may have
been, and a lost connection is `unknown`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ipaddress
import socket
import ssl
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final, Literal, cast

import aiosmtplib
import structlog

from duebook.channels.base import ConnectionLike, Message, SendResult
from duebook.channels.mime import Envelope, MessageError, MessageWriter
from duebook.channels.smtp_replies import Stage, judge_reply
from duebook.channels.smtp_wire import Reply, Wire
from duebook.errors import ConfigurationError, UnavailableError

Security = Literal["starttls", "tls", "plain"]

_log = structlog.get_logger(__name__)

_PORTS: Final[dict[Security, int]] = {"starttls": 587, "tls": 465, "plain": 25}
_SECURITIES: Final[tuple[Security, ...]] = ("starttls", "tls", "plain")
_START_INPUT: Final = 354
# Servers drop an idle client after five minutes (RFC 5321 4.5.3.2.7); well before that.
_IDLE_SECONDS: Final = 60.0
_QUIT_SECONDS: Final = 2.0
# One waits for the answer to its text while the next one's commands are under way.
_PIPELINED: Final = 2
_STAGES: Final[tuple[Stage, ...]] = ("sender", "recipient", "data")
_RSET: Final = b"RSET\r\n"
_QUIT: Final = b"QUIT\r\n"


@dataclass(frozen=True, slots=True)
class EmailOptions:
    """One SMTP account. `security` plain carries everything, a password too, in the clear."""

    host: str
    port: int
    security: Security
    sender: str
    login: str | None = None
    password: str | None = field(default=None, repr=False)
    io_timeout: timedelta = timedelta(seconds=30)
    max_connections: int = 10
    messages_per_connection: int = 100
    verify_certificate: bool = True
    ca_file: Path | None = None
    local_hostname: str | None = None
    pipelining: bool = True
    delivery_reports: bool = False

    @classmethod
    def from_connection(
        cls, connection: ConnectionLike, *, sender: str, io_timeout: timedelta
    ) -> EmailOptions:
        """Options of an Airflow connection; its `extra` may say more.

        `security`: starttls, tls or plain. Without it: what the extras of Airflow's own SMTP
        connection say (`disable_tls`, `disable_ssl`, `ssl_context` = none), tls on port 465, plain
        to a loopback address, and otherwise STARTTLS, which the server must then offer. Also
        `ca_file`, `local_hostname`, `max_connections`, `messages_per_connection`, `pipelining`
        false for a server that offers it and then gets it wrong, and `delivery_reports` true to ask
        for them (RFC 3461) where the server knows how. Raises ConfigurationError.
        """
        extra = connection.extra
        host = connection.host.strip()
        if not host:
            raise ConfigurationError("SMTP connection: host is missing")
        security = _security(connection, host)
        ca_file = extra.get("ca_file")
        return cls(
            host=host,
            port=connection.port or _PORTS[security],
            security=security,
            sender=sender,
            login=connection.login or None,
            password=connection.password or None,
            io_timeout=io_timeout,
            max_connections=_whole(extra, "max_connections", 10),
            messages_per_connection=_whole(extra, "messages_per_connection", 100),
            verify_certificate=str(extra.get("ssl_context", "")).lower() != "none",
            ca_file=Path(str(ca_file)) if ca_file else None,
            local_hostname=str(extra["local_hostname"]) if extra.get("local_hostname") else None,
            pipelining=_flag(extra, "pipelining") is not False,
            delivery_reports=_flag(extra, "delivery_reports") is True,
        )


def _security(connection: ConnectionLike, host: str) -> Security:
    extra = connection.extra
    wanted = extra.get("security")
    if wanted is not None:
        for security in _SECURITIES:
            if security == str(wanted).lower():
                return security
        raise ConfigurationError("SMTP connection: security is starttls, tls or plain")
    no_ssl, no_tls = _flag(extra, "disable_ssl"), _flag(extra, "disable_tls")
    if no_ssl and no_tls:
        return "plain"
    # In Airflow disable_tls is about STARTTLS alone, and leaves TLS from the first byte.
    if connection.port == _PORTS["tls"] or no_tls or no_ssl is False:
        return "tls"
    return "plain" if no_ssl is None and _is_loopback(host) else "starttls"


def _flag(extra: Mapping[str, Any], name: str) -> bool | None:
    value = extra.get(name)
    if value is None:
        return None
    # The URI form of a connection carries every extra as text.
    text = str(value).strip().lower()
    if text in ("true", "1", "yes", "on"):
        return True
    if text in ("false", "0", "no", "off", ""):
        return False
    raise ConfigurationError(f"SMTP connection: {name} is true or false")


def _whole(extra: Mapping[str, Any], name: str, default: int) -> int:
    value = extra.get(name, default)
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if number < 1:
        raise ConfigurationError(f"SMTP connection: {name} is a whole number from 1")
    return number


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class _LinkError(Exception):
    """The connection can't carry a message, and certainly carried none; `result` says why."""

    def __init__(self, result: SendResult) -> None:
        super().__init__(result.detail)
        self.result = result


@dataclass(slots=True)
class _Progress:
    """Whether the text of the message was handed to the connection: the point of no return."""

    is_body_sent: bool = False


class _Link:
    """One logged-in connection to the server.

    The library makes it, secures it and logs in; from then on it is a Wire. `depth` envelopes may
    be under way at a time: two where the server knows PIPELINING (RFC 2920), one after another
    where it doesn't.
    """

    def __init__(self, options: EmailOptions, tls: ssl.SSLContext | None) -> None:
        self._options = options
        self._smtp = aiosmtplib.SMTP(
            hostname=options.host,
            port=options.port,
            timeout=options.io_timeout.total_seconds(),
            use_tls=options.security == "tls",
            start_tls=False,
            tls_context=tls,
            local_hostname=options.local_hostname or _own_name(),
        )
        self._wire: Wire | None = None
        self._size_limit = 0
        self._asks_for_reports = False
        self.depth = 1
        self.envelopes = 0
        self.begun = 0
        self.idle_since = 0.0
        self._needs_reset = False

    @property
    def is_alive(self) -> bool:
        return self._wire is not None and self._wire.is_open

    async def connect(self) -> None:
        """Connect, secure and log in. Raises _LinkError."""
        try:
            await self._connect()
            self._take_over()
        except BaseException:
            self.abort()
            raise

    async def _connect(self) -> None:
        smtp, options = self._smtp, self._options
        try:
            await smtp.connect()
        except aiosmtplib.SMTPResponseException as error:
            raise _LinkError(judge_reply("greeting", error.code, error.message)) from None
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            raise _LinkError(_connect_failure(error)) from None
        try:
            if options.security == "starttls":
                await smtp.starttls()
            await self._greet()
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            raise _LinkError(_tls_failure(error, options.security)) from None
        if options.login is None:
            return
        try:
            await smtp.login(options.login, options.password or "")
        except aiosmtplib.SMTPResponseException as error:
            raise _LinkError(judge_reply("login", error.code, error.message)) from None
        except (aiosmtplib.SMTPException, OSError, ValueError):
            detail = "server offers no login that works, or the connection was lost (login)"
            raise _LinkError(SendResult("later", code="login", detail=detail)) from None

    async def _greet(self) -> None:
        try:
            await self._smtp.ehlo()
        except aiosmtplib.SMTPHeloError:
            await self._smtp.helo()

    def _take_over(self) -> None:
        smtp = self._smtp
        if smtp.transport is None or not smtp.is_connected:
            raise _lost_before_message()
        # Not every event loop's transports are of asyncio's class, but all have its methods.
        self._wire = Wire(cast("asyncio.Transport", smtp.transport))
        is_pipelining = self._options.pipelining and smtp.supports_extension("pipelining")
        self.depth = _PIPELINED if is_pipelining else 1
        self._asks_for_reports = self._options.delivery_reports and smtp.supports_extension("dsn")
        limit = smtp.esmtp_extensions.get("size", "")
        self._size_limit = int(limit) if limit.isdecimal() else 0

    async def transfer(self, sender: bytes, envelope: Envelope, progress: _Progress) -> SendResult:
        """One envelope. Raises _LinkError when the connection was lost before the message."""
        unsupported = self._unsupported(envelope)
        if unsupported is not None:
            return unsupported
        wire = self._wire
        if wire is None:
            raise _lost_before_message()
        commands = _commands(sender, envelope, reports=self._asks_for_reports)
        if self.depth > 1:
            return await self._transfer_at_once(wire, commands, envelope, progress)
        return await self._transfer_step_by_step(wire, commands, envelope, progress)

    async def _transfer_at_once(
        self, wire: Wire, commands: Sequence[bytes], envelope: Envelope, progress: _Progress
    ) -> SendResult:
        replies = await wire.begin(b"".join(commands), len(commands))
        refusal = _first_refusal(replies)
        if refusal is None:
            if len(replies) < len(commands):
                raise self._lost()
            return await self._send_text(wire, envelope.data, progress)
        self._leave_turn(wire, replies)
        return refusal

    def _leave_turn(self, wire: Wire, replies: Sequence[Reply]) -> None:
        """After a refusal: make the connection ready for the next envelope, or end it."""
        if not wire.is_open or len(replies) < len(_STAGES):
            self.abort()
            return
        _, recipient, data = (reply.code for reply in replies)
        if data >= 400:
            wire.pass_on(_RSET, 1)
        elif data == _START_INPUT and recipient >= 400:
            # The server asks for a text that nobody is to get: an empty one (RFC 2920 3.1).
            wire.pass_on(b".\r\n" + _RSET, 2)
        else:
            # It would take a text, for somebody: only hanging up is sure to send nothing.
            self.abort()

    async def _transfer_step_by_step(
        self, wire: Wire, commands: Sequence[bytes], envelope: Envelope, progress: _Progress
    ) -> SendResult:
        if self._needs_reset:
            if not await wire.go_on(_RSET):
                raise self._lost()
            self._needs_reset = False
        replies: list[Reply] = []
        for command in commands:
            heard = await wire.go_on(command)
            if not heard:
                raise self._lost()
            replies += heard
            refusal = _first_refusal(replies)
            if refusal is not None:
                self._needs_reset = True
                return refusal
        return await self._send_text(wire, envelope.data, progress)

    def _unsupported(self, envelope: Envelope) -> SendResult | None:
        if envelope.needs_smtputf8 and not self._smtp.supports_extension("smtputf8"):
            return SendResult(
                "refused", code="smtputf8", detail="server can't carry such an address"
            )
        if 0 < self._size_limit < len(envelope.data):
            return SendResult("refused", code="size", detail="message is larger than allowed")
        return None

    def _lost(self) -> _LinkError:
        self.abort()
        return _lost_before_message()

    async def _send_text(self, wire: Wire, data: bytes, progress: _Progress) -> SendResult:
        if not wire.is_open:
            raise self._lost()
        progress.is_body_sent = True
        heard = await wire.finish(data.replace(b"\r\n.", b"\r\n..") + b".\r\n")
        if not heard:
            self.abort()
            detail = "connection was lost after the message, before its answer"
            return SendResult("unknown", code="connection", detail=detail)
        result = judge_reply("message", heard[0].code, heard[0].text)
        if result.status == "unknown":
            self.abort()
        return result

    async def quit(self) -> None:
        """Leave politely, but not for long."""
        wire = self._wire
        if wire is not None and wire.is_open:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_QUIT_SECONDS):
                    await wire.go_on(_QUIT)
        self.abort()

    def leave(self) -> None:
        """Say QUIT and hang up without waiting for the answer."""
        if self._wire is not None and self._wire.is_open:
            self._wire.pass_on(_QUIT, 1)
        self.abort()

    def abort(self) -> None:
        """Drop the connection without a word."""
        transport = self._smtp.transport
        if self._wire is not None:
            self._wire.abort()
        elif isinstance(transport, asyncio.WriteTransport):
            # close() alone waits for the server's part of the TLS goodbye.
            transport.abort()
        self._smtp.close()

    def describe(self) -> str:
        cipher = self._smtp.get_transport_info("cipher")
        secured = f"{cipher[1]}" if cipher else "no TLS"
        logged_in = "login accepted" if self._options.login else "no login"
        return f"smtp {self._options.host}:{self._options.port}, {secured}, {logged_in}"


def _commands(sender: bytes, envelope: Envelope, *, reports: bool) -> tuple[bytes, bytes, bytes]:
    """What is said before the text; its parts hold no control character, see addresses.py."""
    recipient = envelope.recipient.spelled.encode()
    of_mail, of_recipient = b"", b""
    if envelope.needs_smtputf8:
        of_mail = b" SMTPUTF8 BODY=8BITMIME"
    if reports:
        # The reports come to the sender, and name the mail by its Message-ID (RFC 3461 4.4).
        of_mail += b" RET=HDRS ENVID=" + _xtext(envelope.message_id.strip("<>").encode())
        of_recipient = b" NOTIFY=FAILURE,DELAY"
        if recipient.isascii():
            of_recipient += b" ORCPT=rfc822;" + _xtext(recipient)
    return (
        b"MAIL FROM:<%b>%b\r\n" % (sender, of_mail),
        b"RCPT TO:<%b>%b\r\n" % (recipient, of_recipient),
        b"DATA\r\n",
    )


def _xtext(text: bytes) -> bytes:
    """As RFC 3461 4 wants values: printable, without + and =."""
    return b"".join(
        bytes([each]) if 0x21 <= each <= 0x7E and each not in b"+=" else b"+%02X" % each
        for each in text
    )


def _first_refusal(replies: Sequence[Reply]) -> SendResult | None:
    """What the first reply that is not the one hoped for means."""
    for stage, reply in zip(_STAGES, replies, strict=False):
        hoped = reply.code == _START_INPUT if stage == "data" else 200 <= reply.code < 300
        if not hoped:
            return judge_reply(stage, reply.code, reply.text)
    return None


def _lost_before_message() -> _LinkError:
    detail = "connection was lost before the message"
    return _LinkError(SendResult("later", code="connection", detail=detail))


def _connect_failure(error: Exception) -> SendResult:
    causes = (error, error.__cause__)
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return SendResult("later", code="tls", detail="server's certificate or TLS is not accepted")
    if isinstance(error, TimeoutError):
        return SendResult("later", code="timeout", detail="server did not answer (connect)")
    return SendResult("later", code="connection", detail="server can't be reached")


def _tls_failure(error: Exception, security: Security) -> SendResult:
    if isinstance(error, aiosmtplib.SMTPResponseException):
        return judge_reply("greeting", error.code, error.message)
    if isinstance(error, aiosmtplib.SMTPServerDisconnected | TimeoutError):
        return SendResult("later", code="connection", detail="connection was lost (greeting)")
    detail = "server's certificate or TLS is not accepted"
    if security == "starttls" and not isinstance(error, OSError):
        detail = "server does not offer STARTTLS"
    return SendResult("later", code="tls", detail=detail)


@functools.lru_cache(maxsize=2)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


async def _settle() -> None:
    # The event loop may end next; transports are taken down in its following rounds.
    for _ in range(3):
        await asyncio.sleep(0)


def _own_name() -> str:
    # Not getfqdn(): it asks DNS, and blocks for seconds where there is none.
    name = socket.gethostname()
    fits = name.isascii() and all(char.isalnum() or char in ".-" for char in name)
    return name if fits and name else "localhost"


class EmailChannel:
    """One SMTP account; see duebook.channels.base.Channel for what each method promises."""

    idempotent = False
    safe_retry_for: timedelta | None = None

    def __init__(self, options: EmailOptions, *, name: str = "email") -> None:
        """Raises ConfigurationError when the sender is not an address."""
        self.name = name
        self.io_timeout = options.io_timeout
        self.max_concurrency = options.max_connections * _PIPELINED
        self._options = options
        self._seconds = options.io_timeout.total_seconds()
        self._writer = MessageWriter(options.sender)
        self._sender = self._writer.sender.spelled.encode()
        self._tls: ssl.SSLContext | None = None
        self._is_open = False
        self._depth = _PIPELINED
        self._most_lost = options.max_connections
        self._links: list[_Link] = []
        self._connecting = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def open(self) -> None:
        if self._options.security != "plain":
            self._tls = _tls_context(self._options)
        self._is_open = True

    async def send(self, message: Message) -> SendResult:
        if not self._is_open:
            raise RuntimeError("the channel is not open")
        try:
            envelope = self._writer.write(message, _date(int(time.time())))
        except MessageError as error:
            return SendResult("refused", code=error.code, detail=str(error))
        progress = _Progress()
        try:
            async with asyncio.timeout(self._seconds):
                result = await self._deliver(envelope, progress)
        except TimeoutError:
            status: Literal["unknown", "later"] = "unknown" if progress.is_body_sent else "later"
            where = "after" if progress.is_body_sent else "before"
            return SendResult(status, code="timeout", detail=f"no answer in time, {where} the text")
        if result.status == "accepted":
            # Not the server's queue id: delivery reports name the mail, and its log knows both.
            return replace(result, provider_message_id=message.message_id)
        return result

    async def _deliver(self, envelope: Envelope, progress: _Progress) -> SendResult:
        lost = 0
        while True:
            link = self._used_link(depth=self._depth if not lost else 1)
            if link is None:
                if not self._may_connect():
                    await self._someone_to_finish()
                    continue
                try:
                    link = await self._connect()
                except _LinkError as error:
                    _log.info("smtp link failed", channel=self.name, code=error.result.code)
                    return error.result
            is_used, is_behind = link.begun > 0, link.envelopes > 0
            result = await self._transfer(link, envelope, progress)
            # The server may end a used connection at any time, so that its end is no news.
            is_ended = result.code == "connection" or (result.code or "").startswith("421")
            lost += 1
            if progress.is_body_sent or not (is_used and is_ended) or lost > self._most_lost:
                return result
            if is_behind and result.code == "connection":
                # It hangs up after a mail without reading on: what is written ahead is for nothing.
                self._depth = 1

    def _used_link(self, depth: int) -> _Link | None:
        """An idle connection; where no more may be made, one with fewer than `depth` envelopes."""
        busy, oldest = None, asyncio.get_running_loop().time() - _IDLE_SECONDS
        for link in tuple(self._links):
            if link.begun >= self._options.messages_per_connection:
                continue
            if not link.envelopes:
                if link.is_alive and link.idle_since >= oldest:
                    return link
                self._drop(link)
            elif busy is None and link.envelopes < min(link.depth, depth) and link.is_alive:
                busy = link
        return None if self._may_connect() else busy

    def _may_connect(self) -> bool:
        return len(self._links) + self._connecting < self._options.max_connections

    async def _connect(self) -> _Link:
        link = _Link(self._options, self._tls)
        self._connecting += 1
        try:
            await link.connect()
            self._links.append(link)
        finally:
            self._connecting -= 1
            self._wake_one()
        return link

    async def _someone_to_finish(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._wake_one()
            raise

    def _wake_one(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    async def _transfer(self, link: _Link, envelope: Envelope, progress: _Progress) -> SendResult:
        link.envelopes += 1
        link.begun += 1
        try:
            return await link.transfer(self._sender, envelope, progress)
        except _LinkError as error:
            return error.result
        finally:
            # No await from here on: a time-out must not turn a known answer into an unknown one.
            link.envelopes -= 1
            if not link.is_alive:
                self._drop(link)
            elif not link.envelopes:
                link.idle_since = asyncio.get_running_loop().time()
                if link.begun >= self._options.messages_per_connection:
                    link.leave()
                    self._drop(link)
            self._wake_one()

    def _drop(self, link: _Link) -> None:
        link.abort()
        if link in self._links:
            self._links.remove(link)

    async def close(self) -> None:
        self._is_open = False
        links, self._links = self._links, []
        await asyncio.gather(*(link.quit() for link in links))
        await _settle()

    async def verify(self) -> str:
        tls = _tls_context(self._options) if self._options.security != "plain" else None
        link = _Link(self._options, tls)
        try:
            async with asyncio.timeout(self.io_timeout.total_seconds()):
                await link.connect()
                description = link.describe()
                await link.quit()
        except _LinkError as error:
            reason = f"{error.result.detail} [{error.result.code}]"
        except TimeoutError:
            reason = "server did not answer in time"
        else:
            await _settle()
            return description
        link.abort()
        await _settle()
        where = f"{self._options.host}:{self._options.port}"
        raise UnavailableError(f"smtp {where}: {reason}")


def _tls_context(options: EmailOptions) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.ca_file)
    except (OSError, ssl.SSLError):
        raise ConfigurationError("SMTP connection: ca_file can't be read") from None
    if not options.verify_certificate:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
