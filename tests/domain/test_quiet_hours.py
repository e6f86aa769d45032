"""Quiet hours by the recipient's wall clock, over midnight and over clock changes."""

from __future__ import annotations

import json
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duebook.domain.quiet_hours import QuietWindow, quiet_until

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "recurrence"
VECTORS = SHARED / "quiet_hours_vectors.jsonl"


@pytest.fixture
def pinned_tzdata() -> Iterator[None]:
    """Zones from the tzdata package, as deployed (PYTHONTZPATH is empty there)."""
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=[])
    zoneinfo.ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath(to=before)
    zoneinfo.ZoneInfo.clear_cache()


def vectors() -> list[dict[str, Any]]:
    if not VECTORS.exists():
        return []
    return [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines() if line]


@pytest.mark.usefixtures("pinned_tzdata")
@pytest.mark.skipif(not VECTORS.exists(), reason="the shared vectors are not beside this clone")
@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: f"{vector['why']} {vector['now']}")
def test_the_shared_vectors(vector: dict[str, Any]) -> None:
    window = QuietWindow(
        time.fromisoformat(vector["quiet_from"]), time.fromisoformat(vector["quiet_to"])
    )
    now = datetime.fromisoformat(vector["now"])
    until = quiet_until([window], zoneinfo.ZoneInfo(vector["zone"]), now)
    assert (until is not None) == vector["quiet"]
    assert (until or now) == datetime.fromisoformat(vector["send_at"])


@pytest.mark.usefixtures("pinned_tzdata")
@pytest.mark.parametrize(
    ("windows", "zone", "now", "until"),
    [
        ([("21:00", "08:00")], "America/New_York", "2026-01-15T01:59:59Z", None),
        ([("21:00", "08:00")], "America/New_York", "2026-01-15T02:00Z", "2026-01-15T13:00Z"),
        ([("21:00", "08:00")], "America/New_York", "2026-01-15T13:00Z", None),
        # End inside the repeated hour: quiet a second time.
        ([("22:00", "01:30")], "America/New_York", "2026-11-01T05:15Z", "2026-11-01T05:30Z"),
        ([("22:00", "01:30")], "America/New_York", "2026-11-01T06:10Z", "2026-11-01T06:30Z"),
        # End inside the skipped hour: ends at the jump.
        ([("22:00", "02:30")], "America/New_York", "2026-03-08T06:59Z", "2026-03-08T07:00Z"),
        # Starts inside the skipped hour: the rest of it is quiet.
        ([("02:30", "04:00")], "America/New_York", "2026-03-08T07:00Z", "2026-03-08T08:00Z"),
        # Windows that follow each other are one.
        (
            [("20:00", "23:00"), ("23:00", "07:00")],
            "Europe/Berlin",
            "2026-06-01T20:00Z",
            "2026-06-02T05:00Z",
        ),
    ],
)
def test_windows_follow_the_wall_clock(
    windows: list[tuple[str, str]], zone: str, now: str, until: str | None
) -> None:
    quiet = [QuietWindow(time.fromisoformat(a), time.fromisoformat(b)) for a, b in windows]
    expected = datetime.fromisoformat(until) if until else None
    assert quiet_until(quiet, zoneinfo.ZoneInfo(zone), datetime.fromisoformat(now)) == expected


def test_a_quiet_sunday_ends_on_monday() -> None:
    sunday = QuietWindow(time(0), time(0), frozenset({6}))
    zone = zoneinfo.ZoneInfo("UTC")
    assert quiet_until([sunday], zone, datetime(2026, 11, 29, 9, tzinfo=UTC)) == datetime(
        2026, 11, 30, tzinfo=UTC
    )
    assert quiet_until([sunday], zone, datetime(2026, 11, 30, 9, tzinfo=UTC)) is None


def test_a_week_of_quiet_never_ends() -> None:
    always = QuietWindow(time(0), time(0))
    until = quiet_until([always], zoneinfo.ZoneInfo("UTC"), datetime(2026, 11, 29, tzinfo=UTC))
    assert until == datetime.max.replace(tzinfo=UTC)


clock = st.builds(time, st.integers(0, 23), st.integers(0, 59))
windows = st.lists(st.builds(QuietWindow, clock, clock), min_size=1, max_size=3)
zones = st.sampled_from(
    ["America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kolkata", "UTC"]
).map(zoneinfo.ZoneInfo)
# Around both clock changes of each zone, to the minute.
instants = st.datetimes(
    min_value=datetime(2026, 3, 1),  # noqa: DTZ001
    max_value=datetime(2026, 11, 30),  # noqa: DTZ001
    timezones=st.just(UTC),
).map(lambda at: at.replace(second=0, microsecond=0))


def is_quiet(quiet: list[QuietWindow], zone: zoneinfo.ZoneInfo, at: datetime) -> bool:
    wall = at.astimezone(zone).time()
    return any(
        (w.from_local <= wall < w.until_local)
        if w.from_local < w.until_local
        else (wall >= w.from_local or wall < w.until_local)
        for w in quiet
    )


@given(windows, zones, instants)
def test_the_end_is_the_first_minute_that_is_not_quiet(
    quiet: list[QuietWindow], zone: zoneinfo.ZoneInfo, now: datetime
) -> None:
    until = quiet_until(quiet, zone, now)
    if until is None:
        assert not is_quiet(quiet, zone, now)
        return
    minutes = min(int((until - now) / timedelta(minutes=1)), 3 * 24 * 60)
    assert all(is_quiet(quiet, zone, now + timedelta(minutes=n)) for n in range(minutes))
    if until.year < 9999:
        assert not is_quiet(quiet, zone, until)
