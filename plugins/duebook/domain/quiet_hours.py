"""Quiet hours of a recipient: local wall-clock windows, half-open, over midnight and DST.

An instant is quiet when the wall clock in the recipient's zone then shows a time inside a window.
So a window that ends inside a repeated hour is quiet twice, and one that ends inside a skipped hour
ends at the jump.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

EVERY_DAY: Final = frozenset(range(7))
# Beyond a week of unbroken quiet the windows cover the whole week and never end.
LONGEST_QUIET: Final = timedelta(days=8)


@dataclass(frozen=True, slots=True)
class QuietWindow:
    """Nothing is sent from `from_local` until before `until_local`.

    Over midnight when `from_local` is later; both equal is a whole day. `weekdays` are those on
    which the window starts, Monday is 0.
    """

    from_local: time
    until_local: time
    weekdays: frozenset[int] = EVERY_DAY

    def end_of(self, wall: datetime) -> datetime | None:
        """Wall time at which the window that covers `wall` (naive) ends, or None."""
        today, clock = wall.date(), wall.time()
        starts_today = today.weekday() in self.weekdays
        if self.from_local < self.until_local:
            if starts_today and self.from_local <= clock < self.until_local:
                return datetime.combine(today, self.until_local)
            return None
        if starts_today and clock >= self.from_local:
            return datetime.combine(today + timedelta(days=1), self.until_local)
        started_yesterday = (today.weekday() - 1) % 7 in self.weekdays
        if started_yesterday and clock < self.until_local:
            return datetime.combine(today, self.until_local)
        return None


def quiet_until(windows: Sequence[QuietWindow], zone: ZoneInfo, now: datetime) -> datetime | None:
    """First instant (UTC) from `now` on that is not quiet; None when `now` itself is not.

    Windows that follow each other are passed together. When they cover the whole week the answer is
    datetime.max in UTC.
    """
    at = now.astimezone(UTC)
    horizon = at + LONGEST_QUIET
    quiet = False
    while (end := _longest_end(windows, at, zone)) is not None:
        quiet = True
        at = _instant_of(end, at, zone)
        if at > horizon:
            return datetime.max.replace(tzinfo=UTC)
    return at if quiet else None


def _longest_end(windows: Sequence[QuietWindow], at: datetime, zone: ZoneInfo) -> timedelta | None:
    wall = at.astimezone(zone).replace(tzinfo=None)
    ends = [end for window in windows if (end := window.end_of(wall)) is not None]
    return max(ends) - wall if ends else None


def _instant_of(ahead: timedelta, at: datetime, zone: ZoneInfo) -> datetime:
    """When the wall clock has advanced by `ahead`, or the clock change before that."""
    candidate = at + ahead
    if _offset(candidate, zone) == _offset(at, zone):
        return candidate
    # The clock changes on the way: from there the wall time is looked at anew.
    return _next_change(at, candidate, zone)


def _next_change(low: datetime, high: datetime, zone: ZoneInfo) -> datetime:
    before = _offset(low, zone)
    first, last = math.floor(low.timestamp()), math.ceil(high.timestamp())
    while last - first > 1:
        middle = (first + last) // 2
        if _offset(datetime.fromtimestamp(middle, UTC), zone) == before:
            first = middle
        else:
            last = middle
    return datetime.fromtimestamp(last, UTC)


def _offset(at: datetime, zone: ZoneInfo) -> timedelta | None:
    return at.astimezone(zone).utcoffset()
