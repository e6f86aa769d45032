"""The slots in time that a paced budget gave a batch: no message starts outside of one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

LATEST_S: Final = 0.05
"""A slot that has passed by more is lost: used late, it would meet those of other senders."""


class Pace:
    """`count` slots from `first` on, `spacing` apart; all in seconds of one clock."""

    def __init__(self, first: float, spacing: float, count: int) -> None:
        self._first = first
        self._spacing = spacing
        self._count = count
        self._next = 0

    def next_at(self, now: float) -> float:
        """When the next slot is that can still be used."""
        passed = math.ceil((now - LATEST_S - self._first) / self._spacing)
        return self._first + max(self._next, passed) * self._spacing

    def is_used_up(self, now: float) -> bool:
        """Whether no slot is left: what has not started has to be claimed again."""
        return self._number_at(self.next_at(now)) >= self._count

    def _number_at(self, at: float) -> int:
        return round((at - self._first) / self._spacing)

    async def take(self, until: float, clock: Callable[[], float]) -> bool:
        """Wait for a slot and use it up; False, at once, when none is left or it is past `until`.

        A lost slot is not made good, so a batch whose sender was slow has fewer than messages.
        """
        while True:
            now = clock()
            at = self.next_at(now)
            number = self._number_at(at)
            if number >= self._count or at >= until:
                return False
            if at <= now:
                self._next = number + 1
                return True
            await asyncio.sleep(at - now)
