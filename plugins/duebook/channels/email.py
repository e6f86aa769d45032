"""E-mail over SMTP: a small pool of reused connections, one envelope per recipient.

The one thing that matters: before the message's text is handed to the connection, nothing can have
been accepted, and a lost connection is `later`. From then on, until the server answers, it may have
been, and a lost connection is `unknown`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final, Literal

import aiosmtplib
import structlog

from duebook.channels.base import ConnectionLike, Message, SendResult
from duebook.channels.mime import Envelope, MessageError, MessageWriter
from duebook.channels.smtp_replies import Stage, judge_reply
from duebook.errors import ConfigurationError, UnavailableError

Security = Literal["starttls", "tls", "plain"]

_log = structlog.get_logger(__name__)

_PORTS: Final[dict[Security, int]] = {"starttls": 587, "tls": 465, "plain": 25}
_SECURITIES: Final[tuple[Security, ...]] = ("starttls", "tls", "plain")
_START_INPUT: Final = 354
# Servers drop an idle client after five minutes (RFC 5321 4.5.3.2.7); well before that.
_IDLE_SECONDS: Final = 60.0
_QUIT_SECONDS: Final = 2.0


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

    @classmethod
    def from_connection(
        cls, connection: ConnectionLike, *, sender: str, io_timeout: timedelta
    ) -> EmailOptions:
        """Options of an Airflow connection; its `extra` may say more.

        `security`: starttls, tls or plain. Without it: what the extras of Airflow's own SMTP
        connection say (`disable_tls`, `disable_ssl`, `ssl_context` = none), tls on port 465, plain
        to a loopback address, and otherwise STARTTLS, which the server must then offer. Also
        `ca_file`, `local_hostname`, `max_connections`, `messages_per_connection`. Raises
        ConfigurationError.
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
    """One logged-in connection to the server."""

    def __init__(self, options: EmailOptions, tls: ssl.SSLContext | None) -> None:
        self._options = options
        self._timeout = options.io_timeout.total_seconds()
        self._smtp = aiosmtplib.SMTP(
            hostname=options.host,
            port=options.port,
            timeout=self._timeout,
            use_tls=options.security == "tls",
            start_tls=False,
            tls_context=tls,
            local_hostname=options.local_hostname or _own_name(),
        )
        # Kept, since the library forgets it when it closes by itself.
        self._transport: asyncio.BaseTransport | None = None
        self.sent = 0
        self.idle_since = 0.0
        self._needs_reset = False

    @property
    def is_alive(self) -> bool:
        return self._smtp.is_connected

    async def connect(self) -> None:
        """Connect, secure and log in. Raises _LinkError."""
        try:
            await self._connect()
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
        self._transport = smtp.transport
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

    async def transfer(self, sender: str, envelope: Envelope, progress: _Progress) -> SendResult:
        """One envelope. Raises _LinkError when the connection was lost before the message."""
        unsupported = self._unsupported(envelope)
        if unsupported is not None:
            return unsupported
        if self._needs_reset:
            await self._command(b"RSET")
            self._needs_reset = False
        for stage, line in _commands(sender, envelope):
            code, text = await self._command(*line)
            hoped = code == _START_INPUT if stage == "data" else 200 <= code < 300
            if not hoped:
                self._needs_reset = True
                return judge_reply(stage, code, text)
        return await self._send_text(envelope.data, progress)

    def _unsupported(self, envelope: Envelope) -> SendResult | None:
        smtp = self._smtp
        if envelope.needs_smtputf8 and not smtp.supports_extension("smtputf8"):
            return SendResult(
                "refused", code="smtputf8", detail="server can't carry such an address"
            )
        limit = smtp.esmtp_extensions.get("size", "")
        if limit.isdecimal() and 0 < int(limit) < len(envelope.data):
            return SendResult("refused", code="size", detail="message is larger than allowed")
        return None

    async def _command(self, *words: bytes) -> tuple[int, str]:
        try:
            reply = await self._smtp.execute_command(*words)
        except (aiosmtplib.SMTPException, OSError):
            self.abort()
            detail = "connection was lost before the message"
            raise _LinkError(SendResult("later", code="connection", detail=detail)) from None
        return reply.code, reply.message

    async def _send_text(self, data: bytes, progress: _Progress) -> SendResult:
        protocol = self._smtp.protocol
        if protocol is None or not protocol.is_connected:
            self.abort()
            detail = "connection was lost before the message"
            raise _LinkError(SendResult("later", code="connection", detail=detail))
        progress.is_body_sent = True
        try:
            # Not smtp.data(): it doesn't tell a loss before its 354 from one after the text.
            protocol.write(data.replace(b"\r\n.", b"\r\n..") + b".\r\n")
            reply = await protocol.read_response(timeout=self._timeout)
        except (aiosmtplib.SMTPException, OSError):
            self.abort()
            detail = "connection was lost after the message, before its answer"
            return SendResult("unknown", code="connection", detail=detail)
        self.sent += 1
        result = judge_reply("message", reply.code, reply.message)
        if reply.code == 421 or result.status == "unknown":
            self.abort()
        return result

    async def quit(self) -> None:
        """Leave politely, but not for long."""
        with contextlib.suppress(aiosmtplib.SMTPException, OSError, TimeoutError):
            async with asyncio.timeout(_QUIT_SECONDS):
                await self._smtp.quit()
        self.abort()

    def leave(self) -> None:
        """Say QUIT and hang up without waiting for the answer."""
        protocol = self._smtp.protocol
        if protocol is not None and protocol.is_connected:
            with contextlib.suppress(aiosmtplib.SMTPException, OSError):
                protocol.write(b"QUIT\r\n")
        self.abort()

    def abort(self) -> None:
        """Drop the connection without a word."""
        transport = self._smtp.transport or self._transport
        self._smtp.close()
        if isinstance(transport, asyncio.WriteTransport):
            # close() alone waits for the server's part of the TLS goodbye.
            transport.abort()

    def describe(self) -> str:
        cipher = self._smtp.get_transport_info("cipher")
        secured = f"{cipher[1]}" if cipher else "no TLS"
        logged_in = "login accepted" if self._options.login else "no login"
        return f"smtp {self._options.host}:{self._options.port}, {secured}, {logged_in}"


