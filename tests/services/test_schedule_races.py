"""The calendar's pass dies between any two statements, and runs beside puts, edits and cancels."""

from __future__ import annotations

import itertools
import random
import threading
from datetime import timedelta
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from duebook.db.connect import connect_url
from duebook.services.promise import pass_calendar
from tests.calendar_work import (
    add_reminders,
    backdate,
    far_time,
    put,
    run_passes,
    wait_alone,
    written,
)
from tests.due_work import places, value, wait_for

Conn = psycopg.Connection[Any]
EVERY_DAY = [1, 2, 3, 4, 5, 6, 7]


class Dying(psycopg.Cursor[TupleRow]):
    """Loses the connection instead of its n-th statement."""

    left = 0

    def execute(self, *arguments: Any, **named: Any) -> Any:
        Dying.left -= 1
        if Dying.left == 0:
            self.connection.close()
        return super().execute(*arguments, **named)


def test_a_pass_that_dies_between_any_two_statements_is_repeated(
    conn: Conn, database_url: str
) -> None:
    add_reminders(conn)
    at = far_time(conn)
    for number in itertools.count(1):
        name = f"s{number}"
        put(conn, name, weekdays=EVERY_DAY, wall_time=at)
        backdate(conn, timedelta(days=5), name)
        # The rule before the edit is owed five dates, and what the edit touches is waiting, too.
        put(conn, f"e{number}", weekdays=EVERY_DAY, wall_time=at)
        put(conn, name, weekdays=EVERY_DAY, wall_time=at.replace(minute=50), replace=True)
        conn.execute("update duebook.calendar_state set tzdb_version = '2020a'")
        with connect_url(database_url, autocommit=True) as dying:
            dying.cursor_factory = Dying
            Dying.left = number
            try:
                pass_calendar(dying, horizon=timedelta(days=7), most=1000, sender="dying")
                has_died = False
            except psycopg.OperationalError:
                has_died = True
        wait_alone(conn)
        run_passes(conn)
        dates = written(conn, name)
        assert len(dates) == len(set(dates)) >= 12, number
        assert len(written(conn, f"e{number}")) == 7
        assert set(places(conn)) == {"due"}
        assert value(conn, "select count(*) from duebook.schedule_past") == 0
        assert value(conn, "select count(*) from duebook.schedule where edited_at is not null") == 0
        if not has_died:
            break
    assert number > 10


def test_passes_beside_puts_edits_and_cancels(conn: Conn, database_url: str) -> None:
    add_reminders(conn)
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    at = far_time(conn)
    stopped = threading.Event()
    errors: list[Exception] = []

    def keep_passing() -> None:
        with connect_url(database_url, autocommit=True) as mine:
            while not stopped.is_set():
                try:
                    pass_calendar(mine, horizon=timedelta(days=7), most=20, sender="racer")
                except Exception as error:
                    errors.append(error)
                    return

    threads = [threading.Thread(target=keep_passing) for _ in range(2)]
    for thread in threads:
        thread.start()
    cancelled: set[str] = set()
    minutes: dict[str, int] = {}
    for number in range(150):
        name = f"s{chance.randrange(25)}"
        act = chance.choice(["put", "edit", "edit", "cancel"])
        if act == "cancel" and name in minutes:
            conn.execute("select duebook.cancel_schedule('acct', %s, 'x', 'me')", [name])
            cancelled.add(name)
        elif act == "edit" or name not in minutes:
            minutes[name] = 31 + number % 25
            put(
                conn,
                name,
                weekdays=EVERY_DAY,
                wall_time=at.replace(minute=minutes[name]),
                replace=True,
            )
            cancelled.discard(name)
    stopped.set()
    for thread in threads:
        thread.join(60)
    run_passes(conn)
    assert not errors, (seed, errors)
    places(conn)
    waiting = {
        (schedule, minute)
        for schedule, minute in conn.execute(
            "select schedule, extract(minute from due_at)::integer"
            " from duebook_reports.occurrences where state = 'scheduled'"
        )
    }
    assert waiting <= {(name, minutes[name]) for name in set(minutes) - cancelled}, seed
    differing = value(
        conn,
        "select count(*) from duebook.due join duebook.occurrence using (account_id, intent_id)"
        " where due.due_at <> occurrence.due_at",
    )
    assert differing == 0, seed


def test_of_two_puts_at_once_one_writes(conn: Conn, database_url: str) -> None:
    add_reminders(conn)
    done: list[str] = []

    def put_other() -> None:
        with connect_url(database_url, autocommit=True) as other:
            done.append(put(other))

    with conn.transaction():
        assert put(conn) == "put"
        thread = threading.Thread(target=put_other)
        thread.start()
    thread.join(60)
    assert done == ["unchanged"]


def test_a_cancel_waits_for_a_pass_and_ends_what_it_wrote(conn: Conn, database_url: str) -> None:
    add_reminders(conn)
    put(conn, weekdays=EVERY_DAY, wall_time=far_time(conn))

    def cancel() -> None:
        with connect_url(database_url, autocommit=True) as other:
            other.execute("select duebook.cancel_schedule('acct', 'rent', 'x', 'me')")

    with connect_url(database_url, autocommit=True) as passing:
        with passing.transaction():
            pass_calendar(passing, horizon=timedelta(days=7), most=1000, sender="slow")
            thread = threading.Thread(target=cancel)
            thread.start()
            wait_for(
                lambda: value(
                    conn,
                    "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
                    " and datname = current_database() and query like '%cancel_schedule%'",
                ),
                "the cancel waits",
                60,
            )
        thread.join(60)
    assert places(conn) == {"outcome": 7}


class Counting(psycopg.Cursor[TupleRow]):
    """Counts statements."""

    seen = 0

    def execute(self, *arguments: Any, **named: Any) -> Any:
        Counting.seen += 1
        return super().execute(*arguments, **named)


def test_a_pass_takes_as_many_statements_for_one_schedule_as_for_thousands(
    conn: Conn, database_url: str
) -> None:
    add_reminders(conn)
    counts = []
    for count in (1, 2000):
        put(conn, f"n{count}", "a0", weekdays=EVERY_DAY, wall_time=far_time(conn))
        conn.execute(
            """
            insert into duebook.schedule
            select (jsonb_populate_record(s, jsonb_build_object('account_id', 'a' || g))).*
            from duebook.schedule as s
            cross join generate_series(1, %s - 1) as g
            where s.schedule = %s
            """,
            [count, f"n{count}"],
        )
        with connect_url(database_url, autocommit=True) as counting:
            counting.cursor_factory = Counting
            Counting.seen = 0
            report = pass_calendar(
                counting, horizon=timedelta(days=7), most=100_000, sender="counting"
            )
            counts.append(Counting.seen)
        assert report.written == 7 * count
    assert counts[0] >= counts[1] - 1
    assert counts[1] < 30
