"""Evidence that was expected and did not come is seen, by the days and clock of its provider."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from duebook.services.status import status
from duebook.services.withdraw import withdraw
from tests.settlement_files import World, plain, settled

ZONE = ZoneInfo("Pacific/Auckland")
NAMES = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]


def expect(world: World, **settings: Any) -> None:
    account = {**plain(world.config.provider_accounts["adyen"]), "zone": ZONE.key}
    world.configure(provider_accounts={"adyen": {**account, "expect": settings}})


def local_now(world: World) -> datetime:
    now: datetime = world.value("select clock_timestamp()")
    return now.astimezone(ZONE)


def received(world: World, ago: timedelta) -> None:
    """A file that came so long ago."""
    world.reconcile(world.adyen(settled(1, "1.00")))
    came(world, ago)


def came(world: World, ago: timedelta) -> None:
    with world.connect() as conn:
        conn.execute(
            "update duebook.settlement_file set received_at = clock_timestamp() - %s", [ago]
        )


def late(world: World) -> tuple[datetime | None, bool]:
    [row] = world.rows(
        "select expected_by, is_late from duebook_reports.freshness where provider_account = %s",
        "adyen",
    )
    return row["expected_by"], row["is_late"]


@pytest.fixture
def an_hour_ago(world: World) -> str:
    """A wall time of the provider that is just over, on whatever day that is there."""
    return f"{local_now(world) - timedelta(hours=1):%H:%M}"


def test_a_file_of_the_day_is_in_time_and_none_since_the_day_before_is_late(
    world: World, an_hour_ago: str
) -> None:
    expect(world, by=an_hour_ago)
    received(world, timedelta(hours=3))
    expected_by, is_late = late(world)
    assert expected_by is not None
    assert f"{expected_by.astimezone(ZONE):%H:%M}" == an_hour_ago
    assert not is_late
    came(world, timedelta(hours=26))
    assert late(world)[1]
    needs = [need.what for need in status(world.connect, world.config).needs]
    assert any("did not come" in need for need in needs)


def test_a_run_without_a_file_is_no_arrival(world: World, an_hour_ago: str) -> None:
    expect(world, by=an_hour_ago)
    received(world, timedelta(hours=26))
    world.reconcile()
    assert late(world)[1]


def test_a_file_that_was_withdrawn_is_no_arrival(world: World, an_hour_ago: str) -> None:
    expect(world, by=an_hour_ago)
    received(world, timedelta(hours=3))
    assert not late(world)[1]
    withdraw(
        world.connect,
        world.config,
        "adyen",
        "file1.csv",
        by="ann",
        reason="a test file",
        dry_run=False,
    )
    assert late(world)[1]


def test_days_on_which_nothing_is_expected_are_no_delay(world: World, an_hour_ago: str) -> None:
    # The day of the wall time, which before one o'clock is the day before.
    today = (local_now(world) - timedelta(hours=1)).weekday()
    due, others = NAMES[(today - 3) % 7], NAMES[(today - 4) % 7]
    expect(world, by=an_hour_ago, days=[due, others])
    received(world, timedelta(days=3, hours=5))
    expected_by, is_late = late(world)
    assert expected_by is not None
    assert NAMES[expected_by.astimezone(ZONE).weekday()] == due
    assert not is_late
    came(world, timedelta(days=5))
    assert late(world)[1]


def test_where_nothing_is_expected_nothing_is_late(world: World) -> None:
    world.reconcile(world.adyen(settled(1, "1.00")))
    assert late(world) == (None, False)
