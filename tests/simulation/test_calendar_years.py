"""Twenty years of reminders, day by day, in every zone whose clock changes: against zoneinfo.

The product computes with `whenever`; here the standard library's clock is asked when it shows the
same local time: never is a gap, twice an overlap. Both read the pinned `tzdata`.
"""

from __future__ import annotations

import calendar
import importlib.resources
import itertools
import random
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from duebook.domain.calendar import (
    Absent,
    Gap,
    Occurrence,
    Overlap,
    Rule,
    count_due_after,
    next_after,
    occurrences,
    resolve,
)

FIRST, LAST = date(2016, 1, 1), date(2036, 1, 1)
GAPS: tuple[Gap, ...] = ("skip", "earlier", "later")
OVERLAPS: tuple[Overlap, ...] = ("earlier", "later")
ABSENTS: tuple[Absent, ...] = ("omit", "backward", "forward")
EVERY_DAY = (1, 2, 3, 4, 5, 6, 7)
POLICIES = tuple(itertools.product(GAPS, OVERLAPS))


@pytest.fixture(autouse=True)
def only_the_pinned_zones() -> Iterator[None]:
    """The machine's own rules may be others."""
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=())
    ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath(to=[path for path in before if path])
    ZoneInfo.clear_cache()


def zone_names() -> list[str]:
    text = importlib.resources.files("tzdata").joinpath("zones").read_text()
    return sorted(text.split())


def transitions(name: str) -> list[datetime]:
    """The UTC instants, to the second, at which the offset of a zone changes in these years."""
    zone = ZoneInfo(name)

    def offset(at: datetime) -> timedelta | None:
        return at.astimezone(zone).utcoffset()

    found = []
    at, step = datetime(FIRST.year, 1, 1, tzinfo=UTC), timedelta(days=7)
    while at.year < LAST.year:
        low, high = at, at + step
        if offset(low) != offset(high):
            while high - low > timedelta(seconds=1):
                middle = low + (high - low) // 2
                middle = middle.replace(microsecond=0)
                low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
            found.append(high)
        at += step
    return found


def expected(local: datetime, zone: ZoneInfo, gap: Gap, overlap: Overlap) -> datetime | None:
    """The instant of a local time, by asking when the zone's clock shows it: never, once or twice.

    Not by PEP 495's two readings of a local time: after the last change that a zone's file lists
    (America/Nuuk, October 2023) the standard library's are wrong for an hour.
    """
    about = local.replace(tzinfo=UTC)
    before = (about - timedelta(hours=30)).astimezone(zone).utcoffset()
    after = (about + timedelta(hours=30)).astimezone(zone).utcoffset()
    assert before is not None
    assert after is not None
    shown = [
        instant
        for instant in sorted({about - before, about - after})
        if instant.astimezone(zone).replace(tzinfo=None) == local
    ]
    if shown:
        return shown[0] if overlap == "earlier" else shown[-1]
    if gap == "skip":
        return None
    # With the offset of before, a skipped time is later by the gap; with that of after, earlier.
    return about - (before if gap == "later" else after)


def rule_of(name: str, wall: time, gap: Gap, overlap: Overlap) -> Rule:
    return Rule(
        frequency="weekly",
        every=1,
        weekdays=EVERY_DAY,
        zone=name,
        wall_time=wall,
        absent="omit",
        gap=gap,
        overlap=overlap,
        starts_on=FIRST,
        ends_on=LAST,
    )


def walls_of(name: str, changes: list[datetime]) -> list[time]:
    """Wall times that the clock's changes meet, and one that they hardly do."""
    zone, walls = ZoneInfo(name), {time(9, 0)}
    for at in changes:
        after = at.astimezone(zone).replace(tzinfo=None)
        before = (at - timedelta(seconds=1)).astimezone(zone).replace(tzinfo=None)
        middle = after + (before - after) / 2
        walls.add(middle.replace(second=0, microsecond=0).time())
    return sorted(walls)


def play_every_day(name: str, wall: time, gap: Gap, overlap: Overlap) -> int:
    """Twenty years of one daily rule; returns how many reminders there were."""
    rule, zone = rule_of(name, wall, gap, overlap), ZoneInfo(name)
    seen = {each.nominal_on: each for each in occurrences(rule)}
    day, before, count = FIRST, None, 0
    while day <= LAST:
        instant = expected(datetime.combine(day, wall), zone, gap, overlap)
        occurrence = seen.pop(day, None)
        assert (occurrence and occurrence.due_at) == instant, (name, day, wall, gap, overlap)
        if instant is not None:
            assert before is None or instant > before, (name, day, wall)
            before, count = instant, count + 1
        day += timedelta(days=1)
    assert not seen
    return count


