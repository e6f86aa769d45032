"""Catching up: what becomes of the missed, by which policy, and at what pace."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final

import psycopg
import pytest

from duebook.config import load_config, parse_config
from duebook.db.connect import Connect, connect_url
from duebook.services.apply import apply_config
from duebook.services.explain import explain
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from tests.calendar_work import add_reminders, backdate, put, run_passes
from tests.due_work import ScriptedChannel, add_due, add_kind, places, value, wait_for
from tests.settlement_files import plain

Conn = psycopg.Connection[Any]
Run = Callable[..., SweepReport]
UNPACED = 1_000_000_000
EVERY_DAY = [1, 2, 3, 4, 5, 6, 7]


@pytest.fixture
def connect(database_url: str) -> Connect:
    return partial(connect_url, database_url, autocommit=True)


@pytest.fixture
def run(connect: Connect) -> Run:
    """One sweep of a channel that accepts everything; arguments are those of the request."""

    def run(channel: ScriptedChannel | None = None, **request: Any) -> SweepReport:
        chosen = channel or ScriptedChannel()
        values = {"environment": "test", "batch_size": 100, **request}
        return sweep(connect, SweepRequest(**values), {chosen.name: chosen})

    return run


def outcomes(conn: Conn) -> dict[tuple[str, str | None], int]:
    rows = conn.execute("select result, reason, count(*) from duebook.outcome group by 1, 2")
    return {(result, reason): count for result, reason, count in rows}


class TestReminders:
    """Thirty days without a sweep, one reminder a day."""

    POLICIES: Final = (
        ({"catch_up": "all"}, {("sent", None): 30}),
        ({"catch_up": "latest"}, {("sent", None): 1, ("expired", "superseded"): 29}),
        ({"catch_up": "skip"}, {("expired", "skipped"): 30}),
        (
            {"catch_up": "all", "max_occurrences": 3},
            {("sent", None): 3, ("expired", "superseded"): 27},
        ),
        (
            {"catch_up": "all", "catch_up_window": timedelta(days=10, hours=1)},
            {("sent", None): 10, ("expired", "too_late"): 20},
        ),
        (
            {"catch_up": "latest", "catch_up_window": timedelta(days=10, hours=1)},
            {("sent", None): 1, ("expired", "superseded"): 9, ("expired", "too_late"): 20},
        ),
    )

    @pytest.mark.parametrize(("policy", "expected"), POLICIES, ids=lambda each: str(each)[:60])
    def test_each_missed_one_ends_by_the_schedules_policy(
        self,
        conn: Conn,
        run: Run,
        policy: dict[str, Any],
        expected: dict[tuple[str, str | None], int],
    ) -> None:
        # The kind says the opposite, and is not asked.
        add_reminders(conn, catch_up="all" if policy["catch_up"] == "skip" else "skip")
        self.put(conn, **policy)
        run()
        assert outcomes(conn) == expected
        assert value(conn, "select count(*) from duebook.due where due_at < clock_timestamp()") == 0
        newest = value(
            conn, "select max(due_at) = max(due_at) filter (where result = 'sent')"
            " from duebook.outcome"
        )  # fmt: skip
        assert newest or policy["catch_up"] == "skip"

    def test_the_calendar_says_what_is_newer_not_the_rows(self, conn: Conn, run: Run) -> None:
        add_reminders(conn)
        self.put(conn, catch_up="latest")
        run_passes(conn)
        # As if only the oldest had been written by now, and the others stood in the calendar alone.
        conn.execute(
            """
            with newer as (
                delete from duebook.due
                where intent_id > (select min(intent_id) from duebook.due)
                returning account_id, intent_id
            ),
            gone as (
                delete from duebook.occurrence as o using newer as n
                where o.account_id = n.account_id and o.intent_id = n.intent_id
            )
            delete from duebook.intent as i using newer as n
            where i.account_id = n.account_id and i.intent_id = n.intent_id
            """
        )
        conn.execute("update duebook.schedule set next_on = null, next_at = null")
        run()
        assert outcomes(conn) == {("expired", "superseded"): 1}
        assert (
            value(
                conn,
                "select detail ->> 'policy_of' from duebook.audit_event where action = 'catch_up'",
            )
            == "schedule"
        )

    @staticmethod
    def put(conn: Conn, **policy: Any) -> None:
        now = value(conn, "select clock_timestamp() at time zone 'UTC'")
        hour_ago = (now - timedelta(hours=1)).time().replace(second=0, microsecond=0)
        put(
            conn,
            weekdays=EVERY_DAY,
            wall_time=hour_ago,
            starts_on=(now - timedelta(hours=1)).date() - timedelta(days=29),
            **{"spread_per_minute": UNPACED, **policy},
        )
        backdate(conn, timedelta(days=40))


class TestDecisions:
    def test_each_is_kept_with_the_policy_as_it_was(
        self, conn: Conn, run: Run, connect: Connect
    ) -> None:
        add_kind(conn, catch_up="latest", spread_per_minute=UNPACED)
        add_due(conn, 2, due_in=timedelta(days=-2))
        conn.execute("update duebook.intent set subject = 'payment:one'")
        run()
        conn.execute("update duebook.intent_kind set catch_up = 'skip'")
        kept = [
            row[0]
            for row in conn.execute(
                "select detail from duebook.audit_event where action = 'catch_up'"
                " order by audit_event_id"
            )
        ]
        assert [each["verdict"] for each in kept] == ["superseded", "send"]
        report = conn.execute(
            "select kind, verdict, catch_up, window_s, newer_due, slot_at is null, policy_of"
            " from duebook_reports.catch_up_decisions order by decided_at, newer_due desc"
        ).fetchall()
        assert report == [
            ("payment_settled", "superseded", "latest", 604800, 1, True, "kind"),
            ("payment_settled", "send", "latest", 604800, 0, False, "kind"),
        ]
        assert all((each["catch_up"], each["window_s"]) == ("latest", 604800) for each in kept)
        assert all(2 * 86400 <= each["late_s"] < 2 * 86400 + 600 for each in kept)
        keys = conn.execute("select operation_key from duebook.intent order by intent_id")
        older, newer = [
            explain(connect, key).matches[0].answers[0].text for (key,) in keys.fetchall()
        ]
        assert "newer evidence took its place" in older
        assert older.endswith("the newest that is at most 7 d old (1 newer)")
        assert "sent" in newer
        assert "; found 2 d" in newer

    def test_what_is_in_time_asks_nothing_and_leaves_no_trace(self, conn: Conn, run: Run) -> None:
        add_kind(conn, catch_up="skip", spread_per_minute=1)
        add_due(conn, 40, due_in=timedelta(seconds=-90))
        assert run().counts.sent == 40
        assert value(conn, "select count(*) from duebook.catch_up_pace") == 0
        assert value(conn, "select count(*) from duebook.audit_event where actor = 'gate'") == 0

    def test_a_policy_change_counts_for_what_is_unclaimed_and_is_audited(
        self, conn: Conn, run: Run, connect: Connect
    ) -> None:
        config = load_config()
        apply_config(connect, config, by="ann")
        add_due(conn, 3, channel="email", due_in=timedelta(hours=-5))
        document = plain(config)
        document["kinds"]["payment_settled"]["catch_up"] = "skip"
        report = apply_config(connect, parse_config(document, "duebook.toml"), by="bob")
        assert report.changed == ["kind payment_settled"]
        run(ScriptedChannel(name="email"))
        assert outcomes(conn) == {("expired", "skipped"): 3}
        actor, before, after = conn.execute(  # type: ignore[misc]
            "select actor, detail -> 'before' ->> 'catch_up', detail -> 'after' ->> 'catch_up'"
            " from duebook.audit_event where action = 'apply_kind'"
            " order by audit_event_id desc limit 1"
        ).fetchone()
        assert (actor, before, after) == ("bob", "all", "skip")


class TestPace:
    def test_missed_ones_keep_the_rate_and_wait_once(self, conn: Conn, run: Run) -> None:
        add_kind(conn, spread_per_minute=6)
        add_due(conn, 20, accounts=4, due_in=timedelta(hours=-1))
        report = run(window_messages=7)
        assert (report.counts.sent, report.counts.deferred) == (1, 19)
        slots = self.slots(conn)
        gaps = {later - slot for slot, later in itertools.pairwise(slots)}
        assert gaps == {timedelta(seconds=10)}
        conn.execute("update duebook.due set due_at = due_at - interval '10 minutes'")
        conn.execute("update duebook.due set due_at = clock_timestamp() where due_at < now()")
        run()
        # Their time had come: nobody is put off again.
        assert outcomes(conn) == {("sent", None): 20}
        assert value(conn, "select count(*) from duebook.intent_change") == 19

    def test_an_outage_of_its_own_takes_slots_again(self, conn: Conn, run: Run) -> None:
        add_kind(conn, spread_per_minute=6)
        add_due(conn, 5, due_in=timedelta(hours=-1))
        run()
        conn.execute("update duebook.due set due_at = due_at - interval '1 hour'")
        conn.execute("update duebook.catch_up_pace set next_at = next_at - interval '1 hour'")
        assert run().counts.sent == 1
        assert len(self.slots(conn)) == 3

    def test_kinds_do_not_wait_for_each_other(self, conn: Conn, run: Run) -> None:
        for kind, first in (("payment_settled", 1), ("payment_refunded", 100)):
            add_kind(conn, kind, spread_per_minute=1)
            add_due(conn, 2, kind=kind, payments_from=first, due_in=timedelta(hours=-1))
        assert run().counts.sent == 2
        assert places(conn) == {"outcome": 2, "due": 2}

    def test_what_is_not_sent_takes_no_slot(self, conn: Conn, run: Run) -> None:
        add_kind(conn, spread_per_minute=6)
        add_due(conn, 3, prefix="a", due_in=timedelta(hours=-2))
        add_due(conn, 2, prefix="b", due_in=timedelta(hours=-1), with_contact=False)
        add_due(conn, 2, prefix="c", due_in=timedelta(minutes=-30))
        conn.execute(
            "insert into duebook.suppression (account_id, channel, reason)"
            " values ('a000000', 'noop', 'complaint')"
        )
        run()
        assert outcomes(conn) == {("expired", "suppressed"): 3, ("sent", None): 1}
        assert places(conn) == {"outcome": 4, "held": 2, "due": 1}
        assert value(conn, "select count(*) from duebook.intent_change") == 1

    def test_what_has_no_slot_before_its_limit_ends_and_uses_none_up(
        self, conn: Conn, run: Run
    ) -> None:
        add_kind(conn, spread_per_minute=1, catch_up_window=timedelta(minutes=65, seconds=30))
        add_due(conn, 9, due_in=timedelta(hours=-1))
        add_due(conn, 1, due_in=timedelta(minutes=-30), prefix="b")
        run()
        # Slots at 60, 61, … 65 minutes of age, then none in time for the rest of the old ones.
        assert outcomes(conn) == {("sent", None): 1, ("expired", "too_late"): 3}
        assert len(self.slots(conn)) == 6
        assert value(conn, "select max(due_at) = max(due_at) filter (where account_id like 'b%')"
                           " from duebook.due")  # fmt: skip

    def test_what_quiet_hours_put_off_while_it_caught_up_keeps_the_pace_at_their_end(
        self, conn: Conn, run: Run
    ) -> None:
        add_kind(conn, spread_per_minute=6)
        add_due(conn, 5, due_in=timedelta(hours=-3))
        add_due(conn, 2, prefix="new", payments_from=50)
        now = value(conn, "select clock_timestamp() at time zone 'UTC'").replace(microsecond=0)
        conn.execute(
            "insert into duebook.quiet_hours (from_local, until_local) values (%s, %s)",
            [(now - timedelta(hours=1)).time(), (now + timedelta(hours=1)).time()],
        )
        assert run().counts.deferred == 7
        assert value(conn, "select count(*) from duebook.catch_up_pace") == 0
        conn.execute("delete from duebook.quiet_hours")
        conn.execute("update duebook.due set due_at = clock_timestamp()")
        report = run()
        assert (report.counts.sent, report.counts.deferred) == (3, 4)
        assert value(conn, "select array_agg(distinct account_id) from duebook.due") == ["a000000"]
        # A slot may lie in the next night: at its end the pace still counts.
        conn.execute("insert into duebook.quiet_hours (from_local, until_local)"
                     " values (%s, %s)", [(now - timedelta(hours=1)).time(),
                                          (now + timedelta(hours=1)).time()])  # fmt: skip
        conn.execute(
            "update duebook.intent_change set due_at = due_at - interval '1 hour'"
            " where reason = 'spread'"
        )
        conn.execute("update duebook.due set due_at = due_at - interval '1 hour'")
        conn.execute("update duebook.intent_kind set catch_up_window = interval '2 hours'")
        run()
        conn.execute("delete from duebook.quiet_hours")
        conn.execute("update duebook.due set due_at = clock_timestamp()")
        conn.execute("update duebook.catch_up_pace set next_at = clock_timestamp()")
        report = run()
        assert (report.counts.sent, report.counts.deferred) == (1, 3)

    @staticmethod
    def slots(conn: Conn) -> list[Any]:
        rows = conn.execute("select due_at from duebook.due order by due_at, intent_id")
        return [row[0] for row in rows]


class TestSlots:
    """The one function that gives slots, also to a preview."""

    def take(self, conn: Conn, count: int, rate: int = 60, **other: Any) -> list[Any]:
        values = {"pace": "k", "limit": timedelta(days=1), **other}
        return list(
            value(
                conn,
                """
                select duebook.take_catch_up_slots(
                    array_fill(%s::text, array[%s]),
                    array_fill(%s::integer, array[%s]),
                    array_fill('2026-01-01 00:00Z'::timestamptz + %s, array[%s]),
                    '2026-01-01 00:00Z'
                )
                """,
                values["pace"], count, rate, count, values["limit"], count,
            )
        )  # fmt: skip

    def test_they_follow_one_another(self, conn: Conn) -> None:
        first, second = self.take(conn, 3), self.take(conn, 2)
        seconds = [slot.second + 60 * slot.minute for slot in [*first, *second]]
        assert seconds == [0, 1, 2, 3, 4]
        assert self.take(conn, 1, pace="other")[0].second == 0

    def test_none_is_left_before_a_limit(self, conn: Conn) -> None:
        assert [slot is None for slot in self.take(conn, 4, limit=timedelta(seconds=2))] == [
            False,
            False,
            True,
            True,
        ]
        assert self.take(conn, 1)[0].second == 2

    def test_a_rolled_back_transaction_has_taken_none(self, conn: Conn) -> None:
        with conn.transaction(force_rollback=True):
            self.take(conn, 100)
        assert self.take(conn, 1)[0].minute == 0

    def test_senders_at_once_never_share_one(self, conn: Conn, connect: Connect) -> None:
        self.take(conn, 1)
        found: list[list[Any]] = []

        def take() -> None:
            with connect() as other:
                found.append(self.take(other, 300))

        waiting = [threading.Thread(target=take) for _ in range(4)]
        with connect() as other, other.transaction():
            found.append(self.take(other, 300))
            for thread in waiting:
                thread.start()
            wait_for(
                lambda: value(
                    conn,
                    "select count(*) = 4 from pg_stat_activity"
                    " where wait_event_type = 'Lock' and datname = current_database()",
                ),
                "the others wait for the first",
                60,
            )
        for thread in waiting:
            thread.join()
        assert len({slot for slots in found for slot in slots}) == 5 * 300

    def test_an_idle_pace_does_not_save_up(self, conn: Conn) -> None:
        conn.execute("insert into duebook.catch_up_pace values ('k', '2020-01-01Z')")
        assert [slot.second for slot in self.take(conn, 2)] == [0, 1]
