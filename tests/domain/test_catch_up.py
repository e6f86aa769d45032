"""The catch-up policy: what is missed is sent, superseded, skipped or too late, by its rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duebook.domain.catch_up import CatchUpPolicy, judge, most_sent
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


@pytest.mark.parametrize(("mode", "most"), [("all", 3), ("latest", 1)])
def test_the_mode_says_how_many_of_one_subject_are_sent(mode: str, most: int) -> None:
    rule = policy(mode=mode, max_occurrences=3)
    verdicts = [
        judge(rule, due_at=NOW - timedelta(hours=1), newer_due=newer, now=NOW) for newer in range(5)
    ]
    assert most_sent(rule) == most
    assert verdicts == ["send"] * most + ["superseded"] * (5 - most)
