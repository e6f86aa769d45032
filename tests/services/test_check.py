"""Each invariant sees the violation that is planted for it, and nothing else does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from duebook.db.connect import connect_url
from duebook.services.check import INVARIANTS, check, find_violations
from duebook.services.sweep import SweepRequest, sweep
from tests.conftest import Databases, DuebookCli
from tests.due_work import ScriptedChannel, add_due, value
from tests.services.test_sweep import claim

Conn = psycopg.Connection[Any]
ROOT = Path(__file__).resolve().parents[2]

# One statement each, on the world below, whose intents are: 1 to 6 sent, 7 in a batch, 8 and 9 due.
PLANTED: Final = {
    "every intent stands somewhere": "delete from duebook.due where intent_id = 8",
    "no intent stands in two places": (
        "insert into duebook.proposed (account_id, intent_id)"
        " select account_id, intent_id from duebook.due where intent_id = 8"
    ),
    "what has ended moves no more": (
        "insert into duebook.proposed (account_id, intent_id)"
        " select account_id, intent_id from duebook.outcome where intent_id = 1"
    ),
    "what moves has an intent": (
        "insert into duebook.proposed (account_id, intent_id) values ('nobody', 99)"
    ),
    "every batch has its attempts": (
        "update duebook.batch set attempt_nos = array[5], mark = 0, window_start = 0"
    ),
    "every attempt has an intent": (
        "insert into duebook.attempt (account_id, intent_id, attempt_no, batch_id, position,"
        " due_at, tries, suspicions, claimed_at) values ('nobody', 99, 1, 1, 0, now(), 0, 0, now())"
    ),
    "every attempt has a place": (
        "insert into duebook.attempt (account_id, intent_id, attempt_no, batch_id, position,"
        " due_at, tries, suspicions, claimed_at)"
        " select account_id, intent_id, 1, 9999, 0, due_at, 0, 0, now() from duebook.due"
        " where intent_id = 8"
    ),
    "what may have been sent is not due": (
        "with again as (insert into duebook.attempt (account_id, intent_id, attempt_no, batch_id,"
        " position, due_at, tries, suspicions, claimed_at) select d.account_id, d.intent_id, 1,"
        " e.batch_id, 0, d.due_at, 0, 0, now() from duebook.due as d cross join"
        " duebook.batch_ended as e where d.intent_id = 8 limit 1 returning *)"
        " update duebook.due as d set claims = 1 from again as a where d.intent_id = a.intent_id"
    ),
    "every result has an attempt": (
        "insert into duebook.attempt_result (account_id, intent_id, attempt_no, batch_id, flush_no,"
        " result, finished_at) select account_id, intent_id, 7, 1, 1, 'deferred', now()"
        " from duebook.due where intent_id = 8"
    ),
    "every outcome has its intent": (
        "insert into duebook.outcome (account_id, operation_key, intent_id, kind, result, reason,"
        " due_at) values ('nobody', 'key', 99, 'payment_settled', 'expired', 'cancelled', now())"
    ),
    "no outcome is in the future": (
        "update duebook.outcome set ended_at = now() + interval '1 hour' where intent_id = 1"
    ),
    "what was sent has a result": "delete from duebook.attempt_result where intent_id = 1",
    "no key was sent twice": (
        "with again as (insert into duebook.attempt (account_id, intent_id, attempt_no, batch_id,"
        " position, due_at, tries, suspicions, claimed_at) select account_id, intent_id, 2,"
        " batch_id, 0, due_at, 0, 0, claimed_at from duebook.attempt where intent_id = 1"
        " returning *) insert into duebook.attempt_result (account_id, intent_id, attempt_no,"
        " batch_id, flush_no, result, finished_at) select account_id, intent_id, 2, batch_id, 1,"
        " 'sent', now() from again"
    ),
    "the time line is complete": (
        "insert into duebook.intent_change (account_id, intent_id, due_at, reason)"
        " values ('nobody', 99, now(), 'retry')"
    ),
    "budgets are within bounds": (
        "insert into duebook.budget (channel, refilled_at, paused_until)"
        " values ('noop', now(), now() + interval '3 days')"
    ),
    "every occurrence has its intent": (
        "insert into duebook.occurrence (account_id, schedule, nominal_on, intended_local, zone,"
        " case_of, due_at, tzdb_version, rule_version, intent_id) values ('a000000', 's',"
        " '2026-12-01', '2026-12-01 09:00', 'UTC', 'exact', now(), '2026f', 1, 1)"
    ),
    "every hold is promised to expire": (
        "insert into duebook.hold (account_id, hold, expires_at)"
        " values ('a000000', 'bare', now() + interval '1 day')"
    ),
    "no hold is expired and confirmed": (
        "update duebook.hold set confirmed_at = clock_timestamp(), expired_at = clock_timestamp()"
    ),
    "no hold is overdue by an hour": (
        "with moved as (update duebook.hold set created_at = now() - interval '3 hours',"
        " expires_at = now() - interval '2 hours' returning *)"
        " update duebook.intent as i set operation_key ="
        " duebook.hold_expiry_key(m.hold, m.expires_at) from moved as m"
        " where i.subject = 'hold:' || m.hold"
    ),
    "no hold is refunded and held again": (
        "with refund as (insert into duebook.intent (account_id, operation_key, kind, subject,"
        " channel, notify_at, give_up_at, ownership) values ('a000000',"
        " 'hold_refund:noop:hold:p:seat:v1', 'hold_refund', 'hold:seat', 'noop', now(),"
        " now() + interval '1 day', 'live') returning *)"
        " insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)"
        " select account_id, intent_id, notify_at, kind, channel, give_up_at from refund"
    ),
    "a resource is the sum of its confirmed holds": (
        "insert into duebook.hold_resource (resource, capacity, confirmed) values ('room', 9, 3)"
    ),
    "every intent of a run has its ledger change": (
        "delete from duebook.ledger_change where change_id ="
        " (select change_id from duebook.intent where intent_id = 8)"
    ),
    "no key has two senders": (
        "insert into duebook.sender_key (account_id, operation_key, sender)"
        " select account_id, operation_key, 'legacy' from duebook.intent where intent_id = 1"
    ),
    "the settled side is the sum of its entries": (
        "insert into duebook.settled_position (account_id, payment_id, provider_account, currency,"
        " captured_minor, refunded_minor, charged_back_minor, pending_minor, fee_minor, net_minor,"
        " entry_count, run_id) values ('a000000', 'p', 'stripe', 'EUR', 5, 0, 0, 0, 0, 5, 1, 1)"
    ),
    "a batch is the sum of its entries": (
        "with entry as (insert into duebook.settlement_entry (provider_account, entry_id, version,"
        " entry_type, provider_type, batch_ref, gross_minor, fee_minor, net_minor, currency,"
        " net_currency, entry_status, occurred_at, source_order, source, line_no, first_run_id,"
        " run_id) values ('stripe', 'e', 1, 'charge', 'charge', 'b', 5, 0, 5, 'EUR', 'EUR',"
        " 'settled', now(), 1, 'f', 1, 1, 1)) insert into duebook.settlement_batch"
        " (provider_account, batch_ref, currency, sum_minor, payout_minor, difference_minor,"
        " entry_count, status, run_id) values ('stripe', 'b', 'EUR', 7, 0, 7, 1, 'open', 1)"
    ),
}


@pytest.fixture(scope="module")
def world(databases: Databases, template_database: str) -> Iterator[str]:
    """A database with six notices sent, two due, one in a batch, and a hold that is open."""
    url = databases.create(template_database)
    connect = partial(connect_url, url, autocommit=True)
    with connect() as conn:
        conn.execute("select duebook.accept_environment('test', true, 'pytest')")
        add_due(conn, 6)
        sweep(connect, SweepRequest("test"), {"noop": ScriptedChannel()})
        add_due(conn, 3, payments_from=7)
        claim(conn, 1)
        conn.execute(
            "select duebook.create_hold('a000000', 'seat', now() + interval '1 day', p_by => 'ann')"
        )
    assert check(connect) == {"violations": [], "checked": len(INVARIANTS)}
    yield url
    databases.drop(url)


@pytest.mark.parametrize("invariant", INVARIANTS)
def test_a_planted_violation_is_seen_by_its_invariant_alone(world: str, invariant: str) -> None:
    with connect_url(world) as conn, conn.transaction(force_rollback=True):
        conn.execute(PLANTED[invariant])
        violations = find_violations(conn)
    assert [each["invariant"] for each in violations] == [invariant], violations
    assert violations[0]["keys"]


def test_the_command_exits_1_and_names_the_keys(conn: Conn, duebook_cli: DuebookCli) -> None:
    add_due(conn, 1)
    conn.execute("delete from duebook.due")
    done = duebook_cli.in_process("check", "--json")
    assert done.code == 1
    key = value(conn, "select operation_key from duebook.intent")
    assert done.json["violations"] == [
        {"invariant": "every intent stands somewhere", "keys": [f"a000000 {key}"]}
    ]


def test_each_invariant_is_documented() -> None:
    text = (ROOT / "docs" / "invariants.md").read_text()
    documented = re.findall(r"^\| ([a-z][^|]+?) \| `(\w+)` \|", text, re.MULTILINE)
    assert dict(documented) == INVARIANTS
