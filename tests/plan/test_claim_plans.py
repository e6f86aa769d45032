"""The claim reads what it takes and little more, by index, whatever the table holds.

The statements stand inside a function, so their plans come from auto_explain, as they were run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import psycopg.conninfo
import pytest

from duebook.db.embedded import EmbeddedServer
from duebook.db.sql import query
from tests.due_work import add_kind

Conn = psycopg.Connection[Any]

BATCH = 500
FEW = 1_000
MANY = 1_000_000
HOT = {"due", "attempt", "attempt_result", "intent", "outcome", "batch"}
BY_KEY = {"Index Scan", "Index Only Scan", "Tid Scan"}


@dataclass
class Plans:
    """What one transaction ran: the access to each hot table, and how many rows it read."""

    nodes: set[tuple[str, str]] = field(default_factory=set)
    indexes: set[str] = field(default_factory=set)
    rows: dict[str, int] = field(default_factory=dict)
    joins: set[str] = field(default_factory=set)

    def add(self, plan: dict[str, Any]) -> None:
        """Add a plan tree as auto_explain prints it."""
        table = plan.get("Relation Name")
        if table in HOT and "Scan" in plan["Node Type"]:
            loops = plan["Actual Loops"]
            removed = plan.get("Rows Removed by Filter", 0)
            rows = round((plan["Actual Rows"] + removed) * loops)
            self.nodes.add((table, plan["Node Type"]))
            self.rows[table] = self.rows.get(table, 0) + rows
        if "Index Name" in plan:
            self.indexes.add(plan["Index Name"])
        if "Join" in plan["Node Type"]:
            self.joins.add(plan["Node Type"])
        for child in plan.get("Plans", ()):
            self.add(child)


@pytest.fixture
def explained(
    embedded_server: EmbeddedServer | None, database_url: str
) -> Iterator[tuple[Conn, list[dict[str, Any]]]]:
    """A connection whose plans are collected. Only a superuser may load auto_explain."""
    if embedded_server is None:
        pytest.skip("auto_explain needs a superuser: run with the embedded server")
    name = str(psycopg.conninfo.conninfo_to_dict(database_url)["dbname"])
    plans: list[dict[str, Any]] = []
    with psycopg.connect(embedded_server.superuser_url(name), autocommit=True) as conn:
        conn.add_notice_handler(lambda notice: plans.extend(_parsed(notice.message_primary)))
        conn.execute("load 'auto_explain'")
        conn.execute(
            """
            select
                set_config('auto_explain.log_min_duration', '0', false),
                set_config('auto_explain.log_analyze', 'on', false),
                set_config('auto_explain.log_timing', 'off', false),
                set_config('auto_explain.log_format', 'json', false),
                set_config('auto_explain.log_nested_statements', 'on', false),
                set_config('auto_explain.log_level', 'notice', false)
            """
        )
        yield conn, plans


def _parsed(message: str | None) -> list[dict[str, Any]]:
    _, found, text = (message or "").partition("plan:\n")
    return [json.loads(text)["Plan"]] if found else []


def run(explained: tuple[Conn, list[dict[str, Any]]], work: Callable[[Conn], Any]) -> Plans:
    """The plans of what `work` runs, rolled back."""
    conn, collected = explained
    conn.execute(query("pin_plans"))
    collected.clear()
    with conn.transaction(force_rollback=True):
        work(conn)
    plans = Plans()
    for plan in collected:
        plans.add(plan)
    return plans


def claim(conn: Conn, lease: timedelta = timedelta(minutes=1)) -> int:
    row = conn.execute(
        query("claim_batch"),
        {
            "token": uuid4(),
            "sender": "plan",
            "channel": "noop",
            "batch_size": BATCH,
            "lease": lease,
            "max_age": timedelta(minutes=10),
            "safe_retry_for": None,
            "due_offset": timedelta(0),
            "alone": False,
        },
    ).fetchone()
    assert row is not None
    return int(row[1])


def fill(conn: Conn, count: int, *, accounts: int, due_in: timedelta, prefix: str = "a") -> None:
    """Bare due rows: a plan does not ask what they are about."""
    add_kind(conn)
    conn.execute(
        """
        insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
        select
            %s || lpad((g %% %s)::text, 6, '0'), g,
            clock_timestamp() + %s + interval '1 millisecond' * (g / 1000),
            'payment_settled', 'noop', clock_timestamp() + interval '7 days'
        from generate_series(1, %s::integer) as g
        """,
        [prefix, accounts, due_in, count],
    )


def assert_by_key(plans: Plans) -> None:
    assert {node for _, node in plans.nodes} <= BY_KEY, plans.nodes
    assert plans.joins <= {"Nested Loop"}, plans.joins


def test_an_empty_table(explained: tuple[Conn, list[dict[str, Any]]]) -> None:
    plans = run(explained, claim)
    assert_by_key(plans)
    assert plans.rows["due"] == 0


@pytest.mark.parametrize("analysed", [True, False])
def test_a_thousand_rows(explained: tuple[Conn, list[dict[str, Any]]], analysed: bool) -> None:
    conn, _ = explained
    fill(conn, FEW, accounts=20, due_in=timedelta(hours=-1))
    if analysed:
        conn.execute("analyze duebook.due")
    plans = run(explained, claim)
    assert_by_key(plans)
    assert {"due_by_time", "due_by_account"} <= plans.indexes
    # The backlog's probe, the two passes, the attempts and the delete: six times the batch.
    assert plans.rows["due"] <= 6 * BATCH


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_million_rows(explained: tuple[Conn, list[dict[str, Any]]]) -> None:
    conn, _ = explained
    # Statistics of an empty table: what they say must not matter.
    conn.execute("alter table duebook.due set (autovacuum_enabled = false)")
    conn.execute("analyze duebook.due")
    fill(conn, MANY, accounts=2_000, due_in=timedelta(hours=-1))
    for _ in range(2):
        plans = run(explained, claim)
        assert_by_key(plans)
        assert plans.rows["due"] <= 6 * BATCH
        conn.execute("analyze duebook.due")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_million_rows_that_wait(explained: tuple[Conn, list[dict[str, Any]]]) -> None:
    conn, _ = explained
    fill(conn, MANY, accounts=5_000, due_in=timedelta(days=1))
    conn.execute("analyze duebook.due")
    plans = run(explained, claim)
    assert_by_key(plans)
    # Nothing is due, and nothing is looked at but the first entry of the index.
    assert plans.rows["due"] <= 1
    fill(conn, 2 * BATCH, accounts=1, due_in=timedelta(hours=-1), prefix="z")
    plans = run(explained, claim)
    assert_by_key(plans)
    # One account is due beside 5,000 that wait: at most 1,000 of these are looked at.
    assert plans.rows["due"] <= 1_000 + 6 * BATCH


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_rescue_and_housekeeping_beside_a_million(
    explained: tuple[Conn, list[dict[str, Any]]],
) -> None:
    conn, _ = explained
    fill(conn, MANY, accounts=2_000, due_in=timedelta(hours=-1))
    conn.execute(
        """
        insert into duebook.intent (
            account_id, operation_key, kind, subject, channel, notify_at, give_up_at, ownership
        )
        select account_id, 'k' || intent_id, kind, 's', channel, due_at, give_up_at, 'live'
        from duebook.due
        """
    )
    conn.execute("analyze duebook.due")
    conn.execute("analyze duebook.intent")
    plans = run(explained, claim_and_rescue)
    assert_by_key(plans)
    assert plans.rows["intent"] <= 4 * BATCH
    plans = run(explained, lambda c: c.execute(query("expire_due"), {"most": 1_000}))
    assert_by_key(plans)
    assert plans.rows["due"] <= 2_100
    plans = run(explained, lambda c: c.execute(query("next_due_at")))
    assert_by_key(plans)
    assert plans.rows["due"] <= 5


def claim_and_rescue(conn: Conn) -> None:
    claim(conn, lease=timedelta(0))
    conn.execute(query("rescue_batches"), {"most": 10, "window_size": 50})
