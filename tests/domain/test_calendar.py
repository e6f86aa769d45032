"""When a rule falls due: over clock changes, month ends, ends and shifts; and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from duebook.domain import calendar
from duebook.domain.calendar import (
    Rule,
    RuleError,
    count_due_after,
    next_after,
    occurrences,
    resolve,
    validate,
)
from tests.domain.calendar_rules import dates, due, is_valid, monthly, take, utc, weekly

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"


# ---- clock changes ---------------------------------------------------------------------------


def test_a_weekly_job_fires_once_when_the_clock_falls_back() -> None:
    """celery/celery#1604: a job fired twice after the clock was put back."""
    rule = weekly(7, wall_time=time(1, 30), starts_on=date(2026, 10, 25))
    found = take(rule, 3)
    assert due(found) == ["2026-10-25T05:30Z", "2026-11-01T05:30Z", "2026-11-08T06:30Z"]
    assert [one.case for one in found] == ["exact", "overlap", "exact"]
    assert due(take(replace(rule, overlap="later"), 2))[1] == "2026-11-01T06:30Z"


def test_it_is_not_an_hour_late_after_summer_time_starts() -> None:
    """celery/celery#9653: an hour late after summer time started."""
    rule = weekly(1, zone="Europe/Berlin", starts_on=date(2026, 3, 23))
    assert due(take(rule, 2)) == ["2026-03-23T08:00Z", "2026-03-30T07:00Z"]


def test_a_local_time_that_does_not_exist_is_later_earlier_or_skipped() -> None:
    """agronholm/apscheduler#1059: a local time that does not exist was returned."""
    rule = weekly(7, wall_time=time(2, 30), starts_on=date(2026, 3, 1))
    found = take(rule, 3)
    assert due(found) == ["2026-03-01T07:30Z", "2026-03-08T07:30Z", "2026-03-15T06:30Z"]
    assert [one.case for one in found] == ["exact", "gap", "exact"]
    # What was meant stays 02:30, not the 03:30 that the clock shows then.
    assert found[1].intended_local == datetime.fromisoformat("2026-03-08T02:30")
    assert due(take(replace(rule, gap="earlier"), 2))[1] == "2026-03-08T06:30Z"
    assert dates(replace(rule, gap="skip"), 2) == ["2026-03-01", "2026-03-15"]


def test_a_gap_at_half_past_eleven_at_night_shifts_no_later_run() -> None:
    """agronholm/apscheduler#1138: the gap in Nuuk moved every later run."""
    rule = weekly(6, zone="America/Nuuk", wall_time=time(23, 30), starts_on=date(2026, 3, 21))
    found = take(rule, 4)
    assert [one.case for one in found] == ["exact", "gap", "exact", "exact"]
    assert due(found) == [
        "2026-03-22T01:30Z",
        "2026-03-29T01:30Z",
        "2026-04-05T00:30Z",
        "2026-04-12T00:30Z",
    ]
    assert {one.intended_local.time() for one in found} == {time(23, 30)}


def test_the_next_in_dublin_is_after_now_on_the_night_of_the_change() -> None:
    """agronholm/apscheduler#370: the next run was before now."""
    rule = weekly(*range(1, 8), zone="Europe/Dublin", wall_time=time(1, 30))
    now = utc("2026-03-28T22:00Z")
    for _ in range(16):
        following = next_after(rule, now)
        assert following is not None
        assert following.due_at is not None
        assert following.due_at > now
        now = following.due_at
    assert now == utc("2026-04-13T00:30Z")


@pytest.mark.parametrize(
    ("zone", "local", "instant"),
    [
        # Casablanca has an offset of its own during Ramadan.
        ("Africa/Casablanca", "2025-03-05T09:00", "2025-03-05T09:00Z"),
        ("Africa/Casablanca", "2025-04-09T09:00", "2025-04-09T08:00Z"),
        # From here on the pinned rules know more than a system's older copy.
        ("Africa/Casablanca", "2026-10-05T09:00", "2026-10-05T09:00Z"),
        ("America/Vancouver", "2026-12-08T09:00", "2026-12-08T16:00Z"),
        # A gap of 30 minutes, one of two hours, one at midnight.
        ("Australia/Lord_Howe", "2026-10-04T02:15", "2026-10-03T15:45Z"),
        ("Antarctica/Troll", "2026-03-29T02:30", "2026-03-29T02:30Z"),
        ("Africa/Cairo", "2026-04-24T00:30", "2026-04-23T22:30Z"),
    ],
)
def test_instants_of_zones_that_surprise(zone: str, local: str, instant: str) -> None:
    found = resolve(datetime.fromisoformat(local), zone, "later", "earlier")
    assert found.instant == utc(instant)


