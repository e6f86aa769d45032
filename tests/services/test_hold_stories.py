"""Holds as a person meets them: explain, status, and the commands."""

from __future__ import annotations

from functools import partial
from typing import Any

import psycopg
import pytest

from duebook.db.connect import Connect, connect_url
from duebook.services.explain import explain
from duebook.services.status import status
from tests.conftest import DuebookCli
from tests.due_work import add_kind, value
from tests.hold_work import (
    cancel,
    confirm,
    create,
    database_url,
    make_older,
    shared_database,
    sweep_internal,
)

Conn = psycopg.Connection[Any]

__all__ = ["database_url", "shared_database"]


@pytest.fixture
def connect(database_url: str) -> Connect:
    return partial(connect_url, database_url, autocommit=True)


def told(connect: Connect, subject: str) -> list[tuple[str, str]]:
    """The answers of the only match: code and text."""
    [match] = explain(connect, subject).matches
    return [(answer.code, answer.text) for answer in match.answers]


def test_explain_tells_a_hold_by_its_name_at_every_stage(
    conn: Conn, connect: Connect, database_url: str
) -> None:
    create(conn, resource="room")
    [match] = explain(connect, "h1").matches
    assert (match.match, match.account_id) == ("hold", "a")
    assert match.summary[0].startswith("reserves 1 of room, ")
    codes = [answer.code for answer in match.answers]
    assert codes == ["hold_open", "not_due_yet"]
    assert "will be held" not in match.answers[1].text
    make_older(conn)
    (code, text), (due, waits) = told(connect, "h1")
    assert (code, due) == ("hold_expired", "due")
    assert "no sweep has recorded it yet" in text
    assert "no address" not in waits
    sweep_internal(database_url)
    (code, text), (done, _) = told(connect, "h1")
    assert (code, done) == ("hold_expired", "done")
    assert "a sweep recorded it" in text


def test_explain_tells_how_a_payment_ended_its_holds(conn: Conn, connect: Connect) -> None:
    add_kind(conn, "hold_refund", "email")
    for hold in ("again", "refund", "taken", "given_up"):
        create(conn, hold, resource="room", by="shop")
    confirm(conn, "taken", "pay_taken")
    cancel(conn, "given_up")
    make_older(conn)
    confirm(conn, "again", "pay_again")
    conn.execute("select duebook.set_hold_resource('room', 0)")
    confirm(conn, "refund", "pay_refund")
    assert [code for code, _ in told(connect, "taken")] == ["hold_confirmed", "settled_meanwhile"]
    assert [code for code, _ in told(connect, "given_up")] == ["hold_cancelled", "cancelled"]
    assert [code for code, _ in told(connect, "again")] == ["hold_reheld", "settled_meanwhile"]
    answers = told(connect, "refund")
    assert [code for code, _ in answers] == ["hold_refunded", "due", "due"]
    assert "payment pay_refund came after that" in answers[0][1]
    [match] = explain(connect, "refund").matches
    acts = [event.text for event in match.events if event.event == "decision"]
    assert acts[-1].startswith("confirm_hold by duebook: answer refund, is_told True")


def test_explain_takes_the_key_of_an_expiry(conn: Conn, connect: Connect) -> None:
    create(conn)
    key = value(conn, "select operation_key from duebook.intent")
    assert [code for code, _ in told(connect, key)] == ["not_due_yet"]


def test_status_says_how_many_are_open_and_that_nobody_sweeps(conn: Conn, connect: Connect) -> None:
    create(conn, "h1")
    create(conn, "h2")
    make_older(conn, "h2")
    document = status(connect).to_json()
    assert document["holds"]["open"] == 1
    assert document["holds"]["unswept"] == 1
    assert document["holds"]["oldest_unswept_s"] >= 3000
    assert conn.execute(
        "select kind, channel, scheduled, backlog from duebook_reports.due_health"
    ).fetchall() == [("hold_expiry", "internal", 2, 1)]
    needs = [need for need in document["needs"] if "hold" in need["what"]]
    assert [need["do"] for need in needs] == [
        "see that the DAG due_sweep runs, or run `duebook sweep`"
    ]


