"""SMS by Twilio, through its own library over one aiohttp session of ours.

Twilio has no idempotency key for messages: what was lost after the request was handed over may have
been accepted, and is never sent again by itself. Its error codes decide what a refusal means:
https://www.twilio.com/docs/api/errors.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import aiohttp
from twilio.base.exceptions import TwilioException, TwilioRestException
from twilio.http import AsyncHttpClient
from twilio.http.response import Response
from twilio.rest import Client

from duebook.channels.base import ConnectionLike, Message, SendResult
from duebook.channels.http_body import MarkedBody
from duebook.channels.sms_segments import count_segments
from duebook.domain.backoff import parse_retry_after
from duebook.errors import ConfigurationError, UnavailableError

_E164: Final = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
_QUIET_WAIT: Final = timedelta(hours=1)
_MOST_CONNECTIONS: Final = 20
_TOO_MANY: Final = 429

# What a code says of the number itself, for good.
_DEAD: Final = {21211: "invalid number", 21217: "invalid number", 21614: "no mobile number"}
# The recipient replied STOP to us.
_STOPPED: Final = 21610
# Twilio keeps the recipient's quiet hours; the local time there is not known here.
_QUIET: Final = 30610
# Nobody's message goes: an account, sender or queue that is not in order.
_OF_THE_ACCOUNT: Final = frozenset(
    {10001, 14107, 20003, 20005, 20008, 20429, 21603, 21606, 21611, 21660, 21703, 21712}
)


@dataclass(frozen=True, slots=True)
class SmsOptions:
    """One Twilio account. `base_url` takes the place of Twilio's own."""

    account_sid: str
    auth_token: str = field(repr=False)
    messaging_service_sid: str | None = None
    sender: str | None = None
    status_callback: str | None = None
    base_url: str | None = None
    io_timeout: timedelta = timedelta(seconds=20)
    max_segments: int = 3

    @classmethod
    def from_connection(
        cls, connection: ConnectionLike, *, io_timeout: timedelta, max_segments: int
    ) -> SmsOptions:
        """Options of an Airflow connection: account SID as login, auth token as password.

        Its `extra` holds `messaging_service_sid` or `from`, and may hold `status_callback`. Raises
        ConfigurationError.
        """
        extra = connection.extra
        service, sender = extra.get("messaging_service_sid"), extra.get("from")
        if not connection.login or not connection.password:
            raise ConfigurationError(
                "SMS connection: login is the account SID, password the auth token"
            )
        if bool(service) == bool(sender):
            raise ConfigurationError(
                "SMS connection: extra holds either messaging_service_sid or from"
            )
        return cls(
            account_sid=connection.login,
            auth_token=connection.password,
            messaging_service_sid=str(service) if service else None,
            sender=str(sender) if sender else None,
            status_callback=extra.get("status_callback"),
            base_url=_base_url(connection),
            io_timeout=io_timeout,
            max_segments=max_segments,
        )


def _base_url(connection: ConnectionLike) -> str | None:
    if not connection.host:
        return None
    scheme, separator, host = connection.host.rpartition("://")
    port = f":{connection.port}" if connection.port else ""
    return f"{scheme if separator else 'https'}://{host}{port}"


class _LostError(Exception):
    """No answer; `is_sent` when the request may have arrived."""

    def __init__(self, code: str, *, is_sent: bool) -> None:
        super().__init__(code)
        self.code = code
        self.is_sent = is_sent


class _ThrottledError(Exception):
    def __init__(self, retry_after: str | None) -> None:
        super().__init__("too many requests")
        self.retry_after = retry_after


class _HttpClient(AsyncHttpClient):  # type: ignore[misc] # the library has no types
    """The library's transport: one session, a time-out, and what is known when it fails."""

    def __init__(self, options: SmsOptions) -> None:
        # The library's own logger tells every address it asks.
        quiet = logging.getLogger("duebook.twilio")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        super().__init__(quiet, True, options.io_timeout.total_seconds())
        self._options = options
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_MOST_CONNECTIONS),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def request(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        timeout: float | None = None,
        allow_redirects: bool = False,
    ) -> Response:
        del timeout, allow_redirects
        form = "application/x-www-form-urlencoded"
        body = MarkedBody(urlencode(data or {}).encode(), content_type=form)
        told = {**(headers or {}), "Content-Type": form}
        if auth is not None:
            told["Authorization"] = aiohttp.encode_basic_auth(*auth)
        try:
            async with asyncio.timeout(self.timeout):
                answer = await self._session.request(
                    method,
                    self._own(url),
                    params=params,
                    data=body if data else None,
                    headers=told,
                    allow_redirects=False,
                )
                text = await answer.text()
        except TimeoutError:
            raise _LostError("timeout", is_sent=body.is_sent) from None
        except (aiohttp.ClientError, OSError, ValueError):
            raise _LostError("connection", is_sent=body.is_sent) from None
        if answer.status == _TOO_MANY:
            raise _ThrottledError(answer.headers.get("Retry-After"))
        return Response(answer.status, text, answer.headers)

    def _own(self, url: str) -> str:
        base = self._options.base_url
        return (
            url
            if base is None
            else f"{base}{urlsplit(url)._replace(scheme='', netloc='').geturl()}"
        )

    async def close(self) -> None:
        await self._session.close()