def test_ramadan_does_not_end_a_schedule_in_casablanca() -> None:
    """quartz-scheduler/quartz#1138: "will never fire" in Casablanca."""
    rule = weekly(7, zone="Africa/Casablanca", wall_time=time(2, 30), starts_on=date(2025, 1, 5))
    found = take(rule, 520)
    assert len({one.nominal_on for one in found}) == 520
    assert {one.case for one in found} == {"exact", "gap", "overlap"}


def test_the_pinned_rules_answer_whatever_the_process_was_told() -> None:
    code = (
        "from datetime import datetime\n"
        "from duebook.domain.calendar import resolve\n"
        "local = datetime(2026, 12, 8, 9)\n"
        "print(resolve(local, 'America/Vancouver', 'skip', 'earlier').instant)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(PLUGINS), "PYTHONTZPATH": "/usr/share/zoneinfo"}
    told = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "2026-12-08 16:00:00+00:00"


# ---- zones -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alias", "zone"),
    [
        ("America/Godthab", "America/Nuuk"),
        ("Europe/Kiev", "Europe/Kyiv"),
        ("US/Pacific", "America/Los_Angeles"),
    ],
)
def test_an_old_name_of_a_zone_keeps_working_and_is_kept_as_typed(alias: str, zone: str) -> None:
    """rails/rails#55494: America/Godthab was gone after the system was rebuilt."""
    typed = take(weekly(6, zone=alias, wall_time=time(23, 30)), 60)
    assert {one.zone for one in typed} == {alias}
    assert due(typed) == due(take(weekly(6, zone=zone, wall_time=time(23, 30)), 60))


@pytest.mark.parametrize(
    "zone",
    [
        "",
        "Mars/Olympus",
        "europe/berlin",
        "UTC+3",
        "../etc/passwd",
        "localtime",
        "Factory",
        "Local",
    ],
)
def test_only_zones_spelt_as_in_the_database_are_known(zone: str) -> None:
    assert not calendar.is_known_zone(zone)
    assert resolve(datetime.fromisoformat("2026-01-01T09:00"), zone, "later", "later") == (
        "unknown_zone",
        None,
    )


def test_a_zone_that_is_gone_leaves_dates_without_an_instant() -> None:
    rule = weekly(1, zone="Mars/Olympus", gap="skip", count=2)
    found = list(occurrences(rule))
    assert [one.case for one in found] == ["unknown_zone"] * 2
    assert [one.due_at for one in found] == [None, None]
    assert [one.nominal_on.isoformat() for one in found] == ["2026-01-05", "2026-01-12"]
    assert count_due_after(rule, date(2026, 1, 1), utc("2030-01-01T00:00Z"), 9) == 0


def test_the_version_of_the_tz_database_is_its_iana_name() -> None:
    version = calendar.tzdb_version()
    assert version >= "2026f"
    assert len(version) == 5


# ---- months ----------------------------------------------------------------------------------


def test_day_31_moved_backward_does_not_stay_on_the_28th() -> None:
    """dateutil#1136, rrule.js#569: jobs at the end of a month skip months, or drift."""
    rule = monthly(31, absent="backward", starts_on=date(2026, 1, 31))
    assert dates(rule, 4) == ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"]
    assert [one.case for one in take(rule, 4)] == ["exact", "absent", "exact", "absent"]


FEBRUARY = {
    # (day, absent): in February 2027, and in the leap year 2028; then March
    (29, "omit"): (None, "02-29"),
    (29, "backward"): ("02-28", "02-29"),
    (29, "forward"): ("03-01", "02-29"),
    (30, "omit"): (None, None),
    (30, "backward"): ("02-28", "02-29"),
    (30, "forward"): ("03-01", "03-01"),
    (31, "omit"): (None, None),
    (31, "backward"): ("02-28", "02-29"),
    (31, "forward"): ("03-01", "03-01"),
    (-1, "omit"): ("02-28", "02-29"),
    (-1, "backward"): ("02-28", "02-29"),
    (-1, "forward"): ("02-28", "02-29"),
}


@pytest.mark.parametrize(("day", "absent"), FEBRUARY)
def test_the_end_of_february(day: int, absent: str) -> None:
    for year, expected in zip((2027, 2028), FEBRUARY[day, absent], strict=True):
        march = f"{year}-03-{31 if day == -1 else day}"
        wanted = [march] if expected is None else [f"{year}-{expected}", march]
        assert dates(monthly(day, absent=absent, starts_on=date(year, 2, 1)), len(wanted)) == wanted


