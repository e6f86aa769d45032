"""How long to wait before trying again: pure arithmetic, the jitter is handed in."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

SHORTEST_RETRY: Final = timedelta(seconds=15)
LONGEST_RETRY: Final = timedelta(hours=1)
LONGEST_RETRY_AFTER: Final = timedelta(hours=24)

_SECONDS = re.compile(r"([0-9]+)(?:\.([0-9]+))?", re.ASCII)
_MICROSECOND = timedelta(microseconds=1)


def retry_delay(
    n: int,
    *,
    jitter: float,
    first: timedelta = SHORTEST_RETRY,
    longest: timedelta = LONGEST_RETRY,
) -> timedelta:
    """Delay before the next try after the n-th pause or failure in a row (n counts from 1).

    Doubles from `first` up to `longest`; `jitter` in [0, 1) spreads the waiters over the upper half
    of it (equal jitter), so that they neither come back at once nor too soon. Raises ValueError
    for n < 1 or a jitter outside [0, 1).
    """
    if n < 1:
        raise ValueError("n counts from 1")
    if not 0 <= jitter < 1:
        raise ValueError("jitter is in [0, 1)")
    # 2**63 times a microsecond is beyond any `longest`; the bound keeps the number small.
    full = min(first // _MICROSECOND * 2 ** min(n - 1, 63), longest // _MICROSECOND)
    half = full // 2
    return timedelta(microseconds=half + int((full - half) * jitter))


def parse_retry_after(
    value: str | None, now: datetime, *, longest: timedelta = LONGEST_RETRY_AFTER
) -> timedelta | None:
    """Wait asked for by a Retry-After header (RFC 9110 10.2.3): seconds or an HTTP date.

    A date is counted from `now` (aware); one in the past is zero. Decimal seconds, which some
    providers send, are accepted. Anything beyond `longest` is capped to it: a provider that sends
    milliseconds or a date in 2099 does not stop a channel for ever. None when absent or unreadable.
    """
    text = (value or "").strip()
    if not text:
        return None
    seconds = _SECONDS.fullmatch(text)
    if seconds:
        whole, fraction = seconds.group(1).lstrip("0"), seconds.group(2) or ""
        if len(whole) > 12:
            return longest
        wait = timedelta(seconds=int(whole or "0"), microseconds=int(fraction[:6].ljust(6, "0")))
        return min(wait, longest)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return min(max(at - now, timedelta(0)), longest)


def pause_until(
    now: datetime,
    n: int,
    *,
    jitter: float,
    retry_after: timedelta | None = None,
    longest: timedelta = LONGEST_RETRY_AFTER,
) -> datetime:
    """Until when a shared budget rests after the n-th "later" in a row.

    max(backoff, Retry-After), capped at `longest`: never earlier than the provider asked, unless
    what it asked is absurd.
    """
    wait = max(retry_delay(n, jitter=jitter), retry_after or timedelta(0))
    return now + min(wait, longest)
