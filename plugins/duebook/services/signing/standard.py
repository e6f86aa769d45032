"""Standard Webhooks: v1 by their own library, v1a (ed25519) by the specification.

The library takes a fraction of a second, a dot in an id, and a valid entry only when no malformed
one stands before it; and it has no v1a. With dots the same signed bytes could be cut in two ways.
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Final

import standardwebhooks
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from duebook.services.signing.base import (
    EVENT_ID,
    Event,
    SignatureRefused,
    SignedRequest,
    require_any,
    require_recent,
    require_text,
)

_PUBLIC_KEY: Final = "whpk_"
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)
_SIZES: Final = {"v1": 32, "v1a": 64}


class StandardScheme:
    """Three headers: id, time, and a list of signatures over both and the body."""

    headers = ("webhook-id", "webhook-timestamp", "webhook-signature")
    needs_url = False

    def require_secret(self, secret: str) -> None:
        require_text(secret)
        if secret.startswith(_PUBLIC_KEY):
            _public_key(secret)
            return
        # The library leaves out what is not base64, and would verify by what is left of it.
        if not _BASE64.fullmatch(secret.removeprefix("whsec_")):
            raise ValueError("is not base64, with or without whsec_ before it")
        try:
            standardwebhooks.Webhook(secret)
        except Exception:
            raise ValueError("is no secret of Standard Webhooks") from None

    def verify(
        self, secrets: Sequence[str], request: SignedRequest, now_s: float
    ) -> Sequence[Event]:
        require_recent(request.headers["webhook-timestamp"], now_s)
        event_id = request.headers["webhook-id"]
        if not EVENT_ID.fullmatch(event_id) or "." in event_id:
            raise SignatureRefused("webhook-id can't be one")
        require_any(secrets, lambda secret: _is_signed(secret, request))
        return [Event(event_id, request.body)]


def _is_signed(secret: str, request: SignedRequest) -> bool:
    signatures = request.headers["webhook-signature"]
    if secret.startswith(_PUBLIC_KEY):
        return _is_signed_by_key(secret, signatures, request)
    sound = {**request.headers, "webhook-signature": " ".join(_entries(signatures, "v1"))}
    standardwebhooks.Webhook(secret).verify(request.body, sound, json_parse=False)
    return True


def _is_signed_by_key(secret: str, signatures: str, request: SignedRequest) -> bool:
    key = _public_key(secret)
    names = (request.headers["webhook-id"], request.headers["webhook-timestamp"])
    signed = b".".join((*(name.encode() for name in names), request.body))
    return any(
        _is_by(key, base64.b64decode(entry.partition(",")[2]), signed)
        for entry in _entries(signatures, "v1a")
    )


def _is_by(key: Ed25519PublicKey, signature: bytes, signed: bytes) -> bool:
    try:
        key.verify(signature, signed)
    except Exception:
        return False
    return True


def _public_key(secret: str) -> Ed25519PublicKey:
    try:
        raw = base64.b64decode(secret.removeprefix(_PUBLIC_KEY), validate=True)
        return Ed25519PublicKey.from_public_bytes(raw)
    except (binascii.Error, ValueError):
        raise ValueError("is no public key of Standard Webhooks") from None


def _entries(signatures: str, version: str) -> list[str]:
    """The entries of a version that can be read; the library gives up at the first that can't."""
    return [entry for entry in signatures.split(" ") if _is_entry(entry, version)]


def _is_entry(entry: str, version: str) -> bool:
    stated, _, signature = entry.partition(",")
    try:
        size = len(base64.b64decode(signature, validate=True))
    except (binascii.Error, ValueError):
        return False
    return stated == version and size == _SIZES[version]
