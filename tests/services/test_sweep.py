"""The claim, the rescue, what is held and what is too late; one database, no processes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from duebook.channels.noop import NoopChannel
from duebook.db.connect import connect_url
from duebook.db.sql import query
from duebook.errors import ConfigurationError, RefusedError, UnavailableError
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from tests.due_work import add_due, places, value

Conn = psycopg.Connection[Any]
Sweep = Callable[..., SweepReport]


@pytest.fixture
def run(database_url: str) -> Sweep:
    """One sweep of the no-op channel; named arguments are those of the request."""

    def run(**request: Any) -> SweepReport:
        channel = NoopChannel(idempotent=False, io_timeout=timedelta(seconds=0.1))
        return sweep(
            partial(connect_url, database_url, autocommit=True),
            SweepRequest(**{"environment": "test", **request}),
            {"noop": channel},
        )

    return run


def claim(
    conn: Conn,
    size: int,
    *,
    channel: str = "noop",
    alone: bool = False,
    lease: timedelta = timedelta(minutes=1),
    safe_retry_for: timedelta | None = None,
    offset: timedelta = timedelta(0),
) -> tuple[int | None, int, int]:
    """One claim, as a sender makes it: batch, size, set aside."""
    row = conn.execute(
        query("claim_batch"),
        {
            "token": uuid4(),
            "sender": "test",
            "channel": channel,
            "batch_size": size,
            "lease": lease,
            "max_age": timedelta(minutes=15),
            "safe_retry_for": safe_retry_for,
            "due_offset": offset,
            "alone": alone,
        },
    ).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def claimed_accounts(conn: Conn, batch_id: int | None) -> Counter[str]:
    return Counter(
        value(conn, "select account_ids from duebook.batch where batch_id = %s", batch_id)
    )


def lapse(conn: Conn) -> None:
    conn.execute("update duebook.batch set lease_until = clock_timestamp() - interval '1 second'")


def rescue(conn: Conn, window: int = 10) -> list[tuple[Any, ...]]:
    return conn.execute(query("rescue_batches"), {"most": 10, "window_size": window}).fetchall()


class TestClaim:
    def test_takes_due_rows_only(self, conn: Conn) -> None:
        add_due(conn, 5, prefix="now")
        add_due(conn, 5, prefix="later", due_in=timedelta(hours=1))
        _, size, _ = claim(conn, 100)
        assert size == 5
        assert places(conn) == {"batch": 5, "due": 5}

    def test_takes_the_oldest_first(self, conn: Conn) -> None:
        add_due(conn, 3, prefix="new")
        add_due(conn, 3, prefix="old", due_in=timedelta(hours=-1))
        # One each by the fair pass, the rest by age.
        batch_id, size, _ = claim(conn, 4)
        assert size == 4
        assert claimed_accounts(conn, batch_id) == {"old000000": 3, "new000000": 1}

    def test_the_same_intent_forced_twice_into_due_stops_nothing(
        self, conn: Conn, run: Sweep
    ) -> None:
        add_due(conn, 500, accounts=7)
        claim(conn, 10)
        conn.execute(
            """
            insert into duebook.due (
                account_id, intent_id, due_at, kind, channel, give_up_at, claims
            )
            select i.account_id, i.intent_id, i.notify_at, i.kind, i.channel, i.give_up_at, n
            from duebook.batch as b
            cross join unnest(b.account_ids, b.intent_ids) with ordinality as w (a, id, n)
            inner join duebook.intent as i on i.account_id = w.a and i.intent_id = w.id
            """
        )
        # Some come with claims that are free (2, 3, ...), one with an attempt that is taken.
        conn.execute("update duebook.due set claims = 0 where claims = 1")
        _, size, set_aside = claim(conn, 1000)
        assert (size, set_aside) == (490, 10)
        assert places(conn) == {"batch": 500}

    def test_a_forced_row_of_an_ended_key_is_dropped(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 10)
        run()
        conn.execute(
            """
            insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
            select account_id, intent_id, notify_at, kind, channel, give_up_at from duebook.intent
            """
        )
        report = run()
        assert report.to_json()["sent"] == 0
        assert report.counts.set_aside == 10
        assert places(conn) == {"outcome": 10}
        assert (
            value(
                conn, "select count(*) from duebook.audit_event where action = 'drop_duplicate_due'"
            )
            == 10
        )

    def test_an_attempt_that_is_taken_is_held_and_heals(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 5)
        claim(conn, 5)
        lapse(conn)
        rescue(conn)
        # Somebody put the claims back to zero: attempt 1 is there already.
        conn.execute("update duebook.due set claims = 0")
        _, size, set_aside = claim(conn, 100)
        assert (size, set_aside) == (0, 5)
        assert value(conn, "select array_agg(distinct cause) from duebook.held") == [
            "attempt_conflict"
        ]
        assert run().to_json()["sent"] == 5
        assert places(conn) == {"outcome": 5}

    def test_poison_is_held_after_max_claims_without_a_result(self, conn: Conn) -> None:
        add_due(conn, 2)
        conn.execute(
            "update duebook.due set claims = 3"
            " where intent_id = (select min(intent_id) from duebook.due)"
        )
        _, size, set_aside = claim(conn, 10)
        assert (size, set_aside) == (1, 1)
        assert value(conn, "select cause from duebook.held") == "poison"

    def test_claims_that_had_results_are_no_poison(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 1)
        for _ in range(6):
            claim(conn, 1)
            conn.execute(query("release_batch_from"), self.first_batch(conn))
            conn.execute(query("close_batch"), self.first_batch(conn))
        assert value(conn, "select claims from duebook.due") == 6
        assert run().to_json()["sent"] == 1

    @staticmethod
    def first_batch(conn: Conn) -> dict[str, Any]:
        batch_id = value(conn, "select min(batch_id) from duebook.batch")
        return {"batch_id": batch_id, "from_position": 0}

    def test_suspicious_rows_travel_alone(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 10)
        conn.execute("update duebook.due set suspicions = 2 where intent_id % 5 = 0")
        assert claim(conn, 100)[1] == 8
        assert claim(conn, 100)[1] == 0
        assert claim(conn, 100, alone=True)[1] == 1
        assert claim(conn, 100, alone=True)[1] == 1
        assert claim(conn, 100, alone=True)[1] == 0

    def test_a_shifted_clock_is_refused_outside_a_test_database(
        self, conn: Conn, run: Sweep
    ) -> None:
        add_due(conn, 3, due_in=timedelta(days=1))
        assert run(due_offset=timedelta(days=2)).to_json()["sent"] == 3
        conn.execute("select duebook.accept_environment('test', false, 'pytest')")
        with pytest.raises(RefusedError, match="shifted clock"):
            run(due_offset=timedelta(days=2))
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            claim(conn, 1, offset=timedelta(days=1))

    def test_a_copied_database_refuses_to_send(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 3)
        conn.execute("update duebook.environment set database_oid = 1")
        with pytest.raises(RefusedError, match="copy"):
            run()
        assert places(conn) == {"due": 3}

    def test_a_lease_too_short_for_the_channel_is_refused(self, run: Sweep) -> None:
        with pytest.raises(ConfigurationError, match="lease"):
            run(lease=timedelta(seconds=1))


class TestFairness:
    def test_one_account_with_a_flood_beside_many_others(self, conn: Conn) -> None:
        add_due(conn, 20_000, prefix="big", due_in=timedelta(hours=-2), with_books=False)
        add_due(conn, 400, accounts=400, prefix="small", with_books=False)
        waited = self.rounds_until_served(conn, 100, "small%")
        # 401 accounts, 100 a claim: one round is five claims; the big one gets its turn as well.
        assert waited <= 5

    def test_nobody_waits_more_than_two_rounds(self, conn: Conn) -> None:
        add_due(conn, 5_000, accounts=500, with_books=False)
        claims = 0
        served: dict[str, int] = {}
        gaps: list[int] = []
        while (batch := claim(conn, 50))[0] is not None:
            claims += 1
            for account in claimed_accounts(conn, batch[0]):
                gaps.append(claims - served.get(account, 0))
                served[account] = claims
        assert len(served) == 500
        assert claims == 100
        # 500 accounts, 50 a claim: a round is ten claims.
        assert max(gaps) <= 20

    def test_the_fair_pass_goes_on_where_the_last_one_ended(self, conn: Conn) -> None:
        add_due(conn, 300, accounts=100, with_books=False)
        first = claimed_accounts(conn, claim(conn, 50)[0])
        second = claimed_accounts(conn, claim(conn, 50)[0])
        third = claimed_accounts(conn, claim(conn, 50)[0])
        assert set(first) | set(second) == {f"a{n:06d}" for n in range(100)}
        assert set(third) == set(first)

    def test_one_account_due_beside_many_that_wait(self, conn: Conn) -> None:
        add_due(conn, 3000, accounts=3000, prefix="a", due_in=timedelta(days=1), with_books=False)
        add_due(conn, 500, prefix="z", with_books=False)
        batch_id, size, _ = claim(conn, 200)
        assert size == 200
        assert set(claimed_accounts(conn, batch_id)) == {"z000000"}

    def test_many_claimers_leave_nobody_out(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 4_000, accounts=200, with_books=False)

        def drain() -> None:
            with connect_url(database_url, autocommit=True) as other:
                while claim(other, 40)[0] is not None:
                    pass

        run_at_once(*[drain] * 4)
        assert places(conn) == {"batch": 4_000}

    @staticmethod
    def rounds_until_served(conn: Conn, size: int, pattern: str) -> int:
        for claims in range(1, 100):
            claim(conn, size)
            if not value(
                conn, "select count(*) from duebook.due where account_id like %s", pattern
            ):
                return claims
        raise AssertionError("never served")


def run_at_once(*works: Callable[[], None]) -> None:
    """Run all in threads; raises what the first failed with."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