def test_the_commands_create_confirm_cancel_and_list(duebook_cli: DuebookCli, conn: Conn) -> None:
    run = duebook_cli.in_process
    assert run("hold", "resource", "room", "2", "--json").json == {
        "resource": "room", "capacity": 2, "confirmed": 0, "open": 0, "done": "set", "free": 2
    }  # fmt: skip
    made = run("hold", "create", "a", "h1", "--for", "PT15M", "--resource", "room", "--json")
    assert made.code == 0
    assert (made.json["done"], made.json["state"]) == ("created", "open")
    assert made.json["operation_key"] == f"expire:hold:h1:{made.json['expires_at']}"
    again = run("hold", "create", "a", "h1", "--for", "PT15M", "--resource", "room", "--json")
    assert again.json == {**made.json, "done": "existed"}
    other = run("hold", "create", "a", "h1", "--for", "PT16M", "--resource", "room")
    assert (other.code, other.stdout) == (2, "")
    assert other.stderr == "duebook: hold: hold h1 of this account exists with other content\n"
    confirmed = run("hold", "confirm", "a", "h1", "--payment", "pay_1", "--json")
    assert (confirmed.code, confirmed.json["answer"]) == (0, "confirmed")
    assert (confirmed.json["state"], confirmed.json["payment_id"]) == ("confirmed", "pay_1")
    assert run("hold", "confirm", "a", "h1", "--json").json["answer"] == "already_confirmed"
    assert run("hold", "cancel", "a", "h1").code == 1
    run("hold", "create", "a", "h2", "--expires-at", "2099-01-01T00:00:00+01:00")
    assert run("hold", "cancel", "a", "h2", "--json").json["answer"] == "cancelled"
    listed = run("hold", "list", "--account", "a", "--json").json
    assert [(row["hold"], row["state"]) for row in listed] == [
        ("h1", "confirmed"),
        ("h2", "cancelled"),
    ]
    assert listed[1]["expires_at"] == "2098-12-31T23:00:00Z"
    assert "confirmed" in run("hold", "list", "--resource", "room").stdout


def test_the_commands_say_when_it_is_too_late(duebook_cli: DuebookCli, conn: Conn) -> None:
    run = duebook_cli.in_process
    create(conn, resource="room")
    make_older(conn)
    late = run("hold", "confirm", "a", "h1", "--json")
    assert (late.code, late.json["answer"], late.json["state"]) == (1, "expired", "expired")
    run("hold", "resource", "room", "0")
    # The kind of the notice comes from duebook.toml, though nobody has applied it yet.
    refund = run("hold", "confirm", "a", "h1", "--payment", "pay_1", "--json")
    assert (refund.code, refund.json["answer"]) == (1, "refund")
    assert refund.json["refund_key"] == "hold_refund:email:hold:pay_1:h1:v1"
    shown = run("hold", "confirm", "a", "h1", "--payment", "pay_1").stdout
    assert "is to be refunded\nhold_refund:email:hold:pay_1:h1:v1\n" in shown
    explained = run("explain", refund.json["refund_key"], "--json").json
    assert [answer["code"] for answer in explained["matches"][0]["answers"]] == ["due"]


REFUSED = [
    (("create", "a", "h1"), "expires_at: expected either an instant or how long to hold"),
    (("create", "a", "h1", "--for", "P1M"), "--for 'P1M': expected an ISO 8601 duration"),
    (("create", "a", "h1", "--for", "PT0S"), "for: expected more than nothing"),
    (("create", "a", "h1", "--expires-at", "2099-01-01"), "has no offset"),
    (("create", "a", "h1", "--expires-at", "2020-01-01T00:00:00Z"), "expires_at: not after now"),
    (("create", "a", "", "--for", "PT1M"), "hold: empty"),
    (("create", "a", "h1", "--for", "PT1M", "--quantity", "0"), "quantity: expected a whole"),
    (("confirm", "a", "unknown"), "there is no hold unknown of this account"),
    (("resource", "room", "x"), "expected a whole number from 0, or none"),
    (("list", "--state", "gone"), "state: 'gone' is none of open, expired"),
]


def test_what_can_not_be_is_one_line_and_exit_2(duebook_cli: DuebookCli) -> None:
    for arguments, complaint in REFUSED:
        refused = duebook_cli.in_process("hold", *arguments)
        assert refused.code == 2, arguments
        assert complaint in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_a_full_resource_is_one_line_and_exit_2(duebook_cli: DuebookCli) -> None:
    run = duebook_cli.in_process
    run("hold", "resource", "room", "1")
    run("hold", "create", "a", "h1", "--for", "PT15M", "--resource", "room")
    full = run("hold", "create", "b", "h2", "--for", "PT15M", "--resource", "room")
    assert full.code == 2
    assert full.stderr == (
        "duebook: hold: the resource room has no room for 1 more (Its capacity is 1.)\n"
    )
