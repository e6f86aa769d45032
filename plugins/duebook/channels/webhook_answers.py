"""What the answer of a customer's endpoint means, and whether to come again.

By the specification of Standard Webhooks
(https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md): 2xx is
success and nothing else is, redirects included; 410 means that nothing more is wanted; 429, 502 and
504 mean to slow down. `webhook-delivery: abort-message` ends one message
(https://docs.svix.com/receiving/delivery-control).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Final

from duebook.channels.base import SendResult
from duebook.domain.backoff import parse_retry_after

_DELIVERY: Final = "webhook-delivery"
_ABORT: Final = "abort-message"
_GONE: Final = 410
_DETAILS: Final[Mapping[int, str]] = {
    400: "endpoint can't read the message",
    401: "endpoint does not accept our signature",
    403: "endpoint does not let us in",
    404: "nothing is at the address",
    405: "endpoint takes no POST",
    413: "message is larger than the endpoint takes",
    415: "endpoint takes no JSON",
    429: "endpoint asks us to slow down",
    502: "endpoint is overloaded or away",
    503: "endpoint is overloaded or away",
    504: "endpoint is overloaded or away",
}


def judge_answer(status: int, headers: Mapping[str, str], now: datetime) -> SendResult:
    """The result of a request that was answered; a Retry-After date counts from `now` (aware).

    Whatever is not a success or an end is tried again, and burns a try: a receiver that is set up
    wrongly is repaired in hours. It is about this customer alone, so it never rests the channel.
    """
    code = str(status)
    if 200 <= status < 300:
        return SendResult("accepted", code=code)
    if status == _GONE:
        detail = "endpoint is gone and wants nothing more"
        return SendResult("refused", code=code, detail=detail, suppress="gone")
    if headers.get(_DELIVERY, "").strip().lower() == _ABORT:
        detail = "endpoint asked not to send this message again"
        return SendResult("refused", code=f"{code} abort", detail=detail)
    return SendResult(
        "later",
        code=code,
        detail=_detail(status),
        retry_after=parse_retry_after(headers.get("retry-after"), now),
        scope="message",
    )


def _detail(status: int) -> str:
    if 300 <= status < 400:
        return "endpoint redirects, which is never followed"
    known = _DETAILS.get(status)
    if known is not None:
        return known
    side = "endpoint failed" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "endpoint refused"
    return f"{side} the message"
