"""The catch-up policy: what is missed is sent, superseded, skipped or too late, by its rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duebook.domain.catch_up import CatchUpPolicy, judge, spread_offset
from duebook.errors import ConfigurationError

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def policy(**changes: Any) -> CatchUpPolicy:
    fields: dict[str, Any] = {
        "mode": "all",
        "window": timedelta(hours=6),
        "max_occurrences": 3,
        "spread_per_minute": 60,
    }
    return CatchUpPolicy(**(fields | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": "some"},
        {"window": timedelta(seconds=119)},
        {"window": timedelta(minutes=9), "sweep_interval": timedelta(minutes=5)},
        {"max_occurrences": 0},
        {"spread_per_minute": 0},
        {"sweep_interval": timedelta(0)},
    ],
)
def test_a_policy_that_can_not_work_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        policy(**changes)


def test_a_window_of_two_sweeps_is_accepted() -> None:
    assert policy(window=timedelta(minutes=2)).missed_after == timedelta(minutes=2)


@pytest.mark.parametrize(
    ("mode", "minutes_ago", "newer_due", "verdict"),
    [
        ("all", 1, 0, "send"),
        ("skip", 2, 0, "send"),
        ("latest", 2, 5, "send"),
        ("all", 60, 2, "send"),
        ("all", 60, 3, "superseded"),
        ("all", 361, 0, "too_late"),
        ("all", 360, 0, "send"),
        ("latest", 60, 0, "send"),
        ("latest", 60, 1, "superseded"),
        ("latest", 361, 0, "too_late"),
        ("skip", 3, 0, "skipped"),
        ("skip", 9999, 9, "skipped"),
    ],
)
def test_the_rule_decides(mode: str, minutes_ago: int, newer_due: int, verdict: str) -> None:
    due_at = NOW - timedelta(minutes=minutes_ago)
    assert judge(policy(mode=mode), due_at=due_at, newer_due=newer_due, now=NOW) == verdict


def test_catching_up_keeps_its_rate() -> None:
    offsets = [spread_offset(policy(spread_per_minute=30), n) for n in range(31)]
    assert offsets[0] == timedelta(0)
    assert offsets[30] == timedelta(minutes=1)
