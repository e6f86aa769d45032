"""One sender, window by window: the gate, the channel's answers, the flush and its repeats."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
import time_machine

from duebook.channels.base import Message, SendResult
from duebook.db.connect import connect_url
from duebook.db.sql import query
from duebook.errors import RefusedError, UnavailableError
from duebook.services import deliver, flush
from duebook.services.flush import Ending, Flush, apply_flush
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from tests.due_work import ScriptedChannel, add_due, places, value
from tests.services.test_sweep import claim, lapse, rescue

Conn = psycopg.Connection[Any]
ACCEPTED = SendResult("accepted", "id-1", "250")
FINISHED = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def run(database_url: str) -> Callable[..., SweepReport]:
    """A sweep of a scripted channel; named arguments are those of the request."""

    def run(channel: ScriptedChannel, **request: Any) -> SweepReport:
        return sweep(
            partial(connect_url, database_url, autocommit=True),
            SweepRequest(**{"environment": "test", "batch_size": 100, **request}),
            {channel.name: channel},
        )

    return run


Run = Callable[..., SweepReport]


def outcomes(conn: Conn) -> dict[tuple[str, str | None], int]:
    rows = conn.execute("select result, reason, count(*) from duebook.outcome group by 1, 2")
    return {(result, reason): count for result, reason, count in rows}


def hasten(conn: Conn) -> None:
    """As if every wait were over."""
    conn.execute("update duebook.due set due_at = clock_timestamp()")
    conn.execute("update duebook.budget set paused_until = clock_timestamp()")


class TestAnswers:
    def test_accepted_ends_the_key(self, conn: Conn, run: Run) -> None:
        add_due(conn, 3)
        channel = ScriptedChannel(lambda message, number: ACCEPTED)
        report = run(channel).to_json()
        assert (report["claimed"], report["sent"], report["backlog"]) == (3, 3, 0)
        assert outcomes(conn) == {("sent", None): 3}
        assert value(
            conn, "select array_agg(distinct provider_message_id) from duebook.outcome"
        ) == ["id-1"]
        message = channel.messages[0]
        assert message.recipient == "x@example.test"
        assert "42.00" in message.text
        assert message.message_id.startswith("<")

    def test_a_channel_that_says_later_rests_and_burns_no_try(self, conn: Conn, run: Run) -> None:
        add_due(conn, 50)
        busy = SendResult("later", code="421", retry_after=timedelta(minutes=5))
        answers = iter([busy])
        channel = ScriptedChannel(lambda message, n: next(answers, ACCEPTED), max_concurrency=1)
        report = run(channel)
        assert len(channel.log) == 1
        assert report.counts.deferred == 1
        assert report.counts.released == 49
        assert places(conn) == {"due": 50}
        assert value(conn, "select max(tries) from duebook.due") == 0
        wait = value(conn, "select paused_until - clock_timestamp() from duebook.budget")
        assert timedelta(minutes=4) < wait <= timedelta(minutes=5)
        assert run(channel).counts.claimed == 0
        hasten(conn)
        assert run(channel).counts.sent == 50
        assert value(conn, "select consecutive_pauses from duebook.budget") == 0

    def test_pauses_in_a_row_grow(self, conn: Conn, run: Run) -> None:
        add_due(conn, 1)
        channel = ScriptedChannel(lambda message, number: SendResult("later", code="connection"))
        waits = []
        for _ in range(4):
            run(channel)
            waits.append(value(conn, "select paused_until - clock_timestamp() from duebook.budget"))
            hasten(conn)
        assert value(conn, "select consecutive_pauses from duebook.budget") == 4
        assert waits[3] > waits[0] * 2

    def test_one_full_mailbox_burns_its_own_try_and_stops_no_other(
        self, conn: Conn, run: Run
    ) -> None:
        add_due(conn, 20)
        full = SendResult("later", code="452 4.2.2", scope="message")
        bad = value(conn, "select max(operation_key) from duebook.intent")
        channel = ScriptedChannel(
            lambda message, n: full if message.operation_key == bad else ACCEPTED
        )
        assert run(channel).counts.sent == 19
        assert value(conn, "select tries from duebook.due") == 1
        assert value(conn, "select count(*) from duebook.budget") == 0
        assert value(conn, "select reason from duebook.intent_change") == "retry"
        for _ in range(2):
            hasten(conn)
            run(channel)
        assert outcomes(conn) == {("sent", None): 19, ("expired", "exhausted"): 1}
        assert channel.log.count(bad) == 3

    def test_a_refusal_ends_the_key_and_a_dead_address_is_suppressed(
        self, conn: Conn, run: Run
    ) -> None:
        add_due(conn, 3)
        gone = SendResult("refused", code="550 5.1.1")
        run(ScriptedChannel(lambda message, n: gone, max_concurrency=1))
        assert outcomes(conn) == {("expired", "refused"): 3}
        assert value(conn, "select reason from duebook.suppression") == "550 5.1.1"
        add_due(conn, 2, kind="payment_refunded", payments_from=10)
        assert run(ScriptedChannel()).counts.sent == 0
        assert outcomes(conn) == {("expired", "refused"): 3, ("expired", "suppressed"): 2}

    def test_a_refused_content_suppresses_nobody(self, conn: Conn, run: Run) -> None:
        add_due(conn, 1)
        run(ScriptedChannel(lambda message, n: SendResult("refused", code="554 5.7.1")))
        assert outcomes(conn) == {("expired", "refused"): 1}
        assert value(conn, "select count(*) from duebook.suppression") == 0

    def test_unknown_is_in_doubt_and_never_resent(self, conn: Conn, run: Run) -> None:
        add_due(conn, 2)
        lost = SendResult("unknown", code="connection")
        channel = ScriptedChannel(lambda message, n: lost)
        assert run(channel).counts.unknown == 2
        assert places(conn) == {"in_doubt": 2}
        assert value(conn, "select array_agg(distinct cause) from duebook.in_doubt") == [
            "connection"
        ]
        assert value(conn, "select min(look_up_from) > clock_timestamp() from duebook.in_doubt")
        assert run(channel).counts.claimed == 0
        assert len(channel.log) == 2

    def test_a_channel_that_raises_may_have_sent(self, conn: Conn, run: Run) -> None:
        add_due(conn, 2)

        def broken(message: Message, number: int) -> SendResult:
            raise ValueError(message.recipient)

        assert run(ScriptedChannel(broken)).counts.unknown == 2
        assert value(conn, "select array_agg(distinct cause) from duebook.in_doubt") == [
            "ValueError"
        ]

    def test_a_template_that_fails_is_held(self, conn: Conn, run: Run) -> None:
        add_due(conn, 2)
        add_due(conn, 1, prefix="b", kind="payment_unheard_of")
        report = run(ScriptedChannel())
        assert (report.counts.sent, report.counts.held) == (2, 1)
        assert value(conn, "select cause from duebook.held") == "template"
        assert value(conn, "select retest_at > clock_timestamp() from duebook.held")

    def test_a_kind_without_a_policy_is_held(self, conn: Conn, run: Run) -> None:
        add_due(conn, 1)
        conn.execute("delete from duebook.intent_kind")
        assert run(ScriptedChannel()).counts.held == 1
        assert value(conn, "select cause from duebook.held") == "kind_unknown"


class TestGate:
    """What happens between the claim and the window is seen by the window."""

    def run_with(
        self, conn: Conn, run: Run, between: Callable[[], object], **request: Any
    ) -> ScriptedChannel:
        """Two windows of one message; `between` happens while the first is sent."""
        add_due(conn, 2)

        def answer(message: Message, number: int) -> SendResult:
            between()
            return ACCEPTED

        channel = ScriptedChannel(answer)
        run(channel, window_messages=1, **request)
        return channel

    def test_an_opt_out_after_the_claim_is_respected(self, conn: Conn, run: Run) -> None:
        channel = self.run_with(
            conn,
            run,
            lambda: conn.execute(
                "insert into duebook.consent (account_id, kind, channel, granted, source)"
                " values ('a000000', '*', '*', false, 'link') on conflict do nothing"
            ),
        )
        assert len(channel.log) == 1
        assert outcomes(conn) == {("sent", None): 1, ("expired", "opted_out"): 1}

    def test_a_later_grant_overrules_an_opt_out(self, conn: Conn, run: Run) -> None:
        conn.execute(
            """
            insert into duebook.consent (account_id, kind, channel, granted, source, decided_at)
            values
                ('a000000', '*', '*', false, 'link', '2026-01-01Z'),
                ('a000000', 'payment_settled', 'noop', true, 'page', '2026-01-02Z')
            """
        )
        add_due(conn, 1)
        assert run(ScriptedChannel()).counts.sent == 1

    @pytest.mark.parametrize(
        ("request_name", "reason"),
        [("cancel", "cancelled"), ("supersede", "superseded"), ("opt_out", "opted_out")],
    )
    def test_a_request_is_read_before_the_next_window(
        self, conn: Conn, run: Run, request_name: str, reason: str
    ) -> None:
        self.run_with(
            conn,
            run,
            lambda: conn.execute(
                """
                insert into duebook.intent_request (
                    account_id, intent_id, request, reason, requested_by
                )
                select account_id, max(intent_id), %s, 'why', 'who' from duebook.intent group by 1
                """,
                [request_name],
            ),
        )
        assert outcomes(conn) == {("sent", None): 1, ("expired", reason): 1}

    def test_a_suppressed_account_is_told_nothing(self, conn: Conn, run: Run) -> None:
        self.run_with(
            conn,
            run,
            lambda: conn.execute(
                "insert into duebook.suppression (account_id, channel, reason)"
                " values ('a000000', 'noop', 'complaint') on conflict do nothing"
            ),
        )
        assert outcomes(conn) == {("sent", None): 1, ("expired", "suppressed"): 1}

    def test_a_pause_set_by_another_sender_stops_this_one(self, conn: Conn, run: Run) -> None:
        self.run_with(
            conn,
            run,
            lambda: conn.execute(
                "insert into duebook.budget (channel, paused_until)"
                " values ('noop', clock_timestamp() + interval '1 hour') on conflict do nothing"
            ),
        )
        assert places(conn) == {"outcome": 1, "due": 1}

    def test_a_channel_switched_off_ends_its_intents(self, conn: Conn, run: Run) -> None:
        self.run_with(
            conn,
            run,
            lambda: conn.execute(
                "insert into duebook.channel (channel, enabled) values ('noop', false)"
                " on conflict do nothing"
            ),
        )
        assert outcomes(conn) == {("sent", None): 1, ("expired", "channel_disabled"): 1}

    def test_an_environment_that_is_no_longer_ours_stops_everything(
        self, conn: Conn, run: Run
    ) -> None:
        with pytest.raises(RefusedError, match="other"):
            self.run_with(
                conn,
                run,
                lambda: conn.execute("select duebook.accept_environment('other', true, 'x')"),
            )
        assert places(conn) == {"outcome": 1, "due": 1}

    def test_what_has_settled_meanwhile_is_not_said_to_be_missing(
        self, conn: Conn, run: Run
    ) -> None:
        add_due(conn, 2, kind="payment_missing")
        conn.execute(
            """
            insert into duebook.ledger_change (
                account_id, payment_id, run_id, provider_account, change_kind, before_status,
                after_status, currency, before_captured_minor, after_captured_minor,
                before_refunded_minor, after_refunded_minor, before_charged_back_minor,
                after_charged_back_minor, evidence_at
            )
            select
                account_id, payment_id, 2, 'stripe', 'cleared', 'missing', 'settled', 'EUR', 0, 0,
                0, 0, 0, 0, now()
            from duebook.intent where payment_id = 'a1'
            """
        )
        assert run(ScriptedChannel()).counts.sent == 1
        assert outcomes(conn) == {("sent", None): 1, ("expired", "settled_meanwhile"): 1}

    def test_too_late_is_not_sent(self, conn: Conn, run: Run) -> None:
        add_due(conn, 1)
        conn.execute("update duebook.intent set give_up_at = notify_at + interval '1 microsecond'")
        assert run(ScriptedChannel()).counts.expired == 1
        assert outcomes(conn) == {("expired", "too_late"): 1}

    def test_what_is_missed_follows_the_kinds_policy(self, conn: Conn, run: Run) -> None:
        add_due(conn, 3, due_in=timedelta(hours=-1))
        conn.execute("update duebook.intent set subject = 'payment:one'")
        conn.execute("update duebook.intent_kind set catch_up = 'latest'")
        assert run(ScriptedChannel()).counts.sent == 1
        assert outcomes(conn) == {("sent", None): 1, ("expired", "superseded"): 2}

    def test_quiet_hours_defer_to_their_end(self, conn: Conn, run: Run) -> None:
        add_due(conn, 1)
        now = value(conn, "select clock_timestamp()").astimezone(UTC)
        start, end = now - timedelta(hours=1), now + timedelta(hours=1)
        conn.execute(
            "insert into duebook.quiet_hours (from_local, until_local) values (%s, %s)",
            [start.time().replace(microsecond=0), end.time().replace(microsecond=0)],
        )
        assert run(ScriptedChannel()).counts.deferred == 1
        assert value(conn, "select due_at from duebook.due") == end.replace(microsecond=0)
        assert value(conn, "select reason from duebook.intent_change") == "quiet_hours"

    def test_an_unknown_zone_is_held_only_where_it_matters(self, conn: Conn, run: Run) -> None:
        add_due(conn, 1)
        add_due(conn, 1, prefix="b")
        conn.execute(
            "update duebook.contact set zone = 'Mars/Olympus', region = 'x'"
            " where account_id = 'a000000'"
        )
        conn.execute(
            "insert into duebook.quiet_hours (region, from_local, until_local)"
            " values ('x', '00:00', '00:01')"
        )
        report = run(ScriptedChannel())
        assert (report.counts.sent, report.counts.held) == (1, 1)
        assert value(conn, "select cause from duebook.held") == "zone_unknown"

    def test_an_intent_that_is_not_ours_goes_back_to_the_proposals(
        self, conn: Conn, run: Run
    ) -> None:
        add_due(conn, 1)
        conn.execute("update duebook.intent set ownership = 'shadow'")
        assert run(ScriptedChannel()).counts.sent == 0
        assert places(conn) == {"proposed": 1}


class TestFlush:
    def flush_of(self, conn: Conn, batch_id: int, endings: list[Ending], **other: Any) -> Flush:
        token: UUID = value(conn, "select token from duebook.batch where batch_id = %s", batch_id)
        return Flush(
            **{
                "batch_id": batch_id,
                "token": token,
                "follows": 0,
                "channel": "noop",
                "environment": "test",
                "lease": timedelta(minutes=1),
                "endings": endings,
                "action": "close",
                **other,
            }
        )

    def open_window(self, conn: Conn, count: int) -> tuple[Flush, list[Ending]]:
        """A claimed batch with everything in its first window, and its results: all sent."""
        batch_id, size, _ = claim(conn, count)
        assert batch_id is not None
        opening = self.flush_of(conn, batch_id, [], action="open", start=0, mark=size)
        window = apply_flush(conn, opening).window
        assert window is not None
        endings = [
            Ending(row, "sent", None, FINISHED, "250", f"id-{row.position}") for row in window.rows
        ]
        return opening, endings

    def test_a_flush_after_the_lease_but_before_rescue_is_accepted(self, conn: Conn) -> None:
        add_due(conn, 10)
        opening, endings = self.open_window(conn, 10)
        lapse(conn)
        done = apply_flush(conn, replace(opening, follows=1, endings=endings, action="close"))
        assert (done.late, done.is_gone) == (0, False)
        assert rescue(conn) == []
        assert places(conn) == {"outcome": 10}
        assert value(conn, "select count(*) from duebook.attempt_result where is_late") == 0

    def test_a_flush_after_rescue_is_late_and_ends_what_it_can(self, conn: Conn) -> None:
        add_due(conn, 10)
        opening, endings = self.open_window(conn, 10)
        lapse(conn)
        rescue(conn)
        assert places(conn) == {"in_doubt": 10}
        closing = replace(opening, follows=1, endings=endings[:6], action="close")
        assert apply_flush(conn, closing).late == 6
        assert places(conn) == {"outcome": 6, "in_doubt": 4}
        assert value(conn, "select count(*) from duebook.attempt_result where is_late") == 6
        # Repeated, it does nothing.
        assert apply_flush(conn, closing).late == 0
        assert places(conn) == {"outcome": 6, "in_doubt": 4}

    def test_a_late_answer_ends_a_key_that_is_back_in_due(self, conn: Conn) -> None:
        add_due(conn, 4)
        batch_id, _, _ = claim(conn, 4, safe_retry_for=timedelta(hours=1))
        assert batch_id is not None
        opening = self.flush_of(conn, batch_id, [], action="open", start=0, mark=4)
        window = apply_flush(conn, opening).window
        assert window is not None
        lapse(conn)
        rescue(conn)
        assert places(conn) == {"due": 4}
        endings = [Ending(row, "sent", None, FINISHED) for row in window.rows]
        apply_flush(conn, replace(opening, follows=1, endings=endings[:2]))
        assert places(conn) == {"due": 2, "outcome": 2}

    def test_a_late_answer_reaches_the_gate_of_whoever_claimed_it_again(
        self, conn: Conn, run: Run
    ) -> None:
        add_due(conn, 1)
        batch_id, _, _ = claim(conn, 1, safe_retry_for=timedelta(hours=1))
        assert batch_id is not None
        opening = self.flush_of(conn, batch_id, [], action="open", start=0, mark=1)
        window = apply_flush(conn, opening).window
        assert window is not None
        lapse(conn)
        rescue(conn)
        claim(conn, 1)
        late = [Ending(row, "sent", None, FINISHED, "250", "id-7") for row in window.rows]
        apply_flush(conn, replace(opening, follows=1, endings=late))
        assert places(conn) == {"batch": 1}
        lapse(conn)
        channel = ScriptedChannel()
        run(channel)
        assert channel.log == []
        assert places(conn) == {"outcome": 1}
        assert value(conn, "select provider_message_id from duebook.outcome") == "id-7"

    def test_late_news_that_nothing_was_accepted_makes_it_due_again(self, conn: Conn) -> None:
        add_due(conn, 3)
        opening, endings = self.open_window(conn, 3)
        lapse(conn)
        rescue(conn)
        late = [ending._replace(result="failed", reason="retry") for ending in endings[:2]]
        apply_flush(conn, replace(opening, follows=1, endings=late))
        assert places(conn) == {"due": 2, "in_doubt": 1}
        assert value(conn, "select array_agg(tries::int) from duebook.due") == [1, 1]

    def test_a_repeated_flush_does_nothing(self, conn: Conn) -> None:
        add_due(conn, 20)
        batch_id, _, _ = claim(conn, 20)
        assert batch_id is not None
        opening = self.flush_of(conn, batch_id, [], action="open", start=0, mark=10)
        first = apply_flush(conn, opening).window
        again = apply_flush(conn, opening).window
        assert first is not None
        assert again is not None
        assert [row.intent_id for row in first.rows] == [row.intent_id for row in again.rows]
        assert value(conn, "select flush_no from duebook.batch") == 1
        endings = [Ending(row, "sent", None, FINISHED) for row in first.rows]
        second = replace(opening, follows=1, endings=endings, start=10, mark=20)
        for _ in range(2):
            window = apply_flush(conn, second).window
            assert window is not None
            rows = window.rows
            assert [row.position for row in rows] == list(range(10, 20))
        last = [Ending(row, "sent", None, FINISHED) for row in rows]
        closing = replace(second, follows=2, endings=last, action="close")
        for _ in range(3):
            assert apply_flush(conn, closing).late == 0
        assert places(conn) == {"outcome": 20}
        assert value(conn, "select count(*) from duebook.attempt_result") == 20

    def test_a_key_with_an_outcome_in_a_batch_of_500_stops_no_other(self, conn: Conn) -> None:
        add_due(conn, 500, accounts=3, with_books=False)
        opening, endings = self.open_window(conn, 500)
        conn.execute(
            """
            insert into duebook.outcome (account_id, operation_key, intent_id, kind, result, due_at)
            select account_id, operation_key, intent_id, kind, 'sent', notify_at
            from duebook.intent order by intent_id offset 250 limit 1
            """
        )
        done = apply_flush(conn, replace(opening, follows=1, endings=endings))
        assert done.not_counted == 1
        assert places(conn) == {"outcome": 500}
        assert value(conn, "select count(*) from duebook.attempt_result where is_late") == 1
        assert value(conn, "select count(*) from duebook.attempt_result") == 500

    def test_a_second_result_of_an_attempt_is_refused_and_noted(self, conn: Conn) -> None:
        add_due(conn, 5)
        opening, endings = self.open_window(conn, 5)
        conn.execute(
            """
            insert into duebook.attempt_result
                (account_id, intent_id, attempt_no, batch_id, flush_no, result, finished_at)
            select account_id, intent_id, attempt_no, batch_id, 0, 'unknown', clock_timestamp()
            from duebook.attempt where position = 2
            """
        )
        done = apply_flush(conn, replace(opening, follows=1, endings=endings))
        assert done.not_counted == 1
        assert value(conn, "select count(*) from duebook.outcome") == 4
        assert value(conn, "select action from duebook.audit_event order by 1 desc limit 1") == (
            "refuse_second_result"
        )

    def test_odd_texts_arrive_as_they_are(self, conn: Conn) -> None:
        odd = "tab\tnew\nline\\N \\. 'quote' \u2603"
        add_due(conn, 2, prefix=odd)
        opening, endings = self.open_window(conn, 2)
        odd_endings = [ending._replace(provider_message_id=odd) for ending in endings]
        apply_flush(conn, replace(opening, follows=1, endings=odd_endings))
        assert places(conn) == {"outcome": 2}
        assert value(conn, "select distinct provider_message_id from duebook.outcome") == odd
        assert value(conn, "select distinct account_id from duebook.outcome").startswith(odd)

    def test_the_lease_is_renewed_by_progress_only_and_never_beyond_its_age(
        self, conn: Conn
    ) -> None:
        add_due(conn, 10)
        batch_id, _, _ = claim(conn, 10)
        assert batch_id is not None
        lease = "select lease_until from duebook.batch"
        before = value(conn, lease)
        opening = self.flush_of(conn, batch_id, [], action="open", mark=5, lease=timedelta(hours=2))
        apply_flush(conn, opening)
        assert value(conn, lease) == before
        apply_flush(conn, replace(opening, follows=1, renews=True, start=5, mark=10))
        assert value(conn, lease) == value(conn, "select max_age_until from duebook.batch")


class TestLostConnections:
    """The server may go away at any statement; the sender comes back and repeats its flush."""

    @pytest.mark.parametrize("lost", ["before", "after"])
    @pytest.mark.parametrize("number", [1, 2, 3, 4])
    def test_a_flush_whose_answer_is_lost(
        self,
        conn: Conn,
        run: Run,
        monkeypatch: pytest.MonkeyPatch,
        lost: str,
        number: int,
    ) -> None:
        add_due(conn, 30)
        calls = itertools.count(1)

        def cut(connection: Conn, applied: Flush) -> flush.Flushed:
            if next(calls) != number:
                return apply_flush(connection, applied)
            if lost == "after":
                apply_flush(connection, applied)
            end_backend(conn, connection)
            return apply_flush(connection, applied)

        monkeypatch.setattr(deliver, "apply_flush", cut)
        channel = ScriptedChannel()
        report = run(channel, window_messages=10)
        assert report.counts.sent == 30
        assert sorted(channel.log) == sorted(set(channel.log))
        assert places(conn) == {"outcome": 30}

    @pytest.mark.parametrize("lost", ["before", "after"])
    def test_a_claim_whose_answer_is_lost(
        self, conn: Conn, run: Run, monkeypatch: pytest.MonkeyPatch, lost: str
    ) -> None:
        add_due(conn, 30)
        calls = itertools.count(1)
        execute = psycopg.Connection.execute

        def cut(self: Conn, statement: Any, *arguments: Any, **named: Any) -> Any:
            if statement == query("claim_batch") and next(calls) == 1:
                if lost == "after":
                    execute(self, statement, *arguments, **named)
                end_backend(conn, self)
            return execute(self, statement, *arguments, **named)

        monkeypatch.setattr(psycopg.Connection, "execute", cut)
        channel = ScriptedChannel()
        assert run(channel).counts.sent == 30
        assert len(channel.log) == 30
        assert places(conn) == {"outcome": 30}

    @pytest.mark.parametrize("state", ["40P01", "40001"])
    def test_a_deadlock_is_repeated(
        self, conn: Conn, run: Run, monkeypatch: pytest.MonkeyPatch, state: str
    ) -> None:
        add_due(conn, 30)
        calls = itertools.count(1)

        def lose(connection: Conn, applied: Flush) -> flush.Flushed:
            if next(calls) == 2:
                connection.execute(f"do $$ begin raise sqlstate '{state}'; end $$")
            return apply_flush(connection, applied)

        monkeypatch.setattr(deliver, "apply_flush", lose)
        channel = ScriptedChannel()
        assert run(channel, window_messages=10).counts.sent == 30
        assert len(channel.log) == 30
        assert places(conn) == {"outcome": 30}

    def test_a_database_that_stays_away_is_one_clear_line(self, database_url: str) -> None:
        def connect() -> Conn:
            raise UnavailableError("the database at somewhere is away")

        with pytest.raises(UnavailableError, match="away"):
            sweep(
                connect,
                SweepRequest(environment="test", reconnect_for=timedelta(0)),
                {"noop": ScriptedChannel()},
            )

    def test_a_window_that_cannot_be_opened_leaves_the_last_one_known(
        self, conn: Conn, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_due(conn, 20)
        read = flush._read_window

        def poisoned(connection: Conn, applied: Flush, position: Any) -> Any:
            if applied.start == 10:
                connection.execute("select 1 / 0")
            return read(connection, applied, position)

        monkeypatch.setattr(flush, "_read_window", poisoned)
        channel = ScriptedChannel()
        with pytest.raises(psycopg.errors.DivisionByZero):
            run(channel, window_messages=10)
        assert len(channel.log) == 10
        assert places(conn) == {"outcome": 10, "batch": 10}
        lapse(conn)
        rescue(conn)
        assert places(conn) == {"outcome": 10, "due": 10}


def end_backend(conn: Conn, other: Conn) -> None:
    conn.execute("select pg_terminate_backend(%s, 5000)", [other.info.backend_pid])


@pytest.mark.parametrize("hours", [-1, 1])
def test_the_clock_of_the_process_decides_nothing(conn: Conn, run: Run, hours: int) -> None:
    add_due(conn, 5)
    add_due(conn, 5, prefix="later", due_in=timedelta(minutes=30))
    add_due(conn, 5, prefix="late", give_up_in=timedelta(minutes=30))
    with time_machine.travel(value(conn, "select clock_timestamp()") + timedelta(hours=hours)):
        report = run(ScriptedChannel())
    assert report.counts.sent == 10
    assert places(conn) == {"outcome": 10, "due": 5}
    age = value(conn, "select max(clock_timestamp() - finished_at) from duebook.attempt_result")
    assert timedelta(0) <= age < timedelta(minutes=5)
    assert value(conn, "select max(clock_timestamp() - ended_at) from duebook.outcome") < timedelta(
        minutes=5
    )


def test_a_slow_channel_makes_windows_smaller(conn: Conn, run: Run) -> None:
    add_due(conn, 60)
    marks: list[int] = []

    def slow(message: Message, number: int) -> SendResult:
        import time

        time.sleep(0.02)
        marks.append(value(conn, "select mark - window_start from duebook.batch"))
        return ACCEPTED

    run(
        ScriptedChannel(slow, max_concurrency=1),
        window_messages=60,
        window_time=timedelta(seconds=0.3),
    )
    assert marks[0] == 60
    assert max(marks[20:]) < 30
    assert places(conn) == {"outcome": 60}


def test_no_amount_and_no_address_is_logged(
    conn: Conn, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    add_due(conn, 3)

    def broken(message: Message, number: int) -> SendResult:
        raise ValueError(f"{message.recipient} {message.text}")

    run(ScriptedChannel(broken))
    shown = capsys.readouterr()
    assert "channel_failed" in shown.out + shown.err
    for secret in ("example.test", "42.00", "4200"):
        assert secret not in shown.out + shown.err
