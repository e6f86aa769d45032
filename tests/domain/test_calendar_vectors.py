"""The calendar against vectors that others computed, and against other implementations."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast, get_args

import pytest
from dateutil import rrule as peer
from hypothesis import given, settings
from hypothesis import strategies as st

from duebook.domain.calendar import Gap, Overlap, Rule, known_zones, occurrences, resolve
from tests.domain.calendar_rules import SHARED, dates, monthly, pinned, rules, utc, weekly

TRANSITIONS = SHARED / "tz_transitions_2024_2030_tzdb2026f.csv"
MINUTE = timedelta(minutes=1)
DECADE = timedelta(days=3653)
PEER_DAYS = (peer.MO, peer.TU, peer.WE, peer.TH, peer.FR, peer.SA, peer.SU)

needs_shared = pytest.mark.skipif(
    not SHARED.exists(), reason="the shared vectors are not beside this clone"
)


def vectors(name: str) -> list[dict[str, Any]]:
    text = (SHARED / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line]


def transitions() -> list[dict[str, str]]:
    with TRANSITIONS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ---- vectors ---------------------------------------------------------------------------------


@needs_shared
def test_every_vector_of_gaps_and_overlaps() -> None:
    rows = vectors("gap_overlap_vectors.jsonl")
    wrong = []
    for row in rows:
        local, zone = datetime.fromisoformat(row["local"]), row["zone"]
        earlier = resolve(local, zone, "earlier", "earlier")
        later = resolve(local, zone, "later", "later")
        skipped = resolve(local, zone, "skip", "earlier")
        expected = (row["class"], utc(row["earlier"]), utc(row["later"]))
        if (earlier.case, earlier.instant, later.instant) != expected:
            wrong.append(row)
        if (skipped.instant is None) != (row["class"] == "gap"):
            wrong.append(row)
        if resolve(local, zone, "later", "earlier").instant != utc(row["compatible"]):
            wrong.append(row)
    assert wrong == []
    assert len(rows) == 1350


@needs_shared
def test_every_transition_just_inside_and_just_outside() -> None:
    rows = transitions()
    wrong = []
    for row in rows:
        first = datetime.fromisoformat(row["local_from_incl"])
        behind = datetime.fromisoformat(row["local_to_excl"])
        change = timedelta(seconds=int(row["offset_after_s"]) - int(row["offset_before_s"]))
        expected = {
            first - MINUTE: "exact",
            first: row["kind"],
            first + (behind - first) / 2: row["kind"],
            behind - MINUTE: row["kind"],
            behind: "exact",
        }
        for local, case in expected.items():
            found = resolve(local, row["zone"], "earlier", "earlier")
            later = resolve(local, row["zone"], "later", "later")
            assert found.instant is not None
            assert later.instant is not None
            apart = abs(change) if case != "exact" else timedelta(0)
            if (found.case, later.instant - found.instant) != (case, apart):
                wrong.append((row, local))
        # The clock jumps at the instant of the row, whichever side it is seen from.
        if resolve(behind, row["zone"], "skip", "earlier").instant != utc(row["utc_instant"]) + (
            timedelta(0) if row["kind"] == "gap" else abs(change)
        ):
            wrong.append((row, behind))
    assert wrong == []
    assert len(rows) == 430


@needs_shared
def test_a_time_that_comes_twice_fires_once_at_every_transition() -> None:
    for row in transitions():
        first = datetime.fromisoformat(row["local_from_incl"])
        rule = weekly(
            *range(1, 8),
            zone=row["zone"],
            wall_time=first.time(),
            starts_on=first.date() - timedelta(days=2),
            count=5,
        )
        found = list(occurrences(rule))
        assert [one.case for one in found if one.nominal_on == first.date()] == [row["kind"]]
        assert len({one.due_at for one in found}) == len({one.nominal_on for one in found}) == 5
        gone = list(occurrences(replace(rule, gap="skip")))
        skips = row["kind"] == "gap"
        assert (first.date() in {one.nominal_on for one in gone}) != skips


@needs_shared
def test_every_vector_of_month_ends() -> None:
    rows = vectors("monthly_skip_vectors.jsonl")
    for row in rows:
        starts_on = datetime.strptime(row["dtstart"], "%Y%m%d").replace(tzinfo=UTC).date()
        rule = monthly(row["day"], absent=row["absent"], starts_on=starts_on)
        expected = [f"{day[:4]}-{day[4:6]}-{day[6:]}" for day in row["dates"]]
        assert dates(rule, len(expected)) == expected
    assert len(rows) == 4


# ---- the standard library: which instant -----------------------------------------------------

# Minutes of nights in which clocks are likely to change, and any other minute.
SUNDAYS = st.builds(
    lambda weeks, minutes: datetime(2024, 2, 4) + timedelta(weeks=weeks, minutes=minutes),  # noqa: DTZ001
    st.integers(0, 52 * 36),
    st.integers(-60, 4 * 60),
)
LOCALS = SUNDAYS | st.datetimes(datetime(2024, 1, 1), datetime(2060, 1, 1))  # noqa: DTZ001


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(sorted(known_zones())),
    LOCALS,
    st.sampled_from(get_args(Gap)),
    st.sampled_from(get_args(Overlap)),
)
def test_the_standard_library_finds_the_same_instant(
    zone: str, local: datetime, gap: Gap, overlap: Overlap
) -> None:
    found = resolve(local.replace(microsecond=0), zone, gap, overlap)
    assert found == by_zoneinfo(local.replace(microsecond=0), zone, gap, overlap)


def by_zoneinfo(
    local: datetime, zone: str, gap: Gap, overlap: Overlap
) -> tuple[str, datetime | None]:
    """PEP 495: before a gap the fold takes the offset from before it, in an overlap the first."""
    first, second = (
        local.replace(tzinfo=pinned(zone), fold=fold).astimezone(UTC) for fold in (0, 1)
    )
    if first == second:
        return "exact", first
    if first < second:
        return "overlap", first if overlap == "earlier" else second
    return "gap", {"skip": None, "earlier": second, "later": first}[gap]


# ---- dateutil: which dates -------------------------------------------------------------------


def by_dateutil(rule: Rule) -> list[date]:
    """The dates of a rule over ten years by dateutil, which knows no zone, shift or FORWARD."""
    day = rule.month_day
    say: dict[str, Any] = {}
    if day is not None:
        say["bymonthday"] = day
    if day is not None and rule.absent == "backward":
        # The latest of the days up to it that the month has.
        say = {"bymonthday": tuple(range(min(day, 28), day + 1)) or day, "bysetpos": -1}
    if rule.weekdays:
        days = [PEER_DAYS[number - 1] for number in rule.weekdays]
        say["byweekday"] = [one(rule.nth) for one in days] if rule.nth else days
    start = datetime.combine(rule.starts_on, datetime.min.time())
    ends = min(rule.ends_on or date.max, rule.starts_on + DECADE)
    found = peer.rrule(
        peer.WEEKLY if rule.frequency == "weekly" else peer.MONTHLY,
        dtstart=start,
        interval=rule.every,
        wkst=peer.MO,
        until=datetime.combine(ends, datetime.min.time()),
        **say,
    )
    return [one.date() for one in itertools.islice(found, rule.count)]


def ours(rule: Rule) -> list[date]:
    last = rule.starts_on + DECADE
    found = itertools.takewhile(lambda one: one.nominal_on <= last, occurrences(rule))
    return [one.nominal_on for one in found]


STARTS = (date(2023, 12, 31), date(2024, 2, 29), date(2026, 1, 31), date(2027, 3, 3))


def comparable() -> Iterator[Rule]:
    """Everything that both can say, in steps."""
    sets = [*itertools.combinations(range(1, 8), 1), *itertools.combinations(range(1, 8), 2)]
    for weekdays, every in itertools.product([*sets, (1, 2, 3, 4, 5)], (1, 2, 3, 53)):
        yield weekly(*weekdays, every=every, starts_on=STARTS[len(weekdays) % 4])
    for day, every, start in itertools.product((1, 15, 28, 29, 30, 31, -1), (1, 2, 5, 12), STARTS):
        yield monthly(day, every=every, starts_on=start)
        if day != -1:
            yield monthly(day, every=every, starts_on=start, absent="backward")
    for nth, weekday, every in itertools.product((1, 2, 3, 4, 5, -1), range(1, 8), (1, 3)):
        yield monthly(nth=nth, weekdays=(weekday,), every=every, starts_on=STARTS[weekday % 4])


def test_dateutil_agrees_over_ten_years() -> None:
    counted = 0
    for rule in comparable():
        found = ours(rule)
        assert found == by_dateutil(rule), rule
        counted += len(found)
    assert counted > 40_000


both_can_say = rules(
    gap="later", business_shift="none", holiday_calendar=None, absent=cast("Any", "omit")
)


@settings(deadline=None, max_examples=100)
@given(both_can_say)
def test_dateutil_agrees_on_any_rule_that_it_can_say(rule: Rule) -> None:
    assert ours(rule) == by_dateutil(rule)
