"""Outgoing webhooks: one JSON document a message, posted to an address that the customer chose.

Signed by the specification of Standard Webhooks (https://www.standardwebhooks.com). What matters
here as in e-mail: before the request is handed to the connection nothing can have been received,
and a loss is `later`; from then on, until the status is there, it may have been, and a loss is
`unknown`. `webhook-id` is the same for every try of a key, so that a receiver recognises a repeat:
that is what makes the channel idempotent, for as long as it asks receivers to remember.

The answer's body is nobody's business: read so that the connection can be kept, up to a bound.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import aiohttp
import structlog
from aiohttp.abc import AbstractStreamWriter
from standardwebhooks import Webhook

from duebook.channels.base import ConnectionLike, Message, SendResult
from duebook.channels.endpoints import (
    Endpoint,
    EndpointError,
    Network,
    PrivateAddressError,
    Reach,
    guarded_connector,
    parse_endpoint,
    parse_networks,
)
from duebook.channels.webhook_answers import judge_answer
from duebook.channels.webhook_secrets import endpoint_key, endpoint_secret, require_master_key
from duebook.errors import ConfigurationError

_log = structlog.get_logger(__name__)

SAFE_RETRY_FOR: Final = timedelta(days=3)
"""How long receivers are asked to remember ids; the retries by RETRY_WAITS end well before."""
RETRY_WAITS: Final = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=10),
)
"""Waits before the tries after the first (https://docs.svix.com/retries)."""
DISABLE_AFTER: Final = timedelta(days=5)
"""After so long without any success an endpoint is given up (https://docs.svix.com/retries)."""

# Node.js closes a connection that idles for five seconds; well before that.
_KEEP_ALIVE_S: Final = 4.0
_MOST_BODY: Final = 64 * 1024
_BODY_SECONDS: Final = 1.0
_HEADER_BYTES: Final = 8190
_MOST_HEADERS: Final = 100
_ENDPOINTS: Final = 4096
_SILENCE_S: Final = 1.0
_FIRST_REST_S: Final = 5.0
_LONGEST_REST_S: Final = 600.0
_HEADERS: Final[Mapping[str, str]] = {
    "Content-Type": "application/json",
    "User-Agent": "Duebook (Standard Webhooks)",
    "Accept-Encoding": "identity",
}


_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
)


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """How webhooks are signed and where they may lead. The first master key is the current one."""

    master_keys: tuple[str, ...] = field(repr=False)
    io_timeout: timedelta = timedelta(seconds=20)
    safe_retry_for: timedelta = SAFE_RETRY_FOR
    retry_waits: tuple[timedelta, ...] = RETRY_WAITS
    disable_after: timedelta = DISABLE_AFTER
    max_connections: int = 50
    allow_private: bool = False
    refused_networks: tuple[Network, ...] = ()
    ca_file: Path | None = None

    @classmethod
    def from_connection(
        cls,
        connection: ConnectionLike,
        *,
        io_timeout: timedelta,
        safe_retry_for: timedelta | None = None,
        retry_waits: Sequence[timedelta] | None = None,
        disable_after: timedelta | None = None,
    ) -> WebhookOptions:
        """Options of an Airflow connection: the master key is its password.

        Its `extra` may hold `previous` (one master key or a list, still signed with while
        customers change over), `max_connections`, `allow_private`, `refuse_networks` (a list of
        own networks that are public) and `ca_file`. Raises ConfigurationError.
        """
        extra = connection.extra
        keys = (connection.password or "", *_texts(extra, "previous"))
        for key in keys:
            require_master_key(key)
        ca_file = extra.get("ca_file")
        try:
            networks = parse_networks(_texts(extra, "refuse_networks"))
        except ValueError:
            raise ConfigurationError(
                "webhook connection: refuse_networks are networks such as 192.0.2.0/24"
            ) from None
        return cls(
            master_keys=keys,
            io_timeout=io_timeout,
            safe_retry_for=SAFE_RETRY_FOR if safe_retry_for is None else safe_retry_for,
            retry_waits=RETRY_WAITS if retry_waits is None else tuple(retry_waits),
            disable_after=DISABLE_AFTER if disable_after is None else disable_after,
            max_connections=_whole(extra, "max_connections", 50),
            allow_private=_flag(extra, "allow_private"),
            refused_networks=networks,
            ca_file=Path(str(ca_file)) if ca_file else None,
        )

    @property
    def reach(self) -> Reach:
        """Where connections may lead."""
        return Reach(self.allow_private, self.refused_networks)