class TestBudget:
    def give(self, conn: Conn, tokens: int, per_minute: int = 0, capacity: int = 1000) -> None:
        conn.execute(
            "insert into duebook.budget (channel, tokens, capacity, refill_per_minute)"
            " values ('noop', %s, %s, %s)",
            [tokens, capacity, per_minute],
        )

    def test_a_claim_takes_no_more_than_the_tokens(self, conn: Conn) -> None:
        self.give(conn, 30)
        add_due(conn, 100)
        assert claim(conn, 20)[1] == 20
        assert claim(conn, 20)[1] == 10
        assert claim(conn, 20)[1] == 0
        assert value(conn, "select tokens from duebook.budget") == 0

    def test_claimers_at_once_never_exceed_it(self, conn: Conn, database_url: str) -> None:
        self.give(conn, 150)
        add_due(conn, 1000, accounts=10, with_books=False)

        def drain() -> None:
            with connect_url(database_url, autocommit=True) as other:
                for _ in range(10):
                    claim(other, 7)

        run_at_once(*[drain] * 8)
        assert value(conn, "select count(*) from duebook.attempt") == 150

    def test_tokens_flow_back_by_the_clock(self, conn: Conn) -> None:
        self.give(conn, 0, per_minute=60, capacity=50)
        add_due(conn, 100)
        assert claim(conn, 100)[1] == 0
        conn.execute("update duebook.budget set refilled_at = refilled_at - interval '10 seconds'")
        assert 10 <= claim(conn, 100)[1] <= 12
        conn.execute("update duebook.budget set refilled_at = refilled_at - interval '1 hour'")
        assert claim(conn, 100)[1] == 50

    def test_a_part_of_a_token_is_not_lost(self, conn: Conn) -> None:
        self.give(conn, 0, per_minute=6)
        add_due(conn, 100)
        for _ in range(4):
            conn.execute(
                "update duebook.budget set refilled_at = refilled_at - interval '5 seconds'"
            )
            claim(conn, 1)
        assert value(conn, "select count(*) from duebook.attempt") == 2

    def test_a_paused_channel_is_skipped(self, conn: Conn, run: Sweep) -> None:
        conn.execute(
            "insert into duebook.budget (channel, paused_until)"
            " values ('noop', clock_timestamp() + interval '1 hour')"
        )
        add_due(conn, 10)
        assert run().to_json()["claimed"] == 0
        assert places(conn) == {"due": 10}
        conn.execute("update duebook.budget set paused_until = clock_timestamp()")
        assert run().to_json()["sent"] == 10

    def test_tokens_of_what_was_not_sent_come_back(self, conn: Conn, run: Sweep) -> None:
        self.give(conn, 10, capacity=10)
        add_due(conn, 6, with_contact=False)
        report = run()
        assert report.counts.held == 6
        assert value(conn, "select tokens from duebook.budget") == 10


