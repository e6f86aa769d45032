"""Stripe, by its own library, which accepts any time in the future.

https://docs.stripe.com/webhooks#verify-manually
"""

from __future__ import annotations

from collections.abc import Sequence

import stripe

from duebook.services.signing.base import (
    TOLERANCE_S,
    Event,
    SignatureRefused,
    SignedRequest,
    event_of,
    read_document,
    require_any,
    require_recent,
    require_text,
)

_HEADER = "stripe-signature"


class StripeScheme:
    """One header with a time and one or more signatures over time and body."""

    headers = (_HEADER,)
    needs_url = False

    def require_secret(self, secret: str) -> None:
        require_text(secret)

    def verify(
        self, secrets: Sequence[str], request: SignedRequest, now_s: float
    ) -> Sequence[Event]:
        header = request.headers[_HEADER]
        require_recent(_signed_time(header), now_s)
        require_any(secrets, lambda secret: _is_signed(secret, header, request.body))
        return [event_of(request.body, read_document(request.body).get("id"))]


def _signed_time(header: str) -> str:
    times = [item[2:] for item in header.split(",") if item.startswith("t=")]
    if len(times) != 1:
        raise SignatureRefused("the header holds no time, or several")
    return times[0]


def _is_signed(secret: str, header: str, body: bytes) -> bool:
    return bool(stripe.WebhookSignature.verify_header(body, header, secret, tolerance=TOLERANCE_S))
