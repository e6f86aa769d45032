"""What holds for every rule, in every zone, for decades."""

from __future__ import annotations

import calendar
import itertools
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import get_args

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from duebook.domain.business_days import shift
from duebook.domain.calendar import (
    Absent,
    Occurrence,
    Rule,
    count_due_after,
    known_zones,
    month_date,
    next_after,
    nth_weekday,
    occurrences,
)
from tests.domain.calendar_rules import is_valid, pinned, rules, take, weekly

MOST = 60
instants = st.datetimes(
    datetime(2024, 1, 1),  # noqa: DTZ001
    datetime(2036, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
days = st.dates(date(2023, 1, 1), date(2042, 1, 1))


@settings(deadline=None)
@given(rules())
def test_order_is_strict_and_no_key_repeats(rule: Rule) -> None:
    found = take(rule, MOST)
    for before, later in itertools.pairwise(found):
        assert before.nominal_on < later.nominal_on
        assert before.intended_local < later.intended_local
        assert before.due_at is not None
        assert later.due_at is not None
        assert before.due_at < later.due_at


@settings(deadline=None)
@given(rules())
def test_what_is_due_then_is_what_the_clock_shows(rule: Rule) -> None:
    zone = pinned(rule.zone)
    for one in take(rule, MOST):
        assert one.due_at is not None
        shown = one.due_at.astimezone(zone).replace(tzinfo=None)
        if one.case == "gap":
            assert rule.gap != "skip"
            assert (shown > one.intended_local) == (rule.gap == "later")
        else:
            assert shown == one.intended_local
        assert one.intended_local.time() == rule.wall_time


@settings(deadline=None)
@given(rules())
def test_dates_stay_between_the_start_and_the_end(rule: Rule) -> None:
    found = take(rule, MOST)
    assert len(found) <= (rule.count or MOST)
    for one in found:
        assert rule.starts_on <= one.nominal_on <= (rule.ends_on or date.max)
        assert one.is_shifted <= (rule.business_shift != "none")
        assert one.intended_local.date() == shift(
            one.nominal_on, rule.business_shift, rule.holiday_calendar
        )


@settings(deadline=None, max_examples=100)
@given(rules(), days)
def test_after_equals_filtering_from_the_start(rule: Rule, after: date) -> None:
    rule = replace(rule, ends_on=min(rule.ends_on or date.max, date(2042, 12, 31)))
    from_start = [one for one in occurrences(rule) if one.nominal_on > after]
    assert list(occurrences(rule, after=after)) == from_start


@settings(deadline=None)
@given(rules(), instants)
def test_the_next_is_after_now(rule: Rule, now: datetime) -> None:
    following = next_after(rule, now)
    first = next((one for one in occurrences(rule) if is_later(one, now)), None)
    assert following == first
    if following is not None:
        assert is_later(following, now)


def is_later(one: Occurrence, now: datetime) -> bool:
    return one.due_at is not None and one.due_at > now


@settings(deadline=None)
@given(rules(), instants, days, st.integers(1, 40))
def test_newer_ones_are_those_due_by_now(
    rule: Rule, now: datetime, nominal_on: date, most: int
) -> None:
    found = (one for one in occurrences(rule) if one.nominal_on > nominal_on)
    until_now = itertools.takewhile(lambda one: not is_later(one, now), found)
    assert count_due_after(rule, nominal_on, now, most) == len([*itertools.islice(until_now, most)])


@settings(deadline=None)
@given(rules(count=None, ends_on=None, business_shift="next", holiday_calendar="DE"))
def test_a_shift_loses_only_what_it_puts_together(rule: Rule) -> None:
    assume(is_valid(rule))
    plain = take(replace(rule, business_shift="none", holiday_calendar=None, gap="later"), 40)
    targets = {shift(one.nominal_on, "next", "DE") for one in plain}
    kept = [
        one
        for one in take(replace(rule, gap="later"), 40)
        if one.nominal_on <= plain[-1].nominal_on
    ]
    on = [one.intended_local.date() for one in kept]
    assert len(on) == len(set(on))
    # The last may go to one that comes behind it.
    assert targets - set(on) <= {max(targets)}
    unshifted = {one.nominal_on for one in plain} & targets
    assert unshifted - {one.nominal_on for one in kept} == set()


@settings(deadline=None)
@given(rules())
def test_a_rule_is_refused_only_if_it_has_no_occurrence(rule: Rule) -> None:
    assert is_valid(rule) == bool(take(rule, 1))


@settings(deadline=None)
@given(rules(count=None), st.integers(1, 30))
def test_a_count_is_the_beginning_of_the_rule_without_it(rule: Rule, count: int) -> None:
    assume(is_valid(rule))
    assert list(occurrences(replace(rule, count=count))) == take(rule, count)


# ---- decades ---------------------------------------------------------------------------------


@pytest.mark.parametrize("hour", [0, 1, 2])
def test_twenty_years_of_sundays_in_every_zone(hour: int) -> None:
    """A night in which most clocks change: each Sunday once, whatever the clock did."""
    zones = sorted(known_zones())[hour::3]
    for zone in zones:
        rule = weekly(
            7, zone=zone, wall_time=time(hour, 30), starts_on=date(2026, 1, 1), count=20 * 52
        )
        found = list(occurrences(rule))
        instants_due = [one.due_at for one in found if one.due_at]
        assert len(found) == len(instants_due) == len(set(instants_due)) == 20 * 52
        assert instants_due == sorted(instants_due)
        assert {one.nominal_on.isoweekday() for one in found} == {7}


def test_every_end_of_month_for_forty_years() -> None:
    """By another definition: count on from the first, and stop at the end or behind it."""
    for year, month, day in itertools.product(range(2020, 2061), range(1, 13), (29, 30, 31)):
        first = date(year, month, 1)
        behind = first + timedelta(days=calendar.monthrange(year, month)[1])
        wanted = first + timedelta(days=day - 1)
        expected = {
            "omit": wanted if wanted < behind else None,
            "backward": min(wanted, behind - timedelta(days=1)),
            "forward": min(wanted, behind),
        }
        for absent in get_args(Absent):
            assert month_date(year, month, day, absent) == expected[absent]
            assert month_date(year, month, -1, absent) == behind - timedelta(days=1)


def test_every_nth_weekday_for_forty_years() -> None:
    months = itertools.product(range(2020, 2061), range(1, 13), range(1, 8))
    for year, month, weekday in months:
        first = date(year, month, 1)
        following = [first + timedelta(days=ahead) for ahead in range(40)]
        all_of_it = [one for one in following if one.isoweekday() == weekday]
        inside = [one for one in all_of_it if one.month == month]
        assert [nth_weekday(year, month, weekday, n, "omit") for n in range(1, 6)] == [
            *inside,
            *[None] * (5 - len(inside)),
        ]
        assert nth_weekday(year, month, weekday, -1, "omit") == inside[-1]
        assert nth_weekday(year, month, weekday, 5, "backward") == inside[-1]
        assert nth_weekday(year, month, weekday, 5, "forward") == all_of_it[4]
