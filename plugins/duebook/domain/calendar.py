"""Occurrences of a rule: from (nominal date, wall time, zone) to an instant, and no other way.

A date never follows from the instant before it, so nothing drifts: the 31st is the 31st again after
a February, and 02:30 is 02:30 again after the night that had none. Nominal dates strictly increase,
so the time that comes twice is met once. Zone rules are those of the pinned `tzdata` package.

Terms: the *nominal date* is the rule's date once an absent one (30 February) was moved, before a
business-day shift; it names the occurrence for ever. The *intended local time* is the shifted date
at the wall time.
"""

from __future__ import annotations

import calendar
import importlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import whenever

from duebook.domain import business_days
from duebook.domain.business_days import BusinessShift
from duebook.errors import InputError
from duebook.instants import FIRST_YEAR, LAST_YEAR

# Whatever PYTHONTZPATH says in this process: the machine's own rules are older or newer, silently.
whenever.reset_tzpath(())

Frequency = Literal["weekly", "monthly"]
Absent = Literal["omit", "backward", "forward"]
Gap = Literal["skip", "earlier", "later"]
Overlap = Literal["earlier", "later"]
Case = Literal["exact", "gap", "overlap", "absent", "unknown_zone"]

WEEKDAYS: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
LAST: Final = -1
MOST_EVERY: Final = 1000
MOST_OCCURRENCES: Final = 100_000


