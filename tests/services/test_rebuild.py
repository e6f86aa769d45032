"""The moving tables made again from the facts: nothing is lost, and no doubt is due."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from duebook.channels.base import Message, SendResult
from duebook.db.connect import connect_url
from duebook.db.sql import query
from duebook.services.check import check
from duebook.services.rebuild import rebuild
from duebook.services.sweep import SweepRequest, sweep
from tests.conftest import DuebookCli
from tests.due_work import ScriptedChannel, add_due, places, value
from tests.services.test_sweep import claim, lapse

Conn = psycopg.Connection[Any]
MOVING = ("due", "held", "in_doubt", "proposed")


@pytest.fixture
def connect(database_url: str) -> Callable[[], Conn]:
    return partial(connect_url, database_url, autocommit=True)


def states(conn: Conn) -> dict[str, str]:
    """Where each intent stands, as the report tells it."""
    found = conn.execute("select intent_id, state from duebook_reports.intents").fetchall()
    return dict(found)


def details(conn: Conn) -> list[Any]:
    """What the rows of due and in_doubt hold beyond their place."""
    return conn.execute(
        "select intent_id, due_at, kind, channel, give_up_at, tries, claims, suspicions,"
        " safe_retry_until from duebook.due"
        " union all select intent_id, due_at, kind, channel, give_up_at, tries, claims, 0, null"
        " from duebook.in_doubt order by 1"
    ).fetchall()


def lose(conn: Conn) -> None:
    for table in MOVING:
        conn.execute(f"delete from duebook.{table}")


def open_window(conn: Conn, batch_id: int, mark: int) -> None:
    conn.execute(
        query("advance_batch"),
        {
            "batch_id": batch_id,
            "window_start": 0,
            "mark": mark,
            "renew": False,
            "lease": timedelta(minutes=1),
        },
    )


def sweep_all(connect: Callable[[], Conn], answer: Callable[[Message, int], SendResult]) -> None:
    sweep(connect, SweepRequest("test", batch_size=100), {"noop": ScriptedChannel(answer)})


ANSWERS = {
    "1": SendResult("accepted", "id", "250"),
    "2": SendResult("later", code="452 4.2.2", scope="message"),
    "3": SendResult("unknown", code="timeout"),
    "4": SendResult("refused", code="554"),
}


def answer_to(message: Message) -> SendResult:
    """Each answer in turn, by the number that ends the key's entry."""
    number = int(message.operation_key.rsplit(":", 2)[1].removeprefix("t"))
    return ANSWERS[str(1 + number % 4)]


def every_kind_of_state(conn: Conn, connect: Callable[[], Conn]) -> None:
    """Intents in each place that a night leaves them in, and a rescued batch of each fate."""
    add_due(conn, 40, accounts=5)
    sweep_all(connect, lambda message, number: answer_to(message))
    add_due(conn, 40, prefix="b", accounts=4)
    batch_id, *_ = claim(conn, 40)
    assert batch_id is not None
    open_window(conn, batch_id, 15)
    lapse(conn)
    conn.execute("select * from duebook.rescue_batches(10, 10)")
    add_due(conn, 12, prefix="c")
    claim(conn, 12, safe_retry_for=timedelta(days=1))
    conn.execute("update duebook.batch set mark = 6")
    lapse(conn)
    conn.execute("select * from duebook.rescue_batches(10, 10)")
    add_due(conn, 6, prefix="d", with_contact=False)
    sweep(connect, SweepRequest("test", batch_size=6, max_batches=0), {})
    add_due(conn, 7, prefix="e", due_in=timedelta(hours=3))
    conn.execute(
        "with gone as (delete from duebook.due where account_id like 'e%' returning *)"
        " insert into duebook.proposed (account_id, intent_id)"
        " select account_id, intent_id from gone"
    )
    conn.execute("update duebook.intent set ownership = 'shadow' where account_id like 'e%'")
    add_due(conn, 5, prefix="f", due_in=timedelta(hours=3))


