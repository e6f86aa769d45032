"""`explain` tells one story from evidence to outcome, and always why nothing was sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.db.connect import connect_url
from duebook.errors import InputError
from duebook.services.explain import explain
from duebook.services.story import Match, span

Connection = psycopg.Connection[Any]
Connect = Callable[[], Connection]

SEED = Path(__file__).with_name("seed_stories.sql")


@pytest.fixture
def connect(database_url: str) -> Connect:
    """Connections to a database with one payment for every way a night can go."""
    open_connection = partial(connect_url, database_url, autocommit=True)
    with open_connection() as conn:
        conn.execute(SEED.read_text().encode())
    return open_connection


def only(connect: Connect, subject: str) -> Match:
    """The single match of a subject."""
    (match,) = explain(connect, subject).matches
    return match


def codes(match: Match) -> list[str]:
    return [answer.code for answer in match.answers]


def key_of(connect: Connect, account_id: str, payment_id: str) -> str:
    with connect() as conn:
        row = conn.execute(
            "select operation_key from duebook.intent where account_id = %s and payment_id = %s",
            [account_id, payment_id],
        ).fetchone()
    assert row is not None
    return str(row[0])


def test_a_sent_notice_is_told_from_evidence_to_outcome(connect: Connect) -> None:
    match = only(connect, "ch_1001")
    assert [event.event for event in match.events] == [
        "booked",
        "entry",
        "entry",
        "ledger_change",
        "intent",
        "attempt",
        "decision",
        "result",
        "delay",
        "attempt",
        "result",
        "outcome",
    ]
    assert [event.at for event in match.events] == sorted(event.at for event in match.events)
    (answer,) = match.answers
    assert (answer.code, answer.was_sent) == ("sent", True)
    assert answer.operation_key == "payment_settled:email:stripe:P-1001:txn_1001:v2"


def test_each_version_of_an_entry_says_where_it_was_read(connect: Connect) -> None:
    texts = [e.text for e in only(connect, "ref-77").events if e.event == "entry"]
    assert len(texts) == 1
    assert "settlement_detail_report_batch_7.csv line 12, run 2" in texts[0]
    first, second = [e for e in only(connect, "ch_1001").events if e.event == "entry"]
    assert (first.facts["version"], first.facts["batch_ref"]) == (1, None)
    assert (second.facts["version"], second.facts["batch_ref"]) == (2, "po_1")


def test_amounts_are_exact_in_both_units(connect: Connect) -> None:
    match = only(connect, "ch_1001")
    (change,) = [e for e in match.events if e.event == "ledger_change"]
    assert "captured EUR 0.00 → EUR 12,345,678.91" in change.text
    assert change.facts["after_captured_minor"] == 1234567891
    document = match.to_json()
    assert document["facts"]["amount"] == "12345678.91"
    assert document["facts"]["amount_minor"] == 1234567891
    assert "KWD 4.200" in only(connect, "ch_mute").summary[0]
    assert "JPY 250,000" in only(connect, "ch_1002").summary[0]


@pytest.mark.parametrize(
    ("subject", "code", "says"),
    [
        ("P-old", "baseline", "older than notify_from"),
        ("P-disputed", "kind_disabled", "payment_disputed is not enabled"),
        ("P-1002", "not_due_yet", "7 d after the change"),
        ("P-mute", "held_no_contact", "import its contact"),
        ("P-missing", "in_doubt", "never resent blindly"),
        ("ref-77", "proposed", "mode dry_run"),
        ("P-pending", "pending", "left)"),
        ("P-overdue", "missing", "missing at the provider"),
        ("2x", "not_judged", "no full run of adyen has judged it"),
        ("P-nowhere", "unrouted", "[routing]"),
        ("P-void", "void", "cancelled"),
        ("P-dup-1", "duplicate_reference", "ch_dup"),
        ("P-announced", "announced", "not settled it yet"),
        ("P-fee", "nothing_changed", "neither balance nor status"),
    ],
)
def test_why_nothing_was_sent(connect: Connect, subject: str, code: str, says: str) -> None:
    match = only(connect, {"2x": "ref-2"}.get(subject, subject))
    assert codes(match) == [code]
    assert says in match.answers[0].text
    assert not match.answers[0].was_sent


def test_a_wait_is_told_with_the_time_that_is_left(connect: Connect) -> None:
    match = only(connect, "P-1002")
    last = match.events[-1]
    assert last.event == "due"
    assert "4 d 23 h left" in match.answers[0].text or "5 d" in match.answers[0].text


def test_an_entry_in_suspense_is_found_by_its_reference_and_its_own_id(connect: Connect) -> None:
    for subject in ("ch_nobody", "txn_lonely"):
        match = only(connect, subject)
        assert (match.match, codes(match)) == ("entry", ["suspense"])
        assert [e.event for e in match.events] == ["entry", "discrepancy_opened"]


def test_an_entry_in_suspense_says_who_could_claim_it(connect: Connect) -> None:
    take = "update duebook.ledger_payment set reference = 'ch_nobody' where payment_id = %s"
    with connect() as conn:
        conn.execute(take, ["P-overdue"])
    match = only(connect, "ch_nobody")
    assert (match.payment_ids, codes(match)) == (("P-overdue",), ["suspense"])
    assert "the next run of stripe gives it to that payment" in match.answers[0].text
    assert "entry" in [event.event for event in match.events]
    with connect() as conn:
        conn.execute(take, ["P-void"])
    assert codes(only(connect, "txn_lonely")) == ["duplicate_reference"]


def test_a_provider_id_finds_the_payment(connect: Connect) -> None:
    assert only(connect, "8835513921644842").payment_ids == ("P-1001",)
    assert only(connect, "ady_77").account_id == "globex"


def test_one_payment_id_in_two_accounts_lists_both(connect: Connect) -> None:
    story = explain(connect, "P-1001")
    assert [match.account_id for match in story.matches] == ["acme", "globex"]


def test_a_number_can_be_a_run_and_a_payment(connect: Connect) -> None:
    assert [match.match for match in explain(connect, "2").matches] == ["run", "payment"]
    assert [match.match for match in explain(connect, "run:2").matches] == ["run"]


def test_a_run_tells_its_files_its_quarantine_and_its_changes(connect: Connect) -> None:
    match = only(connect, "run:2")
    assert [e.event for e in match.events] == [
        "run_started",
        "file",
        "quarantined",
        "ledger_change",
        "run_committed",
    ]
    assert "line 9, column Gross Credit (GC)" in match.events[2].text
    assert "12,3x" not in json.dumps(match.to_json())
    assert codes(match) == ["proposed"]
    assert {"baseline", "kind_disabled", "sent", "held"} <= set(codes(only(connect, "run:1")))
    assert codes(only(connect, "run:3")) == ["nothing_changed"]


def test_an_account_is_one_time_line_without_its_address(connect: Connect) -> None:
    story = explain(connect, "acme")
    document = json.dumps(story.to_json())
    (match,) = story.matches
    assert len(match.payment_ids) == 13
    assert {"sent", "not_due_yet", "baseline", "unrouted"} <= set(codes(match))
    assert "secret.person" not in document
    assert all(event.facts.get("payment_id") for event in match.events)


def test_an_operation_key_is_told_alone(connect: Connect) -> None:
    match = only(connect, key_of(connect, "globex", "P-1001"))
    assert (match.match, match.account_id, codes(match)) == (
        "operation_key",
        "globex",
        ["proposed"],
    )


def test_a_key_that_was_never_promised_says_so(connect: Connect) -> None:
    match = explain(connect, "payment_refunded:email:stripe:P-old:txn_old:v1").matches[0]
    assert codes(match) == ["never_promised", "baseline"]


@pytest.mark.parametrize("subject", ["nobody-knows", "run:99", "", "  ", "a:b:c", "999999", "x\0"])
def test_an_unknown_subject_is_one_clear_line(connect: Connect, subject: str) -> None:
    with pytest.raises(InputError) as error:
        explain(connect, subject)
    assert error.value.exit_code == 2
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("statement", "code", "says"),
    [
        (
            "update duebook.environment set database_oid = 1",
            "environment",
            "copy of environment test",
        ),
        (
            "insert into duebook.budget (channel, paused_until, pause_reason)"
            " values ('email', clock_timestamp() + interval '5 minutes', '421')",
            "budget_paused",
            "after 421",
        ),
        ("delete from duebook.contact", "due", "will be held: no address for email"),
        (
            "insert into duebook.suppression (account_id, channel, reason)"
            " values ('acme', 'email', '550')",
            "due",
            "the account is suppressed",
        ),
        ("delete from duebook.due", "lost", "duebook check"),
    ],
)
def test_why_a_due_notice_waits(connect: Connect, statement: str, code: str, says: str) -> None:
    with connect() as conn:
        conn.execute("update duebook.due set due_at = clock_timestamp() - interval '1 hour'")
        conn.execute(statement.encode())
    (answer,) = only(connect, "P-1002").answers
    assert answer.code == code
    assert says in answer.text


@pytest.mark.parametrize(
    ("reason", "says"),
    [("superseded", "newer evidence"), ("too_late", "too late"), ("opted_out", "does not want")],
)
def test_why_a_notice_ended_unsent(connect: Connect, reason: str, says: str) -> None:
    with connect() as conn:
        conn.execute(
            "insert into duebook.outcome (account_id, operation_key, intent_id, kind, payment_id,"
            " result, reason, due_at) select account_id, operation_key, intent_id, kind,"
            " payment_id, 'expired', %s, notify_at from duebook.intent"
            " where payment_id = 'P-1002'",
            [reason],
        )
        conn.execute("delete from duebook.due")
    match = only(connect, "P-1002")
    assert codes(match) == [reason]
    assert says in match.answers[0].text
    assert match.events[-1].event == "outcome"


def test_a_reassigned_entry_is_told_with_where_it_came_from(connect: Connect) -> None:
    with connect() as conn:
        conn.execute(
            "insert into duebook.audit_event (actor, action, account_id, subject, detail)"
            " values ('reconcile', 'reassign_entry', 'acme', 'entry:stripe:txn_disp',"
            ' \'{"run_id": 1, "from_account": "acme", "from_payment": "P-void"}\')'
        )
    match = only(connect, "P-disputed")
    assert codes(match) == ["reassigned"]
    assert any("from_payment P-void" in event.text for event in match.events)


def test_an_account_without_notify_from_has_no_baseline(connect: Connect) -> None:
    with connect() as conn:
        conn.execute("delete from duebook.proposed")
        conn.execute("delete from duebook.intent where account_id = 'globex'")
    (answer,) = only(connect, "ref-77").answers
    assert answer.code == "not_told"
    assert "the rules were others" in answer.text


def test_the_application_role_is_enough(connect: Connect, database_url: str) -> None:
    as_application = partial(connect_url, database_url, role="duebook_app", autocommit=True)
    for subject in ("P-1001", "acme", "run:2", "ch_nobody", "8835513921644842"):
        assert explain(as_application, subject).to_json()["matches"]


def test_nothing_is_written_and_the_answer_stays(connect: Connect) -> None:
    first, second = explain(connect, "acme").to_json(), explain(connect, "acme").to_json()
    answers = [[m["events"], m["summary"]] for s in (first, second) for m in s["matches"]]
    assert answers[0] == answers[1]


def test_spans_name_two_neighbouring_units() -> None:
    from datetime import timedelta

    assert span(timedelta(days=6, hours=22, minutes=5)) == "6 d 22 h"
    assert span(timedelta(days=5, seconds=3)) == "5 d"
    assert span(timedelta(seconds=0)) == "0 s"
    assert span(timedelta(minutes=4, seconds=10)) == "4 min 10 s"
