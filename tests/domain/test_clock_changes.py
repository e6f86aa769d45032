"""The gate beside a clock that changes: minute by minute through both changes of a year."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from duebook.domain.gate import Decision, GateFacts, decide
from duebook.domain.quiet_hours import QuietWindow

MINUTE = timedelta(minutes=1)
# The clock of Berlin is set forward at 01:00 UTC of the first, and back at 01:00 of the second.
CHANGES = (datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC))
WINDOWS = (
    QuietWindow(time(22), time(8)),
    QuietWindow(time(2, 15), time(2, 45)),
    QuietWindow(time(1, 30), time(3, 30)),
)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("change", CHANGES, ids=lambda at: f"{at:%Y-%m-%d}")
def test_quiet_hours_over_both_changes(change: datetime, window: QuietWindow) -> None:
    zone = ZoneInfo("Europe/Berlin")

    def is_quiet(at: datetime) -> bool:
        wall = at.astimezone(zone).time()
        if window.from_local < window.until_local:
            return window.from_local <= wall < window.until_local
        return wall >= window.from_local or wall < window.until_local

    first = change - timedelta(hours=14)
    instants = [first + n * MINUTE for n in range(28 * 60)]
    following: datetime | None = None
    # From the end, so that the next instant that is not quiet is known by looking alone.
    for at in reversed(instants):
        if not is_quiet(at):
            following = at
        facts = GateFacts(
            due_at=at,
            give_up_at=at + timedelta(days=9),
            quiet_windows=(window,),
            zone="Europe/Berlin",
        )
        decision = decide(facts, at)
        if not is_quiet(at):
            assert decision == Decision("send")
        elif following is not None:
            assert decision == Decision("defer", "quiet_hours", following)
