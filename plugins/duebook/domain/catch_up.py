"""What happens to what was missed: a policy stored with each schedule and each intent kind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from duebook.errors import ConfigurationError

CatchUpMode = Literal["all", "latest", "skip"]
Verdict = Literal["send", "too_late", "superseded", "skipped"]

MODES: Final = ("all", "latest", "skip")
SWEEP_INTERVAL: Final = timedelta(minutes=1)
# What is found later than this was missed: two sweeps. The SQL of the sweep says the same.
MISSED_AFTER: Final = 2 * SWEEP_INTERVAL


@dataclass(frozen=True, slots=True)
class CatchUpPolicy:
    """`mode` × `window` × `max_occurrences` × `spread_per_minute`; none has a default in code.

    `window`: how old a missed one may be and still be sent. `max_occurrences`: at most so many
    missed ones of one subject. `spread_per_minute`: rate while catching up. `sweep_interval`: how
    often due work is looked for; what is older than two of them was missed. Raises
    ConfigurationError, also for a window shorter than two sweeps: each sweep that is a little late
    would end good work.
    """

    mode: CatchUpMode
    window: timedelta
    max_occurrences: int
    spread_per_minute: int
    sweep_interval: timedelta = SWEEP_INTERVAL

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigurationError("catch_up: expected all, latest or skip")
        if self.sweep_interval <= timedelta(0):
            raise ConfigurationError("sweep interval: must be positive")
        if self.window < 2 * self.sweep_interval:
            raise ConfigurationError("catch_up_window: shorter than two sweeps")
        if self.max_occurrences < 1:
            raise ConfigurationError("max_occurrences: must be at least 1")
        if self.spread_per_minute < 1:
            raise ConfigurationError("spread_per_minute: must be at least 1")

    @property
    def missed_after(self) -> timedelta:
        """Age from which a due occurrence counts as missed: two sweeps."""
        return 2 * self.sweep_interval


def judge(policy: CatchUpPolicy, *, due_at: datetime, newer_due: int, now: datetime) -> Verdict:
    """What becomes of one occurrence that is due.

    `newer_due` counts the newer occurrences of the same subject that are due by `now` (from the
    calendar, not from the rows written so far). What is not missed is sent whatever the mode.
    `latest` is at most one missed occurrence, `all` at most `max_occurrences`; older ones are
    superseded, and what is older than the window is too late.
    """
    age = now - due_at
    if age <= policy.missed_after:
        return "send"
    if policy.mode == "skip":
        return "skipped"
    if age > policy.window:
        return "too_late"
    return "superseded" if newer_due >= most_sent(policy) else "send"


def most_sent(policy: CatchUpPolicy) -> int:
    """How many missed ones of one subject are sent at most; the newer ones come first."""
    return 1 if policy.mode == "latest" else policy.max_occurrences
