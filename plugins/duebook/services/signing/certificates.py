"""The keys of PayPal's certificates: fetched from its own hosts over verified TLS, and kept.

A request names its certificate before anything of it is verified, so whoever sends it decides
what is fetched. Hence only addresses of PayPal's own hosts, one at a time, and few that fail in a
minute.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import httpx
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from duebook.errors import UnavailableError
from duebook.services.signing.base import SignatureRefused
from duebook.services.signing.paypal import require_certificate

_KEPT_S: Final = 24 * 3600.0
_MOST_KEPT: Final = 16
_MOST_FAILED: Final = 5
_FAILED_S: Final = 60.0
_MOST_BYTES: Final = 64 * 1024
_TIMEOUT_S: Final = 5.0


class CertificateKeys:
    """Public keys by the address of their certificate; `clock` is epoch seconds."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`transport` takes the place of the network."""
        self._clock = clock
        self._transport = transport
        self._kept: dict[str, tuple[RSAPublicKey, float]] = {}
        self._failed: list[float] = []
        self._turn = asyncio.Lock()

    async def key_of(self, url: str) -> RSAPublicKey:
        """The key of the certificate at `url`.

        Raises SignatureRefused (not PayPal's address, no certificate, out of date) and
        UnavailableError (can't be fetched now).
        """
        require_certificate(url)
        async with self._turn:
            now = self._clock()
            kept = self._kept.get(url)
            if kept is not None and kept[1] > now:
                return kept[0]
            self._failed = [at for at in self._failed if at > now - _FAILED_S]
            if len(self._failed) >= _MOST_FAILED:
                raise UnavailableError("too many certificates could not be fetched")
            try:
                certificate = _read(await self._fetch(url), now)
            except Exception:
                self._failed.append(now)
                raise
            if len(self._kept) >= _MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            until = min(now + _KEPT_S, certificate.not_valid_after_utc.timestamp())
            key = certificate.public_key()
            assert isinstance(key, RSAPublicKey)
            self._kept[url] = (key, until)
            return key

    async def _fetch(self, url: str) -> bytes:
        try:
            async with (
                httpx.AsyncClient(
                    timeout=_TIMEOUT_S,
                    follow_redirects=False,
                    trust_env=False,
                    transport=self._transport,
                ) as client,
                asyncio.timeout(_TIMEOUT_S),
                client.stream("GET", url) as answer,
            ):
                if answer.status_code == httpx.codes.NOT_FOUND:
                    raise SignatureRefused("PayPal knows no such certificate")
                if answer.status_code != httpx.codes.OK:
                    raise UnavailableError("PayPal's certificate can't be fetched")
                return await _body(answer)
        except (httpx.HTTPError, TimeoutError):
            raise UnavailableError("PayPal's certificate can't be fetched") from None


async def _body(answer: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise SignatureRefused("the certificate is too long")
    return bytes(body)


def _read(pem: bytes, now: float) -> x509.Certificate:
    try:
        certificate = x509.load_pem_x509_certificates(pem)[0]
    except ValueError:
        raise SignatureRefused("the certificate can't be read") from None
    valid = (certificate.not_valid_before_utc, certificate.not_valid_after_utc)
    if not valid[0].timestamp() <= now < valid[1].timestamp():
        raise SignatureRefused("the certificate is out of date")
    if not isinstance(certificate.public_key(), RSAPublicKey):
        raise SignatureRefused("the certificate is of another kind")
    return certificate
