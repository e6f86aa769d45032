"""What is in doubt is ended once: by a person, a late result or a look-up, whoever comes first."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from duebook.channels.base import SendResult, message_id_for
from duebook.db.connect import connect_url
from duebook.db.sql import query
from duebook.errors import InputError, RefusedError
from duebook.services.check import check
from duebook.services.explain import explain
from duebook.services.flush import Ending, Flush, apply_flush
from duebook.services.resolve import Resolution, list_doubts, resolve
from tests.conftest import DuebookCli
from tests.doubt_work import add_doubts, audited, connector, make_older, send
from tests.due_work import ScriptedChannel, add_due, places, value, wait_for
from tests.services.test_sweep import claim, lapse, rescue

Conn = psycopg.Connection[Any]
FINISHED = datetime(2026, 11, 30, 12, tzinfo=UTC)
WHY = "the relay's operator looked"


def decide(url: str, key: str, accepted: bool, by: str = "ada", why: str = WHY) -> dict[str, Any]:
    return resolve(connector(url), Resolution(key, accepted, why, by))


def outcomes(conn: Conn) -> list[tuple[Any, ...]]:
    return conn.execute(
        "select operation_key, result, reason, attempt_no from duebook.outcome"
        " order by operation_key"
    ).fetchall()


def late_flush(conn: Conn, count: int) -> Callable[..., Flush]:
    """A sender rescued in its window, whose keys are in doubt: the flush it may still make."""
    add_due(conn, count)
    batch_id, size, _ = claim(conn, count)
    opening = Flush(
        batch_id=batch_id or 0,
        token=value(conn, "select token from duebook.batch"),
        follows=0,
        channel="noop",
        environment="test",
        lease=timedelta(minutes=1),
        endings=[],
        action="open",
        start=0,
        mark=size,
    )
    window = apply_flush(conn, opening).window
    assert window is not None
    lapse(conn)
    rescue(conn)
    assert places(conn) == {"in_doubt": count}

    def flush(result: str = "sent", reason: str | None = None) -> Flush:
        endings = [Ending(row, result, reason, FINISHED, "250", "id-7") for row in window.rows]
        return replace(opening, follows=1, endings=endings, action="close")

    return flush


def clean(url: str) -> None:
    assert check(connector(url))["violations"] == []


def test_sent_ends_the_key_with_its_attempt_and_is_never_sent_again(
    conn: Conn, database_url: str
) -> None:
    first, second = add_doubts(conn, database_url, 2)
    assert decide(database_url, first, True) == {
        "account_id": "a000000",
        "operation_key": first,
        "done": "sent",
    }
    assert outcomes(conn) == [(first, "sent", "resolved", 1)]
    assert places(conn) == {"outcome": 1, "in_doubt": 1}
    [(actor, subject, detail)] = audited(conn, "resolve_in_doubt")
    assert (actor, subject) == ("ada", first)
    assert detail == {
        "accepted": True,
        "how": "resolved",
        "why": WHY,
        "attempt_no": 1,
        "cause": "timeout",
    }
    assert send(database_url)[1] == []
    assert second in [row["operation_key"] for row in list_doubts(connector(database_url), {})]
    clean(database_url)


def test_not_sent_is_due_at_once_and_sent_once(conn: Conn, database_url: str) -> None:
    [key] = add_doubts(conn, database_url, 1)
    promised = value(conn, "select due_at from duebook.in_doubt")
    assert decide(database_url, key, False)["done"] == "due"
    assert conn.execute("select due_at, tries, claims from duebook.due").fetchall() == [
        (promised, 0, 1)
    ]
    assert value(conn, "select reason from duebook.intent_change") == "resolved"
    clean(database_url)
    assert send(database_url)[1] == [key]
    assert outcomes(conn) == [(key, "sent", None, 2)]
    assert send(database_url)[1] == []
    clean(database_url)


def test_not_sent_is_still_judged_by_its_limit_and_by_its_policy(
    conn: Conn, database_url: str
) -> None:
    late, missed = add_doubts(conn, database_url, 2)
    conn.execute(
        "update duebook.in_doubt as u set give_up_at = clock_timestamp() from duebook.intent as i"
        " where i.intent_id = u.intent_id and i.operation_key = %s",
        [late],
    )
    conn.execute("update duebook.in_doubt set due_at = due_at - interval '2 days'")
    conn.execute("update duebook.intent_kind set catch_up_window = interval '1 day'")
    for key in (late, missed):
        decide(database_url, key, False)
    assert send(database_url)[1] == []
    assert {(key, reason) for key, _, reason, _ in outcomes(conn)} == {
        (late, "too_late"),
        (missed, "too_late"),
    }
    clean(database_url)


def test_a_wrong_account_is_told_whose_the_doubt_is(conn: Conn, database_url: str) -> None:
    [key] = add_doubts(conn, database_url, 1)
    owner = value(conn, "select account_id from duebook.in_doubt")
    asked = Resolution(key, True, WHY, "ada", account_id="nobody")
    with pytest.raises(InputError, match=f"not in doubt for account nobody, but for {owner}"):
        resolve(connector(database_url), asked)


def test_a_key_that_is_not_in_doubt_is_refused_and_nothing_is_written(
    conn: Conn, database_url: str
) -> None:
    [key] = add_doubts(conn, database_url, 1)
    decide(database_url, key, True)
    for asked in (key, "payment_settled:noop:stripe:nobody:t1:v1"):
        with pytest.raises(RefusedError, match="is not in doubt"):
            decide(database_url, asked, False)
    with pytest.raises(InputError, match="--reason"):
        decide(database_url, key, True, why="  ")
    assert len(audited(conn, "resolve_in_doubt")) == 1
    assert places(conn) == {"outcome": 1}


def test_a_key_of_several_accounts_needs_the_account(conn: Conn, database_url: str) -> None:
    [key] = add_doubts(conn, database_url, 1)
    conn.execute(
        """
        with made as (
            insert into duebook.intent (
                account_id, operation_key, kind, subject, payment_id, channel, notify_at,
                give_up_at, ownership
            )
            select
                'b', operation_key, kind, subject, payment_id, channel, notify_at, give_up_at,
                ownership
            from duebook.intent
            returning account_id, intent_id
        )
        insert into duebook.in_doubt (
            account_id, intent_id, attempt_no, batch_id, cause, due_at, kind, channel, give_up_at,
            tries, claims, look_up_from
        )
        select
            m.account_id, m.intent_id, 1, u.batch_id, u.cause, u.due_at, u.kind, u.channel,
            u.give_up_at, u.tries, u.claims, u.look_up_from
        from made as m cross join duebook.in_doubt as u
        """
    )
    with pytest.raises(InputError, match="name one: a000000, b"):
        decide(database_url, key, True)
    found = resolve(connector(database_url), Resolution(key, True, WHY, "ada", account_id="b"))
    assert found["account_id"] == "b"
    assert outcomes(conn) == [(key, "sent", "resolved", 1)]
    assert value(conn, "select account_id from duebook.in_doubt") == "a000000"


def test_the_application_role_may_resolve(conn: Conn, database_url: str) -> None:
    keys = add_doubts(conn, database_url, 2)
    as_application = partial(connect_url, database_url, role="duebook_app", autocommit=True)
    for key, accepted in zip(keys, (True, False), strict=True):
        resolve(as_application, Resolution(key, accepted, WHY, "ada"))
    assert places(conn) == {"outcome": 1, "due": 1}


class TestLateResults:
    def test_a_late_answer_that_is_first_ends_the_doubt(
        self, conn: Conn, database_url: str
    ) -> None:
        flush = late_flush(conn, 1)
        assert apply_flush(conn, flush()).late == 1
        key = value(conn, "select operation_key from duebook.outcome")
        with pytest.raises(RefusedError, match="not in doubt"):
            decide(database_url, key, False)
        assert places(conn) == {"outcome": 1}
        assert value(conn, "select provider_message_id from duebook.outcome") == "id-7"
        clean(database_url)

    def test_a_late_answer_after_not_sent_still_ends_the_key(
        self, conn: Conn, database_url: str
    ) -> None:
        flush = late_flush(conn, 1)
        key = value(conn, "select operation_key from duebook.intent")
        assert decide(database_url, key, False)["done"] == "due"
        apply_flush(conn, flush())
        assert outcomes(conn) == [(key, "sent", None, 1)]
        assert send(database_url)[1] == []
        clean(database_url)

    def test_a_late_answer_after_sent_is_kept_and_changes_nothing(
        self, conn: Conn, database_url: str
    ) -> None:
        flush = late_flush(conn, 1)
        key = value(conn, "select operation_key from duebook.intent")
        decide(database_url, key, True)
        apply_flush(conn, flush())
        assert outcomes(conn) == [(key, "sent", "resolved", 1)]
        assert value(conn, "select count(*) from duebook.attempt_result where is_late") == 1
        clean(database_url)


class TestRaces:
    """Each against the other on the same rows, really at once: one effect, and one only."""

    def test_two_persons_of_two_minds(self, conn: Conn, database_url: str) -> None:
        keys = add_doubts(conn, database_url, 40)
        barrier = threading.Barrier(4)

        def person(number: int) -> list[str]:
            done = []
            barrier.wait(60)
            for key in keys if number % 2 else reversed(keys):
                try:
                    found = decide(database_url, key, number % 2 == 0, by=f"p{number}")
                    done.append(f"{key} {found['done']}")
                except RefusedError:
                    continue
            return done

        with ThreadPoolExecutor(4) as pool:
            done = [each for of in pool.map(person, range(4)) for each in of]
        assert len(done) == 40
        assert {each.split()[0] for each in done} == set(keys)
        sent = sum(each.endswith(" sent") for each in done)
        assert places(conn) == {k: n for k, n in (("outcome", sent), ("due", 40 - sent)) if n}
        assert len(audited(conn, "resolve_in_doubt")) == 40
        assert value(conn, "select count(*) from duebook.intent_change") == 40 - sent
        clean(database_url)

    @pytest.mark.parametrize("accepted", [True, False])
    def test_a_late_result_that_was_first_wins_over_one_who_waits_for_it(
        self, conn: Conn, database_url: str, accepted: bool
    ) -> None:
        flush = late_flush(conn, 1)
        key = value(conn, "select operation_key from duebook.intent")
        with (
            ThreadPoolExecutor(1) as pool,
            connect_url(database_url, autocommit=True) as sender,
        ):
            with sender.transaction():
                apply_flush(sender, flush())
                waiting = pool.submit(decide, database_url, key, accepted)
                wait_for(lambda: is_waiting(conn), "the person waits for the row", 60)
            with pytest.raises(RefusedError, match="not in doubt"):
                waiting.result(60)
        assert outcomes(conn) == [(key, "sent", None, 1)]
        assert places(conn) == {"outcome": 1}
        assert audited(conn, "resolve_in_doubt") == []

    @pytest.mark.parametrize(
        ("accepted", "expected"), [(True, ("sent", "resolved")), (False, ("sent", None))]
    )
    def test_a_person_who_was_first_wins_over_a_late_result_that_waits(
        self, conn: Conn, database_url: str, accepted: bool, expected: tuple[str, str | None]
    ) -> None:
        """Said to be not sent, it is due again for that moment: the answer still ends it."""
        flush = late_flush(conn, 1)
        with (
            ThreadPoolExecutor(1) as pool,
            connect_url(database_url, autocommit=True) as person,
            connect_url(database_url, autocommit=True) as sender,
        ):
            with person.transaction():
                person.execute(
                    "select duebook.resolve_in_doubt(array[account_id], array[intent_id], %s, null,"
                    " 'resolved', 'a test', 'ada') from duebook.in_doubt",
                    [accepted],
                )
                waiting = pool.submit(apply_flush, sender, flush())
                wait_for(lambda: is_waiting(conn), "the late result waits for the row", 60)
            waiting.result(60)
        # What waited for the row may not see it in due: then the next gate takes the answer over.
        assert send(database_url)[1] == []
        [(_, result, reason, _)] = outcomes(conn)
        assert (result, reason) == expected
        clean(database_url)

    def test_look_ups_and_persons_over_the_same_keys(self, conn: Conn, database_url: str) -> None:
        keys = add_doubts(conn, database_url, 60)
        make_older(conn, timedelta(hours=1))
        barrier = threading.Barrier(3)

        def look_up(accepted: bool) -> list[str]:
            with connect_url(database_url, autocommit=True) as mine:
                ids = mine.execute("select account_id, intent_id from duebook.intent").fetchall()
                barrier.wait(60)
                rows = mine.execute(
                    query("resolve_looked_up"),
                    {
                        "account_ids": [row[0] for row in ids],
                        "intent_ids": [row[1] for row in ids],
                        "accepted": accepted,
                        "known_within": timedelta(0),
                        "how": "looked_up",
                        "why": "a test",
                        "resolved_by": "look_up",
                    },
                ).fetchall()
            return [done for _, _, done in rows if done in ("sent", "due")]

        def person() -> list[str]:
            done = []
            barrier.wait(60)
            for key in keys:
                try:
                    done.append(decide(database_url, key, True)["done"])
                except RefusedError:
                    continue
            return done

        with ThreadPoolExecutor(3) as pool:
            running = [pool.submit(look_up, True), pool.submit(look_up, False), pool.submit(person)]
            done = [each for of in running for each in of.result(60)]
        assert len(done) == 60
        assert len(audited(conn, "resolve_in_doubt")) == 60
        assert sum(places(conn).values()) == 60
        clean(database_url)


def is_waiting(conn: Conn) -> bool:
    return bool(
        value(
            conn,
            "select count(*) from pg_stat_activity where datname = current_database()"
            " and wait_event_type = 'Lock'",
        )
    )


class TestTold:
    def test_the_list_holds_all_that_is_known(self, conn: Conn, database_url: str) -> None:
        [key] = add_doubts(conn, database_url, 1)
        late_flush_of_another = value(conn, "select batch_id from duebook.in_doubt")
        [row] = list_doubts(connector(database_url), {"noop": "Shop <billing@shop.example>"})
        assert row["message_id"] == message_id_for("a000000", key, "billing@shop.example")
        expected = {
            "account_id": "a000000",
            "operation_key": key,
            "cause": "timeout",
            "channel": "noop",
            "kind": "payment_settled",
            "attempt_no": 1,
            "batch_id": late_flush_of_another,
            "batch_ended_how": "finished",
            "attempt_result": "unknown",
            "provider_code": "timeout",
            "may_be_looked_up": False,
            "tries": 0,
            "claims": 1,
        }
        assert {name: row[name] for name in expected} == expected
        assert row["sender"]
        assert row["claimed_at"] <= row["answered_at"] <= row["since"] < row["look_up_from"]

    def test_explain_of_a_doubt_says_how_to_end_it_and_then_who_ended_it(
        self, conn: Conn, database_url: str
    ) -> None:
        sent, due = add_doubts(conn, database_url, 2)
        connect = connector(database_url)
        [answer] = explain(connect, sent).matches[0].answers
        assert answer.code == "in_doubt"
        assert "duebook resolve" in answer.text
        decide(database_url, sent, True)
        match = explain(connect, sent).matches[0]
        assert match.answers[0].was_sent
        assert f"when ada said that it was sent: {WHY}" in match.answers[0].text
        verdict = "attempt 1, in doubt (timeout): ada said that it was"
        assert f"{verdict} sent: {WHY}" in [event.text for event in match.events]
        decide(database_url, due, False)
        match = explain(connect, due).matches[0]
        assert [answer.code for answer in match.answers] == ["due"]
        assert f"{verdict} not sent: {WHY}" in [event.text for event in match.events]
        assert any(event.text.startswith("due again, ") for event in match.events)

    def test_the_commands(self, conn: Conn, database_url: str, duebook_cli: DuebookCli) -> None:
        sent, due = add_doubts(conn, database_url, 2)
        listed = duebook_cli.in_process("doubts", "--json")
        assert listed.code == 0
        assert [row["operation_key"] for row in listed.json["doubts"]] == [sent, due]
        assert listed.json["looked_up"] is None
        shown = duebook_cli.in_process("doubts").stdout
        assert f"{sent} of account a000000" in shown
        for known in ("timeout since", "attempt 1, claimed", "in batch 1 (finished)"):
            assert known in shown
        assert f"Message-ID {listed.json['doubts'][0]['message_id']}" in shown
        done = duebook_cli.in_process("resolve", sent, "sent", "--reason", WHY, "--json")
        assert (done.code, done.json["done"]) == (0, "sent")
        done = duebook_cli.in_process("resolve", due, "not-sent", "--reason", WHY)
        assert (done.code, done.stdout) == (0, f"{due} is due again\n")
        again = duebook_cli.in_process("resolve", due, "sent", "--reason", WHY)
        assert again.code == 2
        assert "is not in doubt" in again.stderr
        assert {actor for actor, _, _ in audited(conn, "resolve_in_doubt")} == {"pytest"}
        assert "nothing is in doubt" in duebook_cli.in_process("doubts").stdout
        assert json.loads(duebook_cli.in_process("doubts", "--json").stdout)["doubts"] == []


def test_a_channel_that_answers_at_last_is_not_asked_again(conn: Conn, database_url: str) -> None:
    """Resolved as not sent, its next try may be unknown again: it is in doubt anew."""
    [key] = add_doubts(conn, database_url, 1)
    decide(database_url, key, False)
    send(database_url, ScriptedChannel(lambda message, number: SendResult("unknown", code="x")))
    assert places(conn) == {"in_doubt": 1}
    assert value(conn, "select attempt_no from duebook.in_doubt") == 2
    decide(database_url, key, True)
    assert outcomes(conn) == [(key, "sent", "resolved", 2)]
    assert len(audited(conn, "resolve_in_doubt")) == 2
    clean(database_url)
