"""A rule as it is typed, and the preview of its occurrences. Needs no database."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from typing import Any, Final, cast

from duebook.domain.business_days import BusinessShift
from duebook.domain.calendar import (
    WEEKDAYS,
    Absent,
    Gap,
    Occurrence,
    Overlap,
    Rule,
    RuleError,
    occurrences,
    shown_at,
    validate,
)
from duebook.domain.rrule import from_rrule, rrule_faults, to_rrule

PREVIEW_YEARS: Final = 5
# Where a person states each field of a rule.
OPTIONS: Final[Mapping[str, str]] = {
    "every": "--every",
    "weekdays": "--weekday",
    "month_day": "--day",
    "nth": "--nth",
    "business_shift": "--business-shift",
    "holiday_calendar": "--holidays",
    "zone": "--zone",
    "wall_time": "--time",
    "absent": "--absent",
    "gap": "--gap",
    "overlap": "--overlap",
    "starts_on": "--from",
    "ends_on": "--until",
    "count": "--count",
    "rrule": "--rrule",
}
_SAID_BY_RRULE: Final = ("weekdays", "month_day", "nth", "every")
_TIME: Final = re.compile(r"[0-9]{2}:[0-9]{2}", re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_WHOLE: Final = re.compile(r"-?[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleText:
    """A rule as it is typed; None: not stated. Fields are named as those of `Rule`.

    Each text of `weekdays` may name several: `MON,WED`.
    """

    zone: str | None = None
    wall_time: str | None = None
    starts_on: str | None = None
    weekdays: Sequence[str] | None = None
    month_day: str | None = None
    nth: str | None = None
    every: str | None = None
    business_shift: str | None = None
    holiday_calendar: str | None = None
    absent: str | None = None
    gap: str | None = None
    overlap: str | None = None
    ends_on: str | None = None
    count: str | None = None
    rrule: str | None = None


def read_rule(text: RuleText) -> Rule:
    """The rule that was typed. Raises RuleError, whose field is the option to mend."""
    try:
        rule = _from_rrule(text) if text.rrule is not None else _from_options(text)
        validate(rule)
    except RuleError as error:
        raise RuleError(OPTIONS.get(error.field, error.field), error.reason) from None
    return rule


def preview(rule: Rule) -> Iterator[Occurrence]:
    """All occurrences of a rule that ends, else those of its first five years."""
    if rule.count is None and rule.ends_on is None:
        end = _years_later(rule.starts_on, PREVIEW_YEARS)
        for one in occurrences(rule):
            if one.nominal_on >= end:
                return
            yield one
        return
    yield from occurrences(rule)


def occurrence_document(one: Occurrence) -> dict[str, Any]:
    """One occurrence of a known zone as JSON.

    `nominal_local` is the wall time that was meant, `clock_shows` the one that it will be: another
    one in a gap.
    """
    assert one.due_at is not None
    return {
        "nominal_local": f"{one.intended_local:%Y-%m-%dT%H:%M}",
        "zone": one.zone,
        "due_at": f"{one.due_at:%Y-%m-%dT%H:%M:%SZ}",
        "case": one.case,
        "clock_shows": f"{shown_at(one.due_at, one.zone):%Y-%m-%dT%H:%M}",
        "nominal_on": one.nominal_on.isoformat(),
        "is_absent": one.is_absent,
        "is_shifted": one.is_shifted,
    }


def describe_rrule(rule: Rule) -> str:
    """The rule as an RRULE, or which of its fields have no form there."""
    faults = rrule_faults(rule)
    if faults:
        return f"no RRULE: it has no form for {', '.join(faults)}"
    return f"RRULE:{to_rrule(rule)}"


def _from_options(text: RuleText) -> Rule:
    if not text.weekdays and text.month_day is None:
        missing = "weekdays" if text.nth is not None else "month_day"
        raise RuleError(missing, "state --weekday, --day, --nth with --weekday, or --rrule")
    is_monthly = text.month_day is not None or text.nth is not None
    rule = Rule(
        frequency="monthly" if is_monthly else "weekly",
        every=1 if text.every is None else _whole("every", text.every),
        weekdays=_weekdays(text.weekdays) if text.weekdays else (),
        month_day=None if text.month_day is None else _whole("month_day", text.month_day),
        nth=None if text.nth is None else _whole("nth", text.nth),
        absent=cast("Absent", text.absent or "omit"),
        ends_on=None if text.ends_on is None else _date("ends_on", text.ends_on),
        count=None if text.count is None else _whole("count", text.count),
        **_beside(text),
    )
    if text.absent is None and _can_be_absent(rule):
        raise RuleError(
            "absent", "state what a month without that date does: omit, backward or forward"
        )
    return rule


def _from_rrule(text: RuleText) -> Rule:
    for field in _SAID_BY_RRULE:
        if getattr(text, field):
            raise RuleError(field, "is said by --rrule")
    rule = from_rrule(text.rrule or "", **_beside(text))
    if text.absent is not None and text.absent != rule.absent:
        raise RuleError("absent", f"{text.absent} contradicts --rrule, whose SKIP is {rule.absent}")
    if text.ends_on is None and text.count is None:
        return rule
    if rule.ends_on is not None or rule.count is not None:
        field = "ends_on" if text.ends_on is not None else "count"
        raise RuleError(field, "--rrule has its own UNTIL or COUNT")
    return replace(
        rule,
        ends_on=None if text.ends_on is None else _date("ends_on", text.ends_on),
        count=None if text.count is None else _whole("count", text.count),
    )


def _beside(text: RuleText) -> dict[str, Any]:
    """What an RRULE does not say."""
    return {
        "zone": _stated("zone", text.zone, "an IANA time zone such as Europe/Berlin"),
        "wall_time": _time(_stated("wall_time", text.wall_time, "a local time such as 09:00")),
        "starts_on": _date("starts_on", _stated("starts_on", text.starts_on, "the first date")),
        "gap": cast(
            "Gap",
            _stated("gap", text.gap, "what a time that the clock skips does: skip, earlier, later"),
        ),
        "overlap": cast(
            "Overlap",
            _stated("overlap", text.overlap, "which of a time that comes twice: earlier, later"),
        ),
        "business_shift": cast("BusinessShift", text.business_shift or "none"),
        "holiday_calendar": text.holiday_calendar,
    }


def _can_be_absent(rule: Rule) -> bool:
    return rule.nth == 5 or (rule.month_day is not None and rule.month_day > 28)


def _stated(field: str, value: str | None, what: str) -> str:
    if value is None or not value.strip():
        raise RuleError(field, f"is missing; state {what}")
    return value


def _time(value: str) -> time:
    if _TIME.fullmatch(value):
        hour, minute = int(value[:2]), int(value[3:])
        if hour <= 23 and minute <= 59:
            return time(hour, minute)
    raise RuleError("wall_time", f"{value!r} is no local time, 00:00 to 23:59")


def _date(field: str, value: str) -> date:
    if _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise RuleError(field, f"{value} is not in the calendar") from None
    raise RuleError(field, f"{value!r} is no date such as 2026-12-31")


def _whole(field: str, value: str) -> int:
    if not _WHOLE.fullmatch(value.strip()):
        raise RuleError(field, f"{value!r} is no whole number")
    return int(value)


def _weekdays(texts: Sequence[str]) -> tuple[int, ...]:
    names = [name.strip().upper() for text in texts for name in text.split(",")]
    for name in names:
        if name not in WEEKDAYS:
            raise RuleError("weekdays", f"{name!r} is none of {', '.join(WEEKDAYS)}")
    found = sorted({WEEKDAYS.index(name) + 1 for name in names})
    if len(found) < len(names):
        raise RuleError("weekdays", f"{', '.join(names)} names a day twice")
    return tuple(found)


def _years_later(day: date, years: int) -> date:
    try:
        return day.replace(year=day.year + years)
    except ValueError:
        return date(day.year + years, 3, 1)
