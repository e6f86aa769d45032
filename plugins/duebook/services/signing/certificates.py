"""The keys of PayPal's certificates: fetched from its own hosts, verified against a CA, and kept.

A request names its certificate before anything of it is verified, so whoever sends it decides
what is fetched. Hence only addresses of PayPal's own hosts, one at a time, and few that fail in a
minute. What is kept waits for no fetch and outlives failed ones, or strangers could silence PayPal.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Final, NamedTuple

import httpx
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import (
    ExtensionPolicy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from duebook.errors import UnavailableError
from duebook.services.signing.base import SignatureRefused
from duebook.services.signing.paypal import require_certificate

Roots = tuple[x509.Certificate, ...]

_KEPT_S: Final = 24 * 3600.0
_MOST_KEPT: Final = 16
_MOST_FAILED: Final = 5
_FAILED_S: Final = 60.0
_MOST_BYTES: Final = 64 * 1024
_TIMEOUT_S: Final = 5.0
_NAME: Final = re.compile(r"messageverificationcerts(\.sandbox)?\.paypal\.com", re.IGNORECASE)


class _Kept(NamedTuple):
    key: RSAPublicKey
    fresh_until: float
    ends_at: float


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
        self._kept: dict[tuple[str, Roots], _Kept] = {}
        self._failed: list[float] = []
        self._turn = asyncio.Lock()

    async def key_of(self, url: str, roots: Roots = ()) -> RSAPublicKey:
        """The key of the certificate at `url`, issued by one of `roots`; none: the usual ones.

        Raises SignatureRefused (not PayPal's address, not its certificate, out of date) and
        UnavailableError (can't be fetched now).
        """
        require_certificate(url)
        kept = self._kept.get((url, roots))
        if kept is not None and self._clock() < kept.fresh_until:
            return kept.key
        async with self._turn:
            return await self._renew(url, roots)

    async def _renew(self, url: str, roots: Roots) -> RSAPublicKey:
        now = self._clock()
        kept = self._kept.get((url, roots))
        if kept is not None and now < kept.fresh_until:
            return kept.key
        try:
            certificate = await self._read(url, roots, now)
        except UnavailableError:
            if kept is None or now >= kept.ends_at:
                raise
            return kept.key
        except SignatureRefused:
            self._kept.pop((url, roots), None)
            raise
        self._kept.pop((url, roots), None)
        if len(self._kept) >= _MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        key, ends_at = certificate.public_key(), certificate.not_valid_after_utc.timestamp()
        assert isinstance(key, RSAPublicKey)
        self._kept[url, roots] = _Kept(key, min(now + _KEPT_S, ends_at), ends_at)
        return key

    async def _read(self, url: str, roots: Roots, now: float) -> x509.Certificate:
        self._failed = [at for at in self._failed if at > now - _FAILED_S]
        if len(self._failed) >= _MOST_FAILED:
            raise UnavailableError("too many certificates could not be fetched")
        try:
            return _verified(await self._fetch(url), roots or _usual_roots(), now)
        except Exception:
            self._failed.append(now)
            raise

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


@cache
def _usual_roots() -> Roots:
    """What a TLS connection to PayPal is verified against."""
    known = httpx.create_ssl_context().get_ca_certs(binary_form=True)
    readable: list[x509.Certificate] = []
    with warnings.catch_warnings():
        # An old root that breaks RFC 5280 is worth a warning to nobody here.
        warnings.simplefilter("error", CryptographyDeprecationWarning)
        for each in known:
            with contextlib.suppress(ValueError, CryptographyDeprecationWarning):
                readable.append(x509.load_der_x509_certificate(each))
    return tuple(readable)


def _verified(pem: bytes, roots: Roots, now: float) -> x509.Certificate:
    """The first certificate of `pem`, whose others lead to one of the roots."""
    try:
        leaf, *others = x509.load_pem_x509_certificates(pem)
        names = leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError:
        raise SignatureRefused("the certificate can't be read") from None
    policy = (
        PolicyBuilder()
        .store(Store(list(roots)))
        .time(datetime.fromtimestamp(now, UTC))
        # It serves no host: PayPal knows it by its common name.
        .extension_policies(
            ca_policy=ExtensionPolicy.webpki_defaults_ca(), ee_policy=ExtensionPolicy.permit_all()
        )
    )
    try:
        policy.build_client_verifier().verify(leaf, others)
    except VerificationError:
        raise SignatureRefused("the certificate is out of date, or of no CA known here") from None
    if not any(_NAME.fullmatch(str(name.value)) for name in names):
        raise SignatureRefused("the certificate is somebody else's")
    if not isinstance(leaf.public_key(), RSAPublicKey):
        raise SignatureRefused("the certificate is of another kind")
    return leaf
