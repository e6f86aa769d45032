"""Holds whose payment the evidence settled: confirmed, held again, or refunded and told once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from duebook.channels.base import Message, SendResult
from duebook.services.check import check
from duebook.services.sweep import SweepRequest, sweep
from tests.due_work import ScriptedChannel, add_kind, value
from tests.hold_work import create, database_url, make_older, shared_database, state
from tests.settlement_files import World, booked, settled

Conn = psycopg.Connection[Any]

__all__ = ["database_url", "shared_database"]


@pytest.fixture
def db(world: World) -> Iterator[Conn]:
    """A connection to the world's database, which is live and has one payment booked."""
    world.go_live()
    world.book(booked(1, 1000))
    with world.connect() as connection:
        yield connection


def hold(conn: Conn, name: str = "h1", payment: str = "pay1", **other: Any) -> None:
    create(conn, name, account="acme", resource="room", payment_id=payment, **other)


def night(world: World, amount: str = "10.00") -> int:
    """One run over a file in which payment 1 is captured; how many intents it made."""
    return world.reconcile(world.adyen(settled(1, amount))).intents


def refunds(conn: Conn) -> list[tuple[Any, ...]]:
    return conn.execute(
        "select operation_key, ownership, provider_account, run_id is not null,"
        " change_id is not null from duebook.intent where kind = 'hold_refund'"
    ).fetchall()


def test_a_run_confirms_the_hold_of_a_payment_that_it_settles(world: World, db: Conn) -> None:
    hold(db)
    assert night(world) == 1
    assert state(db) == "confirmed"
    assert refunds(db) == []
    assert night(world, "10.00") == 0


def test_a_part_payment_confirms_nothing(world: World, db: Conn) -> None:
    hold(db)
    night(world, "4.00")
    assert state(db) == "open"


def test_a_dry_run_confirms_nothing(world: World, db: Conn) -> None:
    hold(db)
    world.reconcile(world.adyen(settled(1, "10.00")), dry_run=True)
    assert state(db) == "open"


def test_a_run_that_comes_after_the_end_holds_it_again(world: World, db: Conn) -> None:
    hold(db)
    make_older(db)
    assert night(world) == 1
    assert state(db) == "reheld"
    assert refunds(db) == []


def test_a_run_that_comes_too_late_makes_one_refund_and_so_does_the_webhook(
    world: World, db: Conn
) -> None:
    hold(db)
    make_older(db)
    db.execute("select duebook.set_hold_resource('room', 0)")
    assert night(world) == 2
    expected = [("hold_refund:email:hold:pay1:h1:v1", "live", "adyen", True, True)]
    assert refunds(db) == expected
    assert value(db, "select duebook.confirm_hold('acme', 'h1', 'pay1')") == "refund"
    assert refunds(db) == expected
    assert value(db, "select count(*) from duebook.due where kind = 'hold_refund'") == 1
    assert check(world.connect)["violations"] == []


def test_a_webhook_that_was_first_leaves_nothing_to_the_run(world: World, db: Conn) -> None:
    add_kind(db, "hold_refund", "email")
    hold(db)
    make_older(db)
    db.execute("select duebook.set_hold_resource('room', 0)")
    assert value(db, "select duebook.confirm_hold('acme', 'h1', 'pay1')") == "refund"
    assert night(world) == 1
    assert len(refunds(db)) == 1


def test_a_webhook_and_a_run_at_once_have_one_effect(world: World, db: Conn) -> None:
    world.book(*(booked(n, 1000) for n in range(1, 9)))
    for number in range(1, 9):
        hold(db, f"h{number}", f"pay{number}")
    make_older(db)
    db.execute("select duebook.set_hold_resource('room', 4)")
    file = world.adyen(*(settled(n, "10.00") for n in range(1, 9)))
    begin = threading.Barrier(2)

    def hear_of_all() -> list[str]:
        with world.connect() as connection:
            begin.wait(60)
            return [
                str(
                    value(
                        connection,
                        "select duebook.confirm_hold('acme', %s, %s)",
                        f"h{n}",
                        f"pay{n}",
                    )
                )
                for n in range(8, 0, -1)
            ]

    with ThreadPoolExecutor(1) as pool:
        webhook = pool.submit(hear_of_all)
        begin.wait(60)
        world.reconcile(file)
        answers = webhook.result(60)
    assert sorted(answers) == ["refund"] * 4 + ["reheld"] * 4
    assert len(refunds(db)) == 4
    states = db.execute("select state, count(*) from duebook_reports.holds group by state")
    assert dict(states.fetchall()) == {"refunded": 4, "reheld": 4}
    assert value(db, "select confirmed from duebook.hold_resource") == 4
    assert check(world.connect)["violations"] == []


def test_many_holds_of_a_night_each_end_once(world: World, db: Conn) -> None:
    db.execute("select duebook.set_hold_resource('room', 3)")
    world.book(*(booked(n, 1000) for n in range(1, 7)))
    for number in range(1, 4):
        hold(db, f"open{number}", f"pay{number}")
    make_older(db)
    for number in range(4, 7):
        hold(db, f"open{number}", f"pay{number}")
    world.reconcile(world.adyen(*(settled(n, "10.00") for n in range(1, 7))))
    states = db.execute("select hold, state from duebook_reports.holds order by hold").fetchall()
    assert [each for _, each in states] == ["refunded"] * 3 + ["confirmed"] * 3
    assert len(refunds(db)) == 3


def test_what_an_account_that_is_not_live_refunds_stays_a_proposal(world: World) -> None:
    world.book(booked(1, 1000))
    with world.connect() as conn:
        hold(conn)
        make_older(conn)
        conn.execute("select duebook.set_hold_resource('room', 0)")
        night(world)
        assert [each[1] for each in refunds(conn)] == ["dry_run"]
        assert value(conn, "select count(*) from duebook.due where kind = 'hold_refund'") == 0
        assert state(conn) == "refunded"


@pytest.mark.parametrize("is_told_by_a_run", [True, False])
def test_the_account_is_told_of_its_refund(world: World, db: Conn, is_told_by_a_run: bool) -> None:
    add_kind(db, "hold_refund", "email")
    db.execute(
        "insert into duebook.contact (account_id, channel, address, zone)"
        " values ('acme', 'email', 'x@example.test', 'UTC')"
    )
    hold(db)
    make_older(db)
    db.execute("select duebook.set_hold_resource('room', 0)")
    if is_told_by_a_run:
        night(world)
    else:
        db.execute("select duebook.confirm_hold('acme', 'h1', 'pay1')")
    channel = ScriptedChannel(lambda message, number: SendResult("accepted"), name="email")
    sweep(world.connect, SweepRequest(environment="test"), {"email": channel})
    [message] = [each for each in channel.messages if "hold_refund" in each.operation_key]
    assert isinstance(message, Message)
    assert "REF1" in message.subject
    assert ("EUR 10.00" in message.text) == is_told_by_a_run
    assert "reservation" in message.text
