"""Holds: created, confirmed, cancelled, expired; one end each, by the database's clock."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors

from duebook.channels.noop import NoopChannel
from duebook.db.connect import connect_url
from duebook.domain.keys import EvidenceKey, HoldExpiryKey
from duebook.services.check import check
from duebook.services.sweep import SweepRequest, sweep
from tests.due_work import add_due, add_kind, places, value
from tests.hold_work import (
    HOUR,
    cancel,
    claim,
    confirm,
    create,
    database_url,
    endings,
    finish,
    make_older,
    shared_database,
    state,
    sweep_internal,
)

Conn = psycopg.Connection[Any]

__all__ = ["database_url", "shared_database"]


def limit(conn: Conn, capacity: int | None, resource: str = "room") -> str:
    return str(value(conn, "select duebook.set_hold_resource(%s, %s)", resource, capacity))


def intents(conn: Conn, kind: str) -> list[tuple[Any, ...]]:
    return conn.execute(
        "select operation_key, subject, payment_id, channel, ownership from duebook.intent"
        " where kind = %s order by intent_id",
        [kind],
    ).fetchall()


def test_a_hold_expires_by_the_sweep(conn: Conn, database_url: str) -> None:
    create(conn)
    assert sweep_internal(database_url).to_json()["claimed"] == 0
    assert places(conn) == {"due": 1}
    make_older(conn)
    assert state(conn) == "expired"  # to every reader, before any sweep
    report = sweep_internal(database_url).to_json()
    assert (report["claimed"], report["done"], report["expired"]) == (1, 1, 0)
    assert endings(conn) == {("done", None): 1}
    assert value(conn, "select expired_at > expires_at from duebook.hold")
    assert places(conn) == {"outcome": 1}
    assert check_is_clean(database_url)


def check_is_clean(url: str) -> bool:
    return not check(partial(connect_url, url, autocommit=True))["violations"]


def test_the_key_made_in_sql_is_the_published_one(conn: Conn) -> None:
    last = datetime(2099, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    instants = [datetime(2099, 3, 1, 12, tzinfo=UTC), last, last.replace(microsecond=120000)]
    for hold, expires_at in itertools.product(["h1", "a:b", "50%", "é ü"], instants):
        create(conn, hold, account=str(expires_at), expires_at=expires_at)
        [(key, subject, _, channel, ownership)] = intents(conn, "hold_expiry")[-1:]
        assert key == str(HoldExpiryKey(hold, expires_at))
        assert (subject, channel, ownership) == (f"hold:{hold}", "internal", "live")


def test_the_same_hold_again_changes_nothing_also_when_it_has_ended(
    conn: Conn, database_url: str
) -> None:
    content: dict[str, Any] = {"resource": "room", "quantity": 2, "payment_id": "pay_1"}
    assert create(conn, **content) == "created"
    until = value(conn, "select expires_at from duebook.hold")
    assert create(conn, **content) == "existed"
    assert value(conn, "select expires_at from duebook.hold") == until
    make_older(conn)
    sweep_internal(database_url)
    assert create(conn, **content) == "existed"
    assert state(conn) == "expired"
    assert value(conn, "select count(*) from duebook.intent") == 1


OTHER_CONTENT: list[dict[str, Any]] = [
    {"lasts": timedelta(minutes=11)},
    {"expires_at": datetime(2099, 1, 1, tzinfo=UTC)},
    {"resource": "hall"},
    {"resource": None},
    {"quantity": 3},
    {"payment_id": "pay_2"},
]


def test_the_same_hold_with_other_content_is_refused(conn: Conn) -> None:
    content: dict[str, Any] = {"resource": "room", "quantity": 2, "payment_id": "pay_1"}
    create(conn, **content)
    for other in OTHER_CONTENT:
        with pytest.raises(errors.UniqueViolation, match="exists with other content"):
            create(conn, **content | other)
    assert value(conn, "select count(*) from duebook.hold") == 1


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("hold", {"hold": ""}),
    ("hold", {"hold": "x" * 201}),
    ("hold", {"hold": "a\nb"}),
    ("account_id", {"account": ""}),
    ("resource", {"resource": ""}),
    ("payment_id", {"payment_id": ""}),
    ("quantity", {"quantity": 0}),
    ("expires_at", {"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}),
    ("expires_at", {"expires_at": datetime(2999, 1, 1, tzinfo=UTC)}),
    ("expires_at", {"expires_at": "infinity"}),
    ("expires_at", {"expires_at": None}),
    ("expires_at", {"expires_at": datetime(2099, 1, 1, tzinfo=UTC), "lasts": HOUR}),
    ("for", {"lasts": timedelta(0)}),
    ("for", {"lasts": timedelta(days=40_000)}),
]


def test_a_wrong_field_is_refused_by_its_name(conn: Conn) -> None:
    for field, content in WRONG:
        with pytest.raises(errors.InvalidParameterValue, match=f"^{field}: ") as refused:
            create(conn, **content)
        assert refused.value.diag.column_name == field
    assert value(conn, "select count(*) from duebook.hold") == 0


def test_a_day_is_24_hours_whatever_the_zone_of_the_session(conn: Conn) -> None:
    conn.execute("set timezone = 'America/New_York'")
    for days in (1, 200):
        create(conn, f"h{days}", lasts=timedelta(days=days))
        lasts = value(
            conn,
            "select extract(epoch from expires_at - created_at) from duebook.hold where hold = %s",
            f"h{days}",
        )
        assert lasts == days * 86_400


def test_nothing_is_left_of_an_application_that_rolls_back(conn: Conn) -> None:
    with conn.transaction(force_rollback=True):
        create(conn, resource="room")
        confirm(conn)
    for table in ("hold", "intent", "due", "outcome", "hold_resource"):
        assert value(conn, f"select count(*) from duebook.{table}") == 0
    assert value(conn, "select count(*) from duebook.audit_event where action like '%hold%'") == 0


def test_a_full_resource_is_refused_and_says_so(conn: Conn) -> None:
    limit(conn, 3)
    create(conn, "h1", resource="room", quantity=2)
    with pytest.raises(errors.CheckViolation, match="no room for 2 more") as refused:
        create(conn, "h2", resource="room", quantity=2)
    assert refused.value.diag.constraint_name == "resource_has_room"
    assert create(conn, "h2", resource="room", quantity=1) == "created"


def test_what_is_expired_by_the_clock_frees_its_quantity_before_any_sweep(conn: Conn) -> None:
    limit(conn, 1)
    create(conn, "h1", resource="room")
    make_older(conn, "h1")
    assert create(conn, "h2", resource="room") == "created"
    assert places(conn) == {"due": 2}


def test_what_is_cancelled_is_free_and_what_is_confirmed_is_taken(
    conn: Conn, database_url: str
) -> None:
    limit(conn, 1)
    create(conn, "h1", resource="room")
    cancel(conn, "h1")
    create(conn, "h2", resource="room")
    confirm(conn, "h2")
    make_older(conn)
    sweep_internal(database_url)
    with pytest.raises(errors.CheckViolation):
        create(conn, "h3", resource="room")
    assert endings(conn) == {("expired", "cancelled"): 1, ("expired", "settled_meanwhile"): 1}


def test_capacity_may_come_later_and_may_be_less_than_is_taken(conn: Conn) -> None:
    for number in range(3):
        create(conn, f"h{number}", resource="room")
    confirm(conn, "h0")
    assert limit(conn, 2) == "set"
    assert limit(conn, 2) == "unchanged"
    assert confirm(conn, "h1") == "confirmed"
    with pytest.raises(errors.CheckViolation):
        create(conn, "h3", resource="room")
    assert limit(conn, None) == "set"
    assert create(conn, "h3", resource="room") == "created"
    with pytest.raises(errors.InvalidParameterValue):
        limit(conn, -1)


def test_a_confirmed_hold_ends_its_expiry_once(conn: Conn, database_url: str) -> None:
    create(conn)
    assert confirm(conn, payment="pay_1") == "confirmed"
    assert endings(conn) == {("expired", "settled_meanwhile"): 1}
    assert confirm(conn, payment="pay_1") == "already_confirmed"
    assert confirm(conn) == "already_confirmed"
    make_older(conn)
    assert sweep_internal(database_url).to_json()["claimed"] == 0
    assert state(conn) == "confirmed"
    assert value(conn, "select payment_id from duebook.hold") == "pay_1"


def test_a_cancelled_hold_stays_cancelled_and_its_payment_is_not_its_business(conn: Conn) -> None:
    create(conn)
    assert cancel(conn) == "cancelled"
    assert cancel(conn) == "already_cancelled"
    assert confirm(conn) == "cancelled"
    assert confirm(conn, payment="pay_1") == "cancelled"
    assert endings(conn) == {("expired", "cancelled"): 1}
    assert intents(conn, "hold_refund") == []


def test_what_a_payment_ended_can_not_be_cancelled(conn: Conn) -> None:
    add_kind(conn, "hold_refund", "email")
    limit(conn, 0)
    create(conn, "h1")
    confirm(conn, "h1")
    assert cancel(conn, "h1") == "confirmed"
    limit(conn, 1)
    create(conn, "h2", resource="room")
    make_older(conn, "h2")
    limit(conn, 0)
    assert confirm(conn, "h2", "pay_2") == "refund"
    assert cancel(conn, "h2") == "refund"


@pytest.mark.parametrize("is_swept", [False, True])
def test_too_late_without_a_payment_it_is_expired(
    conn: Conn, database_url: str, is_swept: bool
) -> None:
    create(conn)
    make_older(conn)
    if is_swept:
        sweep_internal(database_url)
    assert confirm(conn) == "expired"
    sweep_internal(database_url)
    assert endings(conn) == {("done", None): 1}
    assert state(conn) == "expired"


@pytest.mark.parametrize("is_swept", [False, True])
def test_a_payment_after_expiry_holds_it_again_while_there_is_room(
    conn: Conn, database_url: str, is_swept: bool
) -> None:
    limit(conn, 1)
    create(conn, resource="room")
    make_older(conn)
    if is_swept:
        sweep_internal(database_url)
    assert confirm(conn, payment="pay_1") == "reheld"
    assert confirm(conn, payment="pay_1") == "reheld"
    sweep_internal(database_url)
    assert state(conn) == "reheld"
    assert endings(conn) == {("done", None) if is_swept else ("expired", "settled_meanwhile"): 1}
    assert intents(conn, "hold_refund") == []
    with pytest.raises(errors.CheckViolation):
        create(conn, "h2", resource="room")


@pytest.mark.parametrize("is_swept", [False, True])
def test_a_payment_after_expiry_is_refunded_where_there_is_no_room(
    conn: Conn, database_url: str, is_swept: bool
) -> None:
    add_kind(conn, "hold_refund", "email")
    limit(conn, 1)
    create(conn, "h:1", resource="room", payment_id="pay_1")
    make_older(conn)
    if is_swept:
        sweep_internal(database_url)
    create(conn, "h2", resource="room")
    assert confirm(conn, "h:1", "pay_1") == "refund"
    # Room that comes later changes nothing any more.
    cancel(conn, "h2")
    assert confirm(conn, "h:1", "pay_1") == "refund"
    sweep_internal(database_url)
    assert state(conn, "h:1") == "refunded"
    assert intents(conn, "hold_refund") == [
        (
            str(EvidenceKey("hold_refund", "email", "hold", "pay_1", "h:1", 1)),
            "hold:h:1",
            "pay_1",
            "email",
            "live",
        )
    ]
    assert endings(conn) == {("done", None): 1, ("expired", "cancelled"): 1}


def test_a_refund_whose_kind_is_unknown_is_refused_and_one_switched_off_is_told_to_nobody(
    conn: Conn,
) -> None:
    limit(conn, 1)
    create(conn, resource="room")
    make_older(conn)
    limit(conn, 0)
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match=r"apply duebook\.toml"):
        confirm(conn, payment="pay_1")
    assert state(conn) == "expired"
    add_kind(conn, "hold_refund", "email", enabled=False)
    assert confirm(conn, payment="pay_1") == "refund"
    assert state(conn) == "refunded"
    assert intents(conn, "hold_refund") == []


def test_a_hold_made_again_for_the_same_payment_takes_its_place(conn: Conn) -> None:
    create(conn, "h1", payment_id="pay_1")
    make_older(conn, "h1")
    create(conn, "h2", payment_id="pay_1")
    assert confirm(conn, "h1", "pay_1") == "expired"
    assert confirm(conn, "h2", "pay_1") == "confirmed"
    assert confirm(conn, "h1", "pay_1") == "expired"


def test_one_payment_may_be_for_many_holds(conn: Conn) -> None:
    for hold in ("h1", "h2"):
        create(conn, hold, payment_id="pay_1")
    make_older(conn, "h1", timedelta(minutes=10, seconds=1))
    make_older(conn, "h2", timedelta(minutes=5))
    assert confirm(conn, "h1", "pay_1") == "reheld"
    assert confirm(conn, "h2", "pay_1") == "confirmed"


def test_another_payment_is_refused(conn: Conn) -> None:
    create(conn)
    confirm(conn, payment="pay_1")
    with pytest.raises(errors.UniqueViolation, match="is for another payment"):
        confirm(conn, payment="pay_2")


def test_a_hold_confirmed_before_it_was_paid_is_its_first_payments(conn: Conn) -> None:
    create(conn)
    assert confirm(conn) == "confirmed"
    assert confirm(conn, payment="pay_1") == "already_confirmed"
    assert confirm(conn, payment="pay_1") == "already_confirmed"
    with pytest.raises(errors.UniqueViolation, match="is for another payment"):
        confirm(conn, payment="pay_2")


@pytest.mark.parametrize("function", ["confirm_hold", "cancel_hold"])
def test_an_unknown_hold_is_refused(conn: Conn, function: str) -> None:
    with pytest.raises(errors.NoDataFound, match="no hold h1"):
        conn.execute(f"select duebook.{function}('a', 'h1')")


def test_what_a_sweep_has_in_hand_is_judged_when_it_is_done(conn: Conn) -> None:
    for hold in ("confirmed", "cancelled", "left"):
        create(conn, hold)
    batch = claim(conn, offset=HOUR)
    confirm(conn, "confirmed")
    cancel(conn, "cancelled")
    assert finish(conn, batch, offset=HOUR) == ("applied", 1, 2, 0, 0)
    assert endings(conn) == {
        ("expired", "settled_meanwhile"): 1,
        ("expired", "cancelled"): 1,
        ("done", None): 1,
    }
    assert places(conn) == {"outcome": 3}


def test_a_batch_is_done_once_and_only_with_its_token(conn: Conn) -> None:
    create(conn)
    make_older(conn)
    batch = claim(conn)
    assert finish(conn, (batch[0], uuid4())) == ("gone", 0, 0, 0, 0)
    assert places(conn) == {"batch": 1}
    assert finish(conn, batch)[:2] == ("applied", 1)
    assert finish(conn, batch) == ("repeated", 0, 0, 0, 0)
    assert places(conn) == {"outcome": 1}


def test_a_rescued_batch_is_due_again_and_never_in_doubt_nor_suspicious(
    conn: Conn, database_url: str
) -> None:
    for number in range(60):
        create(conn, f"h{number}")
    make_older(conn)
    for _ in range(3):
        batch = claim(conn)
        conn.execute(
            "update duebook.batch set lease_until = clock_timestamp() - interval '1 second'"
        )
        conn.execute("select * from duebook.rescue_batches(10, 50)")
        assert places(conn) == {"due": 60}
        assert value(conn, "select max(suspicions) from duebook.due") == 0
        assert finish(conn, batch) == ("gone", 0, 0, 0, 0)
    assert sweep_internal(database_url).to_json()["done"] == 60
    assert places(conn) == {"outcome": 60}


def test_one_bad_row_stops_no_other(conn: Conn, database_url: str) -> None:
    for number in range(5):
        create(conn, f"h{number}")
    make_older(conn)
    # What no code of ours does: a row that can't be written.
    conn.execute(
        "alter table duebook.hold add constraint spoilt check (hold <> 'h2' or expired_at is null)"
    )
    report = sweep_internal(database_url).to_json()
    assert (report["done"], report["held"]) == (4, 1)
    assert conn.execute("select cause, detail from duebook.held").fetchall() == [
        ("gate_failed", "SQLSTATE 23514")
    ]
    assert places(conn) == {"outcome": 4, "held": 1}
    conn.execute("alter table duebook.hold drop constraint spoilt")
    conn.execute("update duebook.held set retest_at = clock_timestamp()")
    assert sweep_internal(database_url).to_json()["done"] == 1
    assert endings(conn) == {("done", None): 5}


def test_a_promise_whose_hold_is_missing_is_held(conn: Conn, database_url: str) -> None:
    create(conn)
    make_older(conn)
    conn.execute("delete from duebook.hold")
    assert sweep_internal(database_url).to_json()["held"] == 1
    assert places(conn) == {"held": 1}


def test_a_clock_that_was_set_back_expires_nothing_early(conn: Conn) -> None:
    create(conn)
    batch = claim(conn, offset=HOUR)  # due by the clock of before
    assert finish(conn, batch) == ("applied", 0, 0, 1, 0)
    assert places(conn) == {"due": 1}
    assert value(conn, "select d.due_at = h.expires_at from duebook.due as d, duebook.hold as h")
    assert confirm(conn) == "confirmed"


def test_a_shifted_clock_expires_what_is_due_by_it(conn: Conn, database_url: str) -> None:
    create(conn)
    assert sweep_internal(database_url, due_offset=HOUR).to_json()["done"] == 1
    assert confirm(conn) == "expired"


def test_holds_expire_while_everything_is_paused(conn: Conn, database_url: str) -> None:
    conn.execute("select duebook.pause_intents('all', '*', 'hold', 'the relay moves', 'ann')")
    conn.execute("insert into duebook.channel (channel, enabled) values ('internal', false)")
    create(conn)
    make_older(conn)
    assert sweep_internal(database_url).to_json()["done"] == 1
    assert endings(conn) == {("done", None): 1}


def test_holds_come_first_and_use_up_no_batch_of_a_sweep(conn: Conn, database_url: str) -> None:
    create(conn)
    make_older(conn)
    add_due(conn, 20)
    report = sweep(
        partial(connect_url, database_url, autocommit=True),
        SweepRequest(environment="test", batch_size=10, max_batches=1),
        {"noop": NoopChannel()},
    ).to_json()
    assert (report["done"], report["sent"], report["claimed"]) == (1, 10, 11)
    first = value(conn, "select kind from duebook.outcome order by ended_at limit 1")
    assert first == "hold_expiry"


def test_five_thousand_holds_of_one_second_go_in_bounded_batches(
    conn: Conn, database_url: str
) -> None:
    conn.execute(
        "select duebook.create_hold('a' || n % 50, 'h' || n, p_for => '10 minutes')"
        " from generate_series(1, 5000) as n"
    )
    make_older(conn)
    report = sweep_internal(database_url, batch_size=500).to_json()
    assert (report["claimed"], report["done"], report["batches"]) == (5000, 5000, 10)
    assert value(conn, "select max(size) from duebook.batch_ended") == 500
    assert value(conn, "select count(*) from duebook.hold where expired_at is null") == 0
    assert places(conn) == {"outcome": 5000}


def test_the_application_works_holds_and_an_analyst_reads_them(
    conn: Conn, database_url: str
) -> None:
    with connect_url(database_url, role="duebook_app", autocommit=True) as application:
        for hold in ("confirmed", "cancelled", "expired"):
            create(application, hold, resource="room")
        confirm(application, "confirmed", "pay_1")
        cancel(application, "cancelled")
        make_older(conn)
        assert finish(application, claim(application))[:2] == ("applied", 1)
    with connect_url(database_url, role="duebook_analyst", autocommit=True) as analyst:
        rows = analyst.execute(
            "select state, operation_key from duebook_reports.holds order by hold"
        ).fetchall()
    assert [each for each, _ in rows] == ["cancelled", "confirmed", "expired"]
    assert all(key.startswith("expire:hold:") for _, key in rows)


def test_acts_are_audited_without_amounts(conn: Conn) -> None:
    conn.execute("select duebook.set_hold_resource('room', 5, 'ann')")
    create(conn, "h1", resource="room", quantity=2, by="shop")
    conn.execute("select duebook.confirm_hold('a', 'h1', 'pay_1', 'webhook')")
    create(conn, "h2", by="shop")
    conn.execute("select duebook.cancel_hold('a', 'h2', 'changed his mind', 'ann')")
    events = conn.execute(
        "select actor, action, detail from duebook.audit_event order by audit_event_id"
    ).fetchall()
    assert [event for event in events if event[1] != "accept_environment"] == [
        ("ann", "set_hold_resource", {"before": None, "after": 5}),
        ("shop", "create_hold", {"resource": "room", "quantity": 2}),
        ("webhook", "confirm_hold", {"answer": "confirmed", "payment_id": "pay_1"}),
        ("shop", "create_hold", {"quantity": 1}),
        ("ann", "cancel_hold", {"was": "open", "reason": "changed his mind"}),
    ]
    timeline = conn.execute(
        "select event from duebook_reports.intent_timeline"
        " where operation_key like 'expire:hold:h1%' order by happened_at, step"
    ).fetchall()
    assert sorted(event for (event,) in timeline) == [
        "audit_event", "audit_event", "intent", "outcome"
    ]  # fmt: skip
