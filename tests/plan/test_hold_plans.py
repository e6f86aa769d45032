"""A batch of holds, a creation and a night read what they are about, however many there are."""

from __future__ import annotations

from typing import Any, Final

import psycopg
import pytest

from tests.due_work import value
from tests.hold_work import claim, create, finish, make_older
from tests.plan import test_claim_plans
from tests.plan.test_claim_plans import Plans, explained, run

Conn = psycopg.Connection[Any]
Explained = tuple[Conn, list[dict[str, Any]]]

__all__ = ["explained"]

READ: Final = {"hold", "hold_resource", "intent", "due", "outcome", "attempt", "ledger_change"}
BY_KEY: Final = {"Index Scan", "Index Only Scan", "Tid Scan"}
BATCH: Final = 100
MANY: Final = 20_000

# Copies of one hold: open for a year, of one resource and one account each hundred.
_FILL = """
with made as (
    insert into duebook.hold (account_id, hold, resource, expires_at, payment_id)
    select 'b' || g %% 100, 'x' || g, 'room' || g %% 10, now() + interval '1 year', 'pay' || g
    from generate_series(1, %(count)s::integer) as g
    returning *
),
promised as (
    insert into duebook.intent (
        account_id, operation_key, kind, subject, channel, notify_at, give_up_at, ownership
    )
    select
        account_id, duebook.hold_expiry_key(hold, expires_at), 'hold_expiry', 'hold:' || hold,
        'internal', expires_at, expires_at + interval '100 years', 'live'
    from made
    returning *
)
insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
select account_id, intent_id, notify_at, kind, channel, give_up_at
from promised
"""


@pytest.fixture(autouse=True)
def _hot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_claim_plans, "HOT", READ)


def fill(conn: Conn, count: int) -> None:
    """Holds that are open, and one batch of them that has expired."""
    conn.execute(
        "select duebook.create_hold('a', 'h' || g, p_for => '10 minutes')"
        " from generate_series(1, %s::integer) as g",
        [BATCH],
    )
    make_older(conn)
    conn.execute(_FILL, {"count": count})


def assert_by_key(plans: Plans, **most: int) -> None:
    assert {node for _, node in plans.nodes} <= BY_KEY, plans.nodes
    assert plans.joins <= {"Nested Loop"}, plans.joins
    for table, rows in most.items():
        assert plans.rows.get(table, 0) <= rows, plans.rows


def sweep_one_batch(conn: Conn) -> None:
    assert finish(conn, claim(conn, size=BATCH))[:2] == ("applied", BATCH)


@pytest.mark.parametrize(("count", "analysed"), [(1_000, True), (1_000, False), (MANY, True)])
def test_a_batch_of_holds(explained: Explained, count: int, analysed: bool) -> None:
    conn, _ = explained
    fill(conn, count)
    if analysed:
        conn.execute("analyze duebook.hold")
        conn.execute("analyze duebook.intent")
        conn.execute("analyze duebook.due")
    plans = run(explained, sweep_one_batch)
    # Locked, looked at, and written.
    assert_by_key(plans, hold=3 * BATCH, intent=3 * BATCH, outcome=BATCH)

    # Counting what is open of a resource reads that, and no hold of another one.
    conn.execute("select duebook.set_hold_resource('room1', %s)", [MANY])
    plans = run(explained, lambda c: create(c, "new", resource="room1"))
    assert_by_key(plans, hold=count // 10 + 5)
    plans = run(explained, lambda c: value(c, "select duebook.confirm_hold('b1', 'x1', 'pay1')"))
    assert_by_key(plans, hold=5, intent=5)


def test_a_night_looks_for_the_holds_of_its_own_changes(explained: Explained) -> None:
    conn, _ = explained
    fill(conn, 5_000)
    conn.execute(
        """
        insert into duebook.ledger_change (
            account_id, payment_id, run_id, provider_account, change_kind, before_status,
            after_status, currency, before_captured_minor, after_captured_minor,
            before_refunded_minor, after_refunded_minor, before_charged_back_minor,
            after_charged_back_minor, evidence_at
        )
        select
            'b' || g % 100, 'pay' || g, case when g <= 50 then 7 else 8 end, 'stripe', 'balance',
            'pending', 'settled', 'EUR', 0, 4200, 0, 0, 0, 0, now()
        from generate_series(1, 5000) as g
        """
    )
    conn.execute("analyze duebook.hold")
    conn.execute("analyze duebook.ledger_change")

    def settle(conn: Conn) -> None:
        row = conn.execute("select * from duebook.settle_run_holds(7, 'live', 'plan')").fetchone()
        assert row == (50, 0)

    plans = run(explained, settle)
    # Twice looked for, and each locked and written by itself.
    assert_by_key(plans, ledger_change=3 * 50, hold=7 * 50)
    assert value(conn, "select count(*) from duebook.hold where confirmed_at is not null") == 0