def test_all_moving_rows_can_be_made_again(conn: Conn, connect: Callable[[], Conn]) -> None:
    every_kind_of_state(conn, connect)
    before, held = states(conn), details(conn)
    assert {"scheduled", "unknown", "proposed", "sent", "expired"} <= set(before.values())
    lose(conn)
    assert "lost" in states(conn).values()

    dry = rebuild(connect, by="ann", apply=False)
    assert "lost" in states(conn).values()
    done = rebuild(connect, by="ann", apply=True)
    assert done["moves"] == dry["moves"]
    assert states(conn) == before
    assert details(conn) == held
    assert check(connect)["violations"] == []
    assert rebuild(connect, by="ann", apply=True)["intents"] == 0
    told = value(conn, "select count(*) from duebook.audit_event where action = 'rebuild'")
    assert told == done["intents"]


def test_held_rows_come_back_with_their_cause(conn: Conn, connect: Callable[[], Conn]) -> None:
    add_due(conn, 4, with_contact=False)
    sweep_all(connect, lambda message, number: ANSWERS["1"])
    assert places(conn) == {"held": 4}
    lose(conn)
    rebuild(connect, by="ann", apply=True)
    assert places(conn) == {"held": 4}
    assert value(conn, "select distinct cause from duebook.held") == "no_contact"


def test_a_live_batch_is_left_alone(conn: Conn, connect: Callable[[], Conn]) -> None:
    add_due(conn, 10)
    claim(conn, 10)
    conn.execute(
        "insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)"
        " select account_id, intent_id, notify_at, kind, channel, give_up_at from duebook.intent"
        " limit 3"
    )
    done = rebuild(connect, by="ann", apply=True)
    assert [(move["was"], move["place"], move["intents"]) for move in done["moves"]] == [
        (["batch", "due"], "batch", 3)
    ]
    assert places(conn) == {"batch": 10}


def test_with_batch_lost_open_attempts_count_as_tried(
    conn: Conn, connect: Callable[[], Conn]
) -> None:
    add_due(conn, 10)
    claim(conn, 10)
    conn.execute("delete from duebook.batch")
    rebuild(connect, by="ann", apply=True)
    assert places(conn) == {"in_doubt": 10}
    assert check(connect)["violations"] == []
    assert value(conn, "select how from duebook.batch_ended where sender = 'rebuild'")


def test_what_was_sent_gets_its_outcome(conn: Conn, connect: Callable[[], Conn]) -> None:
    add_due(conn, 5)
    sweep_all(connect, lambda message, number: ANSWERS["1"])
    conn.execute("delete from duebook.outcome")
    done = rebuild(connect, by="ann", apply=True)
    assert done["moves"][0]["place"] == "outcome"
    assert places(conn) == {"outcome": 5}
    assert value(conn, "select distinct result from duebook.outcome") == "sent"


def test_doubt_wins_over_any_other_place(conn: Conn, connect: Callable[[], Conn]) -> None:
    add_due(conn, 3)
    sweep_all(connect, lambda message, number: ANSWERS["3"])
    conn.execute(
        "insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)"
        " select account_id, intent_id, due_at, kind, channel, give_up_at from duebook.in_doubt"
    )
    rebuild(connect, by="ann", apply=True)
    assert places(conn) == {"in_doubt": 3}


def test_ended_keys_and_rows_of_no_intent_leave_the_moving_tables(
    conn: Conn, connect: Callable[[], Conn]
) -> None:
    add_due(conn, 2)
    sweep_all(connect, lambda message, number: ANSWERS["1"])
    conn.execute(
        "insert into duebook.proposed (account_id, intent_id)"
        " select account_id, intent_id from duebook.intent union all select 'nobody', 99"
    )
    done = rebuild(connect, by="ann", apply=True)
    assert {move["place"]: move["intents"] for move in done["moves"]} == {
        "outcome": 2,
        "nowhere": 1,
    }
    assert places(conn) == {"outcome": 2}
    assert check(connect)["violations"] == []