@pytest.mark.parametrize(
    ("absent", "expected"),
    [
        ("omit", ["2026-01-31", "2026-03-31", "2026-05-31", "2026-07-31"]),
        ("backward", ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"]),
        ("forward", ["2026-01-31", "2026-03-01", "2026-03-31", "2026-05-01"]),
    ],
)
def test_an_absent_day_is_counted_only_where_it_is_moved(absent: str, expected: list[str]) -> None:
    rule = monthly(31, absent=absent, count=4)
    assert [one.nominal_on.isoformat() for one in occurrences(rule)] == expected


def test_months_are_counted_from_the_month_of_the_start() -> None:
    assert dates(monthly(10, every=3, starts_on=date(2026, 1, 15)), 2) == [
        "2026-04-10",
        "2026-07-10",
    ]
    # The end of January moved into February, before the start: the rule begins with March's.
    assert dates(monthly(31, absent="forward", starts_on=date(2026, 3, 1)), 2) == [
        "2026-03-31",
        "2026-05-01",
    ]


@pytest.mark.parametrize(
    ("nth", "weekdays", "absent", "expected"),
    [
        (1, (2,), "omit", ["2026-01-06", "2026-02-03", "2026-03-03"]),
        (2, (2,), "omit", ["2026-01-13", "2026-02-10", "2026-03-10"]),
        (2, (2, 4), "omit", ["2026-01-08", "2026-01-13", "2026-02-10"]),
        (-1, (5,), "omit", ["2026-01-30", "2026-02-27", "2026-03-27"]),
        (5, (5,), "omit", ["2026-01-30", "2026-05-29", "2026-07-31"]),
        (5, (5,), "backward", ["2026-01-30", "2026-02-27", "2026-03-27"]),
        (5, (5,), "forward", ["2026-01-30", "2026-03-06", "2026-04-03"]),
    ],
)
def test_the_nth_weekday_of_a_month(
    nth: int, weekdays: tuple[int, ...], absent: str, expected: list[str]
) -> None:
    rule = monthly(nth=nth, weekdays=weekdays, absent=absent)
    assert dates(rule, 3) == expected


def test_a_moved_fifth_weekday_says_so() -> None:
    assert [one.case for one in take(monthly(nth=5, weekdays=(5,), absent="backward"), 2)] == [
        "exact",
        "absent",
    ]


def test_an_absent_date_in_a_gap_is_both() -> None:
    # 31 April moves back to the 30th of 2027, whose first hour Cairo skips.
    rule = monthly(
        31,
        absent="backward",
        zone="Africa/Cairo",
        wall_time=time(0, 30),
        starts_on=date(2027, 4, 1),
    )
    (found,) = take(rule, 1)
    assert (found.case, found.is_absent) == ("gap", True)
    assert due([found]) == ["2027-04-29T22:30Z"]


# ---- weeks, ends, counts ---------------------------------------------------------------------


def test_weeks_are_counted_from_the_monday_of_the_start() -> None:
    rule = weekly(2, 7, every=2, starts_on=date(2026, 1, 7))
    assert dates(rule, 4) == ["2026-01-11", "2026-01-20", "2026-01-25", "2026-02-03"]


def test_the_order_of_weekdays_does_not_matter() -> None:
    assert weekly(5, 1, 1) == weekly(1, 5)


def test_the_last_date_is_the_end_itself() -> None:
    assert dates(weekly(1, ends_on=date(2026, 1, 12)), 9) == ["2026-01-05", "2026-01-12"]
    assert dates(weekly(1, ends_on=date(2026, 1, 11)), 9) == ["2026-01-05"]


def test_what_comes_first_ends_it() -> None:
    assert len(take(weekly(1, ends_on=date(2026, 1, 31), count=2), 9)) == 2
    assert len(take(weekly(1, ends_on=date(2026, 1, 31), count=9), 9)) == 4


def test_a_skipped_gap_is_not_counted() -> None:
    rule = weekly(7, wall_time=time(2, 30), starts_on=date(2026, 3, 1), count=2)
    assert dates(replace(rule, gap="skip"), 9) == ["2026-03-01", "2026-03-15"]
    assert dates(replace(rule, gap="later"), 9) == ["2026-03-01", "2026-03-08"]


def test_the_count_is_kept_when_asked_for_what_is_after_a_date() -> None:
    rule = weekly(7, wall_time=time(2, 30), starts_on=date(2026, 3, 1), count=3)
    after = date(2026, 3, 1)
    assert [f"{one.nominal_on}" for one in occurrences(rule, after=after)] == [
        "2026-03-08",
        "2026-03-15",
    ]
    skipping = replace(rule, gap="skip")
    assert [f"{one.nominal_on}" for one in occurrences(skipping, after=after)] == [
        "2026-03-15",
        "2026-03-22",
    ]


def test_what_moved_forward_is_found_from_the_month_that_it_moved_into() -> None:
    rule = monthly(nth=5, weekdays=(5,), absent="forward")
    # February 2026 has no fifth Friday: it is 6 March.
    assert take(rule, 1, after=date(2026, 3, 2))[0].nominal_on == date(2026, 3, 6)


def test_a_rule_without_an_end_is_asked_about_the_far_future_at_once() -> None:
    rule = weekly(1, 3, every=3)
    first = take(rule, 1, after=date(8000, 1, 1))[0].nominal_on
    assert first > date(8000, 1, 1)
    assert first.isoweekday() in (1, 3)
    assert (first - timedelta(days=first.weekday()) - date(2025, 12, 29)).days % 21 == 0


def test_every_rule_ends_with_the_calendar() -> None:
    last = list(occurrences(monthly(31, every=1000, absent="forward")))[-1]
    assert last.nominal_on.year < 9001
    assert list(occurrences(weekly(1), after=date(9000, 12, 31))) == []


def test_newer_ones_are_counted_from_the_calendar() -> None:
    rule = weekly(1)
    now = utc("2026-02-02T14:00Z")
    assert count_due_after(rule, date(2026, 1, 5), now, 99) == 4
    assert count_due_after(rule, date(2026, 1, 5), now - timedelta(seconds=1), 99) == 3
    assert count_due_after(rule, date(2026, 1, 5), now, 2) == 2
    assert count_due_after(rule, date(2026, 2, 2), now, 99) == 0


# ---- business days ---------------------------------------------------------------------------


def test_a_holiday_moves_to_the_next_business_day() -> None:
    rule = monthly(25, starts_on=date(2026, 12, 1), business_shift="next", holiday_calendar="DE")
    (found,) = take(rule, 1)
    assert found.nominal_on == date(2026, 12, 25)
    assert found.intended_local == datetime.fromisoformat("2026-12-28T09:00")
    assert found.is_shifted
    previous = take(replace(rule, business_shift="previous"), 1)
    assert due(previous) == ["2026-12-24T14:00Z"]


def test_dates_that_a_shift_puts_together_are_one() -> None:
    rule = weekly(5, 6, 7, 1, business_shift="next", holiday_calendar="DE")
    # Good Friday to Easter Monday move to Tuesday; the first of the four stays.
    found = [
        one for one in take(rule, 60) if date(2026, 4, 3) <= one.nominal_on <= date(2026, 4, 13)
    ]
    assert [(f"{one.nominal_on}", f"{one.intended_local:%F}") for one in found] == [
        ("2026-04-03", "2026-04-07"),
        ("2026-04-10", "2026-04-10"),
        ("2026-04-13", "2026-04-13"),
    ]
    # Moved back, all of them meet Thursday: it stands unshifted where the rule has it.
    back = weekly(4, 5, 6, 7, business_shift="previous", holiday_calendar="DE")
    found = [
        one for one in take(back, 60) if date(2026, 4, 2) <= one.nominal_on <= date(2026, 4, 9)
    ]
    assert [f"{one.nominal_on}" for one in found] == ["2026-04-02", "2026-04-09"]
    assert not any(one.is_shifted for one in found)


def test_what_a_shift_put_together_stays_so_when_asked_from_the_middle() -> None:
    rule = weekly(2, 7, business_shift="next", holiday_calendar="CN")
    # A week of holidays: Sunday 4 October and Tuesday the 6th both move behind it.
    after = [one.nominal_on for one in take(rule, 90) if one.nominal_on > date(2026, 10, 5)]
    assert date(2026, 10, 6) not in after
    assert take(rule, 1, after=date(2026, 10, 5))[0].nominal_on == after[0]


def test_the_next_may_be_a_date_long_past_that_a_shift_put_off() -> None:
    rule = monthly(1, business_shift="next", holiday_calendar="CN")
    following = next_after(rule, utc("2026-10-07T12:00Z"))
    assert following is not None
    assert following.nominal_on == date(2026, 10, 1)
    assert f"{following.intended_local:%F}" == "2026-10-08"


def test_collapsed_dates_are_not_counted() -> None:
    rule = weekly(6, 7, business_shift="next", holiday_calendar="DE", count=3)
    assert dates(rule, 9) == ["2026-01-03", "2026-01-10", "2026-01-17"]


def test_the_end_is_judged_before_the_shift() -> None:
    rule = weekly(6, ends_on=date(2026, 1, 3), business_shift="next", holiday_calendar="DE")
    (found,) = occurrences(rule)
    assert f"{found.intended_local:%F}" == "2026-01-05"


def test_a_calendar_that_is_gone_is_named_when_met() -> None:
    rule = weekly(1, business_shift="next", holiday_calendar="XX")
    with pytest.raises(RuleError, match="holiday_calendar: 'XX'"):
        occurrences(rule)


# ---- what is refused -------------------------------------------------------------------------

REFUSED: list[tuple[Rule, str, str]] = [
    (monthly(0), "month_day", "0 is not 1 to 31"),
    (monthly(32), "month_day", "32 is not 1 to 31"),
    (monthly(-2), "month_day", "-2 is not"),
    (monthly(), "month_day", "has a day or an n-th weekday"),
    (monthly(5, nth=2, weekdays=(1,)), "month_day", "not both"),
    (monthly(weekdays=(1,)), "nth", "says which"),
    (monthly(nth=6, weekdays=(1,)), "nth", "6 is not 1 to 5"),
    (monthly(nth=0, weekdays=(1,)), "nth", "0 is not"),
    (weekly(), "weekdays", "at least one"),
    (weekly(8), "weekdays", "8 is no ISO weekday"),
    (weekly(1, month_day=3), "month_day", "no day of the month"),
    (weekly(1, nth=3), "nth", "no n-th one"),
    (weekly(1, every=0), "every", "0 is not between 1 and 1000"),
    (weekly(1, every=1001), "every", "1001"),
    (weekly(1, count=0), "count", "0 is not between"),
    (weekly(1, count=10**9), "count", "between"),
    (weekly(1, zone="Mars/Olympus"), "zone", "not in the tz database 2026"),
    (weekly(1, wall_time=time(9, 0, 30)), "wall_time", "not a whole minute"),
    (weekly(1, wall_time=time(9, tzinfo=UTC)), "wall_time", "the zone alone decides"),
    (weekly(1, absent="forwards"), "absent", "none of omit, backward, forward"),
    (weekly(1, gap="compatible"), "gap", "none of skip, earlier, later"),
    (weekly(1, overlap="both"), "overlap", "none of earlier, later"),
    (weekly(1, business_shift="nearest"), "business_shift", "none of none, next, previous"),
    (weekly(1, frequency="daily"), "frequency", "none of weekly, monthly"),
    (weekly(1, business_shift="next"), "holiday_calendar", "needs one"),
    (weekly(1, holiday_calendar="DE"), "holiday_calendar", "by a business shift only"),
    (weekly(1, business_shift="next", holiday_calendar="XX"), "holiday_calendar", "'XX' is no"),
    (weekly(1, business_shift="next", holiday_calendar="DE-XX"), "holiday_calendar", "'DE-XX'"),
    (weekly(1, ends_on=date(2025, 12, 31)), "ends_on", "before the start"),
    (weekly(1, starts_on=date(1969, 12, 31)), "starts_on", "between the years"),
    (weekly(1, ends_on=date(9999, 12, 31)), "ends_on", "between the years"),
    (weekly(1, ends_on=date(2026, 1, 4)), "ends_on", "before the first occurrence, 2026-01-05"),
    (monthly(31, every=12, starts_on=date(2026, 2, 1)), "month_day", "every 12 from 2026-02"),
    (monthly(31, every=24, starts_on=date(2026, 4, 1)), "month_day", "no month that it meets"),
    (monthly(29, every=48, starts_on=date(2026, 2, 1)), "month_day", "every 48 from 2026-02"),
    (
        weekly(
            7,
            wall_time=time(2, 30),
            gap="skip",
            starts_on=date(2026, 3, 8),
            ends_on=date(2026, 3, 9),
        ),
        "ends_on",
        "before the first occurrence, 2026-03-15",
    ),
]


@pytest.mark.parametrize(("rule", "field", "reason"), REFUSED)
def test_a_bad_rule_is_refused_with_field_and_reason(rule: Rule, field: str, reason: str) -> None:
    with pytest.raises(RuleError) as refused:
        validate(rule)
    assert refused.value.field == field
    assert reason in refused.value.reason
    assert str(refused.value) == f"{field}: {refused.value.reason}"
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    "other",
    [
        {"absent": "backward"},
        {"starts_on": date(2028, 2, 1), "month_day": 29, "every": 48},
        {"starts_on": date(2026, 1, 1)},
    ],
)
def test_a_rule_that_meets_its_date_sometimes_is_accepted(other: dict[str, Any]) -> None:
    assert is_valid(replace(monthly(31, every=12, starts_on=date(2026, 2, 1)), **other))