class RuleError(InputError):
    """A rule that can't be: `field` says where, `reason` why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A weekly or monthly rule in a named zone; `validate` says whether it can be.

    Weekly: on `weekdays` (ISO, 1 is Monday) of every n-th ISO week, counted from the week of
    `starts_on`. Monthly, counted from the month of `starts_on`: on `month_day` (1 to 31; -1 is the
    last), or on the `nth` (1 to 5; -1 is the last) of each of `weekdays`.

    `absent`: a date that a month does not have is omitted, or moves backward to the last one that
    it has, or forward to the first of the next month (RFC 7529; for a fifth weekday, to the last or
    first such weekday). `gap`: a wall time that the clock skips is skipped too, or is the instant
    earlier or later by the gap. `overlap`: of a wall time that comes twice, the earlier or later.

    `ends_on` is the last nominal date that may be; `count` the most occurrences from `starts_on`
    on, of which what is omitted, skipped or collapsed is none.
    """

    frequency: Frequency
    every: int
    weekdays: tuple[int, ...] = ()
    month_day: int | None = None
    nth: int | None = None
    business_shift: BusinessShift = "none"
    holiday_calendar: str | None = None
    zone: str
    wall_time: time
    absent: Absent
    gap: Gap
    overlap: Overlap
    starts_on: date
    ends_on: date | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        # A set of days: however they were written, it is the same rule.
        object.__setattr__(self, "weekdays", tuple(sorted(set(self.weekdays))))


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One nominal date: `intended_local` (naive) in `zone` is the instant `due_at` (UTC).

    `case` is how the wall time was met; where the clock is exact, whether the date was absent.
    `due_at` is None in the case unknown_zone, until the zone is known.
    """

    nominal_on: date
    intended_local: datetime
    zone: str
    due_at: datetime | None
    case: Case
    is_absent: bool = False

    @property
    def is_shifted(self) -> bool:
        """Whether a business-day shift moved it."""
        return self.intended_local.date() != self.nominal_on


class Resolved(NamedTuple):
    """How a local time was met, and its instant (UTC): None if there is none."""

    case: Case
    instant: datetime | None


class _Day(NamedTuple):
    nominal_on: date
    is_absent: bool


class _Target(NamedTuple):
    day: _Day
    on: date


# ---- what is asked ---------------------------------------------------------------------------


def occurrences(rule: Rule, *, after: date | None = None) -> Iterator[Occurrence]:
    """Every occurrence in nominal order, lazily; with `after` those whose nominal date is later.

    A rule without an end goes on until the year 9000. With `after` it starts there, unless the
    rule's `count` makes it count from the start. Expects a rule that `validate` accepted; raises
    RuleError when its holiday calendar is known no more.
    """
    _check_shift(rule)
    if rule.count is None:
        return _resolved(rule, _later(_targets(rule, after), after))
    if rule.gap == "skip" and is_known_zone(rule.zone):
        counted = itertools.islice(_resolved(rule, _targets(rule, None)), rule.count)
        return (one for one in counted if after is None or one.nominal_on > after)
    # Which date is an occurrence is known without its instant.
    targets = itertools.islice(_targets(rule, None), rule.count)
    return _resolved(rule, _later(targets, after))


def next_after(rule: Rule, now: datetime) -> Occurrence | None:
    """The first occurrence due after `now` (aware), in nominal order; None if there is none."""
    day = now.astimezone(UTC).date() - timedelta(days=3)
    if rule.holiday_calendar is not None:
        day = business_days.shift(day, "previous", rule.holiday_calendar)
    for one in occurrences(rule, after=day):
        if one.due_at is None or one.due_at > now:
            return one
    return None


def count_due_after(rule: Rule, nominal_on: date, now: datetime, most: int) -> int:
    """How many occurrences after that nominal date are due by `now`; stops counting at `most`."""
    later = itertools.takewhile(
        lambda one: one.due_at is not None and one.due_at <= now,
        occurrences(rule, after=nominal_on),
    )
    return sum(1 for _ in itertools.islice(later, most))


def resolve(local: datetime, zone: str, gap: Gap, overlap: Overlap) -> Resolved:
    """The instant of a naive local time; none in a gap that is skipped or in an unknown zone."""
    if not is_known_zone(zone):
        return Resolved("unknown_zone", None)
    plain = whenever.PlainDateTime(local)
    try:
        return Resolved("exact", _instant(plain, zone, "raise"))
    except whenever.SkippedTime:
        return Resolved("gap", None if gap == "skip" else _instant(plain, zone, gap))
    except whenever.RepeatedTime:
        return Resolved("overlap", _instant(plain, zone, overlap))


def shown_at(instant: datetime, zone: str) -> datetime:
    """What the clock of a known zone shows at an instant (aware), naive."""
    return whenever.Instant(instant).to_tz(zone).to_plain().to_stdlib()


def is_known_zone(name: str) -> bool:
    """Whether the pinned tzdata has this zone or alias, spelt exactly so."""
    return name in known_zones()


@lru_cache(maxsize=1)
def known_zones() -> frozenset[str]:
    """Every zone and alias of the pinned tzdata, but the placeholder `Factory`."""
    return frozenset(whenever.available_timezones() - {"Factory"})


def tzdb_version() -> str:
    """The version of the pinned tz database, such as 2026f; later ones sort after it."""
    return str(importlib.import_module("tzdata").IANA_VERSION)


# ---- dates -----------------------------------------------------------------------------------


def month_date(year: int, month: int, day: int, absent: Absent) -> date | None:
    """Day 1 to 31 of a month, or -1, its last; None for an absent one that is omitted."""
    length = calendar.monthrange(year, month)[1]
    if day == LAST:
        return date(year, month, length)
    if day <= length:
        return date(year, month, day)
    if absent == "omit":
        return None
    return date(year, month, length) if absent == "backward" else _first_of_next(year, month)


def nth_weekday(year: int, month: int, weekday: int, nth: int, absent: Absent) -> date | None:
    """The first to fifth of an ISO weekday in a month, or -1, the last; None if it is omitted."""
    first = date(year, month, 1)
    first += timedelta(days=(weekday - first.isoweekday()) % 7)
    length = calendar.monthrange(year, month)[1]
    most = (length - first.day) // 7 + 1
    if nth == LAST or (nth > most and absent == "backward"):
        return first + timedelta(weeks=most - 1)
    if nth <= most:
        return first + timedelta(weeks=nth - 1)
    if absent == "omit":
        return None
    following = _first_of_next(year, month)
    return following + timedelta(days=(weekday - following.isoweekday()) % 7)


def _first_of_next(year: int, month: int) -> date:
    return date(year + (month == 12), month % 12 + 1, 1)


def _days(rule: Rule, since: date | None) -> Iterator[_Day]:
    """Nominal dates from `since` on, of which a few may be earlier, in order."""
    days = _weekly(rule, since) if rule.frequency == "weekly" else _monthly(rule, since)
    for day in days:
        if rule.ends_on is not None and day.nominal_on > rule.ends_on:
            return
        if day.nominal_on >= rule.starts_on:
            yield day


def _weekly(rule: Rule, since: date | None) -> Iterator[_Day]:
    monday = rule.starts_on - timedelta(days=rule.starts_on.weekday())
    step = timedelta(weeks=rule.every)
    if since is not None and since > monday:
        monday += (since - monday) // step * step
    while monday.year <= LAST_YEAR:
        for weekday in rule.weekdays:
            yield _Day(monday + timedelta(days=weekday - 1), False)
        monday += step


def _monthly(rule: Rule, since: date | None) -> Iterator[_Day]:
    first = _month_number(rule.starts_on)
    if since is not None:
        # A date that moved forward belongs to the month before.
        first += max(0, (_month_number(since) - 1 - first) // rule.every) * rule.every
    for number in itertools.count(first, rule.every):
        year, month = number // 12, number % 12 + 1
        if year > LAST_YEAR:
            return
        yield from _days_of_month(rule, year, month)


def _month_number(day: date) -> int:
    return day.year * 12 + day.month - 1


def _days_of_month(rule: Rule, year: int, month: int) -> list[_Day]:
    if rule.month_day is not None:
        found = month_date(year, month, rule.month_day, rule.absent)
        if found is None:
            return []
        return [_Day(found, rule.month_day not in (LAST, found.day))]
    nth = rule.nth or LAST
    days = []
    for weekday in rule.weekdays:
        found = nth_weekday(year, month, weekday, nth, rule.absent)
        if found is not None:
            days.append(_Day(found, nth not in (LAST, (found.day - 1) // 7 + 1)))
    return sorted(days)


def _targets(rule: Rule, after: date | None) -> Iterator[_Target]:
    """Nominal dates and where a business-day shift puts them; one for each date it puts them on.

    A shift never changes their order, so those that meet follow each other. The one that was there
    unshifted stays, else the first.
    """
    since = after
    if after is not None and rule.holiday_calendar is not None:
        # From a business day on, nothing earlier meets anything later.
        since = business_days.shift(after, "previous", rule.holiday_calendar)
    targets = (
        _Target(
            day, business_days.shift(day.nominal_on, rule.business_shift, rule.holiday_calendar)
        )
        for day in _days(rule, since)
    )
    if rule.business_shift == "none":
        yield from targets
        return
    for on, meeting in itertools.groupby(targets, key=lambda target: target.on):
        met = list(meeting)
        yield next((target for target in met if target.day.nominal_on == on), met[0])


def _later(targets: Iterable[_Target], after: date | None) -> Iterator[_Target]:
    return (target for target in targets if after is None or target.day.nominal_on > after)


def _resolved(rule: Rule, targets: Iterable[_Target]) -> Iterator[Occurrence]:
    for day, on in targets:
        local = datetime.combine(on, rule.wall_time)
        case, instant = resolve(local, rule.zone, rule.gap, rule.overlap)
        if case == "gap" and instant is None:
            continue
        if case == "exact" and day.is_absent:
            case = "absent"
        yield Occurrence(day.nominal_on, local, rule.zone, instant, case, day.is_absent)


def _instant(
    plain: whenever.PlainDateTime, zone: str, choice: Literal["raise", "earlier", "later"]
) -> datetime:
    return plain.assume_tz(zone, disambiguation=choice).to_instant().to_stdlib()


# ---- what can't be ---------------------------------------------------------------------------


def validate(rule: Rule) -> None:
    """Raise RuleError, with the field and the reason, for a rule that can't be kept."""
    _check_choices(rule)
    _check_numbers(rule)
    _check_days(rule)
    _check_clock(rule)
    _check_shift(rule)
    _check_span(rule)
    _check_meets_a_date(rule)


