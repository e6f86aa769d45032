"""Leaving a topic by the link of a message: POST acts, GET never does, nobody can guess it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import psycopg
import pytest

from duebook.channels.base import SendResult
from duebook.connections import ConnectionSpec
from duebook.errors import InputError
from duebook.services.unsubscribe import Topic, UnsubscribeLinks
from duebook.settings import Settings
from tests.due_work import ScriptedChannel, add_due, places, run_sweep, value
from tests.web.receiving import CONFIGURATION, CONNECTIONS, Running, running, with_database

Conn = psycopg.Connection[Any]

SECRET = "a secret that is long enough for this purpose"
BEFORE = "the secret before that, as long as it has to be"
TOPIC = Topic("a000000", "payment_settled", "noop")
ONE_CLICK = {"List-Unsubscribe": "One-Click"}
CONNECTION = ConnectionSpec(
    "duebook_unsubscribe", "http", password=SECRET, extra={"previous": BEFORE}
)


def links(url: str = "https://mail.example.test", secret: str = SECRET) -> UnsubscribeLinks:
    return UnsubscribeLinks(url, [secret], frozenset({"payment_settled"}))


@pytest.fixture
def receiver(configured: Settings, database_url: str) -> Iterator[Running]:
    assert configured.config_file is not None
    configured.config_file.write_text(
        CONFIGURATION
        + '\n[unsubscribe]\nurl = "https://mail.example.test"\nconnection = "duebook_unsubscribe"\n'
    )
    known = {**CONNECTIONS, "duebook_unsubscribe": CONNECTION}
    with running(with_database(configured, database_url), connections=known) as started:
        yield started


def path(topic: Topic = TOPIC, secret: str = SECRET) -> str:
    return links("", secret).url_for(topic)


def decisions(conn: Conn) -> list[tuple[Any, ...]]:
    return conn.execute(
        "select account_id, kind, channel, granted, source from duebook.consent order by 1, 2"
    ).fetchall()


def test_a_get_shows_a_form_and_does_nothing(conn: Conn, receiver: Running) -> None:
    for method in ("GET", "HEAD"):
        answer = receiver.client.request(method, path())
        assert answer.status_code == 200
    page = receiver.client.get(path()).text
    assert "payment settled" in page
    assert '<form method="post">' in page
    # It names nobody, and no script or picture of elsewhere is let in.
    assert "a000000" not in page
    policy = receiver.client.get(path()).headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert decisions(conn) == []


@pytest.mark.parametrize(
    "form",
    [
        {"data": ONE_CLICK},
        {"files": {name: (None, text) for name, text in ONE_CLICK.items()}},
    ],
)
def test_one_click_leaves_the_topic(conn: Conn, receiver: Running, form: Mapping[str, Any]) -> None:
    assert receiver.client.post(path(), **form).status_code == 200
    assert receiver.client.post(path(), **form).status_code == 200
    assert decisions(conn) == [("a000000", "payment_settled", "noop", False, "one_click")]
    assert value(conn, "select count(*) from duebook.audit_event where action = 'consent'") == 1


def test_a_person_may_leave_the_whole_channel(conn: Conn, receiver: Running) -> None:
    assert "no more messages by noop" in receiver.client.post(path(), data={"topic": "all"}).text
    assert decisions(conn) == [("a000000", "*", "noop", False, "unsubscribe_page")]


def test_a_link_of_the_secret_before_still_works(conn: Conn, receiver: Running) -> None:
    assert receiver.client.post(path(secret=BEFORE), data=ONE_CLICK).status_code == 200
    assert len(decisions(conn)) == 1


@pytest.mark.parametrize(
    ("status", "request_of"),
    [
        (404, {"url": "/unsubscribe/AAAA", "data": ONE_CLICK}),
        (404, {"url": "/unsubscribe/%FF%00..", "data": ONE_CLICK}),
        (404, {"url": path(secret="somebody else's secret, also long enough"), "data": ONE_CLICK}),
        (400, {"url": path(), "data": {"List-Unsubscribe": "No"}}),
        (400, {"url": path(), "data": {}, "headers": {"content-type": "multipart/form-data"}}),
        (413, {"url": path(), "data": {"topic": "x" * 5000}}),
        (415, {"url": path(), "json": ONE_CLICK}),
        (415, {"url": path()}),
    ],
)
def test_anything_else_is_refused(
    conn: Conn, receiver: Running, status: int, request_of: dict[str, Any]
) -> None:
    assert receiver.client.post(**request_of).status_code == status
    assert decisions(conn) == []


def test_every_changed_letter_of_a_link_is_noticed() -> None:
    token = path().rpartition("/")[2]
    for number in range(len(token)):
        letter = "A" if token[number] != "A" else "B"
        changed = token[:number] + letter + token[number + 1 :]
        # The last letter may hold bits that mean nothing.
        if number < len(token) - 1:
            with pytest.raises(InputError):
                links().read(changed)
    assert links().read(token) == TOPIC


def test_a_database_that_is_away_is_said(configured: Settings) -> None:
    assert configured.config_file is not None
    configured.config_file.write_text(
        CONFIGURATION
        + '\n[unsubscribe]\nurl = "https://mail.example.test"\nconnection = "duebook_unsubscribe"\n'
    )
    known = {**CONNECTIONS, "duebook_unsubscribe": CONNECTION}
    with running(configured, connections=known) as started:
        answer = started.client.post(path(), data=ONE_CLICK)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")


def test_a_message_says_how_and_the_next_is_not_sent(
    conn: Conn, database_url: str, receiver: Running
) -> None:
    add_due(conn, 1)
    channel = ScriptedChannel(lambda message, number: SendResult("accepted"))
    run_sweep(database_url, channel, links=links())
    headers = channel.messages[0].headers
    assert headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    found = re.fullmatch(
        "<https://mail.example.test(/unsubscribe/.+)>", headers["List-Unsubscribe"]
    )
    assert found is not None
    # No account can be read from it.
    assert "a000000" not in headers["List-Unsubscribe"]
    assert receiver.client.post(found[1], data=ONE_CLICK).status_code == 200
    add_due(conn, 1, payments_from=2)
    run_sweep(database_url, channel, links=links())
    assert len(channel.messages) == 1
    assert conn.execute("select reason from duebook.outcome order by 1").fetchall() == [
        ("opted_out",),
        (None,),
    ]
    assert places(conn) == {"outcome": 2}


def test_other_topics_have_no_link(conn: Conn, database_url: str) -> None:
    add_due(conn, 1, kind="payment_refunded")
    channel = ScriptedChannel(lambda message, number: SendResult("accepted"))
    run_sweep(database_url, channel, links=links())
    assert channel.messages[0].headers == {}


def test_the_edge_may_do_this_and_no_more(conn: Conn) -> None:
    conn.execute("set role duebook_receiver")
    assert value(conn, "select duebook.unsubscribe('a', 'k', 'email', 'one_click')") == "recorded"
    for statement in (
        "select * from duebook.consent",
        "select duebook.set_consent('a', 'k', 'email', true, 'x')",
        "select duebook.suppress('a', 'email', 'why', 'x')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(statement)


def test_the_links_are_checked_with_httpx_as_a_mail_program_would(receiver: Running) -> None:
    # RFC 8058 3.2: no redirect, no cookie, no login stands between the button and the act.
    answer = httpx.post(
        receiver.address + path(), data=ONE_CLICK, follow_redirects=False, timeout=60
    )
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