def _texts(extra: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = extra.get(name)
    values = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise ConfigurationError(f"webhook connection: {name} is a text or a list of texts")
    return tuple(values)


def _flag(extra: Mapping[str, Any], name: str) -> bool:
    # The URI form of a connection carries every extra as text.
    text = str(extra.get(name, "false")).strip().lower()
    if text not in ("true", "1", "yes", "on", "false", "0", "no", "off", ""):
        raise ConfigurationError(f"webhook connection: {name} is true or false")
    return text in ("true", "1", "yes", "on")


def _whole(extra: Mapping[str, Any], name: str, default: int) -> int:
    text = str(extra.get(name, default))
    if not text.isdecimal() or int(text) < 1:
        raise ConfigurationError(f"webhook connection: {name} is a whole number from 1")
    return int(text)


class _Body(aiohttp.BytesPayload):
    """The request's body, which knows when it is handed over: the point of no return."""

    is_sent = False

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        # The head of the request waits for the body, so nothing left before this.
        self.is_sent = True
        await super().write_with_length(writer, content_length)


@dataclass(frozen=True, slots=True)
class _Target:
    endpoint: Endpoint
    signers: tuple[Webhook, ...] = field(repr=False)


@dataclass(slots=True)
class _Rest:
    silences: int = 0
    until: float = 0.0
    is_tried: bool = True


class _Rests:
    """Endpoints that kept somebody waiting in vain, and until when nobody waits for them again.

    A send that waits for its whole time-out keeps its window from ending, and with it everybody
    else's messages. So after a silence the endpoint rests, longer each time, and one message then
    tries it again. Only this process knows of it: whoever restarts waits once more.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Rest] = OrderedDict()

    def left(self, identity: str, now: float) -> float:
        """Seconds that an endpoint still rests; 0 lets the caller try it."""
        rest = self._known.get(identity)
        if rest is None:
            return 0.0
        if now < rest.until:
            return rest.until - now
        # The caller tries it; those beside it need not.
        rest.until, rest.is_tried = now + _rest_s(rest.silences), True
        return 0.0

    def note_silence(self, identity: str, now: float) -> None:
        """It did not answer. Sends that were under way together are one silence."""
        rest = self._known.pop(identity, None) or _Rest()
        self._known[identity] = rest
        if rest.is_tried:
            rest.silences += 1
            rest.until, rest.is_tried = now + _rest_s(rest.silences), False
        if len(self._known) > _ENDPOINTS:
            self._known.popitem(last=False)

    def note_answer(self, identity: str) -> None:
        """It answered, whatever it said."""
        if self._known:
            self._known.pop(identity, None)


def _rest_s(silences: int) -> float:
    return min(_FIRST_REST_S * 2.0 ** min(silences - 1, 10), _LONGEST_REST_S)


class WebhookChannel:
    """Every customer's endpoint; see duebook.channels.base.Channel for what is promised."""

    idempotent = True
    takes_facts = True

    def __init__(self, options: WebhookOptions, *, name: str = "webhook") -> None:
        self.name = name
        self.safe_retry_for: timedelta | None = options.safe_retry_for
        self.retry_waits = options.retry_waits
        self.disable_after = options.disable_after
        self.io_timeout = options.io_timeout
        self.max_concurrency = options.max_connections
        self._options = options
        self._seconds = options.io_timeout.total_seconds()
        self._session: aiohttp.ClientSession | None = None
        self._rests = _Rests()
        self._find = lru_cache(_ENDPOINTS)(self._make_target)

    async def open(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=guarded_connector(
                self._options.reach,
                limit=self.max_concurrency,
                tls=_tls_context(self._options),
                keep_alive_s=_KEEP_ALIVE_S,
            ),
            headers=_HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            auto_decompress=False,
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
            max_headers=_MOST_HEADERS,
        )

    async def send(self, message: Message) -> SendResult:
        session = self._session
        if session is None:
            raise RuntimeError("the channel is not open")
        try:
            target = self._find(message.account_id, message.recipient)
            text = write_document(message, time.time())
        except EndpointError as error:
            return SendResult("refused", code="url", detail=str(error))
        except (TypeError, ValueError):
            return SendResult("refused", code="facts", detail="message can't be written as JSON")
        identity = target.endpoint.identity
        left = self._rests.left(identity, time.monotonic())
        if left > 0:
            return SendResult(
                "later",
                code="resting",
                detail="endpoint did not answer a moment ago",
                retry_after=timedelta(seconds=left),
                scope="message",
                burns_try=False,
            )
        webhook_id = webhook_id_of(message)
        result = await self._post(session, target, webhook_id, text)
        if result.status == "accepted":
            return SendResult("accepted", webhook_id, result.code)
        return result

    async def _post(
        self, session: aiohttp.ClientSession, target: _Target, webhook_id: str, text: str
    ) -> SendResult:
        body = _Body(text.encode(), content_type="application/json")
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._seconds):
                response = await session.post(
                    target.endpoint.url,
                    data=body,
                    headers=_signed(target.signers, webhook_id, text, time.time()),
                    allow_redirects=False,
                )
        except TimeoutError:
            result = _lost(body, "timeout", "endpoint did not answer in time")
        except aiohttp.ClientError as error:
            result = _failure(error, body)
        except (OSError, ValueError):
            # A host that no resolver can spell, a broken pipe.
            result = _lost(body, "connection", "connection was lost")
        else:
            # From here on the answer is known, however its body goes on.
            self._rests.note_answer(target.endpoint.identity)
            now = datetime.fromtimestamp(time.time(), UTC)
            result = judge_answer(response.status, response.headers, now)
            await _finish(response)
            return result
        if time.monotonic() - began >= _SILENCE_S:
            self._rests.note_silence(target.endpoint.identity, time.monotonic())
        return result

    def _make_target(self, account_id: str, address: str) -> _Target:
        endpoint = parse_endpoint(address, self._options.reach)
        signers = tuple(
            Webhook(endpoint_key(key, account_id, endpoint.identity))
            for key in self._options.master_keys
        )
        return _Target(endpoint, signers)

    def secrets_of(self, account_id: str, address: str) -> tuple[str, ...]:
        """What a customer verifies by, "whsec_…", the current one first. Raises EndpointError."""
        endpoint = parse_endpoint(address, self._options.reach)
        return tuple(
            endpoint_secret(key, account_id, endpoint.identity) for key in self._options.master_keys
        )

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
            # The event loop may end next; transports are taken down in its following rounds.
            for _ in range(3):
                await asyncio.sleep(0)

    async def verify(self) -> str:
        _tls_context(self._options)
        keys = len(self._options.master_keys)
        where = "any address" if self._options.allow_private else "public addresses"
        return f"{self.name}: signs with {keys} key{'s' if keys > 1 else ''}, posts to {where}"


