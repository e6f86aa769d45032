"""Schedules from the SQL function to the due row."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import psycopg
import pytest

from tests.calendar_work import (
    add_reminders,
    backdate,
    clock,
    far_time,
    put,
    run_passes,
    written,
)
from tests.due_work import places, value

Conn = psycopg.Connection[Any]


EVERY_DAY = [1, 2, 3, 4, 5, 6, 7]
BAD: list[tuple[str, dict[str, Any]]] = [
    ("account_id", {"account_id": ""}),
    ("schedule", {"schedule": "a\nb"}),
    ("kind", {"kind": "nonsense"}),
    ("frequency", {"frequency": "daily"}),
    ("every", {"every": 0}),
    ("every", {"every": 70_000}),
    ("weekdays", {"weekdays": None}),
    ("weekdays", {"weekdays": []}),
    ("weekdays", {"weekdays": [8]}),
    ("month_day", {"month_day": 3}),
    ("month_day", {"frequency": "monthly", "weekdays": None, "month_day": 32}),
    ("month_day", {"frequency": "monthly", "weekdays": None, "month_day": 0}),
    ("month_day", {"frequency": "monthly", "weekdays": None}),
    ("nth", {"frequency": "monthly", "nth": 6}),
    ("nth", {"frequency": "monthly"}),
    ("business_shift", {"business_shift": "sideways"}),
    ("holiday_calendar", {"business_shift": "next"}),
    ("zone", {"zone": "Europe/Atlantis"}),
    ("zone", {"zone": "CEST"}),
    ("zone", {"zone": "Foo/Bar5"}),
    # PostgreSQL takes any case; the calendar would not know these, and hold every date.
    ("zone", {"zone": "europe/berlin"}),
    ("zone", {"zone": "EUROPE/BERLIN"}),
    ("zone", {"zone": "America/Port-Au-Prince"}),
    ("wall_time", {"wall_time": time(9, 0, 30)}),
    # No sweep could read these two.
    ("wall_time", {"wall_time": "24:00"}),
    ("catch_up_window", {"catch_up_window": "1000000 years"}),
    ("absent", {"absent": None}),
    ("gap", {"gap": None}),
    ("overlap", {"overlap": "both"}),
    ("starts_on", {"starts_on": None}),
    ("ends_on", {"ends_on": date(2019, 1, 1)}),
    ("count", {"count": 0}),
    ("catch_up", {"catch_up": None}),
    ("catch_up_window", {"catch_up_window": timedelta(seconds=90)}),
    ("max_occurrences", {"max_occurrences": 0}),
    ("spread_per_minute", {"spread_per_minute": None}),
    ("message", {"message": '{"amount_minor": "1"}'}),
    ("message", {"message": '{"title": 1}'}),
    ("message", {"message": '{"schedule": "x"}'}),
]


@pytest.fixture(autouse=True)
def _kind(conn: Conn) -> None:
    add_reminders(conn)


class TestWriting:
    def test_a_put_writes_no_intent_and_a_pass_what_is_ahead(self, conn: Conn) -> None:
        assert put(conn, weekdays=EVERY_DAY) == "put"
        assert places(conn) == {}
        assert sum(each.written for each in run_passes(conn)) == 7
        assert places(conn) == {"due": 7}
        assert sum(each.written for each in run_passes(conn)) == 0
        now = clock(conn)
        first, last = conn.execute("select min(due_at), max(due_at) from duebook.due").fetchone()  # type: ignore[misc]
        assert now <= first <= now + timedelta(days=1)
        assert last <= now + timedelta(days=7)

    def test_an_outage_of_thirty_days_is_written_oldest_first(self, conn: Conn) -> None:
        put(conn, weekdays=EVERY_DAY)
        backdate(conn, timedelta(days=30))
        reports = run_passes(conn, most=4)
        assert max(each.written for each in reports) <= 4
        dates = written(conn)
        assert dates == sorted(dates)
        assert len(dates) == 37
        assert places(conn) == {"due": 37}

    def test_the_oldest_schedule_is_written_before_the_others(self, conn: Conn) -> None:
        put(conn, "young", weekdays=EVERY_DAY)
        put(conn, "old", weekdays=EVERY_DAY)
        backdate(conn, timedelta(days=10), "young")
        backdate(conn, timedelta(days=60), "old")
        run_passes(conn, most=5)
        first = [
            row[0]
            for row in conn.execute(
                "select schedule from duebook.occurrence order by intent_id limit 50"
            )
        ]
        assert first == ["old"] * 50

    def test_what_was_due_before_the_put_is_no_promise(self, conn: Conn) -> None:
        now = clock(conn)
        earlier = (now - timedelta(minutes=5)).time().replace(second=0, microsecond=0)
        put(conn, weekdays=EVERY_DAY, wall_time=earlier)
        run_passes(conn)
        assert written(conn)[0] > (now - timedelta(minutes=5)).date()

    def test_an_end_and_a_count_are_kept(self, conn: Conn) -> None:
        put(
            conn,
            "counted",
            weekdays=EVERY_DAY,
            count=3,
            starts_on=clock(conn).date() - timedelta(days=20),
        )
        put(
            conn,
            "ended",
            weekdays=EVERY_DAY,
            ends_on=clock(conn).date() - timedelta(days=17),
            starts_on=clock(conn).date() - timedelta(days=20),
        )
        for name in ("counted", "ended"):
            backdate(conn, timedelta(days=30), name)
        run_passes(conn)
        assert len(written(conn, "counted")) == 3
        assert len(written(conn, "ended")) == 4
        assert value(conn, "select count(*) from duebook.schedule where next_on is not null") == 0
        assert (
            value(conn, "select count(*) from duebook_reports.schedules where state = 'active'")
            == 2
        )

    def test_a_shift_to_the_day_before_is_written_in_time(self, conn: Conn) -> None:
        today = clock(conn).date()
        for day in range(1, 29):
            put(
                conn,
                f"on-{day}",
                frequency="monthly",
                weekdays=None,
                month_day=day,
                business_shift="previous",
                holiday_calendar="DE",
                starts_on=today,
            )
        run_passes(conn)
        late = conn.execute(
            "select schedule, next_at from duebook.schedule"
            " where next_at <= clock_timestamp() + interval '7 days'"
        ).fetchall()
        assert late == []
        weekend = value(
            conn,
            "select count(*) from duebook.occurrence where extract(isodow from intended_local) > 5",
        )
        assert weekend == 0

    def test_a_switched_off_kind_waits(self, conn: Conn) -> None:
        put(conn, weekdays=EVERY_DAY)
        conn.execute("update duebook.intent_kind set enabled = false")
        assert sum(each.written for each in run_passes(conn)) == 0
        conn.execute("update duebook.intent_kind set enabled = true")
        assert sum(each.written for each in run_passes(conn)) == 7

    def test_a_rule_that_cannot_be_computed_stops_no_other(self, conn: Conn) -> None:
        put(conn, "bad", business_shift="next", holiday_calendar="NOWHERE")
        put(conn, "good")
        backdate(conn, timedelta(days=10), "bad")
        assert sum(each.written for each in run_passes(conn)) == 1
        assert written(conn, "good")

    def test_the_four_facts_are_in_the_report(self, conn: Conn) -> None:
        put(conn, zone="America/New_York", wall_time=time(2, 30), weekdays=EVERY_DAY)
        backdate(conn, timedelta(days=300))
        run_passes(conn)
        row = conn.execute(
            "select intended_local, zone, due_at, tzdb_version, operation_key, state, case_of"
            " from duebook_reports.occurrences where nominal_on = '2026-03-08'"
        ).fetchone()
        assert row is not None
        local, zone, due_at, version, key, state, case = row
        assert (local, zone) == (datetime(2026, 3, 8, 2, 30), "America/New_York")  # noqa: DTZ001
        assert due_at == datetime(2026, 3, 8, 7, 30, tzinfo=UTC)
        assert key == "remind:noop:rent:2026-03-08"
        assert version >= "2026f"
        assert (state, case) == ("scheduled", "gap")


class TestPutting:
    def test_the_same_again_is_a_no_op(self, conn: Conn) -> None:
        assert put(conn) == "put"
        assert put(conn) == "unchanged"
        assert (
            value(conn, "select count(*) from duebook.audit_event where action like '%schedule'")
            == 1
        )

    def test_other_content_is_refused_by_name(self, conn: Conn) -> None:
        put(conn)
        with pytest.raises(psycopg.errors.UniqueViolation) as refused:
            put(conn, wall_time=time(10), catch_up="skip")
        assert refused.value.diag.message_detail == "catch_up, wall_time"
        assert value(conn, "select wall_time from duebook.schedule") == time(9)

    def test_it_is_part_of_the_callers_transaction(self, conn: Conn) -> None:
        with conn.transaction(force_rollback=True):
            put(conn)
        assert value(conn, "select count(*) from duebook.schedule") == 0

    def test_a_bad_rule_is_refused_with_its_field(self, conn: Conn) -> None:
        for field, changes in BAD:
            with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
                put(conn, **changes)
            assert refused.value.diag.message_detail == field, changes
            assert field in str(refused.value.diag.message_primary)
        assert value(conn, "select count(*) from duebook.schedule") == 0

    def test_an_alias_stays_as_it_was_typed(self, conn: Conn) -> None:
        aliases = ["Europe/Kiev", "America/Godthab", "US/Pacific", "UTC", "Japan", "Etc/GMT+5"]
        for zone in aliases:
            put(conn, zone, zone=zone)
        run_passes(conn)
        found = conn.execute("select schedule, zone, state from duebook_reports.occurrences")
        assert sorted(found) == [(zone, zone, "scheduled") for zone in sorted(aliases)]


class TestCancelling:
    def test_what_waits_ends_and_nothing_more_is_written(self, conn: Conn) -> None:
        put(conn, weekdays=EVERY_DAY)
        run_passes(conn)
        row = conn.execute(
            "select * from duebook.cancel_schedule('acct', 'rent', 'moved out', 'me')"
        ).fetchone()
        assert row == (True, 7, 0)
        assert places(conn) == {"outcome": 7}
        assert value(conn, "select distinct reason from duebook.outcome") == "cancelled"
        backdate(conn, timedelta(days=30))
        run_passes(conn)
        assert places(conn) == {"outcome": 7}
        again = conn.execute(
            "select * from duebook.cancel_schedule('acct', 'rent', 'again', 'me')"
        ).fetchone()
        assert again == (False, 0, 0)

    def test_a_cancelled_one_starts_again_only_when_asked(self, conn: Conn) -> None:
        put(conn)
        conn.execute("select duebook.cancel_schedule('acct', 'rent', 'x', 'me')")
        with pytest.raises(psycopg.errors.UniqueViolation, match="was cancelled"):
            put(conn)
        assert put(conn, replace=True) == "put"
        run_passes(conn)
        assert len(written(conn)) == 1

    def test_an_unknown_one_is_an_error(self, conn: Conn) -> None:
        with pytest.raises(psycopg.errors.NoDataFound):
            conn.execute("select duebook.cancel_schedule('acct', 'rent', 'x', 'me')")


class TestEditing:
    def test_policy_and_message_alone_compute_nothing_again(self, conn: Conn) -> None:
        put(conn)
        run_passes(conn)
        assert put(conn, catch_up="skip", message='{"title": "x"}', replace=True) == "changed"
        assert value(conn, "select rule_version from duebook.schedule") == 1
        detail = value(
            conn, "select detail from duebook.audit_event where action = 'changed_schedule'"
        )
        assert (detail["before"]["catch_up"], detail["after"]["catch_up"]) == ("all", "skip")
        assert detail["message_changed"]
        assert "title" not in str(detail)

    def test_another_time_moves_what_waits(self, conn: Conn) -> None:
        wall_time = far_time(conn)
        put(conn, weekdays=EVERY_DAY, wall_time=wall_time)
        run_passes(conn)
        assert places(conn) == {"due": 7}
        before = dict(conn.execute("select nominal_on, due_at from duebook.occurrence").fetchall())
        assert (
            put(conn, weekdays=EVERY_DAY, wall_time=wall_time.replace(minute=45), replace=True)
            == "edited"
        )
        # From the edit on no sender finds them at their old time.
        assert places(conn) == {"held": 7}
        run_passes(conn)
        assert places(conn) == {"due": 7}
        after = dict(conn.execute("select nominal_on, due_at from duebook.occurrence").fetchall())
        shift = timedelta(minutes=45 - wall_time.minute)
        assert {day: due_at - shift for day, due_at in after.items()} == before
        changes = conn.execute("select due_at, reason from duebook.intent_change").fetchall()
        assert {reason for _, reason in changes} == {"edited"}
        assert {due_at for due_at, _ in changes} == set(after.values())
        assert value(
            conn,
            "select count(*) from duebook.due join duebook.occurrence"
            " using (account_id, intent_id, due_at)",
        ) == len(before)
        assert (
            value(
                conn,
                "select count(*) from duebook.intent where intended_local::time <> %s",
                wall_time.replace(minute=45),
            )
            == 0
        )
        assert value(conn, "select count(*) from duebook.schedule where edited_at is not null") == 0

    def test_dates_that_the_new_rule_lacks_are_cancelled_and_new_ones_written(
        self, conn: Conn
    ) -> None:
        put(conn, weekdays=[1, 3, 5])
        run_passes(conn)
        old = set(written(conn))
        put(conn, weekdays=[1, 2], replace=True)
        run_passes(conn)
        ended = {
            row[0]
            for row in conn.execute(
                "select nominal_on from duebook_reports.occurrences where reason = 'cancelled'"
            )
        }
        assert ended == {day for day in old if day.isoweekday() != 1}
        waiting = {
            row[0]
            for row in conn.execute(
                "select nominal_on from duebook_reports.occurrences where state = 'scheduled'"
            )
        }
        assert {day.isoweekday() for day in waiting} == {1, 2}
        assert value(
            conn, "select count(*) from duebook.audit_event where action = 'cancel_occurrence'"
        ) == len(ended)
        places(conn)

    def test_dates_of_the_old_rule_from_before_the_edit_are_still_promised(
        self, conn: Conn
    ) -> None:
        put(conn, weekdays=EVERY_DAY)
        backdate(conn, timedelta(days=20))
        put(conn, weekdays=EVERY_DAY, wall_time=time(10), replace=True)
        now = clock(conn)
        for report in run_passes(conn, most=3):
            assert report.written <= 3
        dates = written(conn)
        assert dates == sorted(dates)
        assert set(dates) >= {(now - timedelta(days=age)).date() for age in range(1, 20)}
        assert value(conn, "select count(*) from duebook.schedule_past") == 0
        past = conn.execute(
            "select count(*) from duebook.occurrence"
            " where due_at < %s and intended_local::time <> '09:00'",
            [now],
        ).fetchone()
        assert past == (0,) or dates.count(now.date()) == 1
        places(conn)

    def test_what_was_put_off_is_not_called_earlier_again(self, conn: Conn) -> None:
        wall_time = far_time(conn)
        put(conn, weekdays=EVERY_DAY, wall_time=wall_time)
        run_passes(conn)
        conn.execute("update duebook.due set due_at = due_at + interval '5 hours'")
        put(conn, weekdays=EVERY_DAY, wall_time=wall_time.replace(minute=45), replace=True)
        run_passes(conn)
        off = value(
            conn,
            "select count(*) from duebook.due join duebook.occurrence using (account_id, intent_id)"
            " where due.due_at <= occurrence.due_at + interval '4 hours'",
        )
        assert off == 0

    def test_the_channel_cannot_change(self, conn: Conn) -> None:
        put(conn)
        conn.execute("update duebook.intent_kind set channel = 'email'")
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
            put(conn, replace=True)
        assert refused.value.diag.message_detail == "channel"
