"""Those who may know what became of a message are asked, and believed only as far as they can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.channels.base import Known, LookUp, Tried, message_id_for
from duebook.channels.relay_log import RelayLog
from duebook.services.check import check
from duebook.services.explain import explain
from duebook.services.look_up import LookedUp, look_up_doubts
from duebook.services.resolve import Resolution, resolve
from tests.conftest import DuebookCli
from tests.doubt_work import add_doubts, audited, connector, make_older, send
from tests.due_work import places, value
from tests.services.test_incident import CONFIG

Conn = psycopg.Connection[Any]
HOUR = timedelta(hours=1)
SENDER = "Shop <billing@shop.example>"


@dataclass
class Oracle:
    """Answers by Message-ID; keeps what it was asked. What it does not name it does not know."""

    answers: Mapping[str, Known] = field(default_factory=dict)
    known_within: timedelta = timedelta(0)
    asked: list[Tried] = field(default_factory=list)

    def verify(self) -> str:
        return "knows everything"

    async def look_up(self, tried: Sequence[Tried]) -> list[Known]:
        self.asked += tried
        return [self.answers.get(each.message_id, "not_known") for each in tried]


def message_id(key: str) -> str:
    return message_id_for("a000000", key, SENDER)


def look_up(url: str, oracle: LookUp, most: int = 1000, channel: str = "noop") -> LookedUp:
    return look_up_doubts(connector(url), {channel: oracle}, {channel: SENDER}, most)


def clean(url: str) -> None:
    assert check(connector(url))["violations"] == []


def test_what_was_accepted_is_sent_what_is_not_known_is_due_and_the_rest_stays(
    conn: Conn, database_url: str
) -> None:
    accepted, unknown, nobody = add_doubts(conn, database_url, 3)
    make_older(conn, HOUR)
    answers: dict[str, Known] = {
        message_id(accepted): "accepted",
        message_id(nobody): "cannot_tell",
    }
    oracle = Oracle(answers)
    assert look_up(database_url, oracle) == LookedUp(asked=3, sent=1, due=1, cannot_tell=1)
    assert places(conn) == {"outcome": 1, "due": 1, "in_doubt": 1}
    assert conn.execute(
        "select operation_key, result, reason, attempt_no from duebook.outcome"
    ).fetchall() == [(accepted, "sent", "looked_up", 1)]
    assert {(actor, key) for actor, key, _ in audited(conn, "resolve_in_doubt")} == {
        ("look_up", accepted),
        ("look_up", unknown),
    }
    clean(database_url)
    assert send(database_url)[1] == [unknown]
    assert look_up(database_url, oracle) == LookedUp(asked=1, cannot_tell=1)
    story = explain(connector(database_url), accepted).matches[0]
    assert "when a look-up said that it was accepted" in story.answers[0].text
    clean(database_url)


def test_not_known_counts_only_after_the_last_try_and_the_stated_delay(
    conn: Conn, database_url: str
) -> None:
    [key] = add_doubts(conn, database_url, 1)
    assert look_up(database_url, Oracle()) == LookedUp(asked=1, too_early=1)
    make_older(conn, HOUR)
    slow = Oracle(known_within=2 * HOUR)
    assert look_up(database_url, slow) == LookedUp(asked=1, too_early=1)
    assert places(conn) == {"in_doubt": 1}
    assert audited(conn, "resolve_in_doubt") == []
    assert look_up(database_url, Oracle({message_id(key): "accepted"}, 2 * HOUR)).sent == 1
    assert places(conn) == {"outcome": 1}


def test_each_message_is_asked_about_with_the_time_in_which_it_may_have_been_tried(
    conn: Conn, database_url: str
) -> None:
    """A second doubt about a key covers the first one, too, whose end is not known either."""
    [key] = add_doubts(conn, database_url, 1)
    make_older(conn, HOUR)
    first = value(conn, "select claimed_at from duebook.attempt")
    oracle = Oracle()
    look_up(database_url, oracle)
    assert (oracle.asked[0].message_id, oracle.asked[0].tried_from) == (message_id(key), first)
    conn.execute("delete from duebook.due")
    _doubt_again(conn)
    look_up(database_url, oracle)
    assert oracle.asked[1].tried_from == first
    # What is known not to have been accepted is no try.
    conn.execute("update duebook.attempt_result set result = 'deferred' where attempt_no = 1")
    conn.execute("delete from duebook.due")
    _doubt_again(conn, attempt_no=3)
    look_up(database_url, oracle)
    assert oracle.asked[2].tried_from > first + HOUR / 2
    until = value(conn, "select max(look_up_from) from duebook.in_doubt")
    assert until is None or oracle.asked[2].tried_until == until


def _doubt_again(conn: Conn, attempt_no: int = 2) -> None:
    conn.execute(
        """
        with tried as (
            insert into duebook.attempt (
                account_id, intent_id, attempt_no, batch_id, position, due_at, tries, suspicions,
                claimed_at
            )
            select
                account_id, intent_id, %(attempt_no)s, batch_id, 0, due_at, 0, 0, clock_timestamp()
            from duebook.attempt where attempt_no = 1
            returning *
        )
        insert into duebook.in_doubt (
            account_id, intent_id, attempt_no, batch_id, cause, due_at, kind, channel, give_up_at,
            tries, claims, look_up_from
        )
        select
            t.account_id, t.intent_id, t.attempt_no, t.batch_id, 'sender_died', t.due_at, i.kind,
            i.channel, i.give_up_at, 0, t.attempt_no, clock_timestamp()
        from tried as t
        inner join duebook.intent as i using (account_id, intent_id)
        """,
        {"attempt_no": attempt_no},
    )


def test_what_a_restore_took_back_may_have_been_sent_since_it_was_promised(
    conn: Conn, database_url: str
) -> None:
    add_doubts(conn, database_url, 1)
    conn.execute("update duebook.in_doubt set cause = 'restored', due_at = due_at - interval '1 h'")
    conn.execute("update duebook.ledger_change set evidence_at = '2026-01-01T00:00Z'")
    oracle = Oracle({}, known_within=HOUR)
    look_up(database_url, oracle)
    assert oracle.asked[0].tried_from == datetime.fromisoformat("2026-01-01T00:00Z")
    conn.execute("update duebook.ledger_change set evidence_at = clock_timestamp()")
    look_up(database_url, oracle)
    assert oracle.asked[1].tried_from == value(conn, "select due_at from duebook.in_doubt")
    conn.execute("update duebook.in_doubt set due_at = clock_timestamp()")
    look_up(database_url, oracle)
    assert oracle.asked[2].tried_from == value(conn, "select created_at from duebook.intent")


def test_a_pass_is_bounded_and_takes_the_oldest_first(
    conn: Conn, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duebook.services.look_up._AT_ONCE", 4)
    keys = add_doubts(conn, database_url, 12)
    make_older(conn, HOUR)
    everything = Oracle({message_id(key): "cannot_tell" for key in keys[:2]})
    assert look_up(database_url, everything, most=10) == LookedUp(asked=10, due=8, cannot_tell=2)
    assert places(conn) == {"due": 8, "in_doubt": 4}
    asked = [each.message_id for each in everything.asked]
    assert sorted(asked) == sorted(map(message_id, keys[:10]))
    assert look_up(database_url, Oracle(), most=0) == LookedUp()


def test_a_channel_that_nobody_can_be_asked_about_is_left_alone(
    conn: Conn, database_url: str
) -> None:
    add_doubts(conn, database_url, 1)
    make_older(conn, HOUR)
    assert look_up(database_url, Oracle(), channel="email") == LookedUp()
    assert places(conn) == {"in_doubt": 1}


def test_a_person_who_answers_while_a_look_up_is_under_way_is_first(
    conn: Conn, database_url: str
) -> None:
    [key] = add_doubts(conn, database_url, 1)
    make_older(conn, HOUR)

    class Slow(Oracle):
        async def look_up(self, tried: Sequence[Tried]) -> list[Known]:
            resolve(connector(database_url), Resolution(key, True, "seen", "ada"))
            return await super().look_up(tried)

    assert look_up(database_url, Slow()) == LookedUp(asked=1)
    assert places(conn) == {"outcome": 1}
    assert [actor for actor, _, _ in audited(conn, "resolve_in_doubt")] == ["ada"]
    clean(database_url)


def test_the_log_of_a_relay_ends_what_a_dead_connection_left(
    conn: Conn, database_url: str, tmp_path: Path
) -> None:
    taken, never = add_doubts(conn, database_url, 2)
    make_older(conn, HOUR)
    log = tmp_path / "mail.log"
    log.write_text(
        _line(conn, "-2 h", "cleanup[1]: AA: message-id=<other@shop.example>")
        + _line(conn, "-1 h", f"cleanup[1]: BB: message-id={message_id(taken)}")
        + _line(conn, "-1 h", "qmgr[2]: BB: from=<x@shop.example>, size=9, nrcpt=1 (queue active)")
    )
    assert look_up(database_url, RelayLog(log)) == LookedUp(asked=2, sent=1, cannot_tell=1)
    with log.open("a") as file:
        file.write(_line(conn, "0 h", "anvil[3]: statistics: max cache size 1"))
    assert look_up(database_url, RelayLog(log)) == LookedUp(asked=1, due=1)
    assert send(database_url)[1] == [never]
    clean(database_url)


def _line(conn: Conn, ago: str, text: str) -> str:
    at: datetime = value(conn, "select clock_timestamp() + %s::interval", ago)
    return f"{at.isoformat()} mx postfix/{text}\n"


def test_doubts_look_up_asks_the_log_that_duebook_toml_names(
    conn: Conn, database_url: str, duebook_cli: DuebookCli, tmp_path: Path
) -> None:
    [key] = add_doubts(conn, database_url, 1)
    make_older(conn, HOUR)
    log, config = tmp_path / "mail.log", tmp_path / "duebook.toml"
    config.write_text(
        CONFIG.replace(
            "[channels.noop]", f'[channels.noop]\nsender = "{SENDER}"\nrelay_log = "{log}"'
        )
    )
    duebook_cli.environment["DUEBOOK_CONFIG_FILE"] = str(config)
    told = duebook_cli.in_process("doubts", "--look-up", "--json").json
    assert told["looked_up"] == LookedUp(asked=1, cannot_tell=1).to_json()
    assert [row["message_id"] for row in told["doubts"]] == [message_id(key)]
    log.write_text(
        _line(conn, "-1 h", f"cleanup[1]: BB: message-id={message_id(key)}")
        + _line(conn, "-1 h", "qmgr[2]: BB: from=<>, size=9, nrcpt=1 (queue active)")
    )
    shown = duebook_cli.in_process("doubts", "--look-up").stdout
    assert "looked up 1: 1 accepted" in shown
    assert "nothing is in doubt" in shown
    assert places(conn) == {"outcome": 1}
