"""Rules as iCalendar writes them: RRULE of RFC 5545, with the SKIP of RFC 7529.

What an RRULE says is read; the rest of a rule (where it starts, its zone, wall time and clock
policies) stands beside it, as DTSTART does in a calendar file. What one side can't say is refused
by name, never dropped: a rule that was read and written again is the same rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

import whenever

from duebook.domain.business_days import BusinessShift
from duebook.domain.calendar import (
    LAST,
    Absent,
    Frequency,
    Gap,
    Overlap,
    Rule,
    RuleError,
    resolve,
    validate,
)
from duebook.instants import FIRST_YEAR, LAST_YEAR

FIELD: Final = "rrule"
LONGEST: Final = 500
DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
SKIPS: Final[Mapping[str, Absent]] = {
    "OMIT": "omit",
    "BACKWARD": "backward",
    "FORWARD": "forward",
}
FREQUENCIES: Final[Mapping[str, Frequency]] = {"WEEKLY": "weekly", "MONTHLY": "monthly"}
_READ: Final = frozenset("FREQ INTERVAL BYDAY BYMONTHDAY UNTIL COUNT WKST RSCALE SKIP".split())
_BY_DAY: Final = re.compile(r"([+-]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_UNTIL: Final = re.compile(r"[0-9]{8}(T[0-9]{6}Z)?", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,6}", re.ASCII)


# ---- writing ---------------------------------------------------------------------------------


def to_rrule(rule: Rule) -> str:
    """The rule as the value of an RRULE, for a DTSTART of its start, wall time and zone.

    Raises RuleError naming every field that has no form there.
    """
    faults = rrule_faults(rule)
    if faults:
        reasons = "; ".join(f"{field}: {reason}" for field, reason in list(faults.items())[1:])
        field, reason = next(iter(faults.items()))
        raise RuleError(field, f"{reason}; {reasons}" if reasons else reason)
    parts = []
    if rule.absent != "omit":
        parts.append("RSCALE=GREGORIAN")
    parts.append(f"FREQ={rule.frequency.upper()}")
    if rule.every != 1:
        parts.append(f"INTERVAL={rule.every}")
    if rule.month_day is not None:
        parts.append(f"BYMONTHDAY={rule.month_day}")
    else:
        nth = "" if rule.nth is None else str(rule.nth)
        parts.append("BYDAY=" + ",".join(nth + DAYS[day - 1] for day in rule.weekdays))
    if rule.frequency == "weekly" and rule.every != 1:
        parts.append("WKST=MO")
    if rule.absent != "omit":
        parts.append(f"SKIP={rule.absent.upper()}")
    if rule.count is not None:
        parts.append(f"COUNT={rule.count}")
    if rule.ends_on is not None:
        parts.append(f"UNTIL={_last_instant(rule, rule.ends_on):%Y%m%dT%H%M%SZ}")
    return ";".join(parts)


def rrule_faults(rule: Rule) -> dict[str, str]:
    """Each field of the rule that an RRULE can't say, and why; empty if it can be written."""
    faults = {}
    if rule.business_shift != "none":
        faults["business_shift"] = "an RRULE knows no business days"
    if rule.gap != "skip":
        faults["gap"] = f"an RRULE skips a local time that does not exist, {rule.gap} has no form"
    if rule.overlap != "earlier":
        faults["overlap"] = "an RRULE takes the earlier of two equal local times, later has no form"
    if rule.nth == 5 and rule.absent != "omit":
        faults["absent"] = (
            f"SKIP moves days of a month, {rule.absent} of a fifth weekday has no form"
        )
    if rule.ends_on is not None and rule.count is not None:
        faults["count"] = "an RRULE has COUNT or UNTIL, not both"
    return faults


def _last_instant(rule: Rule, day: date) -> datetime:
    """The instant of the wall time on that day, or behind the gap that skips it."""
    local = datetime.combine(day, rule.wall_time)
    instant = resolve(local, rule.zone, "later", rule.overlap).instant
    if instant is None:
        raise RuleError("zone", f"{rule.zone!r} is unknown: UNTIL is written in UTC")
    return instant


