"""GitHub, Square and Twilio: one keyed hash in one header.

GitHub signs the body, and not the id of its delivery, so an event is known by its bytes. Square
signs the address and the body, Twilio the address and the sorted fields of the form; the address is
the one that the provider was given, letter by letter.
https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries,
https://developer.squareup.com/docs/webhooks/step3validate,
https://www.twilio.com/docs/usage/security#validating-requests
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl

from multidict import MultiDict
from twilio.request_validator import RequestValidator

from duebook.services.signing.base import (
    BodyRefused,
    Event,
    SignatureRefused,
    SignedRequest,
    event_by_content,
    event_of,
    read_document,
    require_any,
    require_text,
)

_MOST_FIELDS: Final = 200


class GithubScheme:
    """`X-Hub-Signature-256: sha256=<hex>` over the body."""

    headers = ("x-hub-signature-256",)
    needs_url = False

    def require_secret(self, secret: str) -> None:
        require_text(secret)

    def verify(
        self, secrets: Sequence[str], request: SignedRequest, now_s: float
    ) -> Sequence[Event]:
        del now_s
        stated = request.headers["x-hub-signature-256"]

        def is_signed(secret: str) -> bool:
            made = hmac.new(secret.encode(), request.body, hashlib.sha256).hexdigest()
            return hmac.compare_digest(f"sha256={made}", stated)

        require_any(secrets, is_signed)
        return [event_by_content(request.body)]


class SquareScheme:
    """`x-square-hmacsha256-signature: <base64>` over address and body."""

    headers = ("x-square-hmacsha256-signature",)
    needs_url = True

    def require_secret(self, secret: str) -> None:
        require_text(secret)

    def verify(
        self, secrets: Sequence[str], request: SignedRequest, now_s: float
    ) -> Sequence[Event]:
        del now_s
        stated = request.headers["x-square-hmacsha256-signature"]
        signed = (request.url or "").encode() + request.body

        def is_signed(secret: str) -> bool:
            made = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
            return hmac.compare_digest(base64.b64encode(made).decode(), stated)

        require_any(secrets, is_signed)
        return [event_of(request.body, read_document(request.body).get("event_id"))]


class TwilioScheme:
    """`X-Twilio-Signature: <base64>` over address and form, by Twilio's own library."""

    headers = ("x-twilio-signature",)
    needs_url = True

    def require_secret(self, secret: str) -> None:
        require_text(secret)

    def verify(
        self, secrets: Sequence[str], request: SignedRequest, now_s: float
    ) -> Sequence[Event]:
        del now_s
        form, stated = _form(request.body), request.headers["x-twilio-signature"]
        require_any(
            secrets,
            lambda secret: RequestValidator(secret).validate(request.url, form, stated),
        )
        status = form.get("MessageStatus") or form.get("SmsStatus") or "received"
        message_id = form.get("MessageSid") or form.get("SmsSid")
        if not message_id:
            raise BodyRefused("the form names no message")
        return [event_of(request.body, f"{message_id}:{status}")]


def _form(body: bytes) -> MultiDict[str]:
    try:
        fields = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        raise SignatureRefused("the body is no form") from None
    return MultiDict(fields)
