"""Webhooks that leave: repeats that the receiver recognises, waits of hours, dead endpoints."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.channels.base import SendResult
from duebook.channels.endpoints import Reach, parse_endpoint
from duebook.channels.webhook import RETRY_WAITS, WebhookChannel, WebhookOptions
from duebook.channels.webhook_secrets import endpoint_secret
from duebook.db.connect import connect_url
from duebook.services.check import check
from duebook.services.rebuild import rebuild
from tests.conftest import DuebookCli
from tests.due_work import ScriptedChannel, add_due, places, run_sweep, value
from tests.webhook_sink import Answer, WebhookSink

Conn = psycopg.Connection[Any]
ACCEPTED = SendResult("accepted", "id-1", "200")
LOST = SendResult("unknown", code="timeout", detail="no answer")
BUSY = SendResult("later", code="500", scope="message")
MASTER = "a master key of at least 32 bytes, of a test"


def hasten(conn: Conn) -> None:
    """As if every wait were over."""
    conn.execute("update duebook.due set due_at = clock_timestamp()")


def due(conn: Conn) -> tuple[Any, ...]:
    """Tries, seconds until due and until a repeat is not safe any more."""
    row = conn.execute(
        "select tries, extract(epoch from due_at - clock_timestamp())::float8,"
        " extract(epoch from safe_retry_until - clock_timestamp())::float8 from duebook.due"
    ).fetchone()
    assert row is not None
    return tuple(row)


def idempotent(*answers: SendResult, **other: Any) -> ScriptedChannel:
    """A channel that recognises a repeat for an hour, and answers so, one after the other."""
    script = iter(answers)
    return ScriptedChannel(
        lambda message, number: next(script, ACCEPTED),
        idempotent=True,
        safe_retry_for=timedelta(hours=1),
        **other,
    )


def connect(url: str) -> Any:
    return lambda: connect_url(url, autocommit=True)


def violations(url: str) -> Any:
    return check(connect(url))["violations"]


class TestRepeats:
    def test_an_unknown_answer_is_due_again_while_a_repeat_is_recognised(
        self, conn: Conn, database_url: str
    ) -> None:
        add_due(conn, 1)
        channel = idempotent(LOST)
        assert run_sweep(database_url, channel).counts.unknown == 1
        tries, wait, safe_for = due(conn)
        assert tries == 1
        assert 0 < wait < 60
        assert 3500 < safe_for <= 3600
        assert value(conn, "select reason from duebook.intent_change") == "repeat"
        assert violations(database_url) == []
        hasten(conn)
        assert run_sweep(database_url, channel).counts.sent == 1
        assert places(conn) == {"outcome": 1}
        # The receiver knows both by the same id.
        assert len({message.message_id for message in channel.messages}) == 1
        assert violations(database_url) == []

    def test_what_a_rebuild_makes_again_knows_until_when(
        self, conn: Conn, database_url: str
    ) -> None:
        add_due(conn, 1)
        run_sweep(database_url, idempotent(LOST))
        before = conn.execute("select * from duebook.due").fetchall()
        conn.execute("delete from duebook.due")
        rebuild(connect(database_url), by="pytest", apply=True)
        assert conn.execute("select * from duebook.due").fetchall() == before

    def test_the_first_try_counts_for_how_long_repeats_are_safe(
        self, conn: Conn, database_url: str
    ) -> None:
        add_due(conn, 1)
        channel = idempotent(LOST, BUSY)
        run_sweep(database_url, channel)
        until = value(conn, "select safe_retry_until from duebook.due")
        hasten(conn)
        run_sweep(database_url, channel)
        assert value(conn, "select safe_retry_until from duebook.due") == until

    def test_once_it_is_forgotten_it_is_in_doubt_and_never_resent(
        self, conn: Conn, database_url: str
    ) -> None:
        add_due(conn, 1)
        channel = idempotent(LOST)
        run_sweep(database_url, channel)
        conn.execute("update duebook.due set safe_retry_until = clock_timestamp()")
        hasten(conn)
        run_sweep(database_url, channel)
        assert places(conn) == {"in_doubt": 1}
        assert len(channel.log) == 1

    def test_a_wait_that_outlasts_the_memory_is_in_doubt_at_once(
        self, conn: Conn, database_url: str
    ) -> None:
        add_due(conn, 1)
        channel = Patient(idempotent(LOST), (timedelta(hours=2),))
        run_sweep(database_url, channel)
        assert places(conn) == {"in_doubt": 1}
        assert value(conn, "select cause from duebook.in_doubt") == "timeout"

    @pytest.mark.parametrize(
        ("answers", "place"),
        [
            ((LOST, LOST, LOST), "in_doubt"),
            ((LOST, BUSY, BUSY), "in_doubt"),
            ((BUSY, BUSY, LOST), "in_doubt"),
            ((BUSY, BUSY, BUSY), "outcome"),
        ],
    )
    def test_tries_end_and_what_may_have_been_received_is_not_called_unsent(
        self, conn: Conn, database_url: str, answers: tuple[SendResult, ...], place: str
    ) -> None:
        add_due(conn, 1)
        channel = idempotent(*answers)
        for _ in range(5):
            run_sweep(database_url, channel)
            hasten(conn)
        assert places(conn) == {place: 1}
        assert len(channel.log) == 3
        assert violations(database_url) == []

    def test_a_channel_that_recognises_nothing_is_in_doubt_as_ever(
        self, conn: Conn, database_url: str
    ) -> None:
        add_due(conn, 1)
        run_sweep(database_url, ScriptedChannel(lambda message, number: LOST))
        assert places(conn) == {"in_doubt": 1}


class Patient(ScriptedChannel):
    """A scripted channel with waits of its own."""

    def __init__(self, scripted: ScriptedChannel, waits: tuple[timedelta, ...]) -> None:
        super().__init__(
            scripted.answer,
            idempotent=scripted.idempotent,
            safe_retry_for=scripted.safe_retry_for,
        )
        self.retry_waits = waits
        self.disable_after = timedelta(days=5)


class TestWaits:
    def test_they_grow_as_the_channel_states(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 1)
        conn.execute("update duebook.intent_kind set max_tries = 9")
        channel = Patient(idempotent(*[BUSY] * 8), RETRY_WAITS)
        for stated in [*RETRY_WAITS, RETRY_WAITS[-1]]:
            run_sweep(database_url, channel)
            wait = timedelta(seconds=due(conn)[1])
            assert stated * 0.9 < wait < stated * 1.1 + timedelta(seconds=1)
            hasten(conn)

    def test_a_receiver_may_ask_for_more(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 1)
        asked = SendResult("later", code="429", retry_after=timedelta(hours=3), scope="message")
        run_sweep(database_url, Patient(idempotent(asked), RETRY_WAITS))
        assert timedelta(hours=2.9) < timedelta(seconds=due(conn)[1]) <= timedelta(hours=3)

    def test_what_was_not_tried_burns_no_try(self, conn: Conn, database_url: str) -> None:
        add_due(conn, 1)
        resting = SendResult(
            "later",
            code="resting",
            retry_after=timedelta(seconds=7),
            scope="message",
            burns_try=False,
        )
        channel = idempotent(*[resting] * 5)
        for _ in range(5):
            assert run_sweep(database_url, channel).counts.deferred == 1
            tries, wait, _ = due(conn)
            assert (tries, round(wait)) == (0, 7)
            hasten(conn)
        assert run_sweep(database_url, channel).counts.sent == 1


@pytest.fixture
def hooks(conn: Conn) -> Conn:
    """Three due notices of one account, whose webhook address is not yet known."""
    add_due(conn, 3, prefix="w", channel="webhook")
    return conn


def point(conn: Conn, url: str) -> None:
    conn.execute("update duebook.contact set address = %s", [url])


def webhook(**options: Any) -> WebhookChannel:
    fields: dict[str, Any] = {"master_keys": (MASTER,), "allow_private": True}
    return WebhookChannel(WebhookOptions(**(fields | options)))


class TestOverTheWire:
    def test_notices_arrive_as_signed_documents_without_a_rounded_amount(
        self, hooks: Conn, database_url: str
    ) -> None:
        with WebhookSink() as sink:
            point(hooks, sink.url)
            assert run_sweep(database_url, webhook()).counts.sent == 3
            secret = endpoint_secret(
                MASTER, "w000000", parse_endpoint(sink.url, Reach(allow_private=True)).identity
            )
            documents = [post.verify(secret) for post in sink.posts]
        first = min(documents, key=lambda each: each["data"]["payment_id"])
        assert first["type"] == "payment_settled"
        assert first["timestamp"] == first["data"]["occurred_at"]
        assert first["timestamp"].endswith("Z")
        data = first["data"]
        assert (data["amount_minor"], data["currency"], data["exponent"]) == (4200, "EUR", 2)
        assert data["payment_id"] == "w1"
        assert not any(isinstance(each, float) for each in data.values())
        ids = value(hooks, "select array_agg(provider_message_id order by 1) from duebook.outcome")
        assert sorted(ids) == sorted(sink.ids)

    def test_an_endpoint_that_is_gone_is_told_nothing_more(
        self, hooks: Conn, database_url: str
    ) -> None:
        with WebhookSink(answer=lambda post, number: Answer(410)) as sink:
            point(hooks, sink.url)
            run_sweep(database_url, webhook(max_connections=1))
            add_due(hooks, 5, prefix="w", channel="webhook", payments_from=10)
            run_sweep(database_url, webhook())
        assert sink.count == 3
        rows = hooks.execute("select account_id, channel, reason, source from duebook.suppression")
        assert rows.fetchall() == [("w000000", "webhook", "gone", "provider")]
        assert value(hooks, "select count(*) from duebook.outcome where reason = 'suppressed'") == 5

    def test_one_broken_endpoint_stops_no_other(self, hooks: Conn, database_url: str) -> None:
        with WebhookSink() as sound, WebhookSink(answer=lambda p, n: Answer(500)) as broken:
            add_due(hooks, 4, prefix="x", channel="webhook")
            point(hooks, broken.url)
            hooks.execute(
                "update duebook.contact set address = %s where account_id like 'x%%'", [sound.url]
            )
            report = run_sweep(database_url, webhook())
        assert (report.counts.sent, report.counts.deferred) == (4, 3)
        assert (sound.count, broken.count) == (4, 3)
        assert (
            value(hooks, "select count(*) from duebook.budget where paused_until is not null") == 0
        )


class TestGivingUp:
    """An address at which everything fails for days."""

    def age(self, conn: Conn, **by: float) -> None:
        """As if the failures so far lay so much longer back."""
        conn.execute(
            "update duebook.failing_contact set failing_since = failing_since - %(by)s,"
            " last_failed_at = last_failed_at - %(last)s",
            {"by": timedelta(**by), "last": timedelta(hours=10)},
        )

    def fail(self, conn: Conn, url: str, times: int = 1) -> WebhookSink:
        """So many sweeps against an endpoint that only fails."""
        with WebhookSink(answer=lambda post, number: Answer(500)) as sink:
            point(conn, sink.url)
            for _ in range(times):
                run_sweep(url, webhook())
                hasten(conn)
        return sink

    @pytest.fixture
    def failing(self, conn: Conn, database_url: str) -> Conn:
        """Failing at every try for five days but an instant."""
        add_due(conn, 2, prefix="w", channel="webhook")
        conn.execute("update duebook.intent_kind set max_tries = 90")
        self.fail(conn, database_url, 3)
        assert value(conn, "select failures from duebook.failing_contact") == 3
        return conn

    def reasons(self, conn: Conn) -> Any:
        return value(conn, "select array_agg(reason) from duebook.suppression")

    def test_it_is_suppressed_and_said(
        self, failing: Conn, database_url: str, duebook_cli: DuebookCli
    ) -> None:
        self.age(failing, days=4.9)
        self.fail(failing, database_url)
        assert self.reasons(failing) is None
        self.age(failing, days=0.2)
        self.fail(failing, database_url)
        assert self.reasons(failing) == ["failing"]
        with WebhookSink() as sink:
            point(failing, sink.url)
            run_sweep(database_url, webhook())
            assert sink.count == 0
        assert (
            value(failing, "select count(*) from duebook.outcome where reason = 'suppressed'") == 2
        )
        status = duebook_cli.in_process("status", "--json").json
        assert status["failing_contacts"][0]["given_up"] == 1
        assert any("given up on webhook" in need["what"] for need in status["needs"])
        story = duebook_cli.in_process("explain", "w000000", "--json").json
        assert "suppressed on webhook: failing" in str(story)
        actions = failing.execute("select action, detail ->> 'reason' from duebook.audit_event")
        assert ("suppress", "failing") in actions.fetchall()

    def test_one_success_starts_the_time_anew(self, failing: Conn, database_url: str) -> None:
        self.age(failing, days=6)
        with WebhookSink() as sink:
            point(failing, sink.url)
            run_sweep(database_url, webhook())
        assert value(failing, "select count(*) from duebook.failing_contact") == 0
        add_due(failing, 1, prefix="w", channel="webhook", payments_from=50)
        self.fail(failing, database_url)
        assert self.reasons(failing) is None

    def test_a_day_without_any_failure_starts_it_anew(
        self, failing: Conn, database_url: str
    ) -> None:
        failing.execute(
            "update duebook.failing_contact set failing_since = failing_since - interval '9 days',"
            " last_failed_at = last_failed_at - interval '25 hours'"
        )
        self.fail(failing, database_url)
        assert self.reasons(failing) is None
        assert value(failing, "select now() - failing_since from duebook.failing_contact") < (
            timedelta(minutes=1)
        )

    @pytest.mark.parametrize("way", ["lift", "import"])
    def test_a_person_or_another_address_lifts_it(
        self, failing: Conn, database_url: str, duebook_cli: DuebookCli, tmp_path: Path, way: str
    ) -> None:
        self.age(failing, days=6)
        self.fail(failing, database_url)
        assert self.reasons(failing) == ["failing"]
        with WebhookSink() as sink:
            if way == "lift":
                rule = ("suppress", "w000000", "webhook", "--reason", "repaired")
                assert duebook_cli.in_process(*rule, "--lift").code == 0
                point(failing, sink.url)
            else:
                (tmp_path / "contacts.csv").write_text(
                    "account_id,channel,address,zone,locale,region\n"
                    f"w000000,webhook,{sink.url},UTC,en,\n"
                )
                told = duebook_cli.in_process("contacts", "import", tmp_path / "contacts.csv")
                assert told.code == 0, told.stderr
            assert self.reasons(failing) is None
            assert value(failing, "select count(*) from duebook.failing_contact") == 0
            run_sweep(database_url, webhook())
        assert sink.count == 2

    def test_its_plan_reads_by_key_whatever_the_statistics_say(
        self, conn: Conn, database_url: str
    ) -> None:
        conn.execute(
            "insert into duebook.failing_contact"
            " select 'a' || g, 'webhook', now(), now(), 1 from generate_series(1, 5000) as g"
        )
        conn.execute("analyze duebook.failing_contact")
        before = value(conn, _SCANS)
        conn.execute(
            "select duebook.note_deliveries("
            "'webhook', array['a1', 'b'], array['a2'], interval '5 days')"
        )
        conn.execute("select pg_stat_force_next_flush()")
        assert value(conn, _SCANS) == before


_SCANS = (
    "select seq_scan from pg_stat_user_tables"
    " where relname = 'failing_contact' and schemaname = 'duebook'"
)
