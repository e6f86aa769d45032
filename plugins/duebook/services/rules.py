"""Rows of a schedule as rules of the calendar."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from duebook.domain.calendar import Rule


def rule_of(row: Mapping[str, Any]) -> Rule:
    """The rule that a row of `schedule` states; not validated again."""
    return _rule(
        row["frequency"],
        row["every"],
        tuple(row["weekdays"] or ()),
        row["month_day"],
        row["nth"],
        row["business_shift"],
        row["holiday_calendar"],
        row["zone"],
        row["wall_time"],
        row["absent"],
        row["gap"],
        row["overlap"],
        row["starts_on"],
        row["ends_on"],
        row["occurrence_count"],
    )


@lru_cache(maxsize=4096)
def _rule(*stated: Any) -> Rule:
    # Schedules share their rules by the thousand, and telling equal objects apart takes time.
    names = (
        "frequency",
        "every",
        "weekdays",
        "month_day",
        "nth",
        "business_shift",
        "holiday_calendar",
        "zone",
        "wall_time",
        "absent",
        "gap",
        "overlap",
        "starts_on",
        "ends_on",
        "count",
    )
    return Rule(**cast("Any", dict(zip(names, stated, strict=True))))
