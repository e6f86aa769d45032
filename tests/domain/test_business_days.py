"""Business days by named calendars: weekends, holidays, days worked instead, over a new year."""

from __future__ import annotations

from datetime import date

import pytest

from duebook.domain.business_days import (
    BusinessShift,
    holiday_calendars,
    holidays_version,
    is_business_day,
    shift,
)


@pytest.mark.parametrize(
    ("calendar", "day", "expected"),
    [
        ("DE", "2026-10-03", False),
        ("DE", "2026-01-06", True),
        # Epiphany is a holiday in Bavaria only.
        ("DE-BY", "2026-01-06", False),
        ("DEU", "2026-12-25", False),
        ("US-NY", "2026-11-26", False),
        ("ECB", "2026-05-01", False),
        ("ECB", "2026-10-03", False),
        ("XNYS", "2026-11-26", False),
        # Friday and Saturday are the weekend in Israel, Sunday is not.
        ("IL", "2026-03-13", False),
        ("IL", "2026-03-15", True),
        # A Sunday that China works for a longer holiday.
        ("CN", "2025-01-26", True),
        # New Year's Day of 2022 is a Saturday: observed in the year before.
        ("US", "2021-12-31", False),
        # What the library does not know any more is a weekend or a business day.
        ("DE", "2150-12-25", True),
        ("DE", "2150-12-26", False),
    ],
)
def test_a_day_of_a_calendar(calendar: str, day: str, expected: bool) -> None:
    assert is_business_day(calendar, date.fromisoformat(day)) is expected


@pytest.mark.parametrize(
    ("day", "direction", "expected"),
    [
        ("2026-12-24", "next", "2026-12-24"),
        ("2026-12-25", "next", "2026-12-28"),
        ("2026-12-25", "previous", "2026-12-24"),
        ("2026-12-27", "previous", "2026-12-24"),
        ("2027-01-01", "next", "2027-01-04"),
        ("2027-01-01", "previous", "2026-12-31"),
        ("2026-05-31", "next", "2026-06-01"),
        ("2026-12-25", "none", "2026-12-25"),
    ],
)
def test_a_date_moves_to_a_business_day(day: str, direction: BusinessShift, expected: str) -> None:
    assert shift(date.fromisoformat(day), direction, "DE") == date.fromisoformat(expected)


def test_calendars_are_named_as_the_library_names_them() -> None:
    names = holiday_calendars()
    assert {"DE", "DEU", "DE-BY", "US-NY", "GB-ENG", "ECB", "XNYS"} <= names
    assert names.isdisjoint({"", "de", "XX", "DE-XX", "US-", "Germany"})
    with pytest.raises(KeyError):
        is_business_day("XX", date(2026, 1, 1))
    assert holidays_version().count(".") >= 1


def test_every_calendar_answers() -> None:
    days = [date(2026, 12, 31), date(2027, 1, 1)]
    for name in sorted(each for each in holiday_calendars() if "-" not in each):
        assert shift(days[0], "next", name) >= days[0]
        assert shift(days[1], "previous", name) <= days[1]
