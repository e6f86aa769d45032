"""PayPal: an RSA signature by a certificate that the request names by its address.

Signed are the transmission's id and time, the id of our webhook (which is not in the request, and
is the endpoint's secret here) and the CRC32 of the raw body in decimal. No maintained library does
it. The address is believed only on PayPal's own hosts, or anybody could name his own certificate.
https://developer.paypal.com/api/rest/webhooks/rest/#link-selfverificationmethod
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from duebook.services.signing.base import (
    EVENT_ID,
    Event,
    SignatureRefused,
    SignedRequest,
    event_of,
    read_document,
    require_any,
    require_recent,
    require_text,
)

CERTIFICATE: Final = re.compile(
    r"https://api(?:-m)?(?:\.sandbox)?\.paypal\.com/v1/notifications/certs/[A-Za-z0-9-]{1,80}",
    re.ASCII,
)
"""Where a certificate may be: nothing else is ever asked for."""

CERTIFICATE_HEADER: Final = "paypal-cert-url"
_ALGORITHM: Final = "SHA256withRSA"


class PayPalScheme:
    """Five headers; the key of the certificate is fetched before, see certificates.py."""

    headers = (
        "paypal-transmission-id",
        "paypal-transmission-time",
        "paypal-transmission-sig",
        "paypal-auth-algo",
        CERTIFICATE_HEADER,
    )
    needs_url = False

    def require_secret(self, secret: str) -> None:
        require_text(secret)

    def verify(
        self, secrets: Sequence[str], request: SignedRequest, now_s: float
    ) -> Sequence[Event]:
        headers, key = request.headers, request.public_key
        require_certificate(headers[CERTIFICATE_HEADER])
        if headers["paypal-auth-algo"] != _ALGORITHM:
            raise SignatureRefused("signed by another algorithm")
        transmission = headers["paypal-transmission-id"]
        if not EVENT_ID.fullmatch(transmission) or "|" in transmission:
            raise SignatureRefused("the transmission's id can't be one")
        sent_at = headers["paypal-transmission-time"]
        require_recent(_seconds(sent_at), now_s)
        signature, checksum = _signature(headers), zlib.crc32(request.body)

        def is_signed(webhook_id: str) -> bool:
            signed = f"{transmission}|{sent_at}|{webhook_id}|{checksum}".encode()
            return key is not None and _is_by(key, signature, signed)

        require_any(secrets, is_signed)
        return [event_of(request.body, read_document(request.body).get("id"))]


def require_certificate(url: str) -> None:
    """Refuse the address of a certificate that is not one of PayPal's."""
    if not CERTIFICATE.fullmatch(url):
        raise SignatureRefused("the certificate is not one of PayPal's")


def _seconds(text: str) -> str:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise SignatureRefused("the signed time is none") from None
    if at.tzinfo is None:
        raise SignatureRefused("the signed time has no zone")
    return str(max(0, int(at.timestamp())))


def _signature(headers: Mapping[str, str]) -> bytes:
    try:
        return base64.b64decode(headers["paypal-transmission-sig"], validate=True)
    except (binascii.Error, ValueError):
        raise SignatureRefused("the signature is not base64") from None


def _is_by(key: RSAPublicKey, signature: bytes, signed: bytes) -> bool:
    try:
        key.verify(signature, signed, PKCS1v15(), SHA256())
    except InvalidSignature:
        return False
    return True
