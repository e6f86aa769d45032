"""The webhook receiver as an ASGI application: alone, or mounted in Airflow's API server.

`POST /webhooks/{endpoint}` answers 200 once the receipt has been committed, also for a duplicate;
400, 401, 404, 413 and 415 for what can't be one; 429 with Retry-After over the endpoint's rate,
503 with Retry-After when it can't be stored.
Never 500: a provider gives up on an endpoint that keeps failing, and comes back to one that is
away. `GET /health` says whether a receipt could be stored now.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import structlog
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.requests import ClientDisconnect

from duebook.errors import ConfigurationError, InputError, UnavailableError
from duebook.services.receive import Endpoint, ReceiptStore, Verdict
from duebook.services.signatures import SCHEMES, verify
from duebook.services.signing.base import BodyRefused, Event, SignatureRefused, SignedRequest
from duebook.services.signing.certificates import CertificateKeys
from duebook.services.signing.paypal import CERTIFICATE_HEADER
from duebook.web.allowance import Allowance
from duebook.web.edge import TrustedProxies, is_protected

log = structlog.get_logger(__name__)

MOST_BYTES: Final = 256 * 1024
"""Body of an endpoint that is not known: read to its end all the same, then refused."""

RETRY_AFTER_S: Final = 30
_BODY_S: Final = 10.0
_MOST_HEADER: Final = 1000
# Beside the signature; what GitHub says of a delivery stands in its headers alone.
_KEPT: Final = ("content-type", "x-github-delivery", "x-github-event")


class _Refused(Exception):
    def __init__(self, status: int, reason: str, retry_after_s: int | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.retry_after_s = retry_after_s


def make_app(
    endpoints: Mapping[str, Endpoint],
    broken: Mapping[str, ConfigurationError],
    store: ReceiptStore,
    proxies: TrustedProxies,
    *,
    clock: Callable[[], float] = time.time,
    certificates: CertificateKeys | None = None,
) -> FastAPI:
    """The application; `broken` endpoints exist but can't verify, so they answer 503.

    Nothing is opened before the first request: mounted in Airflow no start-up event arrives.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await store.close()

    app = FastAPI(
        title="Duebook webhooks",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    keys = certificates or CertificateKeys(clock=clock)
    receiver = _Receiver(endpoints, broken, store, proxies, clock, keys)

    @app.post("/webhooks/{endpoint}")
    async def receive(endpoint: str, request: Request) -> Response:
        return await receiver.answer(endpoint, request)

    @app.get("/health")
    async def health() -> Response:
        try:
            await store.check()
        except UnavailableError as error:
            log.warning("not healthy", reason=str(error))
            return _away()
        return JSONResponse({"status": "ok", "endpoints": sorted(endpoints)})

    return app


class _Receiver:
    """One request after another: cap, endpoint, signature, time, one transaction, answer."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        broken: Mapping[str, ConfigurationError],
        store: ReceiptStore,
        proxies: TrustedProxies,
        clock: Callable[[], float],
        certificates: CertificateKeys,
    ) -> None:
        self._certificates = certificates
        self._endpoints = endpoints
        self._allowances = {
            name: Allowance(endpoint.max_per_second)
            for name, endpoint in endpoints.items()
            if endpoint.max_per_second is not None
        }
        self._broken = broken
        self._store = store
        self._proxies = proxies
        self._clock = clock

    async def answer(self, name: str, request: Request) -> Response:
        try:
            return await self._receive(name, request)
        except _Refused as refused:
            # Only a name that is configured is logged: any other is whatever somebody sent.
            known = name if name in self._endpoints else None
            log.info("refused", endpoint=known, status=refused.status, reason=str(refused))
            return _refusal(refused)
        except UnavailableError as error:
            log.error("webhook not stored", endpoint=name, reason=str(error))
            return _away()
        except Exception as error:
            log.error("webhook not stored", endpoint=name, reason=type(error).__name__)
            return _away()

    async def _receive(self, name: str, request: Request) -> Response:
        if not is_protected(request, self._proxies):
            raise _Refused(403, "plain HTTP is taken from this machine or a trusted proxy only")
        endpoint = self._endpoints.get(name)
        body = await _read_body(request, endpoint.max_body_bytes if endpoint else MOST_BYTES)
        if name in self._broken:
            raise UnavailableError(str(self._broken[name]))
        if endpoint is None:
            raise _Refused(404, "no such endpoint")
        headers = _once(request, SCHEMES[endpoint.scheme].headers)
        try:
            events = await self._verify(endpoint, headers, body)
            self._take(endpoint)
            kept = {**headers, **_once(request, _KEPT)}
            verdicts = await self._store.record(endpoint, events, kept)
        except SignatureRefused as refused:
            raise _Refused(401, str(refused)) from None
        except (BodyRefused, InputError) as refused:
            raise _Refused(400, str(refused)) from None
        for event, verdict in zip(events, verdicts, strict=True):
            say = log.warning if verdict == "differs" else log.info
            say(
                "webhook received",
                endpoint=endpoint.name,
                event_id=event.event_id,
                verdict=verdict,
            )
        return _taken(endpoint, verdicts)

    async def _verify(
        self, endpoint: Endpoint, headers: Mapping[str, str], body: bytes
    ) -> Sequence[Event]:
        key = None
        if endpoint.scheme == "paypal" and CERTIFICATE_HEADER in headers:
            url = headers[CERTIFICATE_HEADER]
            key = await self._certificates.key_of(url, endpoint.roots)
        signed = SignedRequest(headers, body, endpoint.url, key)
        return verify(endpoint.scheme, endpoint.secrets, signed, self._clock())

    def _take(self, endpoint: Endpoint) -> None:
        allowance = self._allowances.get(endpoint.name)
        wait_s = allowance.take(time.monotonic()) if allowance else 0.0
        if wait_s > 0:
            raise _Refused(429, "more than this endpoint takes a second", math.ceil(wait_s))


async def _read_body(request: Request, most: int) -> bytes:
    """The body, never more than `most` bytes of it: what its length claims is not believed."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise _Refused(415, "a compressed body is not taken")
    stated = request.headers.get("content-length", "0")
    if stated.isascii() and stated.isdigit() and int(stated[:20]) > most:
        raise _Refused(413, f"over {most} bytes")
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise _Refused(413, f"over {most} bytes")
    except TimeoutError:
        raise _Refused(408, "the body did not come in time") from None
    except ClientDisconnect:
        raise _Refused(400, "the body broke off") from None
    return bytes(body)


def _once(request: Request, names: tuple[str, ...]) -> dict[str, str]:
    """Those of these headers that came exactly once, and are of a sane length."""
    found = {name: request.headers.getlist(name) for name in names}
    return {
        name: values[0]
        for name, values in found.items()
        if len(values) == 1 and len(values[0]) <= _MOST_HEADER
    }


def _taken(endpoint: Endpoint, verdicts: Sequence[Verdict]) -> Response:
    if endpoint.scheme in ("adyen", "adyen_platform"):
        # Adyen once took nothing else for an answer, and still shows it as one.
        return PlainTextResponse("[accepted]")
    worst = next(each for each in ("differs", "stored", "duplicate") if each in verdicts)
    return JSONResponse({"status": worst})


def _refusal(refused: _Refused) -> Response:
    # What is left of a body that was refused is not worth reading.
    headers = {"Connection": "close"} if refused.status in (408, 413, 415) else {}
    if refused.retry_after_s is not None:
        headers["Retry-After"] = str(refused.retry_after_s)
    return JSONResponse({"error": str(refused)}, status_code=refused.status, headers=headers)


def _away() -> Response:
    headers = {"Retry-After": str(RETRY_AFTER_S)}
    return JSONResponse({"error": "away, try again"}, status_code=503, headers=headers)
