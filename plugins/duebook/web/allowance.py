"""How many verified webhooks a second an endpoint takes.

Only what was shown to be signed by the provider counts. Counted before, anybody who can reach the
endpoint could use the allowance up and silence the provider; what he sends costs a hash over a
capped body, never a connection of the database, which is what the allowance is there to protect.
"""

from __future__ import annotations


class Allowance:
    """Of one endpoint in one process; up to a second's worth, at least one, may come at once."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._most = max(1.0, per_second)
        self._left = self._most
        self._at_s: float | None = None

    def take(self, now_s: float) -> float:
        """0.0 once one is taken, else the seconds until there is one; `now_s` never goes back."""
        passed_s = 0.0 if self._at_s is None else now_s - self._at_s
        self._at_s = now_s
        self._left = min(self._most, self._left + passed_s * self._per_second)
        if self._left < 1.0:
            return (1.0 - self._left) / self._per_second
        self._left -= 1.0
        return 0.0
