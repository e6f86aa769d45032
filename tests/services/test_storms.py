"""Very many at once: fairness at full size, what stands in the way, the pace after an outage."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from duebook.channels.base import Message, SendResult
from duebook.channels.noop import NoopChannel
from duebook.db.connect import Connect, connect_url
from duebook.services.sweep import SweepRequest, sweep
from tests.due_work import ScriptedChannel, add_due, add_kind, places, value
from tests.services.test_sweep import claim, claimed_accounts, run_at_once

Conn = psycopg.Connection[Any]
SENDERS = 8


@pytest.fixture
def connect(database_url: str) -> Connect:
    return partial(connect_url, database_url, autocommit=True)


def send_all(connect: Connect, *, batch_size: int, window: int) -> None:
    """Eight senders, each sweeping again and again until nothing is left anywhere."""

    def work(number: int) -> None:
        request = SweepRequest(
            environment="test",
            sender=f"sender-{number}",
            batch_size=batch_size,
            window_messages=window,
            should_stop=lambda: False,
        )
        with connect() as conn:
            while value(conn, "select exists (select from duebook.due)"):
                sweep(connect, request, {"noop": NoopChannel()})

    run_at_once(*[partial(work, number) for number in range(SENDERS)])


@dataclass(frozen=True, slots=True)
class Sent:
    """One send of a storm: its slot, and when it was over."""

    slot_at: datetime
    finished_at: datetime


def sent_of(conn: Conn) -> list[Sent]:
    """All sends in the order of their slots, each with the last slot that its key was given."""
    rows = conn.execute(
        """
        with given as (
            select distinct on (subject) subject, (detail ->> 'slot_at')::timestamptz as slot_at
            from duebook.audit_event
            where action = 'catch_up'
            order by subject, audit_event_id desc
        )
        select g.slot_at, r.finished_at
        from duebook.outcome as o
        inner join duebook.attempt_result as r using (account_id, intent_id, attempt_no)
        inner join given as g on o.operation_key = g.subject
        where o.result = 'sent'
        order by 1
        """
    )
    return [Sent(*row) for row in rows]


def storm(conn: Conn, connect: Connect, rows: int, per_minute: int, batch_size: int) -> None:
    """`rows` due in one second an hour ago, found by eight senders at once."""
    add_kind(conn, spread_per_minute=per_minute)
    add_due(conn, rows, accounts=50, due_in=timedelta(hours=-1), with_books=False)
    conn.execute("analyze")
    send_all(connect, batch_size=batch_size, window=batch_size)
    conn.execute("analyze")
    assert places(conn) == {"outcome": rows}
    assert value(conn, "select count(*) from duebook.outcome where result <> 'sent'") == 0
    sent = sent_of(conn)
    assert len(sent) == rows
    spacing = timedelta(minutes=1) / per_minute
    assert min(b.slot_at - a.slot_at for a, b in itertools.pairwise(sent)) >= spacing
    assert all(each.finished_at >= each.slot_at for each in sent)
    # Whoever was late by so much can have sent so much more within a minute, and no more.
    lag = max(each.finished_at - each.slot_at for each in sent)
    most = per_minute * (timedelta(minutes=1) + lag) / timedelta(minutes=1) + 1
    finished = sorted(each.finished_at for each in sent)
    for first, number in zip(finished, itertools.count(), strict=False):
        within = finished[number : number + int(most) + 1]
        assert len(within) <= most or within[-1] - first >= timedelta(minutes=1)
    deferred = (
        "select max(n) from (select count(*) as n from duebook.intent_change group by intent_id)"
    )
    assert value(conn, f"{deferred} as c") == 1


def test_a_storm_keeps_the_rate_with_eight_senders(conn: Conn, connect: Connect) -> None:
    storm(conn, connect, 300, 6_000, 100)


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_fifty_thousand_due_in_one_second(conn: Conn, connect: Connect) -> None:
    storm(conn, connect, 50_000, 60_000, 1_000)


def test_what_is_due_just_now_is_not_paced(conn: Conn, connect: Connect) -> None:
    add_kind(conn, spread_per_minute=1)
    add_due(conn, 500, accounts=20, with_books=False)
    sweep(connect, SweepRequest(environment="test"), {"noop": NoopChannel()})
    assert places(conn) == {"outcome": 500}
    assert value(conn, "select count(*) from duebook.intent_change") == 0


class HangingChannel(ScriptedChannel):
    """Sends to one account time out; the others go at once."""

    async def send(self, message: Message) -> SendResult:
        if ":stuck" not in message.operation_key:
            return await super().send(message)
        self.log.append(message.operation_key)
        await asyncio.sleep(self.io_timeout.total_seconds() / 50)
        return SendResult("unknown", code="timeout")


def test_nothing_at_the_head_of_the_line_blocks_it(conn: Conn, connect: Connect) -> None:
    """Poison, exhausted rows and an account whose sends time out, all older than the rest."""
    add_due(conn, 5, prefix="poison", due_in=timedelta(seconds=-90))
    add_due(conn, 5, prefix="tired", due_in=timedelta(seconds=-80))
    add_due(conn, 60, prefix="stuck", due_in=timedelta(seconds=-70))
    add_due(conn, 20, prefix="fine", accounts=20, payments_from=1)
    conn.execute("update duebook.due set claims = 3 where account_id like 'poison%'")
    conn.execute("update duebook.due set claims = 1, tries = 3 where account_id like 'tired%'")
    channel = HangingChannel()
    sweep(connect, SweepRequest(environment="test", batch_size=20), {"noop": channel})
    fine = [number for number, key in enumerate(channel.log) if ":fine" in key]
    assert len(fine) == 20
    # 23 accounts, 20 a claim: the second claim has served them all.
    assert fine[-1] < 40
    assert places(conn) == {"held": 5, "in_doubt": 60, "outcome": 25}
    ended = conn.execute("select result, reason, count(*) from duebook.outcome group by 1, 2")
    assert {row[:2]: row[2] for row in ended} == {("sent", None): 20, ("expired", "exhausted"): 5}
    assert value(conn, "select array_agg(distinct cause) from duebook.held") == ["poison"]


def test_an_account_whose_sends_fail_waits_for_itself_alone(conn: Conn, connect: Connect) -> None:
    add_due(conn, 50, prefix="full", due_in=timedelta(seconds=-70))
    add_due(conn, 40, prefix="fine", accounts=20)
    full = SendResult("later", code="452 4.2.2", scope="message")
    channel = ScriptedChannel(
        lambda message, n: full if ":full" in message.operation_key else SendResult("accepted")
    )
    sweep(connect, SweepRequest(environment="test", batch_size=25), {"noop": channel})
    assert sum(1 for key in channel.log if ":fine" in key) == 40
    assert places(conn) == {"outcome": 40, "due": 50}
    assert value(conn, "select count(*) from duebook.due where due_at > clock_timestamp()") == 50


@pytest.mark.prove
@pytest.mark.timeout(900)
class TestFairnessAtFullSize:
    """The three cases of the design; tests/services/test_sweep.py has them small."""

    def test_four_hundred_thousand_of_one_account_against_two_thousand(self, conn: Conn) -> None:
        add_due(conn, 400_000, prefix="big", due_in=timedelta(hours=-2), with_books=False)
        add_due(conn, 2_000, prefix="small", accounts=2_000, with_books=False)
        conn.execute("analyze duebook.due")
        left = "select count(*) from duebook.due where account_id like 'small%'"
        claims = 0
        while value(conn, left):
            batch_id, size, _ = claim(conn, 500)
            claims += 1
            assert size == 500
            served = claimed_accounts(conn, batch_id)
            # The big one goes on as well, with what the others leave.
            assert served["big000000"] >= 1 or len(served) == 500
        # 2,001 accounts, 500 a claim: one round is five claims.
        assert claims <= 5

    def test_one_account_due_beside_five_thousand_that_wait(self, conn: Conn) -> None:
        add_due(
            conn, 100_000, prefix="a", accounts=5_000, due_in=timedelta(days=1), with_books=False
        )
        add_due(conn, 20_000, prefix="m", due_in=timedelta(minutes=-5), with_books=False)
        conn.execute("analyze duebook.due")
        for _ in range(40):
            batch_id, size, _ = claim(conn, 500)
            assert size == 500
            assert set(claimed_accounts(conn, batch_id)) == {"m000000"}
        assert claim(conn, 500)[0] is None

    @pytest.mark.parametrize("claimers", [1, SENDERS])
    def test_five_thousand_accounts_with_backlog(
        self, conn: Conn, database_url: str, claimers: int
    ) -> None:
        add_due(conn, 100_000, accounts=5_000, with_books=False)
        conn.execute("analyze duebook.due")

        def drain() -> None:
            with connect_url(database_url, autocommit=True) as other:
                while claim(other, 500)[0] is not None:
                    pass

        run_at_once(*[drain] * claimers)
        served: dict[str, int] = {}
        gaps: Counter[int] = Counter()
        batches = conn.execute("select account_ids from duebook.batch order by batch_id")
        for number, (accounts,) in enumerate(batches, 1):
            for account in set(accounts):
                gaps[number - served.get(account, 0)] += 1
                served[account] = number
        assert len(served) == 5_000
        # 500 accounts a claim: a round is ten claims. Claims that run at once visit the same
        # accounts, so each sender makes rounds of its own: none makes more than two meanwhile.
        assert max(gaps) <= 20 * claimers