class TestRescue:
    def test_a_live_batch_is_left_alone(self, conn: Conn) -> None:
        add_due(conn, 5)
        claim(conn, 5)
        assert rescue(conn) == []
        assert places(conn) == {"batch": 5}

    def test_what_was_never_tried_is_due_at_once(self, conn: Conn) -> None:
        add_due(conn, 30)
        claim(conn, 30)
        lapse(conn)
        [(_, how, back_in_due, in_doubt, held)] = rescue(conn)
        assert (how, back_in_due, in_doubt, held) == ("rescued", 30, 0, 0)
        assert places(conn) == {"due": 30}
        # The window that did not open is suspicious, the rest is beyond doubt.
        assert value(conn, "select count(*) from duebook.due where suspicions = 1") == 10
        assert value(conn, "select count(*) from duebook.due where claims = 1") == 30
        assert value(conn, "select how from duebook.batch_ended") == "rescued"

    def test_the_open_window_is_in_doubt(self, conn: Conn) -> None:
        add_due(conn, 30)
        claim(conn, 30)
        conn.execute("update duebook.batch set window_start = 10, mark = 20")
        lapse(conn)
        rescue(conn)
        assert places(conn) == {"in_doubt": 20, "due": 10}

    def test_a_repeat_is_allowed_while_the_channel_recognises_it(self, conn: Conn) -> None:
        add_due(conn, 10)
        claim(conn, 10, safe_retry_for=timedelta(hours=1))
        conn.execute("update duebook.batch set mark = 5")
        lapse(conn)
        rescue(conn)
        assert places(conn) == {"due": 10}
        # It travels with what may have been accepted, and only with that.
        assert value(conn, "select count(safe_retry_until) from duebook.due") == 5

    def test_a_repeat_too_late_is_in_doubt(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 10)
        claim(conn, 10, safe_retry_for=timedelta(hours=1))
        conn.execute("update duebook.batch set mark = 5")
        lapse(conn)
        rescue(conn)
        conn.execute(
            "update duebook.due set safe_retry_until = clock_timestamp() - interval '1 s'"
            " where safe_retry_until is not null"
        )
        report = run()
        assert (report.counts.sent, report.counts.unknown) == (5, 5)
        assert places(conn) == {"outcome": 5, "in_doubt": 5}

    def test_results_that_were_flushed_are_honoured(self, conn: Conn) -> None:
        add_due(conn, 4)
        claim(conn, 4)
        conn.execute("update duebook.batch set mark = 4")
        conn.execute(
            """
            insert into duebook.attempt_result
                (account_id, intent_id, attempt_no, batch_id, flush_no, result, finished_at)
            select account_id, intent_id, attempt_no, batch_id, 1, 'sent', clock_timestamp()
            from duebook.attempt where position < 3
            """
        )
        conn.execute(
            """
            insert into duebook.outcome
                (account_id, operation_key, intent_id, kind, result, due_at)
            select account_id, operation_key, intent_id, kind, 'sent', notify_at
            from duebook.intent where intent_id in (select intent_id from duebook.attempt_result)
            """
        )
        lapse(conn)
        rescue(conn)
        assert places(conn) == {"outcome": 3, "in_doubt": 1}

    def test_a_flush_that_holds_the_batch_is_not_overtaken(
        self, conn: Conn, database_url: str
    ) -> None:
        add_due(conn, 3)
        batch_id, _, _ = claim(conn, 3)
        lapse(conn)
        with connect_url(database_url, autocommit=True) as flusher, flusher.transaction():
            flusher.execute("select from duebook.batch where batch_id = %s for update", [batch_id])
            assert rescue(conn) == []
        assert len(rescue(conn)) == 1

    def test_a_second_suspicion_makes_a_row_travel_alone_and_then_poison(self, conn: Conn) -> None:
        add_due(conn, 3)
        for _ in range(2):
            claim(conn, 10)
            lapse(conn)
            rescue(conn, window=1)
        # One window of one: the same row stood first in both.
        assert value(
            conn, "select array_agg(suspicions::int order by intent_id) from duebook.due"
        ) == [
            2,
            0,
            0,
        ]
        assert claim(conn, 10)[1] == 2
        assert claim(conn, 10, alone=True)[1] == 1
        conn.execute("update duebook.batch set lease_until = clock_timestamp() where size = 1")
        rescue(conn)
        assert value(conn, "select cause from duebook.held") == "poison"

    def test_a_batch_that_cannot_be_rescued_is_taken_apart(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 10)
        claim(conn, 10)
        conn.execute("update duebook.batch set mark = 4")
        lapse(conn)
        conn.execute(
            """
            create function public.refuse() returns trigger language plpgsql as $$
            begin
                if new.intent_id % 10 = 7 then raise check_violation; end if;
                return new;
            end $$;
            create trigger refuse before insert on duebook.due for each row
            execute function public.refuse();
            """
        )
        [(_, how, _, in_doubt, held)] = rescue(conn)
        assert (how, in_doubt, held) == ("dismantled", 4, 6)
        assert places(conn) == {"in_doubt": 4, "held": 6}
        assert value(conn, "select how from duebook.batch_ended") == "dismantled"

    def test_two_sweeps_rescue_a_batch_once(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 200)
        for _ in range(10):
            claim(conn, 20)
        lapse(conn)

        def work() -> None:
            with connect_url(database_url, autocommit=True) as other:
                rescue(other)

        run_at_once(*[work] * 4)
        assert places(conn) == {"due": 200}
        assert value(conn, "select count(*) from duebook.batch_ended") == 10


