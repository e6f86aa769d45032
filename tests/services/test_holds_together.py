"""Two at once about one hold, on real connections: one winner, whoever locks first."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg import errors

from duebook.db.connect import connect_url
from tests.due_work import add_kind, places, value, wait_for
from tests.hold_work import (
    HOUR,
    claim,
    confirm,
    create,
    database_url,
    endings,
    finish,
    make_older,
    shared_database,
    state,
)

Conn = psycopg.Connection[Any]

__all__ = ["database_url", "shared_database"]
ROUNDS = 64
ISOLATIONS = ("read committed", "repeatable read", "serializable")


@pytest.fixture
def other(database_url: str) -> Iterator[Conn]:
    """A second connection, for a second thread."""
    with connect_url(database_url, autocommit=True, application_name="other") as connection:
        yield connection


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def together(pool: ThreadPoolExecutor, *works: Callable[[], Any]) -> list[Any]:
    """What each returns; all begin at one moment."""
    barrier = threading.Barrier(len(works))

    def begin(work: Callable[[], Any]) -> Any:
        barrier.wait(60)
        return work()

    return [each.result(60) for each in [pool.submit(begin, work) for work in works]]


def wait_until_blocked(conn: Conn, other: Conn, waiting: Future[Any]) -> None:
    """Returns once the second connection waits for a lock that the first one holds."""
    pid = other.info.backend_pid
    wait_for(
        lambda: waiting.done() or value(conn, "select cardinality(pg_blocking_pids(%s)) > 0", pid),
        "the other one waits",
        60,
    )
    assert not waiting.done(), "nothing held it up"


def one_winner(answer: str, done: int, expired: int) -> str:
    """Who won; fails when both did or none."""
    assert (answer, done, expired) in (("confirmed", 0, 1), ("expired", 1, 0))
    return answer


def test_confirm_racing_expire_has_one_winner(
    conn: Conn, other: Conn, pool: ThreadPoolExecutor
) -> None:
    winners: Counter[str] = Counter()
    for number in range(ROUNDS):
        hold = f"h{number}"
        create(conn, hold, resource="room")
        batch = claim(conn, offset=HOUR)
        works: list[Callable[[], Any]] = [
            partial(confirm, other, hold),
            partial(finish, conn, batch, offset=HOUR),
        ]
        if number % 2:
            works.reverse()
        answers = together(pool, *works)
        if number % 2:
            answers.reverse()
        answer, (applied, done, expired, *_) = answers
        assert applied == "applied"
        winners[one_winner(answer, done, expired)] += 1
    assert endings(conn) == {
        ending: count
        for ending, count in (
            (("done", None), winners["expired"]),
            (("expired", "settled_meanwhile"), winners["confirmed"]),
        )
        if count
    }
    assert places(conn) == {"outcome": ROUNDS}
    assert (
        value(
            conn,
            "select count(*) from duebook.hold where (confirmed_at is null) = (expired_at is null)",
        )
        == 0
    )
    assert value(conn, "select confirmed from duebook.hold_resource") == winners["confirmed"]


def test_a_claim_racing_a_confirmation_leaves_one_ending(
    conn: Conn, other: Conn, pool: ThreadPoolExecutor
) -> None:
    for number in range(ROUNDS):
        hold = f"h{number}"
        create(conn, hold)

        def sweep_it() -> tuple[int, int]:
            try:
                batch = claim(conn, offset=HOUR)
            except AssertionError:
                return 0, 1  # the confirmation had ended it before
            return finish(conn, batch, offset=HOUR)[1:3]

        answer, (done, expired) = together(pool, partial(confirm, other, hold), sweep_it)
        one_winner(answer, done, expired)
    assert places(conn) == {"outcome": ROUNDS}


def test_expire_that_locks_first_wins_and_the_confirmation_waits_for_it(
    conn: Conn, other: Conn, pool: ThreadPoolExecutor
) -> None:
    create(conn, resource="room")
    batch = claim(conn, offset=HOUR)
    with conn.transaction():
        assert finish(conn, batch, offset=HOUR)[:2] == ("applied", 1)
        waiting = pool.submit(confirm, other)
        wait_until_blocked(conn, other, waiting)
    assert waiting.result(60) == "expired"
    assert endings(conn) == {("done", None): 1}


def test_a_confirmation_that_locks_first_wins_and_expire_waits_for_it(
    conn: Conn, other: Conn, pool: ThreadPoolExecutor
) -> None:
    create(conn, resource="room")
    batch = claim(conn, offset=HOUR)
    with conn.transaction():
        assert confirm(conn) == "confirmed"
        waiting = pool.submit(finish, other, batch, offset=HOUR)
        wait_until_blocked(conn, other, waiting)
    assert waiting.result(60) == ("applied", 0, 1, 0, 0)
    assert endings(conn) == {("expired", "settled_meanwhile"): 1}


# A hold's end that a slow machine may miss is tried again with more time.
PATIENCE = (0.3, 2, 10, 40)


def test_a_confirmation_that_waited_beyond_expires_at_is_too_late(
    conn: Conn, other: Conn, pool: ThreadPoolExecutor
) -> None:
    for seconds in PATIENCE:
        hold = f"h{seconds}"
        create(conn, hold, lasts=timedelta(seconds=seconds))
        until = value(conn, "select expires_at from duebook.hold where hold = %s", hold)
        with conn.transaction():
            conn.execute("select from duebook.hold for update")
            waiting = pool.submit(_ask, other, hold)
            wait_until_blocked(conn, other, waiting)
            wait_for(partial(_is_past, conn, until), "its end", 60)
        asked, answer = waiting.result(60)
        assert answer == "expired"
        assert state(conn, hold) == "expired"
        if asked < until:
            return
    raise AssertionError("the machine was too slow to ask in time")


def _ask(conn: Conn, hold: str) -> tuple[datetime, str]:
    """When it was asked, by the database's clock, and the answer."""
    row = conn.execute(
        "select c.now, duebook.confirm_hold('a', %s)"
        " from (select clock_timestamp() as now offset 0) as c",
        [hold],
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def _is_past(conn: Conn, instant: datetime) -> bool:
    return bool(value(conn, "select clock_timestamp() > %s", instant))


_AT_THE_EDGE = """
do $$
declare
    v_until timestamptz;
    v_asked timestamptz;
    v_answer text;
begin
    for number in 0..199 loop
        select c.expires_at into v_until
        from duebook.create_hold('edge', 'h' || number, p_for => '4 milliseconds') as c;
        while clock_timestamp() < v_until + (number % 5 - 2) * interval '0.5 milliseconds' loop
        end loop;
        v_asked := clock_timestamp();
        v_answer := duebook.confirm_hold('edge', 'h' || number);
        insert into asked values (number, v_until, v_asked, v_answer, clock_timestamp());
    end loop;
end;
$$
"""


def test_confirm_at_expires_at_plus_and_minus_1_ms(conn: Conn) -> None:
    """By the database's own instants: before it, confirmed; from it on, expired."""
    conn.execute(
        "create temporary table asked"
        " (number integer, until timestamptz, asked timestamptz, answer text, told timestamptz)"
    )
    conn.execute(_AT_THE_EDGE)
    rows = conn.execute(
        "select a.answer, a.asked, a.told, a.until, h.confirmed_at"
        " from asked as a inner join duebook.hold as h on h.hold = 'h' || a.number"
    ).fetchall()
    near: Counter[str] = Counter()
    for answer, asked, told, until, confirmed_at in rows:
        assert answer in ("confirmed", "expired")
        if told < until:
            assert answer == "confirmed"
        if asked >= until:
            assert answer == "expired"
        assert (confirmed_at is not None) == (answer == "confirmed")
        assert confirmed_at is None or asked <= confirmed_at < until
        near[answer] += abs(asked - until) <= timedelta(milliseconds=1)
    assert near["confirmed"] >= 1, near
    assert near["expired"] >= 1, near


def test_two_creations_of_the_last_one_give_it_to_one(
    conn: Conn, other: Conn, pool: ThreadPoolExecutor
) -> None:
    conn.execute("select duebook.set_hold_resource('room', %s)", [ROUNDS // 2])

    def reserve(connection: Conn, hold: str) -> bool:
        try:
            create(connection, hold, resource="room")
        except errors.CheckViolation:
            return False
        return True

    made = 0
    for number in range(ROUNDS // 2):
        made += sum(
            together(
                pool,
                partial(reserve, conn, f"a{number}"),
                partial(reserve, other, f"b{number}"),
            )
        )
    assert made == ROUNDS // 2
    assert value(conn, "select count(*) from duebook.hold") == ROUNDS // 2


def test_a_creation_that_waited_counts_the_one_it_waited_for(
    conn: Conn, other: Conn, pool: ThreadPoolExecutor
) -> None:
    for number, isolation in enumerate(ISOLATIONS, 1):
        conn.execute("select duebook.set_hold_resource('room', %s)", [number])
        other.execute(f"set default_transaction_isolation = '{isolation}'")
        with conn.transaction():
            create(conn, f"h{number}", resource="room")
            waiting = pool.submit(create, other, "late", resource="room")
            wait_until_blocked(conn, other, waiting)
        with pytest.raises((errors.CheckViolation, errors.SerializationFailure)):
            waiting.result(60)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_late_confirmation_is_never_counted_as_room(
    conn: Conn, other: Conn, pool: ThreadPoolExecutor, isolation: str
) -> None:
    """Confirmed in time, committed after its end: whoever counts meanwhile waits for it."""
    conn.execute("select duebook.set_hold_resource('room', 1)")
    other.execute(f"set default_transaction_isolation = '{isolation}'")
    for seconds in PATIENCE:
        create(conn, f"h{seconds}", resource="room", lasts=timedelta(seconds=seconds))
        until = value(conn, "select max(expires_at) from duebook.hold")
        with conn.transaction():
            answer = confirm(conn, f"h{seconds}")
            wait_for(partial(_is_past, conn, until), "its end", 60)
            if answer == "expired":
                continue
            waiting = pool.submit(create, other, "late", resource="room")
            wait_until_blocked(conn, other, waiting)
        with pytest.raises((errors.CheckViolation, errors.SerializationFailure)):
            waiting.result(60)
        with pytest.raises(errors.CheckViolation):
            create(other, "late", resource="room")
        return
    raise AssertionError("the machine was too slow to ask in time")


def test_the_same_creation_twice_at_once_is_one_hold(
    conn: Conn, other: Conn, pool: ThreadPoolExecutor
) -> None:
    conn.execute("select duebook.set_hold_resource('room', %s)", [ROUNDS // 4])
    until = value(conn, "select clock_timestamp() + interval '1 hour'")
    for number in range(ROUNDS // 4):

        def again(connection: Conn, hold: str = f"h{number}") -> str:
            return create(connection, hold, expires_at=until, resource="room")

        done = together(pool, partial(again, conn), partial(again, other))
        assert sorted(done) == ["created", "existed"]
    assert value(conn, "select count(*) from duebook.intent") == ROUNDS // 4


@pytest.mark.parametrize("has_room", [True, False])
def test_a_late_payment_told_by_two_at_once_has_one_effect(
    conn: Conn, other: Conn, pool: ThreadPoolExecutor, has_room: bool
) -> None:
    """The webhook and the nightly run."""
    add_kind(conn, "hold_refund", "email")
    for number in range(ROUNDS // 4):
        create(conn, f"h{number}", resource="room")
    make_older(conn)
    conn.execute("select duebook.set_hold_resource('room', %s)", [ROUNDS if has_room else 0])
    for number in range(ROUNDS // 4):
        told = together(
            pool,
            partial(confirm, conn, f"h{number}", f"pay_{number}"),
            partial(confirm, other, f"h{number}", f"pay_{number}"),
        )
        assert told == ["reheld"] * 2 if has_room else ["refund"] * 2
    refunds = value(conn, "select count(*) from duebook.intent where kind = 'hold_refund'")
    assert refunds == (0 if has_room else ROUNDS // 4)
    events = value(conn, "select count(*) from duebook.audit_event where action = 'confirm_hold'")
    assert events == ROUNDS // 4


def test_the_last_room_is_held_again_for_one_of_two_late_payments(
    conn: Conn, other: Conn, pool: ThreadPoolExecutor
) -> None:
    add_kind(conn, "hold_refund", "email")
    for number in range(8):
        conn.execute("select duebook.set_hold_resource('room', null)")
        create(conn, f"a{number}", resource="room")
        create(conn, f"b{number}", resource="room")
        make_older(conn)
        conn.execute("select duebook.set_hold_resource('room', %s)", [number + 1])
        answers = together(
            pool,
            partial(confirm, conn, f"a{number}", f"pay_a{number}"),
            partial(confirm, other, f"b{number}", f"pay_b{number}"),
        )
        assert sorted(answers) == ["refund", "reheld"]
    assert value(conn, "select count(*) from duebook.intent where kind = 'hold_refund'") == 8