def webhook_id_of(message: Message) -> str:
    """The id by which a receiver recognises a repeat: the hash that its Message-ID has too."""
    return f"msg_{message.message_id.strip('<>').partition('@')[0]}".replace(".", "_")


def write_document(message: Message, now_s: float) -> str:
    """The body: what happened, when, and its facts; `now_s` (epoch) stands in for a time unknown.

    Raises TypeError for a fact that JSON has no exact form of, floats included.
    """
    facts = dict(message.facts)
    occurred_at = facts.get("occurred_at") or _iso(now_s)
    document = {"type": message.kind, "timestamp": occurred_at, "data": facts}
    if any(isinstance(value, float) for value in facts.values()):
        raise TypeError("a fact is a float")
    return _ENCODER.encode(document)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")


def _signed(signers: Sequence[Webhook], webhook_id: str, text: str, now_s: float) -> dict[str, str]:
    at = datetime.fromtimestamp(int(now_s), UTC)
    signatures = [signer.sign(webhook_id, at, text) for signer in signers]
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(int(now_s)),
        "webhook-signature": " ".join(signatures),
    }


async def _finish(response: aiohttp.ClientResponse) -> None:
    """Read what is left of an answer, so that its connection can be kept; else drop that."""
    if response.content.is_eof():
        response.release()
        return
    size = 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in response.content.iter_any():
                size += len(chunk)
                if size > _MOST_BODY:
                    break
            else:
                response.release()
                return
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
    response.close()


def _failure(error: aiohttp.ClientError, body: _Body) -> SendResult:
    cause = error.__cause__
    if isinstance(error, aiohttp.InvalidURL):
        return SendResult("refused", code="url", detail="address is not a URL")
    if isinstance(cause, PrivateAddressError):
        detail = "address leads to a private network"
        return SendResult("later", code="private_address", detail=detail, scope="message")
    if isinstance(error, aiohttp.ClientSSLError) or isinstance(cause, ssl.SSLError):
        return _lost(body, "tls", "endpoint's certificate or TLS is not accepted")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return _lost(body, "dns", "endpoint's name is not known")
    if isinstance(error, aiohttp.ClientConnectorError):
        return _lost(body, "connection", "endpoint can't be reached")
    if isinstance(error, aiohttp.ClientResponseError):
        return _lost(body, "answer", "endpoint's answer is not HTTP, or its head is too large")
    return _lost(body, "connection", "connection was lost")


def _lost(body: _Body, code: str, detail: str) -> SendResult:
    if body.is_sent:
        return SendResult("unknown", code=code, detail=f"{detail}, after the request")
    return SendResult("later", code=code, detail=f"{detail}, before the request", scope="message")


def _tls_context(options: WebhookOptions) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=options.ca_file)
    except (OSError, ssl.SSLError):
        raise ConfigurationError("webhook connection: ca_file can't be read") from None
