"""Rules read from and written to iCalendar; what one side can't say is refused by name."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any

import pytest
from dateutil import rrule as peer
from hypothesis import given, settings

from duebook.domain.calendar import Rule, RuleError, occurrences
from duebook.domain.rrule import from_rrule, rrule_faults, to_rrule
from tests.domain.calendar_rules import dates, is_valid, monthly, pinned, rules, take, weekly


def read(text: str, starts_on: str = "2026-01-01", **other: Any) -> Rule:
    fields = {"zone": "America/New_York", "wall_time": time(9), "gap": "skip", "overlap": "earlier"}
    return from_rrule(text, starts_on=date.fromisoformat(starts_on), **{**fields, **other})


# ---- reading ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "starts_on", "expected"),
    [
        # The weekly and monthly examples of RFC 5545 that a rule here can say.
        ("FREQ=WEEKLY;COUNT=10", "1997-09-02", "09-02 09-09 09-16 09-23 09-30 10-07 10-14"),
        ("FREQ=WEEKLY;UNTIL=19971224T000000Z", "1997-09-02", "09-02 09-09 09-16 09-23 09-30"),
        ("FREQ=WEEKLY;INTERVAL=2;WKST=SU", "1997-09-02", "09-02 09-16 09-30 10-14 10-28"),
        (
            "FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH",
            "1997-09-02",
            "09-02 09-04 09-09 09-11 09-16 09-18 09-23 09-25 09-30 10-02",
        ),
        (
            "FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR",
            "1997-09-01",
            "09-01 09-03 09-05 09-15 09-17 09-19 09-29",
        ),
        (
            "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH",
            "1997-09-02",
            "09-02 09-04 09-16 09-18 09-30 10-02 10-14 10-16",
        ),
        (
            "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
            "1997-08-05",
            "08-05 08-10 08-19 08-24",
        ),
        ("FREQ=MONTHLY;COUNT=10;BYDAY=1FR", "1997-09-05", "09-05 10-03 11-07 12-05"),
        ("FREQ=MONTHLY;UNTIL=19971224T000000Z;BYDAY=1FR", "1997-09-05", "09-05 10-03 11-07 12-05"),
        ("FREQ=MONTHLY;INTERVAL=18;BYMONTHDAY=10", "1997-09-10", "09-10"),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", "1997-09-30", "09-30 10-31 11-30 12-31"),
        ("FREQ=MONTHLY", "1997-08-31", "08-31 10-31 12-31"),
        ("FREQ=MONTHLY;BYDAY=-1MO,-1TU", "1997-09-01", "09-29 09-30 10-27 10-28 11-24 11-25"),
        # RFC 7529.
        (
            "RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=FORWARD",
            "1997-08-31",
            "08-31 10-01 10-31 12-01 12-31",
        ),
        (
            "RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=BACKWARD;BYMONTHDAY=31;COUNT=4",
            "1997-08-31",
            "08-31 09-30 10-31 11-30",
        ),
    ],
)
def test_the_examples_of_the_rfcs(text: str, starts_on: str, expected: str) -> None:
    wanted = [f"1997-{day}" for day in expected.split()]
    assert dates(read(text, starts_on), len(wanted)) == wanted


def test_the_start_of_the_week_does_not_matter_where_every_week_counts() -> None:
    assert read("FREQ=WEEKLY;BYDAY=TU,SU;WKST=SU").weekdays == (2, 7)
    assert read("FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=1;WKST=SU").month_day == 1


def test_the_start_says_the_day_that_the_rule_does_not() -> None:
    assert read("FREQ=WEEKLY", "2026-01-07").weekdays == (3,)
    assert read("FREQ=MONTHLY", "2026-01-30").month_day == 30


@pytest.mark.parametrize(
    "text",
    [
        "RRULE:FREQ=WEEKLY;BYDAY=MO,FR",
        "freq=weekly;byday=mo,fr",
        "  BYDAY=FR,MO;FREQ=WEEKLY;INTERVAL=1\r\n",
        "RRULE:FREQ=WEEKLY;BY\r\n DAY=MO,FR",
        "RSCALE=GREGORIAN;FREQ=WEEKLY;BYDAY=MO,FR;SKIP=OMIT;WKST=SU",
    ],
)
def test_a_rule_may_be_written_in_several_ways(text: str) -> None:
    assert read(text) == weekly(1, 5, gap="skip")


@pytest.mark.parametrize(
    ("until", "ends_on"),
    [
        ("20260315", "2026-03-15"),
        # 09:00 in New York is 14:00Z in winter and 13:00Z in summer; the end itself is in.
        ("20260302T140000Z", "2026-03-02"),
        ("20260302T135959Z", "2026-03-01"),
        ("20260309T130000Z", "2026-03-09"),
        ("20260310T030000Z", "2026-03-09"),
        ("20260310T050000Z", "2026-03-09"),
    ],
)
def test_until_is_the_last_date_in_the_zone(until: str, ends_on: str) -> None:
    found = read(f"FREQ=WEEKLY;UNTIL={until}")
    assert found.ends_on == date.fromisoformat(ends_on)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "is no part"),
        ("every Monday", "'EVERY MONDAY' is no part"),
        ("FREQ=WEEKLY;", "is no part"),
        ("BYDAY=MO", "FREQ is missing"),
        ("FREQ=DAILY", "FREQ DAILY"),
        ("FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=5", "BYMONTH can't"),
        ("FREQ=YEARLY", "FREQ YEARLY"),
        ("FREQ=WEEKLY;FREQ=WEEKLY", "FREQ is there twice"),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "BYSETPOS can't"),
        ("FREQ=WEEKLY;BYHOUR=9", "BYHOUR can't"),
        ("FREQ=WEEKLY;BYMINUTE=9", "BYMINUTE can't"),
        ("FREQ=WEEKLY;X-NAME=1", "X-NAME can't"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY has no meaning"),
        ("FREQ=WEEKLY;BYDAY=1MO", "BYDAY with a number"),
        ("FREQ=WEEKLY;BYDAY=MON", "BYDAY 'MON' is no day"),
        ("FREQ=WEEKLY;BYDAY=MO,", "BYDAY '' is no day"),
        ("FREQ=MONTHLY;BYDAY=TU", "BYDAY without a number"),
        ("FREQ=MONTHLY;BYDAY=1SU,-1SU", "BYDAY names several weeks"),
        ("FREQ=MONTHLY;BYDAY=-2MO", "BYDAY -2"),
        ("FREQ=MONTHLY;BYDAY=6MO", "BYDAY 6"),
        ("FREQ=MONTHLY;BYDAY=0MO", "BYDAY 0"),
        ("FREQ=MONTHLY;BYMONTHDAY=2,15", "BYMONTHDAY names several"),
        ("FREQ=MONTHLY;BYMONTHDAY=-3", "BYMONTHDAY -3"),
        ("FREQ=MONTHLY;BYMONTHDAY=32", "BYMONTHDAY 32"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY 0"),
        ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "BYDAY together with BYMONTHDAY"),
        ("FREQ=WEEKLY;INTERVAL=0", "INTERVAL '0'"),
        ("FREQ=WEEKLY;INTERVAL=-2", "INTERVAL '-2'"),
        ("FREQ=WEEKLY;INTERVAL=5000", "5000"),
        ("FREQ=WEEKLY;COUNT=0", "COUNT '0'"),
        ("FREQ=WEEKLY;COUNT=two", "COUNT 'TWO'"),
        ("FREQ=WEEKLY;COUNT=2;UNTIL=20260301", "COUNT and UNTIL"),
        ("FREQ=WEEKLY;UNTIL=20260301T090000", "UNTIL '20260301T090000'"),
        ("FREQ=WEEKLY;UNTIL=20260230", "UNTIL '20260230' is not in the calendar"),
        ("FREQ=WEEKLY;UNTIL=20261231T256000Z", "UNTIL"),
        ("FREQ=WEEKLY;UNTIL=99991231", "UNTIL '99991231'"),
        ("FREQ=WEEKLY;UNTIL=20251231", "before the start"),
        ("FREQ=WEEKLY;WKST=XX", "WKST XX"),
        # The RFC's example of two week starts that give two sets of dates.
        ("FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", "WKST SU gives other dates"),
        ("FREQ=MONTHLY;SKIP=FORWARD", "SKIP needs RSCALE"),
        ("RSCALE=CHINESE;FREQ=MONTHLY", "RSCALE CHINESE"),
        ("RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=YES", "SKIP YES"),
        ("RSCALE=GREGORIAN;FREQ=MONTHLY;BYDAY=+5MO;SKIP=FORWARD", "SKIP moves days of a month"),
        ("FREQ=WEEKLY;BYDAY=" + ",".join(["MO"] * 200), "longer than"),
    ],
)
def test_what_a_rule_can_not_say_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(RuleError) as refused:
        read(text)
    assert named in str(refused.value)


@pytest.mark.parametrize("start", range(7))
@pytest.mark.parametrize("week_start", range(7))
def test_another_start_of_the_week_is_read_only_where_it_changes_nothing(
    start: int, week_start: int
) -> None:
    starts_on = date(2026, 1, 5) + timedelta(days=start)
    names = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
    for days in itertools.combinations(range(7), 2):
        text = f"INTERVAL=2;BYDAY={names[days[0]]},{names[days[1]]};WKST={names[week_start]}"
        say = {"dtstart": datetime.combine(starts_on, time(9)), "interval": 2, "byweekday": days}
        found = [
            [one.date() for one in itertools.islice(peer.rrule(peer.WEEKLY, wkst=first, **say), 9)]
            for first in (week_start, 0)
        ]
        try:
            rule = read("FREQ=WEEKLY;" + text, starts_on.isoformat())
        except RuleError:
            assert found[0] != found[1]
        else:
            assert found[0] == found[1] == [one.nominal_on for one in take(rule, 9)]


# ---- writing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (weekly(1, 3), "FREQ=WEEKLY;BYDAY=MO,WE"),
        (weekly(7, every=2), "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU;WKST=MO"),
        (weekly(1, count=5), "FREQ=WEEKLY;BYDAY=MO;COUNT=5"),
        (weekly(1, ends_on=date(2026, 7, 1)), "FREQ=WEEKLY;BYDAY=MO;UNTIL=20260701T130000Z"),
        (monthly(31), "FREQ=MONTHLY;BYMONTHDAY=31"),
        (monthly(-1, every=3), "FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=-1"),
        (monthly(nth=2, weekdays=(2, 4)), "FREQ=MONTHLY;BYDAY=2TU,2TH"),
        (monthly(nth=-1, weekdays=(5,)), "FREQ=MONTHLY;BYDAY=-1FR"),
        (
            monthly(31, absent="backward"),
            "RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD",
        ),
    ],
)
def test_a_rule_is_written(rule: Rule, text: str) -> None:
    assert to_rrule(replace(rule, gap="skip")) == text


@pytest.mark.parametrize(
    ("other", "field"),
    [
        ({"gap": "later"}, "gap"),
        ({"gap": "earlier"}, "gap"),
        ({"overlap": "later"}, "overlap"),
        ({"business_shift": "next", "holiday_calendar": "DE"}, "business_shift"),
        ({"count": 3, "ends_on": date(2027, 1, 1)}, "count"),
        ({"month_day": None, "nth": 5, "weekdays": (1,), "absent": "forward"}, "absent"),
    ],
)
def test_what_an_rrule_can_not_say_is_refused_by_name(other: dict[str, Any], field: str) -> None:
    with pytest.raises(RuleError) as refused:
        to_rrule(replace(monthly(1, gap="skip"), **other))
    assert refused.value.field == field


def test_all_that_it_can_not_say_is_named_at_once() -> None:
    with pytest.raises(RuleError) as refused:
        to_rrule(monthly(1, gap="later", overlap="later"))
    assert "gap: " in str(refused.value)
    assert "overlap: " in str(refused.value)


def again(text: str, rule: Rule) -> Rule:
    return from_rrule(
        text,
        starts_on=rule.starts_on,
        zone=rule.zone,
        wall_time=rule.wall_time,
        gap=rule.gap,
        overlap=rule.overlap,
    )


@settings(deadline=None, max_examples=150)
@given(rules())
def test_a_rule_written_and_read_again_is_the_same(rule: Rule) -> None:
    if not is_valid(rule):
        return
    if rrule_faults(rule):
        rule = replace(
            rule,
            gap="skip",
            overlap="earlier",
            business_shift="none",
            holiday_calendar=None,
            count=None,
            absent="omit" if rule.nth == 5 else rule.absent,
        )
    if is_valid(rule):
        assert again(to_rrule(rule), rule) == rule


@settings(deadline=None, max_examples=150)
@given(
    rules(
        gap="skip",
        overlap="earlier",
        absent="omit",
        business_shift="none",
        holiday_calendar=None,
        count=None,
    )
)
def test_dateutil_reads_the_same_dates_from_it(rule: Rule) -> None:
    if not is_valid(rule):
        return
    zone = pinned(rule.zone)
    start = datetime.combine(rule.starts_on, rule.wall_time, zone)
    found = peer.rrulestr(to_rrule(rule), dtstart=start)
    theirs = [one.date() for one in itertools.islice(found, 40)]
    # dateutil keeps a local time that does not exist.
    ours = [one.nominal_on for one in itertools.islice(occurrences(replace(rule, gap="later")), 40)]
    assert ours == theirs
