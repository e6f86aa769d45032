"""Schedules made as an application makes them, some as if they had been put earlier."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import psycopg

from duebook.services.promise import CalendarReport, pass_calendar
from tests.due_work import add_kind, value, wait_for

Conn = psycopg.Connection[Any]

_PUT = """
select duebook.put_schedule(
    p_account_id => %(account_id)s, p_schedule => %(schedule)s, p_kind => %(kind)s,
    p_frequency => %(frequency)s, p_zone => %(zone)s, p_wall_time => %(wall_time)s,
    p_absent => %(absent)s, p_gap => %(gap)s, p_overlap => %(overlap)s,
    p_starts_on => %(starts_on)s, p_catch_up => %(catch_up)s,
    p_catch_up_window => %(catch_up_window)s, p_max_occurrences => %(max_occurrences)s,
    p_spread_per_minute => %(spread_per_minute)s, p_by => 'pytest',
    p_weekdays => %(weekdays)s, p_month_day => %(month_day)s, p_nth => %(nth)s,
    p_every => %(every)s, p_business_shift => %(business_shift)s,
    p_holiday_calendar => %(holiday_calendar)s, p_ends_on => %(ends_on)s,
    p_count => %(count)s, p_message => %(message)s::jsonb, p_replace => %(replace)s
)
"""


def put(conn: Conn, schedule: str = "rent", account_id: str = "acct", **other: Any) -> str:
    """Put a schedule, by default each Monday 09:00 in UTC; what the function answered."""
    values = {
        "account_id": account_id,
        "schedule": schedule,
        "kind": "reminder",
        "frequency": "weekly",
        "zone": "UTC",
        "wall_time": time(9),
        "absent": "omit",
        "gap": "later",
        "overlap": "earlier",
        "starts_on": date(2020, 1, 1),
        "catch_up": "all",
        "catch_up_window": timedelta(days=365),
        "max_occurrences": 1000,
        "spread_per_minute": 100_000,
        "weekdays": [1],
        "month_day": None,
        "nth": None,
        "every": 1,
        "business_shift": "none",
        "holiday_calendar": None,
        "ends_on": None,
        "count": None,
        "message": "{}",
        "replace": False,
        **other,
    }
    row = conn.execute(_PUT, values).fetchone()
    assert row is not None
    return str(row[0])


def add_reminders(conn: Conn, channel: str = "noop", **policy: Any) -> None:
    """The kind `reminder`, and the address of the account `acct`."""
    add_kind(conn, "reminder", channel, give_up_after=timedelta(days=400), **policy)
    add_address(conn, channel=channel)


def add_address(conn: Conn, account_id: str = "acct", channel: str = "noop") -> None:
    """Where an account is told."""
    conn.execute(
        "insert into duebook.contact (account_id, channel, address, zone)"
        " values (%s, %s, 'x@example.test', 'UTC') on conflict do nothing",
        [account_id, channel],
    )


def backdate(conn: Conn, ago: timedelta, schedule: str = "rent", account_id: str = "acct") -> None:
    """As if a schedule had been put so long ago, and no sweep had run since."""
    conn.execute(
        """
        update duebook.schedule
        set
            put_at = put_at - %(ago)s,
            next_on = greatest(starts_on, ((put_at - %(ago)s) at time zone zone)::date),
            next_at = put_at - %(ago)s
        where account_id = %(account_id)s and schedule = %(schedule)s
        """,
        {"ago": ago, "account_id": account_id, "schedule": schedule},
    )


def run_passes(
    conn: Conn, *, most: int = 1000, horizon: timedelta = timedelta(days=7)
) -> list[CalendarReport]:
    """Passes of a sweep until nothing is left."""
    reports: list[CalendarReport] = []
    while not reports or reports[-1].is_left:
        reports.append(pass_calendar(conn, horizon=horizon, most=most, sender="pytest"))
        assert len(reports) < 10_000
    return reports


def written(conn: Conn, schedule: str = "rent", account_id: str = "acct") -> list[date]:
    """Nominal dates that are promised."""
    return [
        row[0]
        for row in conn.execute(
            "select nominal_on from duebook.occurrence where account_id = %s and schedule = %s"
            " order by intent_id",
            [account_id, schedule],
        )
    ]


def clock(conn: Conn) -> datetime:
    """The database's, in UTC."""
    row = conn.execute("select clock_timestamp()").fetchone()
    assert row is not None
    now: datetime = row[0]
    return now.astimezone(UTC)


def far_time(conn: Conn) -> time:
    """A local time of UTC that is hours away, so that no test meets it while it runs."""
    return time(0, 30) if 6 <= clock(conn).hour < 18 else time(12)


def wait_alone(conn: Conn) -> None:
    """Wait until the server has noticed that every other session is gone, and freed its locks."""
    wait_for(
        lambda: value(
            conn,
            "select count(*) = 0 from pg_stat_activity where datname = current_database()"
            " and backend_type = 'client backend' and pid <> pg_backend_pid()",
        ),
        "the other sessions are gone",
        60,
    )
