"""The calendar's pass reads what it writes and little more, however many schedules there are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import psycopg
import pytest

from duebook.db.sql import query
from duebook.services.promise import pass_calendar
from tests.calendar_work import add_reminders, far_time, put
from tests.plan import test_claim_plans
from tests.plan.test_claim_plans import explained, run

Conn = psycopg.Connection[Any]
Explained = tuple[Conn, list[dict[str, Any]]]

__all__ = ["explained"]

READ: Final = {"schedule", "occurrence", "due", "held", "intent"}
BY_KEY: Final = {"Index Scan", "Index Only Scan", "Bitmap Heap Scan", "Tid Scan"}
DUE: Final = 50


def fill(conn: Conn, count: int) -> None:
    """Schedules that are written for months ahead, and `DUE` of them that are not."""
    add_reminders(conn)
    put(conn, account_id="a0", wall_time=far_time(conn))
    conn.execute(
        """
        insert into duebook.schedule
        select
            (
                jsonb_populate_record(
                    s,
                    jsonb_build_object(
                        'account_id', 'a' || g,
                        'next_on', s.next_on + case when g > %(due)s then 200 else 0 end,
                        'next_at', s.next_at + case when g > %(due)s then 200 else 0 end
                        * interval '1 day'
                    )
                )
            ).*
        from duebook.schedule as s
        cross join generate_series(1, %(count)s) as g
        """,
        {"count": count - 1, "due": DUE},
    )


def one_pass(conn: Conn) -> None:
    pass_calendar(conn, horizon=timedelta(days=7), most=1000, sender="plan")


def assert_by_key(plans: test_claim_plans.Plans, most: int) -> None:
    assert {node for _, node in plans.nodes} <= BY_KEY, plans.nodes
    # A row is read where it is picked, where it is written from and where it is moved.
    assert plans.rows.get("schedule", 0) <= most, plans.rows
    assert plans.rows.get("occurrence", 0) <= most, plans.rows
    assert plans.rows.get("intent", 0) <= most, plans.rows


@pytest.fixture(autouse=True)
def _hot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_claim_plans, "HOT", READ)


def test_no_schedule_at_all(explained: Explained) -> None:
    plans = run(explained, one_pass)
    assert_by_key(plans, 0)


@pytest.mark.parametrize("analysed", [True, False])
def test_a_thousand_schedules(explained: Explained, analysed: bool) -> None:
    conn, _ = explained
    fill(conn, 1_000)
    if analysed:
        conn.execute("analyze duebook.schedule")
    plans = run(explained, one_pass)
    assert_by_key(plans, 4 * (DUE + 1))
    assert "schedule_by_next" in plans.indexes


@pytest.mark.prove
@pytest.mark.timeout(300)
def test_a_hundred_thousand_schedules(explained: Explained) -> None:
    conn, _ = explained
    # Statistics of an empty table: what they say must not matter.
    conn.execute("alter table duebook.schedule set (autovacuum_enabled = false)")
    conn.execute("analyze duebook.schedule")
    fill(conn, 100_000)
    for _ in range(2):
        plans = run(explained, one_pass)
        assert_by_key(plans, 4 * (DUE + 1))
        conn.execute("analyze duebook.schedule")


def test_newer_time_zone_data_is_gone_through_along_the_keys(
    explained: Explained,
) -> None:
    conn, _ = explained
    fill(conn, 1_000)
    conn.execute(query("pin_plans"))
    pass_calendar(conn, horizon=timedelta(days=7), most=1000, sender="plan")
    written = conn.execute("select count(*) from duebook.due").fetchone()
    assert written is not None
    assert written[0] > DUE
    conn.execute("update duebook.calendar_state set tzdb_version = '2020a', recomputed_at = null")
    plans = run(explained, lambda c: pass_calendar(c, horizon=timedelta(0), most=20, sender="p"))
    assert_by_key(plans, 8 * 20)
    assert plans.rows["due"] <= 8 * 20
