"""Adyen: payments sign each item by eight of its fields, platforms the whole body in a header.

The library verifies only the first item of a body, and joins the fields by colons without escaping
them: ("A:B", "C") and ("A", "B:C") share a signature. So each item is handed to it alone, and only
one field, the merchant's own reference, may hold a colon: then they can be cut in one way only.
What is not signed (reason, date, payment method) is never believed; no time is signed, so the
receipt is the only guard against a replay.
https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures/
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from Adyen.util import is_valid_hmac_notification, is_valid_hmac_payload

from duebook.services.signing.base import (
    BodyRefused,
    Event,
    SignatureRefused,
    SignedRequest,
    event_by_content,
    read_document,
    require_any,
)

_KEY: Final = re.compile(r"(?:[0-9A-Fa-f]{2}){16,64}", re.ASCII)
_PLAIN: Final = re.compile(r"[^:\s]{0,80}")
_REFERENCE: Final = re.compile(r"[A-Za-z0-9]{1,80}", re.ASCII)
_EVENT: Final = re.compile(r"[A-Z0-9_]{1,80}", re.ASCII)
_MOST_ITEMS: Final = 100


class AdyenScheme:
    """Payments: the signature of each item is inside it."""

    headers: tuple[str, ...] = ()
    needs_url = False

    def require_secret(self, secret: str) -> None:
        _require_key(secret)

    def verify(
        self, secrets: Sequence[str], request: SignedRequest, now_s: float
    ) -> Sequence[Event]:
        del now_s
        return [_event(item, secrets) for item in _items(request.body)]


class AdyenPlatformScheme:
    """Platforms: one header over the raw body."""

    headers = ("hmacsignature",)
    needs_url = False

    def require_secret(self, secret: str) -> None:
        _require_key(secret)

    def verify(
        self, secrets: Sequence[str], request: SignedRequest, now_s: float
    ) -> Sequence[Event]:
        del now_s
        signature, body = request.headers["hmacsignature"], request.body
        require_any(secrets, lambda secret: is_valid_hmac_payload(signature, secret, body))
        read_document(body)
        return [event_by_content(body)]


def _require_key(secret: str) -> None:
    if not _KEY.fullmatch(secret):
        raise ValueError("is no HMAC key of Adyen: 16 bytes or more in hexadecimal")


def _items(body: bytes) -> list[dict[str, Any]]:
    try:
        wrapped = read_document(body).get("notificationItems")
    except BodyRefused:
        # Nothing is signed in it.
        raise SignatureRefused("the body holds no signed item") from None
    if not isinstance(wrapped, list) or not 0 < len(wrapped) <= _MOST_ITEMS:
        raise SignatureRefused("the body holds no signed item, or too many")
    found = [each.get("NotificationRequestItem") for each in wrapped if isinstance(each, dict)]
    items = [item for item in found if isinstance(item, dict)]
    if len(items) < len(wrapped):
        raise SignatureRefused("an item is none")
    return items


def _event(item: dict[str, Any], secrets: Sequence[str]) -> Event:
    _require_plain(item)
    require_any(secrets, lambda secret: is_valid_hmac_notification(item, secret))
    event_id = f"{item['eventCode']}:{item['pspReference']}:{item['success']}"
    # The item alone: the same one comes again in other company.
    return Event(event_id, json.dumps(item, sort_keys=True, separators=(",", ":")).encode())


def _require_plain(item: dict[str, Any]) -> None:
    amount = item.get("amount")
    known = {name: item.get(name, "") for name in ("originalReference", "merchantAccountCode")}
    is_plain = (
        isinstance(amount, dict)
        and type(amount.get("value")) is int
        and _is(_PLAIN, amount.get("currency"))
        and all(_is(_PLAIN, value) for value in known.values())
        and isinstance(item.get("merchantReference", ""), str)
        and _is(_REFERENCE, item.get("pspReference"))
        and _is(_EVENT, item.get("eventCode"))
        and item.get("success") in ("true", "false")
    )
    if not is_plain:
        raise SignatureRefused("an item holds what can't be signed in one way only")


def _is(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
