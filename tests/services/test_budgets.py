"""Rates that hold in every second, and a pause after which one message goes before the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duebook.channels.base import Message, SendResult
from duebook.config import BudgetConfig
from duebook.db.sql import query
from tests.due_work import ScriptedChannel, add_due, places, run_sweep, value
from tests.services.test_sweep import claim

Conn = psycopg.Connection[Any]

ACCEPTED = SendResult("accepted", code="250")
LATER = SendResult("later", code="429", retry_after=timedelta(seconds=0.1))


def put_budget(conn: Conn, budget: BudgetConfig | None) -> str | None:
    none = {"capacity": None, "refill_per_minute": None, "slot_spacing": None}
    stored = none if budget is None else budget.stored()
    row = conn.execute(
        query("put_budget"), {"actor": "ada", "channel": "noop", **stored}
    ).fetchone()
    return None if row is None else str(row[0])


def most_in_a_second(instants: Sequence[float]) -> int:
    ordered = sorted(instants)
    return max(sum(1 for each in ordered if at <= each < at + 1) for at in ordered)


class TestPace:
    @pytest.fixture
    def sent_at(self) -> list[float]:
        return []

    @pytest.fixture
    def channel(self, sent_at: list[float]) -> ScriptedChannel:
        def accept(message: Message, number: int) -> SendResult:
            del message, number
            sent_at.append(time.monotonic())
            return ACCEPTED

        return ScriptedChannel(accept)

    def test_no_second_sees_more_than_the_rate(
        self, conn: Conn, database_url: str, channel: ScriptedChannel, sent_at: list[float]
    ) -> None:
        put_budget(conn, BudgetConfig(per_second=20))
        add_due(conn, 60, accounts=5)

        def work() -> None:
            while value(conn, "select exists(select from duebook.due)"):
                run_sweep(
                    database_url,
                    ScriptedChannel(channel.answer),
                    batch_size=7,
                    should_stop=lambda: False,
                )

        senders = [threading.Thread(target=work) for _ in range(4)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert places(conn) == {"outcome": 60}
        assert len(sent_at) == 60
        assert most_in_a_second(sent_at) <= 20
        assert value(conn, "select max(tries) from duebook.attempt") == 0

    def test_a_rate_below_one_a_second_waits_between_windows(
        self, conn: Conn, database_url: str, channel: ScriptedChannel, sent_at: list[float]
    ) -> None:
        put_budget(conn, BudgetConfig(per_second=0.5))
        conn.execute("update duebook.budget set tokens = 2, capacity = 2")
        add_due(conn, 2)
        report = run_sweep(database_url, channel)
        assert report.counts.sent == 2
        assert sent_at[1] - sent_at[0] >= 2
        # It waits once, and does not open one window after another meanwhile.
        assert report.counts.windows <= 3

    def test_a_burst_goes_at_once(
        self, conn: Conn, database_url: str, channel: ScriptedChannel, sent_at: list[float]
    ) -> None:
        put_budget(conn, BudgetConfig(per_second=1, burst=10))
        add_due(conn, 20)
        assert run_sweep(database_url, channel).counts.sent in (10, 11)
        assert sent_at[9] - sent_at[0] < 1

    def test_a_lost_slot_is_not_made_good(
        self, conn: Conn, database_url: str, sent_at: list[float]
    ) -> None:
        stall = threading.Event()

        def once_slow(message: Message, number: int) -> SendResult:
            del message, number
            if not sent_at:
                stall.wait(0.6)
            sent_at.append(time.monotonic())
            return ACCEPTED

        put_budget(conn, BudgetConfig(per_second=20))
        add_due(conn, 30)
        # One batch: what has no slot left is released, and its token given back.
        channel = ScriptedChannel(once_slow)
        report = run_sweep(database_url, channel, batch_size=30, max_batches=1)
        assert 0 < report.counts.sent < 30
        assert places(conn) == {"due": 30 - report.counts.sent, "outcome": report.counts.sent}
        assert most_in_a_second(sent_at) <= 20


class TestApplied:
    def test_a_rate_is_put_changed_and_taken_out(self, conn: Conn) -> None:
        assert put_budget(conn, BudgetConfig(per_second=10)) == "added"
        assert put_budget(conn, BudgetConfig(per_second=10)) is None
        assert put_budget(conn, BudgetConfig(per_second=1, burst=50)) == "changed"
        conn.execute("update duebook.budget set paused_until = 'infinity'")
        assert put_budget(conn, None) == "changed"
        assert put_budget(conn, None) is None
        assert conn.execute(
            "select tokens, slot_spacing, paused_until is not null from duebook.budget"
        ).fetchall() == [(None, None, True)]

    def test_no_rate_and_no_pause_is_no_row(self, conn: Conn) -> None:
        assert put_budget(conn, None) is None
        assert value(conn, "select count(*) from duebook.budget") == 0


class TestHalfOpen:
    @pytest.fixture(autouse=True)
    def paused(self, conn: Conn) -> None:
        conn.execute(
            "insert into duebook.budget (channel, paused_until, consecutive_pauses)"
            " values ('noop', clock_timestamp(), 2)"
        )
        add_due(conn, 40, accounts=4)

    def state(self, conn: Conn) -> Any:
        return conn.execute(
            "select consecutive_pauses, paused_until > clock_timestamp(), probe_batch_id is null"
            " from duebook.budget"
        ).fetchone()

    def test_one_message_goes_first_and_then_all(self, conn: Conn, database_url: str) -> None:
        channel = ScriptedChannel(lambda message, number: ACCEPTED)
        report = run_sweep(database_url, channel)
        assert report.counts.sent == 40
        sizes = [row[0] for row in conn.execute("select size from duebook.batch_ended order by 1")]
        assert sizes == [1, 39]
        assert self.state(conn) == (0, None, True)

    def test_only_one_of_two_claimers_probes(self, conn: Conn) -> None:
        assert claim(conn, 20)[1] == 1
        assert claim(conn, 20)[1] == 0
        # Whoever was to probe has died: another may, half a minute later.
        conn.execute("update duebook.budget set paused_until = clock_timestamp()")
        assert claim(conn, 20)[1] == 1

    def test_a_probe_that_is_told_later_pauses_longer(self, conn: Conn, database_url: str) -> None:
        channel = ScriptedChannel(lambda message, number: LATER)
        report = run_sweep(database_url, channel)
        assert (len(channel.log), report.counts.deferred) == (1, 1)
        assert self.state(conn) == (3, True, True)
        assert value(conn, "select max(tries) from duebook.due") == 0

    def test_a_probe_that_is_refused_found_the_channel_open(
        self, conn: Conn, database_url: str
    ) -> None:
        channel = ScriptedChannel(lambda message, number: SendResult("refused", code="550 5.1.1"))
        run_sweep(database_url, channel)
        assert len(channel.log) > 1
        assert self.state(conn) == (0, None, True)

    def test_a_probe_that_sends_nothing_is_given_back(self, conn: Conn, database_url: str) -> None:
        conn.execute(
            "insert into duebook.suppression (account_id, channel, reason)"
            " select distinct account_id, 'noop', 'complaint' from duebook.due"
        )
        channel = ScriptedChannel(lambda message, number: ACCEPTED)
        assert run_sweep(database_url, channel).counts.expired == 40
        assert self.state(conn) == (2, False, True)
