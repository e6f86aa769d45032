"""Sending again on purpose: a new occurrence with a key of its own, and only of what has ended."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from duebook.db.connect import connect_url
from duebook.domain.keys import ResendKey, parse_key
from duebook.errors import InputError, RefusedError
from duebook.services import incident
from duebook.services.check import check
from duebook.services.explain import explain
from duebook.services.resolve import Resolution, resend, resolve
from tests.calendar_work import add_reminders, backdate, put
from tests.conftest import DuebookCli
from tests.doubt_work import add_doubts, audited, connector, send
from tests.due_work import ScriptedChannel, add_due, places, value
from tests.hold_work import create, sweep_internal
from tests.hold_work import make_older as let_expire

Conn = psycopg.Connection[Any]
WHY = "the customer deleted it"


def again(url: str, key: str, **other: Any) -> str:
    found = resend(connector(url), key, why=WHY, by="ada", **other)
    return str(found["new_key"])


def sent_key(conn: Conn, url: str) -> str:
    add_due(conn, 1)
    [key] = send(url)[1]
    assert places(conn) == {"outcome": 1}
    return key


def clean(url: str) -> None:
    assert check(connector(url))["violations"] == []


def test_a_repeat_has_the_facts_of_the_first_and_its_own_key(conn: Conn, database_url: str) -> None:
    key = sent_key(conn, database_url)
    new_key = again(database_url, key)
    assert new_key == f"resend:1:{key}"
    assert isinstance(parse_key(new_key), ResendKey)
    facts = conn.execute(
        "select account_id, kind, subject, payment_id, channel, change_id, give_up_at - notify_at"
        " from duebook.intent order by intent_id"
    ).fetchall()
    assert facts[0][:6] == facts[1][:6]
    assert facts[1][6] == timedelta(days=7)
    assert places(conn) == {"outcome": 1, "due": 1}
    assert send(database_url)[1] == [new_key]
    assert places(conn) == {"outcome": 2}
    assert audited(conn, "resend_intent") == [
        ("ada", subject, {"reason": WHY, "first_key": key, "new_key": new_key})
        for subject in (key, new_key)
    ]
    clean(database_url)


def test_a_repeat_is_another_message_to_every_provider(conn: Conn, database_url: str) -> None:
    channel = ScriptedChannel()
    add_due(conn, 1)
    send(database_url, channel)
    again(database_url, channel.log[0])
    send(database_url, channel)
    assert len({message.message_id for message in channel.messages}) == 2
    assert channel.messages[0].text == channel.messages[1].text


def test_each_further_repeat_counts_and_waits_for_the_one_before(
    conn: Conn, database_url: str
) -> None:
    key = sent_key(conn, database_url)
    first = again(database_url, key)
    with pytest.raises(RefusedError, match=f"{first} has not ended"):
        again(database_url, key)
    send(database_url)
    assert again(database_url, key) == f"resend:2:{key}"
    with pytest.raises(RefusedError, match="a repeat is not repeated"):
        again(database_url, first)
    assert places(conn) == {"outcome": 2, "due": 1}
    clean(database_url)


def test_the_same_number_again_does_nothing(conn: Conn, database_url: str) -> None:
    key = sent_key(conn, database_url)
    for _ in range(3):
        assert again(database_url, key, number=1) == f"resend:1:{key}"
    send(database_url)
    assert again(database_url, key, number=1) == f"resend:1:{key}"
    assert places(conn) == {"outcome": 2}
    assert len(audited(conn, "resend_intent")) == 2
    for wrong in (3, 0):
        with pytest.raises(RefusedError, match="the next repeat of this key is number 2"):
            again(database_url, key, number=wrong)
    assert again(database_url, key, number=2) == f"resend:2:{key}"


def test_only_what_has_ended_is_sent_again(conn: Conn, database_url: str) -> None:
    [doubtful] = add_doubts(conn, database_url, 1)
    with pytest.raises(RefusedError, match="has not ended: resolve it if it is in doubt"):
        again(database_url, doubtful)
    resolve(connector(database_url), Resolution(doubtful, False, WHY, "ada"))
    with pytest.raises(RefusedError, match="has not ended"):
        again(database_url, doubtful)
    with pytest.raises(InputError, match="nobody was promised anything"):
        again(database_url, doubtful.replace(":t1:", ":t2:"))
    with pytest.raises(InputError, match="--reason"):
        resend(connector(database_url), doubtful, why=" ", by="ada")
    assert audited(conn, "resend_intent") == []
    assert places(conn) == {"due": 1}


def test_what_was_not_sent_is_promised_again_and_judged_again(
    conn: Conn, database_url: str
) -> None:
    """Too late once, it is due now, with the whole time that its kind gives it."""
    add_due(conn, 1, give_up_in=timedelta(seconds=-1))
    assert send(database_url)[1] == []
    key, reason = conn.execute(  # type: ignore[misc]
        "select operation_key, reason from duebook.outcome"
    ).fetchone()
    assert reason == "too_late"
    new_key = again(database_url, key)
    conn.execute(
        "insert into duebook.suppression (account_id, channel, reason)"
        " values ('a000000', 'noop', 'complaint')"
    )
    assert send(database_url)[1] == []
    assert value(conn, "select reason from duebook.outcome where operation_key = %s", new_key) == (
        "suppressed"
    )


def test_a_reminder_is_sent_again_whatever_its_schedules_policy(
    conn: Conn, database_url: str
) -> None:
    add_reminders(conn)
    put(conn)
    backdate(conn, timedelta(days=15))
    keys = send(database_url)[1]
    assert len(keys) >= 2
    new_key = again(database_url, keys[0])
    assert send(database_url)[1] == [new_key]
    # Each date counts its own repeats, though all are about one schedule.
    assert again(database_url, keys[1]) == f"resend:1:{keys[1]}"
    assert send(database_url)[1] == [f"resend:1:{keys[1]}"]
    connect = connector(database_url)
    assert explain(connect, new_key).matches[0].answers[0].was_sent
    assert any("sent again as" in e.text for e in explain(connect, keys[0]).matches[0].events)
    clean(database_url)


def test_an_act_inside_the_house_is_not_sent_again(conn: Conn, database_url: str) -> None:
    create(conn)
    let_expire(conn)
    sweep_internal(database_url)
    key = value(conn, "select operation_key from duebook.outcome")
    with pytest.raises(RefusedError, match="an act inside the house"):
        again(database_url, key)


def test_while_an_incident_is_open_nothing_is_sent_again(conn: Conn, database_url: str) -> None:
    key = sent_key(conn, database_url)
    incident.open_incident(
        connector(database_url),
        name="relay-down",
        reason="a test",
        band=timedelta(minutes=5),
        pauses_sweep=False,
        by="bob",
    )
    with pytest.raises(RefusedError, match="relay-down"):
        again(database_url, key)
    assert places(conn) == {"outcome": 1}


def test_several_at_once_make_one_repeat(conn: Conn, database_url: str) -> None:
    key = sent_key(conn, database_url)
    barrier = threading.Barrier(6)

    def ask(_: int) -> str | None:
        barrier.wait(60)
        try:
            return again(database_url, key)
        except RefusedError:
            return None

    with ThreadPoolExecutor(6) as pool:
        made = [new_key for new_key in pool.map(ask, range(6)) if new_key]
    assert made == [f"resend:1:{key}"]
    assert places(conn) == {"outcome": 1, "due": 1}
    assert len(audited(conn, "resend_intent")) == 2


def test_the_application_role_may_send_again(conn: Conn, database_url: str) -> None:
    key = sent_key(conn, database_url)
    as_application = partial(connect_url, database_url, role="duebook_app", autocommit=True)
    assert resend(as_application, key, why=WHY, by="ada")["new_key"] == f"resend:1:{key}"


def test_explain_tells_of_both(conn: Conn, database_url: str) -> None:
    key = sent_key(conn, database_url)
    new_key = again(database_url, key)
    connect = connector(database_url)
    first = explain(connect, key).matches[0]
    assert first.answers[0].was_sent
    assert f"sent again as {new_key}, asked for by ada: {WHY}" in [e.text for e in first.events]
    second = explain(connect, new_key).matches[0]
    assert f"(repeat 1 of {key})" in second.answers[0].text
    assert not second.answers[0].was_sent
    assert f"a repeat of {key}, asked for by ada: {WHY}" in [e.text for e in second.events]
    send(database_url)
    assert explain(connect, new_key).matches[0].answers[0].was_sent


def test_the_command(conn: Conn, database_url: str, duebook_cli: DuebookCli) -> None:
    key = sent_key(conn, database_url)
    done = duebook_cli.in_process("resend", key, "--reason", WHY, "--number", "1", "--json")
    assert done.json == {
        "account_id": "a000000",
        "operation_key": key,
        "new_key": f"resend:1:{key}",
    }
    told = duebook_cli.in_process("resend", key, "--reason", WHY, "--number", "1")
    assert told.stdout == f"{key} is due again as resend:1:{key}\n"
    refused = duebook_cli.in_process("resend", key, "--reason", WHY)
    assert refused.code == 2
    assert "has not ended" in refused.stderr
    assert value(conn, "select count(*) from duebook.intent") == 2