# ---- reading ---------------------------------------------------------------------------------


def from_rrule(
    text: str,
    *,
    starts_on: date,
    zone: str,
    wall_time: time,
    gap: Gap,
    overlap: Overlap,
    business_shift: BusinessShift = "none",
    holiday_calendar: str | None = None,
) -> Rule:
    """The rule that an RRULE (its value, or the whole line) says for that start.

    Without BYDAY and BYMONTHDAY the start's own day counts, as in RFC 5545; without SKIP absent
    dates are omitted. Raises RuleError naming the part that can't be read or said, and for a rule
    that `validate` refuses.
    """
    parts = _parts(text)
    frequency = _frequency(parts)
    days = _weekly_days if frequency == "weekly" else _monthly_days
    weekdays, month_day, nth = days(parts, starts_on)
    rule = Rule(
        frequency=frequency,
        every=_number(parts, "INTERVAL") or 1,
        weekdays=weekdays,
        month_day=month_day,
        nth=nth,
        business_shift=business_shift,
        holiday_calendar=holiday_calendar,
        zone=zone,
        wall_time=wall_time,
        absent=_absent(parts),
        gap=gap,
        overlap=overlap,
        starts_on=starts_on,
        count=_number(parts, "COUNT"),
    )
    validate(rule)
    if rule.nth == 5 and rule.absent != "omit":
        raise _refuse("SKIP", "moves days of a month, not a fifth weekday that is absent")
    _check_week_start(parts, rule)
    if "UNTIL" in parts:
        rule = replace(rule, ends_on=_until(parts, rule))
        validate(rule)
    return rule


def _refuse(part: str, reason: str) -> RuleError:
    return RuleError(FIELD, f"{part} {reason}")


def _parts(text: str) -> dict[str, str]:
    if len(text) > LONGEST:
        raise RuleError(FIELD, f"longer than {LONGEST} characters")
    # A long line of a calendar file goes on after a line break and a blank.
    line = re.sub(r"\r?\n[ \t]", "", text).strip().upper()
    parts: dict[str, str] = {}
    for part in line.removeprefix("RRULE:").split(";"):
        name, equals, value = part.partition("=")
        if not (name and equals and value):
            raise RuleError(FIELD, f"{part!r} is no part such as FREQ=WEEKLY")
        if name in parts:
            raise _refuse(name, "is there twice")
        if name not in _READ:
            raise _refuse(name, "can't be said by a weekly or monthly rule here")
        parts[name] = value
    if "UNTIL" in parts and "COUNT" in parts:
        raise _refuse("COUNT", "and UNTIL exclude each other")
    return parts


def _frequency(parts: Mapping[str, str]) -> Frequency:
    if "FREQ" not in parts:
        raise _refuse("FREQ", "is missing")
    if parts["FREQ"] not in FREQUENCIES:
        raise _refuse("FREQ", f"{parts['FREQ']} is not WEEKLY or MONTHLY")
    return FREQUENCIES[parts["FREQ"]]


def _number(parts: Mapping[str, str], name: str) -> int | None:
    if name not in parts:
        return None
    if not _NUMBER.fullmatch(parts[name]) or int(parts[name]) == 0:
        raise _refuse(name, f"{parts[name]!r} is no positive number")
    return int(parts[name])


def _absent(parts: Mapping[str, str]) -> Absent:
    if "RSCALE" in parts and parts["RSCALE"] != "GREGORIAN":
        raise _refuse("RSCALE", f"{parts['RSCALE']} is not GREGORIAN")
    if "SKIP" not in parts:
        return "omit"
    if "RSCALE" not in parts:
        raise _refuse("SKIP", "needs RSCALE=GREGORIAN beside it (RFC 7529)")
    if parts["SKIP"] not in SKIPS:
        raise _refuse("SKIP", f"{parts['SKIP']} is none of {', '.join(SKIPS)}")
    return SKIPS[parts["SKIP"]]


Days = tuple[tuple[int, ...], int | None, int | None]