class TestHeldAndTooLate:
    def test_a_contact_that_comes_later_is_told(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 3, with_contact=False)
        assert run().counts.held == 3
        assert value(conn, "select array_agg(distinct cause) from duebook.held") == ["no_contact"]
        assert run().to_json()["sent"] == 0
        conn.execute(
            "insert into duebook.contact (account_id, channel, address, zone)"
            " values ('a000000', 'noop', 'x@example.test', 'UTC')"
        )
        conn.execute("update duebook.held set retest_at = clock_timestamp()")
        assert run().to_json()["sent"] == 3
        assert places(conn) == {"outcome": 3}

    def test_held_ends_at_its_limit(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 3, with_contact=False)
        run()
        conn.execute(
            "update duebook.held set retest_at = clock_timestamp(), give_up_at = clock_timestamp()"
        )
        assert run().to_json()["expired"] == 3
        assert self.reasons(conn) == {("expired", "too_late"): 3}
        assert places(conn) == {"outcome": 3}

    def test_what_is_tested_seldom_still_ends_at_its_limit(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 1, give_up_in=timedelta(minutes=2))
        conn.execute("update duebook.due set claims = 3")
        run()
        conn.execute("update duebook.held set retest_at = clock_timestamp()")
        run()
        assert value(conn, "select retest_at = give_up_at from duebook.held")

    def test_poison_waits_for_a_person(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 1)
        conn.execute("update duebook.due set claims = 3")
        run()
        conn.execute("update duebook.held set retest_at = clock_timestamp()")
        run()
        assert value(conn, "select cause from duebook.held") == "poison"

    def test_due_rows_past_their_limit_end_too_late(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 5)
        add_due(conn, 5, channel="elsewhere", prefix="e")
        conn.execute("update duebook.due set give_up_at = clock_timestamp()")
        assert run().to_json()["expired"] == 10
        assert self.reasons(conn) == {("expired", "too_late"): 10}

    @staticmethod
    def reasons(conn: Conn) -> dict[tuple[str, str | None], int]:
        rows = conn.execute("select result, reason, count(*) from duebook.outcome group by 1, 2")
        return {(result, reason): count for result, reason, count in rows}


