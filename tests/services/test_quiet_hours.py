"""Quiet hours on every path: by kind, region and the recipient's own clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from duebook.db.connect import connect_url
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from tests.calendar_work import add_reminders, backdate, clock, put
from tests.due_work import ScriptedChannel, add_due, places, value

Conn = psycopg.Connection[Any]
HOUR = timedelta(hours=1)
# Six hours and more apart, all without a change of their clocks.
ZONES = ("Asia/Tokyo", "Asia/Kolkata", "America/Bogota", "Pacific/Honolulu")


@pytest.fixture
def run(database_url: str) -> Callable[[ScriptedChannel], SweepReport]:
    def run(channel: ScriptedChannel) -> SweepReport:
        return sweep(
            partial(connect_url, database_url, autocommit=True),
            SweepRequest(environment="test"),
            {channel.name: channel},
        )

    return run


Run = Callable[[ScriptedChannel], SweepReport]


def add_quiet(conn: Conn, start: datetime, end: datetime, **scope: str) -> None:
    conn.execute(
        "insert into duebook.quiet_hours (region, channel, kind, from_local, until_local)"
        " values (%s, %s, %s, %s, %s)",
        [
            scope.get("region"),
            scope.get("channel"),
            scope.get("kind"),
            start.time().replace(microsecond=0),
            end.time().replace(microsecond=0),
        ],
    )


def test_every_kind_of_notice_waits(conn: Conn, run: Run) -> None:
    for first, kind in enumerate(("payment_settled", "payment_missing", "hold_refund"), 1):
        add_due(conn, 1, kind=kind, payments_from=10 * first)
    add_reminders(conn)
    minute_ago = clock(conn) - timedelta(minutes=1)
    wall_time = minute_ago.time().replace(second=0, microsecond=0)
    put(conn, wall_time=wall_time, weekdays=[1, 2, 3, 4, 5, 6, 7])
    backdate(conn, timedelta(hours=12))
    now = clock(conn)
    add_quiet(conn, now - HOUR, now + HOUR)
    channel = ScriptedChannel()
    assert run(channel).counts.deferred == 4
    assert channel.log == []
    until = (now + HOUR).replace(microsecond=0)
    waiting = value(conn, "select count(*) from duebook.due where due_at = %s", until)
    assert waiting == 4


def test_each_recipient_has_a_night_of_his_own(conn: Conn, run: Run) -> None:
    add_due(conn, 8, accounts=4)
    for number, zone in enumerate(ZONES):
        conn.execute(
            "update duebook.contact set zone = %s where account_id = %s",
            [zone, f"a{number:06d}"],
        )
    now = clock(conn)
    local = now.astimezone(ZoneInfo("Asia/Tokyo"))
    add_quiet(conn, local - HOUR, local + HOUR)
    channel = ScriptedChannel()
    run(channel)
    assert len(channel.log) == 6
    assert value(conn, "select array_agg(distinct account_id) from duebook.due") == ["a000000"]
    assert value(conn, "select min(due_at) from duebook.due") == (now + HOUR).replace(microsecond=0)


def test_a_region_a_kind_and_a_channel_narrow_it(conn: Conn, run: Run) -> None:
    add_due(conn, 2, accounts=2)
    add_due(conn, 2, accounts=2, kind="payment_missing", payments_from=10)
    conn.execute("update duebook.contact set region = 'FR' where account_id = 'a000001'")
    now = clock(conn)
    add_quiet(conn, now - HOUR, now + HOUR, region="FR", kind="payment_missing")
    add_quiet(conn, now - HOUR, now + HOUR, channel="elsewhere")
    assert run(ScriptedChannel()).counts.sent == 3
    assert conn.execute("select account_id, kind from duebook.due").fetchall() == [
        ("a000001", "payment_missing")
    ]


def test_what_is_too_late_at_their_end_ends_now(conn: Conn, run: Run) -> None:
    add_due(conn, 1, give_up_in=timedelta(minutes=30))
    now = clock(conn)
    add_quiet(conn, now - HOUR, now + HOUR)
    run(ScriptedChannel())
    assert places(conn) == {"outcome": 1}
    assert value(conn, "select reason from duebook.outcome") == "too_late"