def _check_choices(rule: Rule) -> None:
    choices = {
        "frequency": ("weekly", "monthly"),
        "business_shift": ("none", "next", "previous"),
        "absent": ("omit", "backward", "forward"),
        "gap": ("skip", "earlier", "later"),
        "overlap": ("earlier", "later"),
    }
    for field, allowed in choices.items():
        given = getattr(rule, field)
        if given not in allowed:
            raise RuleError(field, f"{given!r} is none of {', '.join(allowed)}")


def _check_numbers(rule: Rule) -> None:
    if not 1 <= rule.every <= MOST_EVERY:
        raise RuleError("every", f"{rule.every} is not between 1 and {MOST_EVERY}")
    if rule.count is not None and not 1 <= rule.count <= MOST_OCCURRENCES:
        raise RuleError("count", f"{rule.count} is not between 1 and {MOST_OCCURRENCES}")


def _check_days(rule: Rule) -> None:
    for weekday in rule.weekdays:
        if not 1 <= weekday <= 7:
            raise RuleError("weekdays", f"{weekday} is no ISO weekday, 1 (Monday) to 7 (Sunday)")
    if rule.month_day is not None and not (1 <= rule.month_day <= 31 or rule.month_day == LAST):
        raise RuleError("month_day", f"{rule.month_day} is not 1 to 31, nor -1 for the last day")
    if rule.nth is not None and not (1 <= rule.nth <= 5 or rule.nth == LAST):
        raise RuleError("nth", f"{rule.nth} is not 1 to 5, nor -1 for the last")
    if rule.frequency == "weekly":
        _check_weekly(rule)
    else:
        _check_monthly(rule)