class SmsChannel:
    """One Twilio account; see duebook.channels.base.Channel for what each method promises."""

    idempotent = False
    safe_retry_for: timedelta | None = None
    max_concurrency = _MOST_CONNECTIONS

    def __init__(self, options: SmsOptions, *, name: str = "sms") -> None:
        self.name = name
        self.io_timeout = options.io_timeout
        self._options = options
        self._http: _HttpClient | None = None
        self._client: Client | None = None

    async def open(self) -> None:
        options = self._options
        self._http = _HttpClient(options)
        self._client = Client(options.account_sid, options.auth_token, http_client=self._http)

    async def send(self, message: Message) -> SendResult:
        if self._client is None:
            raise RuntimeError("the channel is not open")
        text = message.text.strip()
        if not _E164.fullmatch(message.recipient):
            return SendResult("refused", code="number", detail="number is not in E.164")
        segments = count_segments(text)
        if not 0 < segments <= self._options.max_segments:
            detail = f"text takes {segments} segments, at most {self._options.max_segments} may go"
            return SendResult("refused", code="segments", detail=detail)
        try:
            made = await self._client.messages.create_async(
                to=message.recipient, body=text, **self._sender()
            )
        except _LostError as lost:
            if lost.is_sent:
                return SendResult("unknown", code=lost.code, detail="no answer, after the request")
            return SendResult("later", code=lost.code, detail="Twilio can't be reached")
        except _ThrottledError as throttled:
            return _later("429", throttled.retry_after)
        except TwilioRestException as error:
            return judge_error(error.status, error.code)
        except (TwilioException, ValueError, KeyError, TypeError):
            # It answered that it had made one, in words that can't be read.
            return SendResult("unknown", code="answer", detail="Twilio's answer can't be read")
        return SendResult("accepted", made.sid, made.status)

    def _sender(self) -> dict[str, str]:
        options = self._options
        chosen = {
            "messaging_service_sid": options.messaging_service_sid,
            "from_": options.sender,
            "status_callback": options.status_callback,
        }
        return {name: value for name, value in chosen.items() if value}

    async def close(self) -> None:
        http, self._http, self._client = self._http, None, None
        if http is not None:
            await http.close()
            # The event loop may end next; transports are taken down in its following rounds.
            for _ in range(3):
                await asyncio.sleep(0)

    async def verify(self) -> str:
        await self.open()
        assert self._client is not None
        try:
            account = await self._client.api.accounts(self._options.account_sid).fetch_async()
        except (_LostError, _ThrottledError):
            raise UnavailableError(f"{self.name}: Twilio can't be reached") from None
        except (TwilioException, ValueError, KeyError, TypeError) as error:
            code = getattr(error, "code", None) or type(error).__name__
            raise UnavailableError(f"{self.name}: Twilio refused the account [{code}]") from None
        finally:
            await self.close()
        return f"{self.name}: Twilio account {account.status}"


def judge_error(status: int, code: int | None) -> SendResult:
    """What an error of Twilio means for a message; `code` is Twilio's own."""
    shown = str(code or status)
    if code == _STOPPED:
        return SendResult("refused", code=shown, detail="recipient replied STOP", opts_out=True)
    if code == _QUIET:
        return SendResult(
            "later",
            code=shown,
            detail="quiet hours of the recipient, kept by Twilio",
            retry_after=_QUIET_WAIT,
            scope="message",
            burns_try=False,
        )
    if code in _DEAD:
        return SendResult("refused", code=shown, detail=_DEAD[code], suppress=shown)
    if code in _OF_THE_ACCOUNT or status in (401, 403) or status == 503:
        return SendResult("later", code=shown, detail="account, sender or queue is not in order")
    if status >= 500:
        return SendResult("unknown", code=shown, detail="Twilio failed with the request in hand")
    return SendResult("refused", code=shown, detail="Twilio refused the message")


def _later(code: str, retry_after: str | None) -> SendResult:
    wait = parse_retry_after(retry_after, datetime.fromtimestamp(time.time(), UTC))
    return SendResult("later", code=code, detail="too many requests", retry_after=wait)
