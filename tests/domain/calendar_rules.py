"""Rules to test the calendar with: one by one, and drawn at random."""

from __future__ import annotations

import importlib.resources
import itertools
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from duebook.domain.calendar import Occurrence, Rule, RuleError, known_zones, occurrences, validate

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "recurrence"

# Gaps of 30 min, 1 h and 2 h, at midnight and across it, to the south and without any.
ODD_ZONES = (
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Havana",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "Antarctica/Troll",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Pacific/Apia",
    "UTC",
)
CALENDARS = ("DE", "US-NY", "IL", "AE", "CN", "ECB")


def weekly(*weekdays: int, **other: Any) -> Rule:
    """A weekly rule; what is not said is 09:00 in New York from 2026-01-01."""
    return _rule({"frequency": "weekly", "weekdays": weekdays, **other})


def monthly(day: int | None = None, **other: Any) -> Rule:
    """A monthly rule on a day, or with `nth` and `weekdays`."""
    return _rule({"frequency": "monthly", "month_day": day, **other})


def _rule(stated: dict[str, Any]) -> Rule:
    fields: dict[str, Any] = {
        "every": 1,
        "zone": "America/New_York",
        "wall_time": time(9),
        "absent": "omit",
        "gap": "later",
        "overlap": "earlier",
        "starts_on": date(2026, 1, 1),
    }
    return Rule(**{**fields, **stated})


def take(rule: Rule, number: int, after: date | None = None) -> list[Occurrence]:
    """Its first occurrences."""
    return list(itertools.islice(occurrences(rule, after=after), number))


def dates(rule: Rule, number: int) -> list[str]:
    """The nominal dates of its first occurrences."""
    return [one.nominal_on.isoformat() for one in take(rule, number)]


def due(found: Iterable[Occurrence]) -> list[str]:
    """Due instants, as `2026-03-08T07:30Z`."""
    return [f"{one.due_at:%Y-%m-%dT%H:%MZ}" if one.due_at else "" for one in found]


def utc(text: str) -> datetime:
    """An instant of the text, which has its offset."""
    return datetime.fromisoformat(text).astimezone(UTC)


def pinned(zone: str) -> ZoneInfo:
    """The zone by the standard library, of the pinned package wherever zoneinfo looks."""
    path = importlib.resources.files("tzdata").joinpath("zoneinfo", *zone.split("/"))
    with path.open("rb") as file:
        return ZoneInfo.from_file(file, key=zone)


def is_valid(rule: Rule) -> bool:
    """Whether `validate` accepts it."""
    try:
        validate(rule)
    except RuleError:
        return False
    return True


_starts = st.dates(date(2024, 1, 1), date(2032, 12, 31))
_weekdays = st.sets(st.integers(1, 7), min_size=1).map(lambda days: tuple(sorted(days)))
_days = st.one_of(
    st.fixed_dictionaries({"frequency": st.just("weekly"), "weekdays": _weekdays}),
    st.fixed_dictionaries(
        {
            "frequency": st.just("monthly"),
            "month_day": st.sampled_from([1, 15, 28, 29, 29, 30, 30, 31, 31, 31, -1]),
        }
    ),
    st.fixed_dictionaries(
        {
            "frequency": st.just("monthly"),
            "weekdays": _weekdays,
            "nth": st.sampled_from([1, 2, 3, 4, 5, 5, -1]),
        }
    ),
)
_shifts = st.one_of(
    st.just({"business_shift": "none", "holiday_calendar": None}),
    st.fixed_dictionaries(
        {
            "business_shift": st.sampled_from(["next", "previous"]),
            "holiday_calendar": st.sampled_from(CALENDARS),
        }
    ),
)


@st.composite
def rules(draw: st.DrawFn, /, **fixed: Any) -> Rule:
    """Any rule that can be, within some decades; `fixed` fields are as given."""
    starts_on = draw(_starts)
    fields = {
        "every": draw(st.sampled_from([1, 1, 2, 3, 5, 12, 53])),
        "zone": draw(st.sampled_from(ODD_ZONES) | st.sampled_from(sorted(known_zones()))),
        "wall_time": time(draw(st.sampled_from([0, 1, 2, 9, 23])), draw(st.sampled_from([0, 30]))),
        "absent": draw(st.sampled_from(["omit", "backward", "forward"])),
        "gap": draw(st.sampled_from(["skip", "earlier", "later"])),
        "overlap": draw(st.sampled_from(["earlier", "later"])),
        "starts_on": starts_on,
        "ends_on": draw(st.none() | st.dates(starts_on, date(2040, 1, 1))),
        "count": draw(st.none() | st.integers(1, 60)),
        **draw(_days),
        **draw(_shifts),
        **fixed,
    }
    return Rule(**fields)
