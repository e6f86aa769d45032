"""Business days by the calendars of the `holidays` library.

A calendar is named as the library names it: a country (`DE`, `GBR`), a country and its subdivision
(`US-NY`, `DE-BY`), or a financial market (`ECB`, `XNYS`). Weekends are the calendar's own, and a
weekend day that a country works instead of another is a business day. The library knows holidays
from 1901 to 2100; outside those years only weekends count.
"""

from __future__ import annotations

from datetime import date, timedelta
from functools import lru_cache
from typing import Final, Literal

import holidays
from holidays import version

BusinessShift = Literal["none", "next", "previous"]

ONE_DAY: Final = timedelta(days=1)


@lru_cache(maxsize=1)
def holiday_calendars() -> frozenset[str]:
    """Every name of a holiday calendar."""
    names: set[str] = set()
    for supported in (holidays.list_supported_countries(), holidays.list_supported_financial()):
        for entity, subdivisions in supported.items():
            names.add(entity)
            names.update(f"{entity}-{subdivision}" for subdivision in subdivisions)
    return frozenset(names)


def holidays_version() -> str:
    """Version of the library that answers."""
    return version.__version__


def is_business_day(calendar: str, day: date) -> bool:
    """Whether `day` is neither on a weekend of the calendar nor a holiday.

    Raises KeyError for a calendar that `holiday_calendars` does not name.
    """
    return _year_of(calendar, day.year).is_working_day(day)


def shift(day: date, direction: BusinessShift, calendar: str | None) -> date:
    """The date itself if it is a business day or nothing shifts, else the next or previous one."""
    if direction == "none" or calendar is None:
        return day
    step = ONE_DAY if direction == "next" else -ONE_DAY
    while not is_business_day(calendar, day):
        day += step
    return day


@lru_cache(maxsize=2048)
def _year_of(calendar: str, year: int) -> holidays.HolidayBase:
    """One year of a calendar, which never changes: threads may share it."""
    if calendar not in holiday_calendars():
        raise KeyError(calendar)
    entity, _, subdivision = calendar.partition("-")
    make = (
        holidays.country_holidays
        if entity in holidays.list_supported_countries()
        else holidays.financial_holidays
    )
    return make(entity, subdiv=subdivision or None, years=year, expand=False)