def meet_every_change(name: str, changes: list[datetime]) -> int:
    """Local times around each change, under every policy."""
    zone, met = ZoneInfo(name), 0
    for at in changes:
        readings = [
            (at + timedelta(seconds=seconds)).astimezone(zone).replace(tzinfo=None)
            for seconds in (-1, 0)
        ]
        low, high = min(readings), max(readings)
        around = {low, high, low + (high - low) / 2, low - timedelta(minutes=1)}
        around |= {high + timedelta(minutes=1), high - timedelta(seconds=1)}
        for local, (gap, overlap) in itertools.product(around, POLICIES):
            local = local.replace(microsecond=0)
            found = resolve(local, name, gap, overlap).instant
            assert found == expected(local, zone, gap, overlap), (name, local, gap, overlap)
            met += 1
    return met


def ask_in_the_middle(name: str, seed: int) -> None:
    """What a sweep asks at any moment, after any outage, is what the list says."""
    dice = random.Random(seed)
    rule = rule_of(name, time(2, 30), dice.choice(GAPS), dice.choice(OVERLAPS))
    whole: list[Occurrence] = list(occurrences(rule))
    for _ in range(20):
        written = dice.choice(whole).nominal_on
        now = datetime.combine(FIRST, time(0), UTC) + timedelta(
            seconds=dice.randrange(20 * 365 * 86400)
        )
        later = [each for each in whole if each.due_at is not None and each.due_at > now]
        following = next_after(rule, now)
        assert following == (later[0] if later else None)
        missed = [
            each
            for each in whole
            if each.nominal_on > written and each.due_at is not None and each.due_at <= now
        ]
        assert count_due_after(rule, written, now, 10_000) == len(missed)
        assert count_due_after(rule, written, now, 5) == min(5, len(missed))
        ahead = itertools.islice(occurrences(rule, after=written), 40)
        assert list(ahead) == [each for each in whole if each.nominal_on > written][:40]


def month_days(day: int, absent: Absent) -> list[date]:
    """The dates of a monthly rule, by counting days."""
    found = set()
    for year, month in itertools.product(range(FIRST.year, LAST.year), range(1, 13)):
        length = calendar.monthrange(year, month)[1]
        if day == -1 or day <= length:
            found.add(date(year, month, length if day == -1 else day))
        elif absent == "backward":
            found.add(date(year, month, length))
        elif absent == "forward":
            found.add(date(year, month, length) + timedelta(days=1))
    return sorted(found)


def changing_zones() -> dict[str, list[datetime]]:
    found = {name: transitions(name) for name in zone_names()}
    return {name: changes for name, changes in found.items() if changes}


@pytest.mark.parametrize(
    "name",
    ["America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Nuuk",
     "Asia/Beirut", "Antarctica/Troll", "Europe/Dublin", "America/Santiago"],
)  # fmt: skip
def test_twenty_years_in_zones_of_every_kind(name: str) -> None:
    changes = transitions(name)
    assert changes
    assert meet_every_change(name, changes)
    for (gap, overlap), wall in zip(POLICIES, walls_of(name, changes), strict=False):
        assert play_every_day(name, wall, gap, overlap) > 7000
    ask_in_the_middle(name, 1)


@pytest.mark.parametrize("absent", ABSENTS)
def test_twenty_years_of_months(absent: Absent) -> None:
    for day in (-1, *range(1, 32)):
        rule = Rule(
            frequency="monthly",
            every=1,
            month_day=day,
            zone="Europe/Berlin",
            wall_time=time(2, 30),
            absent=absent,
            gap="later",
            overlap="earlier",
            starts_on=FIRST,
            ends_on=LAST - timedelta(days=1),
        )
        wanted = [each for each in month_days(day, absent) if each < LAST]
        assert [each.nominal_on for each in occurrences(rule)] == wanted, day


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_twenty_years_in_every_zone_that_changes() -> None:
    zones = changing_zones()
    assert len(zones) > 150
    days = changes_met = 0
    for number, (name, changes) in enumerate(zones.items()):
        changes_met += meet_every_change(name, changes)
        for wall_number, wall in enumerate(walls_of(name, changes)[:6]):
            gap, overlap = POLICIES[(number + wall_number) % len(POLICIES)]
            days += play_every_day(name, wall, gap, overlap)
        ask_in_the_middle(name, number)
    print(f"{len(zones)} zones, {days} reminders, {changes_met} local times around changes")