def _weekly_days(parts: Mapping[str, str], starts_on: date) -> Days:
    if "BYMONTHDAY" in parts:
        raise _refuse("BYMONTHDAY", "has no meaning in a weekly rule")
    if "BYDAY" not in parts:
        return (starts_on.isoweekday(),), None, None
    ordinal, weekdays = _by_day(parts["BYDAY"])
    if ordinal is not None:
        raise _refuse("BYDAY", "with a number has no meaning in a weekly rule")
    return weekdays, None, None


def _monthly_days(parts: Mapping[str, str], starts_on: date) -> Days:
    if "BYDAY" in parts and "BYMONTHDAY" in parts:
        raise _refuse("BYDAY", "together with BYMONTHDAY can't be said by a rule here")
    if "BYDAY" in parts:
        ordinal, weekdays = _by_day(parts["BYDAY"])
        if ordinal is None:
            raise _refuse("BYDAY", "without a number is every week: use FREQ=WEEKLY")
        return weekdays, None, ordinal
    if "BYMONTHDAY" not in parts:
        return (), starts_on.day, None
    value = parts["BYMONTHDAY"]
    if "," in value:
        raise _refuse("BYMONTHDAY", "names several days; a rule has one")
    unsigned = value.removeprefix("+")
    if unsigned == str(LAST):
        return (), LAST, None
    if not (_NUMBER.fullmatch(unsigned) and 1 <= int(unsigned) <= 31):
        raise _refuse("BYMONTHDAY", f"{value} is not 1 to 31, nor -1")
    return (), int(unsigned), None


def _by_day(value: str) -> tuple[int | None, tuple[int, ...]]:
    """The one ordinal of a BYDAY, or None, and its ISO weekdays."""
    ordinals: set[int | None] = set()
    weekdays = set()
    for token in value.split(","):
        match = _BY_DAY.fullmatch(token)
        if match is None:
            raise _refuse("BYDAY", f"{token!r} is no day such as MO or 2TU")
        ordinals.add(int(match[1]) if match[1] else None)
        weekdays.add(DAYS.index(match[2]) + 1)
    if len(ordinals) > 1:
        raise _refuse("BYDAY", "names several weeks of the month; a rule has one")
    ordinal = ordinals.pop()
    if ordinal is not None and ordinal not in (1, 2, 3, 4, 5, LAST):
        raise _refuse("BYDAY", f"{ordinal} is not 1 to 5, nor -1")
    return ordinal, tuple(sorted(weekdays))


def _check_week_start(parts: Mapping[str, str], rule: Rule) -> None:
    """Refuse a week that starts on another day, where that changes the dates."""
    start = parts.get("WKST", "MO")
    if start not in DAYS:
        raise _refuse("WKST", f"{start} is no day such as MO")
    if rule.frequency != "weekly" or rule.every == 1:
        return
    first = DAYS.index(start)
    # Which week of the rule a weekday is in, seen from the week of the start.
    at_start = (rule.starts_on.weekday() - first) % 7 - rule.starts_on.weekday()
    for weekday in rule.weekdays:
        if (weekday - 1 - first) % 7 - (weekday - 1) != at_start:
            raise _refuse("WKST", f"{start} gives other dates than MO, where weeks start here")


def _until(parts: Mapping[str, str], rule: Rule) -> date:
    value = parts["UNTIL"]
    if not _UNTIL.fullmatch(value):
        raise _refuse("UNTIL", f"{value!r} is no date 20261231 and no UTC instant 20261231T235959Z")
    try:
        form = "%Y%m%dT%H%M%SZ" if "T" in value else "%Y%m%d"
        instant = datetime.strptime(value, form).replace(tzinfo=UTC)
    except ValueError:
        raise _refuse("UNTIL", f"{value!r} is not in the calendar") from None
    if not FIRST_YEAR <= instant.year < LAST_YEAR:
        raise _refuse("UNTIL", f"{value!r} is not between the years {FIRST_YEAR} and {LAST_YEAR}")
    if "T" not in value:
        return instant.date()
    day = whenever.Instant(instant).to_tz(rule.zone).date().to_stdlib()
    return day if _last_instant(rule, day) <= instant else day - timedelta(days=1)