def test_it_waits_for_a_claim_and_no_claim_starts_meanwhile(
    conn: Conn, connect: Callable[[], Conn]
) -> None:
    add_due(conn, 20)
    with connect() as other, other.transaction():
        claim(other, 5)
        waiting = threading.Thread(target=rebuild, args=(connect,), kwargs=dict(by="a", apply=True))
        waiting.start()
    waiting.join(60)
    assert not waiting.is_alive()
    assert places(conn) == {"due": 15, "batch": 5}


def test_the_command_says_what_it_would_do_and_does_it(conn: Conn, duebook_cli: DuebookCli) -> None:
    add_due(conn, 3)
    conn.execute("delete from duebook.due")
    dry = duebook_cli.in_process("rebuild", "--dry-run")
    assert dry.code == 1
    assert "no place" in dry.stdout
    done = duebook_cli.in_process("rebuild", "--apply", "--json")
    assert done.code == 0, done.stderr
    assert done.json["intents"] == 3
    assert places(conn) == {"due": 3}
    conn.execute("select duebook.open_incident('fire', 'test', interval '5 minutes', false, 'ann')")
    refused = duebook_cli.in_process("rebuild", "--apply")
    assert refused.code == 2
    assert "fire" in refused.stderr


@pytest.mark.parametrize("seed", [3, 5, 8, 21])
def test_from_any_state_the_rebuild_gives_what_stood_there(
    conn: Conn, connect: Callable[[], Conn], seed: int
) -> None:
    """Random nights: sends answered at random, senders that die anywhere, waits that end."""
    chance = random.Random(seed)
    answers = [*ANSWERS.values(), SendResult("later", code="421"), ANSWERS["1"]]

    def die() -> None:
        batch_id, size, _ = claim(
            conn,
            chance.randint(1, 15),
            safe_retry_for=chance.choice([None, timedelta(days=1)]),
        )
        if batch_id is not None:
            open_window(conn, batch_id, chance.randint(0, size))
            lapse(conn)
        conn.execute("select * from duebook.rescue_batches(10, 10)")

    def send() -> None:
        conn.execute("update duebook.budget set paused_until = null")
        sweep_all(connect, lambda message, number: chance.choice(answers))

    def wait() -> None:
        conn.execute(
            "update duebook.due set due_at = clock_timestamp()"
            " where intent_id %% 3 = %s and claims > 0",
            [chance.randrange(3)],
        )
        conn.execute(
            "insert into duebook.intent_change (account_id, intent_id, due_at, reason)"
            " select account_id, intent_id, due_at, 'retry' from duebook.due where claims > 0"
        )

    add_due(conn, 30, accounts=3)
    add_due(conn, 4, prefix="n", with_contact=False)
    for _ in range(8):
        chance.choice([die, die, send, wait])()
    before, rows = states(conn), details(conn)
    lose(conn)
    rebuild(connect, by="ann", apply=True)
    after = states(conn)
    # What was held as poison is due, and the next claim finds it out again.
    poison = {key for key in before if (before[key], after[key]) == ("held", "scheduled")}
    assert {key: after[key] for key in before if key not in poison} == {
        key: state for key, state in before.items() if key not in poison
    }
    assert [row for row in details(conn) if row[0] not in poison] == rows
    assert check(connect)["violations"] == []


def test_what_a_person_put_back_is_due_again(conn: Conn, connect: Callable[[], Conn]) -> None:
    add_due(conn, 3)
    sweep_all(connect, lambda message, number: ANSWERS["3"])
    conn.execute(
        "select duebook.resolve_in_doubt(array[account_id], array[intent_id], intent_id = 2, null,"
        " 'person', 'seen in the log', 'ann') from duebook.in_doubt where intent_id in (1, 2)"
    )
    assert check(connect)["violations"] == []
    lose(conn)
    rebuild(connect, by="ann", apply=True)
    assert places(conn) == {"due": 1, "in_doubt": 1, "outcome": 1}
    assert check(connect)["violations"] == []