def _commands(sender: str, envelope: Envelope) -> tuple[tuple[Stage, tuple[bytes, ...]], ...]:
    options = (b"SMTPUTF8", b"BODY=8BITMIME") if envelope.needs_smtputf8 else ()
    recipient = envelope.recipient.spelled.encode()
    return (
        ("sender", (b"MAIL", b"FROM:<" + sender.encode() + b">", *options)),
        ("recipient", (b"RCPT", b"TO:<" + recipient + b">")),
        ("data", (b"DATA",)),
    )


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
        self.max_concurrency = options.max_connections
        self._options = options
        self._writer = MessageWriter(options.sender)
        self._sender = self._writer.sender.spelled
        self._tls: ssl.SSLContext | None = None
        self._idle: deque[_Link] = deque()
        self._slots: asyncio.Semaphore | None = None

    async def open(self) -> None:
        if self._options.security != "plain":
            self._tls = _tls_context(self._options)
        self._slots = asyncio.Semaphore(self.max_concurrency)

    async def send(self, message: Message) -> SendResult:
        if self._slots is None:
            raise RuntimeError("the channel is not open")
        try:
            envelope = self._writer.write(message, formatdate(usegmt=True))
        except MessageError as error:
            return SendResult("refused", code=error.code, detail=str(error))
        progress = _Progress()
        try:
            async with asyncio.timeout(self.io_timeout.total_seconds()), self._slots:
                return await self._deliver(envelope, progress)
        except TimeoutError:
            status: Literal["unknown", "later"] = "unknown" if progress.is_body_sent else "later"
            where = "after" if progress.is_body_sent else "before"
            return SendResult(status, code="timeout", detail=f"no answer in time, {where} the text")

    async def _deliver(self, envelope: Envelope, progress: _Progress) -> SendResult:
        idle = self._take_idle()
        if idle is not None:
            # The server may close an idle connection at any time, so that one loss is no news.
            with contextlib.suppress(_LinkError):
                result = await self._transfer(idle, envelope, progress)
                if progress.is_body_sent or not (result.code or "").startswith("421"):
                    return result
        link = _Link(self._options, self._tls)
        try:
            await link.connect()
            return await self._transfer(link, envelope, progress)
        except _LinkError as error:
            _log.info("smtp link failed", channel=self.name, code=error.result.code)
            return error.result

    async def _transfer(self, link: _Link, envelope: Envelope, progress: _Progress) -> SendResult:
        try:
            result = await link.transfer(self._sender, envelope, progress)
        except BaseException:
            # Also a cancelled or timed-out send: what is left on the wire would confuse the next.
            link.abort()
            raise
        # No await from here on: a time-out must not turn a known answer into an unknown one.
        is_reusable = link.is_alive and link.sent < self._options.messages_per_connection
        if is_reusable and self._slots is not None:
            link.idle_since = asyncio.get_running_loop().time()
            self._idle.append(link)
        else:
            link.leave()
        return result

    def _take_idle(self) -> _Link | None:
        oldest = asyncio.get_running_loop().time() - _IDLE_SECONDS
        while self._idle:
            link = self._idle.pop()
            if link.is_alive and link.idle_since >= oldest:
                return link
            link.abort()
        return None

    async def close(self) -> None:
        self._slots = None
        links = [self._idle.pop() for _ in range(len(self._idle))]
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
