"""A small night beside a large history: the diff reads what the night is about, by index.

Only one statement may look at everything, and it looks once: the comparison of every booked payment
with its settled side, without which absence can't be judged. Plans come from auto_explain, as run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import psycopg.conninfo
import pytest

from duebook.db.embedded import EmbeddedServer
from duebook.services.reconcile import ReconcileRequest, reconcile
from tests.settlement_files import World, booked, make_world, no_source, settled

TABLES = ("settlement_entry", "settled_position", "ledger_payment", "intent", "discrepancy")
FULL_JOIN = "left join duebook.settled_position as s"
NIGHT = 40

HISTORY = (
    """
    insert into duebook.ledger_payment (
        account_id, payment_id, reference, amount_minor, currency, booked_status, expected_at,
        provider_account
    )
    select
        'acme' || n %% 1000, 'old' || n, 'OLD' || n, 1000, 'EUR', 'paid', '2026-01-01', 'adyen'
    from generate_series(1, %(n)s) as n
    """,
    """
    insert into duebook.settlement_entry (
        provider_account, entry_id, version, entry_type, provider_type, batch_ref, payment_ref,
        provider_payment_ref, gross_minor, fee_minor, net_minor, currency, net_currency,
        entry_status, occurred_at, source_order, source, line_no, account_id, payment_id,
        first_run_id, run_id
    )
    select
        'adyen', 'PSPOLD' || n || ':settled:Settled of PSPOLD' || n, 1, 'charge', 'Settled',
        'b' || n / 1000, 'OLD' || n, 'PSPOLD' || n, 1000, 0, 1000, 'EUR', 'EUR', 'settled',
        '2026-01-01', 1, 'old.csv', n, 'acme' || n %% 1000, 'old' || n, 1, 1
    from generate_series(1, %(n)s) as n
    """,
    """
    insert into duebook.settled_position (
        account_id, payment_id, provider_account, currency, captured_minor, refunded_minor,
        charged_back_minor, pending_minor, fee_minor, net_minor, entry_count, run_id
    )
    select 'acme' || n %% 1000, 'old' || n, 'adyen', 'EUR', 1000, 0, 0, 0, 0, 1000, 1, 1
    from generate_series(1, %(n)s) as n
    """,
    "update duebook.provider_account set seen_xid = pg_current_xact_id()",
)


@dataclass(slots=True)
class Plans:
    """What one run read of each table: rows by kind of access, the full comparison apart."""

    rows: Counter[str] = field(default_factory=Counter)
    nodes: set[tuple[str, str]] = field(default_factory=set)
    full: Counter[str] = field(default_factory=Counter)
    full_joins: list[str] = field(default_factory=list)

    def add(self, text: str, plan: dict[str, Any]) -> None:
        """Add one statement as auto_explain printed it."""
        is_full = FULL_JOIN in text
        if is_full:
            self.full_joins.append(_first_join(plan))
        for node in _nodes(plan):
            table = node.get("Relation Name")
            if table not in TABLES or "Scan" not in node["Node Type"]:
                continue
            read = round(
                (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
            )
            if is_full:
                self.full[table] += read
            else:
                self.rows[table] += read
                if read > 0:
                    self.nodes.add((table, node["Node Type"]))


def _nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan] + [node for child in plan.get("Plans", ()) for node in _nodes(child)]


def _first_join(plan: dict[str, Any]) -> str:
    joins = [
        node["Node Type"]
        for node in _nodes(plan)
        if node["Node Type"] in ("Hash Join", "Merge Join", "Nested Loop")
        and {"ledger_payment", "settled_position"}
        <= {inner.get("Relation Name") for inner in _nodes(node)}
    ]
    return joins[-1] if joins else "none"


def explaining(url: str, plans: Plans) -> Callable[[], psycopg.Connection[Any]]:
    """Connections whose every plan is collected."""

    def collect(notice: Any) -> None:
        _, found, text = (notice.message_primary or "").partition("plan:\n")
        if found:
            document = json.loads(text)
            plans.add(document["Query Text"], document["Plan"])

    def connect() -> psycopg.Connection[Any]:
        connection = psycopg.connect(url, autocommit=True)
        connection.execute("set timezone = 'UTC'")
        connection.execute("load 'auto_explain'")
        for name, value in {
            "log_min_duration": "0",
            "log_analyze": "on",
            "log_timing": "off",
            "log_format": "json",
            "log_level": "notice",
        }.items():
            connection.execute("select set_config(%s, %s, false)", [f"auto_explain.{name}", value])
        connection.add_notice_handler(collect)
        return connection

    return connect


def night_beside(world: World, superuser_url: str, history: int) -> tuple[Plans, Any]:
    """Plans and report of a night of NIGHT entries beside so much history."""
    world.reconcile()
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        for statement in HISTORY:
            connection.execute(statement.encode(), {"n": history} if "%(n)s" in statement else None)
        connection.execute("vacuum (analyze) duebook.settlement_entry, duebook.settled_position")
        connection.execute("vacuum (analyze) duebook.ledger_payment")
    new = range(1, NIGHT // 2 + 1)
    world.book(*(booked(n, 1000) for n in new))
    rows = [settled(n, "10.00") for n in new]
    for number in range(1, min(history, NIGHT // 2) + 1):
        rows.append(
            {
                **settled(0, "9.00"),
                "Psp Reference": f"PSPOLD{number}",
                "Merchant Reference": f"OLD{number}",
                "Modification Reference": f"Settled of PSPOLD{number}",
                "Batch Number": "2",
            }
        )
    file = world.adyen(*rows)
    plans = Plans()
    report = reconcile(
        explaining(superuser_url, plans),
        ReconcileRequest("adyen", (file,), triggered_by="pytest"),
        world.config,
        no_source,
    )
    return plans, report


@pytest.fixture
def superuser_url(embedded_server: EmbeddedServer | None, database_url: str) -> str:
    """Only a superuser may load auto_explain."""
    if embedded_server is None:
        pytest.skip("auto_explain needs a superuser: run with the embedded server")
    name = str(psycopg.conninfo.conninfo_to_dict(database_url)["dbname"])
    return embedded_server.superuser_url(name)


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "history", [0, 1_000, pytest.param(1_000_000, marks=pytest.mark.slow)], ids=["0", "1k", "1M"]
)
def test_a_small_night_reads_little_of_a_large_history(
    history: int, database_url: str, superuser_url: str, tmp_path: Path
) -> None:
    plans, report = night_beside(make_world(database_url, tmp_path), superuser_url, history)
    changed = min(history, NIGHT // 2)
    assert (report.entries_new, report.entries_changed) == (NIGHT // 2, changed)
    assert report.matched == NIGHT // 2 + history - changed
    # The one comparison of everything looks once at each side.
    assert len(plans.full_joins) == 1
    assert plans.full["ledger_payment"] <= history + NIGHT
    assert plans.full["settled_position"] <= history + 3 * NIGHT
    if history < 1_000_000:
        return
    assert plans.full_joins[0] in ("Hash Join", "Merge Join")
    assert plans.rows["settlement_entry"] >= NIGHT
    # Everything else reads rows of this night, each some few times, by index.
    assert {table: plans.rows[table] for table in TABLES if plans.rows[table] > 40 * NIGHT} == {}
    assert {node for _, node in plans.nodes} <= {
        "Index Scan",
        "Index Only Scan",
        "Bitmap Heap Scan",
        "Seq Scan",
        "Tid Scan",
    }
    sequential = {table for table, node in plans.nodes if node == "Seq Scan"}
    assert sequential <= {"intent", "discrepancy"}  # which hold this night's rows and no others