def _check_weekly(rule: Rule) -> None:
    if rule.month_day is not None:
        raise RuleError("month_day", "a weekly rule has weekdays, no day of the month")
    if rule.nth is not None:
        raise RuleError("nth", "a weekly rule has every weekday that it names, no n-th one")
    if not rule.weekdays:
        raise RuleError("weekdays", "a weekly rule names at least one")


def _check_monthly(rule: Rule) -> None:
    if rule.month_day is not None and (rule.weekdays or rule.nth is not None):
        raise RuleError("month_day", "a monthly rule has a day or an n-th weekday, not both")
    if rule.month_day is not None:
        return
    if not rule.weekdays:
        raise RuleError("month_day", "a monthly rule has a day or an n-th weekday")
    if rule.nth is None:
        raise RuleError("nth", "a monthly rule on weekdays says which: 1 to 5, or -1 for the last")


def _check_clock(rule: Rule) -> None:
    if not is_known_zone(rule.zone):
        raise RuleError("zone", f"{rule.zone!r} is not in the tz database {tzdb_version()}")
    if rule.wall_time.tzinfo is not None:
        raise RuleError("wall_time", "has an offset; the zone alone decides")
    if rule.wall_time.second or rule.wall_time.microsecond:
        raise RuleError("wall_time", f"{rule.wall_time} is not a whole minute")


def _check_shift(rule: Rule) -> None:
    name = rule.holiday_calendar
    if rule.business_shift == "none":
        if name is not None:
            raise RuleError("holiday_calendar", "is used by a business shift only; none is stated")
    elif name is None:
        raise RuleError("holiday_calendar", "a business shift needs one, such as DE or US-NY")
    elif name not in business_days.holiday_calendars():
        raise RuleError("holiday_calendar", f"{name!r} is no calendar of the holidays library")


def _check_span(rule: Rule) -> None:
    for field, day in (("starts_on", rule.starts_on), ("ends_on", rule.ends_on)):
        if day is not None and not FIRST_YEAR <= day.year <= LAST_YEAR:
            raise RuleError(field, f"{day} is not between the years {FIRST_YEAR} and {LAST_YEAR}")
    if rule.ends_on is not None and rule.ends_on < rule.starts_on:
        raise RuleError("ends_on", f"{rule.ends_on} is before the start, {rule.starts_on}")


def _check_meets_a_date(rule: Rule) -> None:
    if next(occurrences(rule), None) is not None:
        return
    first = next(occurrences(replace(rule, ends_on=None)), None)
    if first is not None:
        day = first.nominal_on
        raise RuleError("ends_on", f"{rule.ends_on} is before the first occurrence, {day}")
    field = "nth" if rule.month_day is None else "month_day"
    raise RuleError(
        field,
        f"no month that it meets, every {rule.every} from {rule.starts_on:%Y-%m}, has that date; "
        "state absent backward or forward, or start in another month",
    )
