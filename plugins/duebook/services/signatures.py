"""Who signed a webhook: the providers' own libraries over the raw bytes, hedged where they are lax.

What the libraries let pass or trip over was found by running them: stripe accepts any time in the
future, standardwebhooks a fraction of a second, a dot in an id, and a valid entry only when no
malformed one stands before it. Specifications:
https://docs.stripe.com/webhooks#verify-manually,
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import standardwebhooks
import stripe

Scheme = Literal["stripe", "standard"]

TOLERANCE_S: Final = 300
"""How far a signed time may be from now, both ways."""

SIGNED_HEADERS: Final[Mapping[Scheme, tuple[str, ...]]] = {
    "stripe": ("stripe-signature",),
    "standard": ("webhook-id", "webhook-timestamp", "webhook-signature"),
}

_SECONDS: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_EVENT_ID: Final = re.compile(r"[!-~]{1,255}", re.ASCII)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)
_SHA256_BYTES: Final = 32


class SignatureRefused(Exception):
    """Not signed by who it should be from, or not now. Its text holds nothing of the request."""


class BodyRefused(Exception):
    """Signed, but not something that this scheme can mean. Its text holds nothing of the body."""


def require_secret(scheme: Scheme, secret: str) -> None:
    """Raise ValueError for a secret that the scheme can't use; its text does not repeat it."""
    if not secret.strip():
        raise ValueError("is empty")
    if scheme == "standard":
        # The library leaves out what is not base64, and would verify by what is left of it.
        if not _BASE64.fullmatch(secret.removeprefix("whsec_")):
            raise ValueError("is not base64, with or without whsec_ before it")
        try:
            standardwebhooks.Webhook(secret)
        except Exception:
            raise ValueError("is no secret of Standard Webhooks") from None


def verify(
    scheme: Scheme,
    secrets: Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    now_s: float,
) -> str:
    """The id of the event, once any of the secrets is shown to have signed these very bytes.

    `headers` holds those of SIGNED_HEADERS that came exactly once, named in lower case; `now_s` is
    epoch seconds. Raises SignatureRefused, whatever the libraries raise, and BodyRefused.
    """
    if any(name not in headers for name in SIGNED_HEADERS[scheme]):
        raise SignatureRefused("a signature header is missing, or came twice")
    if scheme == "stripe":
        header = headers["stripe-signature"]
        _require_recent(_stripe_time(header), now_s)
        _require_any(secrets, lambda secret: _verify_stripe(secret, header, body))
        return _stripe_event_id(body)
    _require_recent(headers["webhook-timestamp"], now_s)
    event_id = headers["webhook-id"]
    if not _EVENT_ID.fullmatch(event_id) or "." in event_id:
        # With dots the same signed bytes could be cut apart in two ways.
        raise SignatureRefused("webhook-id can't be one")
    sound = {**headers, "webhook-signature": _well_formed(headers["webhook-signature"])}
    _require_any(secrets, lambda secret: _verify_standard(secret, sound, body))
    return event_id


def _require_any(secrets: Sequence[str], check: Callable[[str], None]) -> None:
    for secret in secrets:
        try:
            check(secret)
        except Exception:  # noqa: S112 (they raise nearly anything for hostile input)
            continue
        return
    raise SignatureRefused("no secret of the endpoint made this signature")


def _require_recent(seconds: str, now_s: float) -> None:
    if not _SECONDS.fullmatch(seconds):
        raise SignatureRefused("the signed time is not in whole seconds")
    if abs(int(seconds) - now_s) > TOLERANCE_S:
        raise SignatureRefused("the signed time is not now")


def _stripe_time(header: str) -> str:
    times = [item[2:] for item in header.split(",") if item.startswith("t=")]
    if len(times) != 1:
        raise SignatureRefused("the header holds no time, or several")
    return times[0]


def _verify_stripe(secret: str, header: str, body: bytes) -> None:
    stripe.WebhookSignature.verify_header(body, header, secret, tolerance=TOLERANCE_S)


def _verify_standard(secret: str, headers: Mapping[str, str], body: bytes) -> None:
    standardwebhooks.Webhook(secret).verify(body, dict(headers), json_parse=False)


def _well_formed(signatures: str) -> str:
    """The v1 entries that the library can read; it gives up at the first that it can't."""
    return " ".join(entry for entry in signatures.split(" ") if _is_v1(entry))


def _is_v1(entry: str) -> bool:
    version, _, signature = entry.partition(",")
    try:
        return version == "v1" and len(base64.b64decode(signature, validate=True)) == _SHA256_BYTES
    except (binascii.Error, ValueError):
        return False


def _stripe_event_id(body: bytes) -> str:
    event_id = read_document(body).get("id")
    if not isinstance(event_id, str) or not _EVENT_ID.fullmatch(event_id):
        raise BodyRefused("the event has no id")
    return event_id


def read_document(body: bytes) -> dict[str, Any]:
    """A body as the JSON object that it should be. Raises BodyRefused."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise BodyRefused("the body is not JSON") from None
    if not isinstance(document, dict):
        raise BodyRefused("the body is not a JSON object")
    return document
