"""Contact caps, several notices in one message, another channel after a refusal, and consent."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duebook.channels.base import Message, SendResult
from duebook.services.check import check
from tests.doubt_work import connector
from tests.due_work import ScriptedChannel, add_due, add_kind, places, run_sweep, value

Conn = psycopg.Connection[Any]

ACCEPTED = SendResult("accepted", "<one@x.example>", "250")
REFUSED = SendResult("refused", code="550 5.7.1")


def clean(url: str) -> None:
    assert check(connector(url))["violations"] == []


def endings(conn: Conn) -> Counter[tuple[str, str | None]]:
    return Counter(conn.execute("select result, reason from duebook.outcome").fetchall())


class TestContactCap:
    @pytest.fixture(autouse=True)
    def cap(self, conn: Conn) -> None:
        conn.execute("insert into duebook.contact_cap values ('*', 3, interval '1 day')")

    def test_the_rest_waits_for_room(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 10, accounts=2)
        channel = ScriptedChannel(lambda message, number: ACCEPTED)
        report = run_sweep(database_url, channel)
        assert (report.counts.sent, report.counts.deferred) == (6, 4)
        assert Counter(message.account_id for message in channel.messages) == {
            "a000000": 3,
            "a000001": 3,
        }
        waits = conn.execute(
            "select min(due_at - clock_timestamp()) > interval '23 hours',"
            " max(due_at - clock_timestamp()) <= interval '1 day' from duebook.due"
        ).fetchone()
        assert waits == (True, True)
        assert value(conn, "select max(tries) from duebook.due") == 0
        # A day later there is room for as many again.
        conn.execute("update duebook.contact_slot set taken_at = taken_at - interval '1 day'")
        conn.execute("update duebook.due set due_at = clock_timestamp()")
        assert run_sweep(database_url, channel).counts.sent == 4
        clean(database_url)

    def test_what_would_be_too_late_then_ends_now(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 4, give_up_in=timedelta(hours=2))
        run_sweep(database_url, ScriptedChannel(lambda message, number: ACCEPTED))
        assert endings(conn) == {("sent", None): 3, ("expired", "too_late"): 1}

    def test_a_critical_kind_is_not_held_back_nor_counted(
        self, conn: Conn, database_url: str
    ) -> None:
        add_kind(conn, is_critical=True)
        add_due(conn, 10)
        run_sweep(database_url, ScriptedChannel(lambda message, number: ACCEPTED))
        assert places(conn) == {"outcome": 10}
        assert value(conn, "select count(*) from duebook.contact_slot") == 0

    def test_what_was_not_sent_is_not_counted(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 6)
        log: list[str] = []

        def refuse_twice(message: Message, number: int) -> SendResult:
            log.append(message.operation_key)
            return REFUSED if len(log) <= 2 else ACCEPTED

        channel = ScriptedChannel(refuse_twice, max_concurrency=1)
        run_sweep(database_url, channel, window_messages=1)
        assert endings(conn) == {("sent", None): 3, ("expired", "refused"): 2}

    def test_senders_at_once_never_exceed_it(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 40, accounts=2)
        channels = [ScriptedChannel(lambda message, number: ACCEPTED) for _ in range(4)]

        def work(channel: ScriptedChannel) -> None:
            run_sweep(database_url, channel, batch_size=3, should_stop=lambda: False)

        threads = [threading.Thread(target=work, args=(channel,)) for channel in channels]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sent = Counter(each.account_id for channel in channels for each in channel.messages)
        assert sent == {"a000000": 3, "a000001": 3}

    def test_a_cap_of_another_channel_does_not_count(self, conn: Conn, database_url: str) -> None:
        conn.execute("update duebook.contact_cap set channel = 'sms'")
        add_due(conn, 10)
        assert run_sweep(database_url, ScriptedChannel()).counts.sent == 10


class TestDigest:
    @pytest.fixture(autouse=True)
    def digested(self, conn: Conn) -> None:
        add_kind(conn, digest_within=timedelta(minutes=15), digest_most=5)
        add_kind(conn, "payment_refunded")

    def test_each_account_gets_one_message_and_each_notice_its_outcome(
        self, conn: Conn, database_url: str
    ) -> None:
        add_due(conn, 9, accounts=3)
        channel = ScriptedChannel(lambda message, number: ACCEPTED)
        report = run_sweep(database_url, channel)
        assert report.counts.sent == 9
        assert len(channel.messages) == 3
        assert {message.subject for message in channel.messages} == {
            "3 notices about your payments"
        }
        # Every notice is in the text of its account's message.
        for message in channel.messages:
            assert message.text.count("we have received your payment") == 3
        assert places(conn) == {"outcome": 9}
        assert value(conn, "select count(*) from duebook.digest") == 3
        told = conn.execute(
            "select distinct o.provider_message_id, cardinality(d.intent_ids)"
            " from duebook.outcome as o"
            " join duebook.digest_member as m using (account_id, intent_id)"
            " join duebook.digest as d using (account_id, digest_key)"
        ).fetchall()
        assert told == [("<one@x.example>", 3)]
        clean(database_url)

    def test_what_is_due_a_little_later_goes_along(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 1)
        add_due(conn, 2, due_in=timedelta(minutes=10), payments_from=2)
        add_due(conn, 1, due_in=timedelta(minutes=20), payments_from=4)
        channel = ScriptedChannel(lambda message, number: ACCEPTED)
        run_sweep(database_url, channel)
        assert len(channel.messages) == 1
        assert places(conn) == {"outcome": 3, "due": 1}

    def test_one_alone_is_told_as_itself(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 1)
        channel = ScriptedChannel(lambda message, number: ACCEPTED)
        run_sweep(database_url, channel)
        assert channel.messages[0].operation_key.startswith("payment_settled:noop:")
        assert value(conn, "select count(*) from duebook.digest") == 0

    def test_no_message_tells_more_than_its_bound(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 12)
        channel = ScriptedChannel(lambda message, number: ACCEPTED)
        run_sweep(database_url, channel)
        assert sorted(len(m.text.split("we have received your")) - 1 for m in channel.messages) == [
            2,
            5,
            5,
        ]

    def test_other_kinds_stay_alone(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 3)
        add_due(conn, 2, kind="payment_refunded", payments_from=10)
        channel = ScriptedChannel(lambda message, number: ACCEPTED)
        run_sweep(database_url, channel)
        kinds = Counter(message.operation_key.split(":")[0] for message in channel.messages)
        assert kinds == {"digest": 1, "payment_refunded": 2}

    def test_a_window_does_not_cut_one_in_two(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 20, accounts=5)
        channel = ScriptedChannel(lambda message, number: ACCEPTED)
        run_sweep(database_url, channel, window_messages=6)
        assert len(channel.messages) == 5
        assert places(conn) == {"outcome": 20}

    def test_a_notice_that_is_not_wanted_is_left_out(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 3)
        conn.execute(
            "insert into duebook.intent_request (account_id, intent_id, request, reason,"
            " requested_by) select account_id, intent_id, 'cancel', 'why', 'ada' from duebook.due"
            " limit 1"
        )
        channel = ScriptedChannel(lambda message, number: ACCEPTED)
        run_sweep(database_url, channel)
        assert channel.messages[0].text.count("we have received your") == 2
        assert endings(conn) == {("sent", None): 2, ("expired", "cancelled"): 1}

    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            (REFUSED, {("expired", "refused"): 3}),
            (SendResult("unknown", code="timeout"), {}),
            (SendResult("later", code="451 4.7.1", scope="message"), {}),
        ],
    )
    def test_how_it_went_is_how_each_went(
        self, conn: Conn, database_url: str, answer: SendResult, expected: Any
    ) -> None:
        add_due(conn, 3)
        run_sweep(database_url, ScriptedChannel(lambda message, number: answer))
        assert endings(conn) == expected
        assert value(conn, "select count(distinct result) from duebook.attempt_result") == 1
        if answer.status == "unknown":
            assert places(conn) == {"in_doubt": 3}
        if answer.status == "later":
            assert conn.execute("select distinct tries from duebook.due").fetchall() == [(1,)]

    def test_it_takes_one_token_and_one_slot(self, conn: Conn, database_url: str) -> None:
        conn.execute("insert into duebook.contact_cap values ('noop', 1, interval '1 day')")
        conn.execute(
            "insert into duebook.budget (channel, tokens, capacity, refill_per_minute)"
            " values ('noop', 10, 10, 0)"
        )
        add_due(conn, 4)
        run_sweep(database_url, ScriptedChannel(lambda message, number: ACCEPTED))
        assert places(conn) == {"outcome": 4}
        assert value(conn, "select tokens from duebook.budget") == 9
        add_due(conn, 4, payments_from=20)
        assert run_sweep(database_url, ScriptedChannel()).counts.deferred == 4


class TestRepeatedDigest:
    """A sender lost its lease with a digest that its idempotent channel may have accepted."""

    @pytest.fixture
    def channel(self) -> ScriptedChannel:
        return ScriptedChannel(
            lambda message, number: ACCEPTED, idempotent=True, safe_retry_for=timedelta(hours=1)
        )

    @pytest.fixture(autouse=True)
    def died(self, conn: Conn, database_url: str) -> None:
        add_kind(conn, digest_within=timedelta(minutes=15), digest_most=5)
        add_due(conn, 3)

        def lose_the_lease(message: Message, number: int) -> SendResult:
            conn.execute("update duebook.batch set lease_until = clock_timestamp()")
            conn.execute("select duebook.rescue_batches(1, 50)")
            return SendResult("unknown", code="timeout")

        slow = ScriptedChannel(lose_the_lease, idempotent=True, safe_retry_for=timedelta(hours=1))
        assert run_sweep(database_url, slow, max_batches=1).counts.late == 3
        assert places(conn) == {"due": 3}

    def test_it_is_repeated_as_it_was(
        self, conn: Conn, database_url: str, channel: ScriptedChannel
    ) -> None:
        add_due(conn, 2, payments_from=10)
        run_sweep(database_url, channel)
        keys = {row[0] for row in conn.execute("select digest_key from duebook.digest")}
        assert {message.operation_key for message in channel.messages} == keys
        assert len(keys) == 2
        assert value(conn, "select count(*) from duebook.digest_member where attempt_no = 2") == 3
        assert places(conn) == {"outcome": 5}

    def test_one_that_is_torn_is_in_doubt(
        self, conn: Conn, database_url: str, channel: ScriptedChannel
    ) -> None:
        conn.execute(
            "insert into duebook.intent_request (account_id, intent_id, request, reason,"
            " requested_by) select account_id, min(intent_id), 'cancel', 'why', 'ada'"
            " from duebook.intent group by 1"
        )
        run_sweep(database_url, channel)
        assert channel.messages == []
        assert places(conn) == {"in_doubt": 2, "outcome": 1}
        clean(database_url)


class TestFailOver:
    @pytest.fixture(autouse=True)
    def kinds(self, conn: Conn) -> None:
        add_kind(conn, channel="first", fail_over=["second", "third"])

    def add(self, conn: Conn, *channels: str) -> None:
        add_due(conn, 1, channel="first")
        for channel in channels:
            conn.execute(
                "insert into duebook.contact (account_id, channel, address, zone)"
                " values ('a000000', %s, 'x', 'UTC')",
                [channel],
            )

    def run(self, url: str, **answers: SendResult) -> dict[str, ScriptedChannel]:
        def channel(name: str, answer: SendResult) -> ScriptedChannel:
            return ScriptedChannel(lambda message, number: answer, name=name)

        channels = {name: channel(name, answer) for name, answer in answers.items()}
        # The next channel's row is due at once, for the same sweep or the one after it.
        for _ in answers:
            run_sweep(url, *channels.values())
        return channels

    def test_the_next_channel_tells_it_once(self, conn: Conn, database_url: str) -> None:
        self.add(conn, "second", "third")
        used = self.run(database_url, first=REFUSED, second=ACCEPTED, third=ACCEPTED)
        assert [len(each.log) for each in used.values()] == [1, 1, 0]
        keys = conn.execute(
            "select operation_key, result, reason from duebook.outcome order by 1"
        ).fetchall()
        assert keys == [
            ("payment_settled:first:stripe:a1:t1:v1", "expired", "refused"),
            ("payment_settled:second:stripe:a1:t1:v1", "sent", None),
        ]
        clean(database_url)

    def test_each_refuses_in_turn(self, conn: Conn, database_url: str) -> None:
        self.add(conn, "second", "third")
        self.run(database_url, first=REFUSED, second=REFUSED, third=REFUSED)
        assert endings(conn) == {("expired", "refused"): 3}
        assert value(conn, "select count(*) from duebook.fail_over") == 2

    def test_a_channel_without_a_contact_is_passed_over(
        self, conn: Conn, database_url: str
    ) -> None:
        self.add(conn, "third")
        used = self.run(database_url, first=REFUSED, second=ACCEPTED, third=ACCEPTED)
        assert [len(each.log) for each in used.values()] == [1, 0, 1]

    @pytest.mark.parametrize(
        "answer",
        [
            SendResult("unknown", code="timeout"),
            SendResult("later", code="451", scope="message"),
            SendResult("refused", code="21610", opts_out=True),
        ],
    )
    def test_only_a_definite_refusal_moves_it(
        self, conn: Conn, database_url: str, answer: SendResult
    ) -> None:
        self.add(conn, "second")
        used = self.run(database_url, first=answer, second=ACCEPTED)
        assert used["second"].log == []

    def test_a_dead_address_moves_the_next_notices_too(self, conn: Conn, database_url: str) -> None:
        self.add(conn, "second")
        self.run(database_url, first=SendResult("refused", code="550 5.1.1"), second=ACCEPTED)
        add_due(conn, 1, channel="first", payments_from=2)
        used = self.run(database_url, first=ACCEPTED, second=ACCEPTED)
        assert [len(each.log) for each in used.values()] == [0, 1]

    def test_whoever_complained_is_not_followed(self, conn: Conn, database_url: str) -> None:
        self.add(conn, "second")
        conn.execute(
            "insert into duebook.suppression values"
            " ('a000000', 'first', 'complaint', now(), 'recipient')"
        )
        used = self.run(database_url, first=ACCEPTED, second=ACCEPTED)
        assert [len(each.log) for each in used.values()] == [0, 0]
        assert endings(conn) == {("expired", "suppressed"): 1}


class TestAnswers:
    def test_a_stop_told_to_the_provider_is_an_opt_out_of_the_channel(
        self, conn: Conn, database_url: str
    ) -> None:
        add_due(conn, 2)
        answer = SendResult("refused", code="21610", opts_out=True)
        run_sweep(database_url, ScriptedChannel(lambda m, n: answer, max_concurrency=1))
        assert endings(conn) == {("expired", "opted_out"): 2}
        assert conn.execute(
            "select kind, channel, granted, source from duebook.consent"
        ).fetchall() == [("*", "noop", False, "provider")]
        assert value(conn, "select count(*) from duebook.suppression") == 0

    def test_a_provider_that_keeps_quiet_hours_burns_no_try(
        self, conn: Conn, database_url: str
    ) -> None:
        add_due(conn, 1)
        answer = SendResult(
            "later", code="30610", scope="message", burns_try=False, retry_after=timedelta(hours=9)
        )
        run_sweep(database_url, ScriptedChannel(lambda m, n: answer))
        assert conn.execute(
            "select tries, due_at > clock_timestamp() + interval '8 hours' from duebook.due"
        ).fetchone() == (0, True)
        assert value(conn, "select provider_code from duebook.attempt_result") == "30610"

    def test_a_channel_may_name_why_an_address_is_dead(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 1)
        answer = SendResult("refused", code="410", suppress="gone")
        run_sweep(database_url, ScriptedChannel(lambda m, n: answer))
        assert conn.execute("select reason, source from duebook.suppression").fetchall() == [
            ("gone", "provider")
        ]


class TestOptOutInBetween:
    """An opt-out that commits at any moment lets no more through than the window that is open."""

    WINDOW = 4

    @pytest.mark.parametrize("at", range(18))
    @pytest.mark.parametrize("concurrency", [1, 3])
    def test_at_most_the_open_window_gets_through(
        self, conn: Conn, database_url: str, at: int, concurrency: int
    ) -> None:
        add_due(conn, 16)
        log: list[str] = []
        opt_out = "select duebook.unsubscribe('a000000', 'payment_settled', 'noop', 'one_click')"
        if at == 0:
            conn.execute(opt_out)

        def answer(message: Message, number: int) -> SendResult:
            del message, number
            log.append("sent")
            if len(log) == at:
                conn.execute(opt_out)
                log.append("left")
            return ACCEPTED

        channel = ScriptedChannel(answer, max_concurrency=concurrency)
        run_sweep(database_url, channel, window_messages=self.WINDOW, batch_size=8)
        sent = log.count("sent")
        after = len(log) - 1 - log.index("left") if "left" in log else 0
        assert after < self.WINDOW
        # Windows are of four and in order: the open one is the last that is sent.
        expected = 16 if at > 16 else -(-at // self.WINDOW) * self.WINDOW
        assert sent == expected
        told = {("sent", None): sent, ("expired", "opted_out"): 16 - sent}
        assert endings(conn) == {ending: count for ending, count in told.items() if count}


class TestConsent:
    def decide(self, conn: Conn, granted: bool, source: str, at: str | None) -> str:
        return str(
            value(
                conn,
                "select duebook.set_consent('a', 'reminder', 'email', %s, %s, %s)",
                granted,
                source,
                at,
            )
        )

    def granted(self, conn: Conn) -> Any:
        return conn.execute("select granted, source from duebook.consent").fetchall()

    def test_the_newest_decision_counts_whatever_the_order(self, conn: Conn) -> None:
        assert self.decide(conn, False, "form", "2026-11-02Z") == "recorded"
        assert self.decide(conn, True, "shop", "2026-11-01Z") == "older"
        assert self.granted(conn) == [(False, "form")]
        assert self.decide(conn, True, "shop", "2026-11-03Z") == "recorded"
        assert self.granted(conn) == [(True, "shop")]
        assert value(conn, "select count(*) from duebook.audit_event where action = 'consent'") == 3

    def test_the_same_again_does_nothing_and_other_content_is_refused(self, conn: Conn) -> None:
        self.decide(conn, True, "shop", "2026-11-03Z")
        assert self.decide(conn, True, "shop", "2026-11-03Z") == "known"
        with pytest.raises(psycopg.errors.UniqueViolation):
            self.decide(conn, False, "shop", "2026-11-03Z")

    def test_of_two_at_once_the_refusal_counts(self, conn: Conn) -> None:
        self.decide(conn, False, "form", "2026-11-03Z")
        assert self.decide(conn, True, "shop", "2026-11-03Z") == "older"
        assert self.granted(conn) == [(False, "form")]

    def test_a_decision_of_tomorrow_is_refused(self, conn: Conn) -> None:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="future"):
            self.decide(conn, True, "shop", "2126-11-03Z")

    def test_a_suppression_is_put_once_and_lifted_by_somebody(self, conn: Conn) -> None:
        put = "select duebook.suppress('a', 'email', 'wrong person', 'ada')"
        lift = "select duebook.lift_suppression('a', 'email', 'he wrote', 'bob')"
        assert [value(conn, put), value(conn, put)] == ["suppressed", "known"]
        assert [value(conn, lift), value(conn, lift)] == ["lifted", "known"]
        assert conn.execute(
            "select actor, action from duebook.audit_event where account_id = 'a' order by 1"
        ).fetchall() == [("ada", "suppress"), ("bob", "lift_suppression")]