class TestCancel:
    def key(self, conn: Conn) -> tuple[str, str]:
        row = conn.execute(
            "select account_id, operation_key from duebook.intent limit 1"
        ).fetchone()
        assert row is not None
        return row[0], row[1]

    def cancel(self, conn: Conn) -> str:
        answer: str = value(
            conn, "select duebook.cancel_intent(%s, %s, 'asked for', 'someone')", *self.key(conn)
        )
        return answer

    def test_what_is_due_is_cancelled(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 1)
        assert self.cancel(conn) == "cancelled"
        assert places(conn) == {"outcome": 1}
        assert value(conn, "select reason from duebook.outcome") == "cancelled"
        assert self.cancel(conn) == "ended"
        assert run().to_json()["claimed"] == 0

    def test_what_is_held_or_proposed_is_cancelled(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 1, with_contact=False)
        run()
        assert self.cancel(conn) == "cancelled"
        assert places(conn) == {"outcome": 1}

    def test_what_a_batch_holds_is_asked_for(self, conn: Conn, run: Sweep) -> None:
        add_due(conn, 1)
        claim(conn, 1)
        assert self.cancel(conn) == "requested"
        assert self.cancel(conn) == "requested"
        assert value(conn, "select count(*) from duebook.intent_request") == 1
        lapse(conn)
        assert run().to_json()["sent"] == 0
        assert value(conn, "select reason from duebook.outcome") == "cancelled"

    def test_an_unknown_key_is_said(self, conn: Conn) -> None:
        with pytest.raises(psycopg.errors.NoDataFound):
            conn.execute("select duebook.cancel_intent('nobody', 'nothing', 'x', 'y')")

    def test_it_is_part_of_the_callers_transaction(self, conn: Conn) -> None:
        add_due(conn, 1)
        with conn.transaction(force_rollback=True):
            self.cancel(conn)
        assert places(conn) == {"due": 1}


def test_next_due_at_looks_past_a_pause(conn: Conn) -> None:
    look = query("next_due_at")
    assert value(conn, look) is None
    add_due(conn, 1, due_in=timedelta(hours=1))
    add_due(conn, 1, channel="email", prefix="e")
    assert value(conn, look) < value(conn, "select clock_timestamp()")
    conn.execute(
        "insert into duebook.budget (channel, paused_until)"
        " values ('email', clock_timestamp() + interval '2 hours')"
    )
    assert value(conn, look) == value(
        conn, "select min(due_at) from duebook.due where channel = 'noop'"
    )


def test_a_database_that_is_away_when_a_sweep_begins_is_not_waited_for() -> None:
    def away() -> psycopg.Connection[Any]:
        raise UnavailableError("the database is away")

    # Its default patience, for a sender with a batch in hand, is beyond the test's own time limit.
    with pytest.raises(UnavailableError, match="is away"):
        sweep(away, SweepRequest(environment="test", reconnect_for=timedelta(hours=1)), {})
