"""Schedules from the SQL function to the due row."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import psycopg
import pytest

from tests.calendar_work import add_reminders, backdate, clock, put, run_passes, written
from tests.due_work import places, value

Conn = psycopg.Connection[Any]


@pytest.fixture(autouse=True)
def _kind(conn: Conn) -> None:
    add_reminders(conn)


class TestWriting:
    def test_a_put_writes_no_intent_and_a_pass_what_is_ahead(self, conn: Conn) -> None:
        assert put(conn, weekdays=[1, 2, 3, 4, 5, 6, 7]) == "put"
        assert places(conn) == {}
        assert sum(each.written for each in run_passes(conn)) == 7
        assert places(conn) == {"due": 7}
        assert sum(each.written for each in run_passes(conn)) == 0
        now = clock(conn)
        first, last = conn.execute("select min(due_at), max(due_at) from duebook.due").fetchone()  # type: ignore[misc]
        assert now <= first <= now + timedelta(days=1)
        assert last <= now + timedelta(days=7)
