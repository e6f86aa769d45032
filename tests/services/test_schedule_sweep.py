"""Reminders through real sweeps: each occurrence ends once, whatever was missed and who sweeps."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from duebook.db.connect import connect_url
from duebook.services import sweep as sweep_module
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from tests.calendar_work import (
    add_address,
    add_reminders,
    backdate,
    clock,
    far_time,
    put,
    run_passes,
    wait_alone,
)
from tests.due_work import ScriptedChannel, places, value, wait_for

Conn = psycopg.Connection[Any]

ROOT: Final = Path(__file__).resolve().parents[2]
EVERY_DAY: Final = [1, 2, 3, 4, 5, 6, 7]


def run(url: str, channel: ScriptedChannel | None = None, **request: Any) -> SweepReport:
    return sweep(
        partial(connect_url, url, autocommit=True),
        SweepRequest(environment="test", **request),
        {"noop": channel or ScriptedChannel()},
    )


def endings(conn: Conn, schedule: str = "rent") -> Counter[str]:
    """How the occurrences that were due ended."""
    return Counter(
        row[0] if row[1] is None else f"{row[0]} {row[1]}"
        for row in conn.execute(
            "select result, reason from duebook_reports.occurrences"
            " where schedule = %s and due_at <= clock_timestamp()",
            [schedule],
        )
    )


class TestAfterAnOutageOfThirtyDays:
    def test_latest_sends_the_newest_and_supersedes_the_others(
        self, conn: Conn, database_url: str
    ) -> None:
        add_reminders(conn)
        put(
            conn, weekdays=EVERY_DAY, wall_time=far_time(conn), catch_up="latest", max_occurrences=1
        )
        backdate(conn, timedelta(days=30))
        channel = ScriptedChannel()
        report = run(database_url, channel)
        assert report.occurrences == 37
        assert endings(conn) == {"sent": 1, "expired superseded": 29}
        newest = value(
            conn,
            "select max(nominal_on) from duebook.occurrence where due_at <= clock_timestamp()",
        )
        assert channel.log == [f"remind:noop:rent:{newest}"]

    def test_latest_outside_its_window_sends_none(self, conn: Conn, database_url: str) -> None:
        add_reminders(conn)
        now = clock(conn)
        put(
            conn,
            weekdays=[(now - timedelta(days=2)).isoweekday()],
            wall_time=far_time(conn),
            catch_up="latest",
            catch_up_window=timedelta(hours=12),
        )
        backdate(conn, timedelta(days=30))
        run(database_url)
        found = endings(conn)
        assert set(found) <= {"expired too_late", "expired superseded"}
        assert sum(found.values()) in (4, 5)

    def test_skip_gives_each_an_outcome(self, conn: Conn, database_url: str) -> None:
        add_reminders(conn)
        put(conn, weekdays=EVERY_DAY, wall_time=far_time(conn), catch_up="skip")
        backdate(conn, timedelta(days=30))
        run(database_url)
        assert endings(conn) == {"expired skipped": 30}

    def test_all_sends_at_most_so_many_of_the_newest(self, conn: Conn, database_url: str) -> None:
        add_reminders(conn)
        put(conn, weekdays=EVERY_DAY, wall_time=far_time(conn), catch_up="all", max_occurrences=5)
        backdate(conn, timedelta(days=30))
        channel = ScriptedChannel()
        run(database_url, channel)
        assert endings(conn) == {"sent": 5, "expired superseded": 25}
        assert sorted(channel.log) == channel.log


def test_one_sweep_writes_all_however_little_a_pass_may_do(
    conn: Conn, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_module, "_OCCURRENCES_AT_ONCE", 4)
    monkeypatch.setattr(sweep_module, "_CALENDAR_SECONDS", 0.0)
    add_reminders(conn)
    put(conn, weekdays=EVERY_DAY, wall_time=far_time(conn), catch_up="latest", max_occurrences=1)
    backdate(conn, timedelta(days=30))
    channel = ScriptedChannel()
    # Judged against the calendar: the newest is not written when the oldest are.
    assert run(database_url, channel).occurrences == 37
    assert endings(conn) == {"sent": 1, "expired superseded": 29}
    assert len(channel.log) == 1


def test_a_shifted_clock_of_a_test_database_shifts_the_horizon(
    conn: Conn, database_url: str
) -> None:
    add_reminders(conn)
    put(conn, weekdays=EVERY_DAY, wall_time=far_time(conn))
    channel = ScriptedChannel()
    report = run(database_url, channel, due_offset=timedelta(days=10))
    assert report.occurrences == 17
    assert len(channel.log) == 10


def test_a_message_says_what_its_schedule_says_now(conn: Conn, database_url: str) -> None:
    add_reminders(conn)
    put(
        conn,
        weekdays=EVERY_DAY,
        wall_time=far_time(conn),
        catch_up="latest",
        message='{"title": "Rent", "text": "Pay."}',
    )
    backdate(conn, timedelta(days=2))
    run_passes(conn)
    put(
        conn,
        weekdays=EVERY_DAY,
        wall_time=far_time(conn),
        catch_up="latest",
        message='{"title": "Rent is due"}',
        replace=True,
    )
    channel = ScriptedChannel()
    run(database_url, channel)
    (message,) = channel.messages
    assert message.subject == "Rent is due"
    assert "this is your reminder for" in message.text


def test_a_policy_change_counts_for_what_is_not_claimed(conn: Conn, database_url: str) -> None:
    add_reminders(conn)
    put(conn, weekdays=EVERY_DAY, wall_time=far_time(conn), catch_up="all")
    backdate(conn, timedelta(days=5))
    run_passes(conn)
    assert (
        put(conn, weekdays=EVERY_DAY, wall_time=far_time(conn), catch_up="skip", replace=True)
        == "changed"
    )
    run(database_url)
    assert endings(conn) == {"expired skipped": 5}


@pytest.mark.parametrize("act", ["cancel", "opt_out"])
def test_one_between_claim_and_send_is_not_sent(conn: Conn, database_url: str, act: str) -> None:
    add_reminders(conn)
    put(conn, weekdays=EVERY_DAY, wall_time=far_time(conn), catch_up="all")
    backdate(conn, timedelta(days=12))
    done: list[str] = []

    def answer(message: Any, number: int) -> Any:
        if not done:
            done.append(message.operation_key)
            with connect_url(database_url, autocommit=True) as other:
                if act == "cancel":
                    other.execute("select duebook.cancel_schedule('acct', 'rent', 'x', 'me')")
                else:
                    other.execute(
                        "insert into duebook.consent (account_id, kind, channel, granted, source)"
                        " values ('acct', '*', '*', false, 'letter')"
                    )
        return ScriptedChannel().answer(message, number)

    channel = ScriptedChannel(answer=answer, max_concurrency=1)
    run(database_url, channel, window_messages=1)
    reason = "cancelled" if act == "cancel" else "opted_out"
    found = endings(conn)
    assert found == {"sent": 1, f"expired {reason}": 11}
    assert len(channel.log) == 1


_SWEEPS: Final = """
import sys
from datetime import timedelta
from functools import partial
from duebook.channels.noop import NoopChannel
from duebook.db.connect import connect_url
from duebook.services.sweep import SweepRequest, sweep
report = sweep(
    partial(connect_url, sys.argv[1], autocommit=True),
    SweepRequest(environment="test", sender=sys.argv[2]),
    {"noop": NoopChannel(idempotent=False, io_timeout=timedelta(seconds=1))},
)
print(report.occurrences)
"""


def start(url: str, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _SWEEPS, url, name],
        env={"PYTHONPATH": str(ROOT / "plugins"), "PYTHONTZPATH": ""},
        stdout=subprocess.PIPE,
        text=True,
    )


def put_many(conn: Conn, count: int, days: int) -> None:
    """Schedules of as many accounts, each every day; nobody swept for `days`."""
    add_reminders(conn)
    add_address(conn, "a0")
    put(
        conn,
        account_id="a0",
        weekdays=EVERY_DAY,
        wall_time=far_time(conn),
        catch_up="latest",
        max_occurrences=1,
    )
    backdate(conn, timedelta(days=days), account_id="a0")
    conn.execute(
        """
        insert into duebook.schedule
        select (jsonb_populate_record(s, jsonb_build_object('account_id', 'a' || g))).*
        from duebook.schedule as s
        cross join generate_series(1, %s - 1) as g
        """,
        [count],
    )
    conn.execute(
        """
        insert into duebook.contact (account_id, channel, address, zone)
        select 'a' || g, 'noop', 'x@example.test', 'UTC' from generate_series(1, %s - 1) as g
        """,
        [count],
    )


def assert_each_once(conn: Conn, count: int, days: int) -> None:
    """Every date of every schedule stands in one place, and what was due has ended."""
    assert value(conn, "select count(*) from duebook.occurrence") == count * (days + 7)
    assert value(conn, "select count(*) from duebook.intent") == count * (days + 7)
    assert value(
        conn, "select count(distinct (account_id, nominal_on)) from duebook.occurrence"
    ) == count * (days + 7)
    assert set(places(conn)) == {"due", "outcome"}
    found = dict(
        conn.execute(
            "select coalesce(reason, result), count(*) from duebook.outcome group by 1"
        ).fetchall()
    )
    assert found == {"sent": count, "superseded": count * (days - 1)}


def test_three_sweeps_at_once_write_each_occurrence_once(conn: Conn, database_url: str) -> None:
    count, days = 400, 10
    put_many(conn, count, days)
    sweeps = [start(database_url, f"s{number}") for number in range(3)]
    wrote = [int(each.communicate(timeout=100)[0]) for each in sweeps]
    assert sum(wrote) == count * (days + 7)
    run(database_url)
    assert_each_once(conn, count, days)


def test_a_sweep_killed_in_its_passes_leaves_them_to_the_next(
    conn: Conn, database_url: str
) -> None:
    count, days = 400, 10
    put_many(conn, count, days)
    for number in range(3):
        victim = start(database_url, f"v{number}")
        # In the middle of a statement of its pass, or between two.
        wait_for(
            lambda victim=victim: (  # type: ignore[misc]
                value(
                    conn,
                    "select count(*) from pg_stat_activity where datname = current_database()"
                    " and pid <> pg_backend_pid() and query ~* 'occurrence|schedule'",
                )
                or victim.poll() is not None
            ),
            "a pass",
            60,
        )
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
    wait_alone(conn)
    conn.execute("update duebook.batch set lease_until = clock_timestamp()")
    run(database_url)
    assert value(conn, "select count(*) from duebook.occurrence") == count * (days + 7)
    assert value(conn, "select count(*) from duebook.intent") == count * (days + 7)
    places(conn)


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_ten_thousand_schedules(conn: Conn, database_url: str) -> None:
    count, days = 10_000, 10
    put_many(conn, count, days)
    sweeps = [start(database_url, f"s{number}") for number in range(3)]
    assert sum(int(each.communicate(timeout=500)[0]) for each in sweeps) == count * (days + 7)
    run(database_url)
    assert_each_once(conn, count, days)
