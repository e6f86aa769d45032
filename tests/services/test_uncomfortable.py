"""What nobody likes to think of: clocks that change, sweeps that come late, minds that change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from duebook.db.connect import Connect, connect_url
from duebook.services.explain import explain
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from tests.calendar_work import add_reminders, backdate, put
from tests.due_work import ScriptedChannel, add_due, add_kind, places, value

Conn = psycopg.Connection[Any]
Run = Callable[..., SweepReport]
BERLIN = "Europe/Berlin"
UNPACED = 1_000_000_000


@pytest.fixture
def connect(database_url: str) -> Connect:
    return partial(connect_url, database_url, autocommit=True)


@pytest.fixture
def run(connect: Connect) -> Run:
    """One sweep, as the cron of `due_sweep` starts it."""

    def run(channel: ScriptedChannel) -> SweepReport:
        return sweep(connect, SweepRequest(environment="test"), {channel.name: channel})

    return run


def changes_of_the_clock(before: date, days: int) -> list[tuple[date, timedelta]]:
    """Dates in Berlin, of the `days` before a date, whose day is not 24 hours long, and by what."""
    zone = ZoneInfo(BERLIN)
    found = []
    for number in range(days):
        on = before - timedelta(days=number)
        start = datetime.combine(on, time(0), zone).astimezone(UTC)
        end = datetime.combine(on + timedelta(days=1), time(0), zone).astimezone(UTC)
        if end - start != timedelta(days=1):
            found.append((on, end - start - timedelta(days=1)))
    return found


def test_clock_over_both_dst_changes(conn: Conn, run: Run) -> None:
    """A reminder at 02:30 each night of a year, found after it: each once, at the right instant."""
    add_reminders(conn, spread_per_minute=UNPACED)
    today = value(conn, "select (clock_timestamp() at time zone %s)::date", BERLIN)
    starts_on = today - timedelta(days=369)
    changes = changes_of_the_clock(today - timedelta(days=1), 368)
    assert {by for _, by in changes} == {timedelta(hours=-1), timedelta(hours=1)}
    put(
        conn,
        zone=BERLIN,
        wall_time=time(2, 30),
        weekdays=[1, 2, 3, 4, 5, 6, 7],
        starts_on=starts_on,
        ends_on=today - timedelta(days=1),
        catch_up_window=timedelta(days=380),
        spread_per_minute=UNPACED,
    )
    backdate(conn, timedelta(days=370))
    channel = ScriptedChannel()
    run(channel)
    run(channel)
    assert Counter(channel.log).most_common(1)[0][1] == 1
    assert len(channel.log) == (today - starts_on).days
    assert places(conn) == {"outcome": len(channel.log)}
    for on, by in changes:
        due_at, local = conn.execute(  # type: ignore[misc]
            "select due_at, intended_local from duebook.outcome where operation_key like %s",
            [f"%:{on}"],
        ).fetchone()
        assert local == datetime.combine(on, time(2, 30))
        # In the night that lacks 02:30, the instant an hour later; of two, the first: 00:30 UTC.
        shown = due_at.astimezone(ZoneInfo(BERLIN))
        assert shown.time() == (time(3, 30) if by < timedelta(0) else time(2, 30))
        assert due_at.astimezone(UTC).hour == (1 if by < timedelta(0) else 0)


def test_seven_day_old_intent_found_by_cron_alone_is_sent_once_and_explain_says_why_late(
    conn: Conn, run: Run, connect: Connect
) -> None:
    add_kind(conn, catch_up_window=timedelta(days=10), give_up_after=timedelta(days=30))
    add_due(conn, 1, due_in=timedelta(days=-7), give_up_in=timedelta(days=20))
    # The wake announces a due time once, and was lost: only the minute's sweep is left.
    channel = ScriptedChannel()
    assert run(channel).counts.sent == 1
    assert run(channel).counts.claimed == 0
    assert len(channel.log) == 1
    due_at, claimed_at = conn.execute(  # type: ignore[misc]
        "select o.due_at, a.claimed_at from duebook.outcome as o"
        " inner join duebook.attempt as a using (account_id, intent_id)"
    ).fetchone()
    match = explain(connect, channel.log[0]).matches[0]
    [answer] = match.answers
    assert answer.was_sent
    swept = f"{claimed_at.astimezone(UTC):%Y-%m-%d %H:%M UTC}"
    due = f"{due_at.astimezone(UTC):%Y-%m-%d %H:%M UTC}"
    assert f"found 7 d late: due {due}, found by a sweep {swept}" in answer.text
    assert "the policy of its kind sends all that are at most 10 d old" in answer.text
    assert any("found 7 d late" in event.text for event in match.events)


def test_opt_out_between_claim_and_send(conn: Conn, run: Run) -> None:
    add_due(conn, 1)

    conn.execute(
        """
        create function public.opt_out() returns trigger language plpgsql as $$
        begin
            insert into duebook.consent (account_id, kind, channel, granted, source)
            values ('a000000', '*', '*', false, 'link');
            return null;
        end $$;
        create trigger opt_out after insert on duebook.batch for each row
        execute function public.opt_out();
        """
    )
    channel = ScriptedChannel()
    report = run(channel)
    assert (report.counts.claimed, report.counts.sent, channel.log) == (1, 0, [])
    assert conn.execute("select result, reason, attempt_no from duebook.outcome").fetchall() == [
        ("expired", "opted_out", 1)
    ]
