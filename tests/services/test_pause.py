"""Pause and resume: what is held, what is dropped, and how it goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from duebook.channels.base import SendResult
from duebook.db.connect import Connect, connect_url
from duebook.errors import InputError, RefusedError
from duebook.services.explain import explain
from duebook.services.pause import pause, resume
from duebook.services.status import status
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from tests.conftest import DuebookCli
from tests.due_work import ScriptedChannel, add_due, add_kind, places, value

Conn = psycopg.Connection[Any]
Run = Callable[..., SweepReport]
WEEK = timedelta(days=7)


@pytest.fixture
def connect(database_url: str) -> Connect:
    return partial(connect_url, database_url, autocommit=True)


@pytest.fixture
def run(connect: Connect) -> Run:
    """One sweep of a channel that accepts everything; arguments are those of the request."""

    def run(channel: ScriptedChannel | None = None, **request: Any) -> SweepReport:
        chosen = channel or ScriptedChannel()
        values = {"environment": "test", "batch_size": 100, **request}
        return sweep(connect, SweepRequest(**values), {chosen.name: chosen})

    return run


def outcomes(conn: Conn) -> dict[tuple[str, str | None], int]:
    rows = conn.execute("select result, reason, count(*) from duebook.outcome group by 1, 2")
    return {(result, reason): count for result, reason, count in rows}


def make_older(conn: Conn, by: timedelta) -> None:
    """As if everything had been promised and held that much earlier."""
    conn.execute("update duebook.held set due_at = due_at - %s, since = since - %s", [by, by])
    conn.execute("update duebook.intent set notify_at = notify_at - %s", [by])


@pytest.mark.parametrize(
    "target", ["all", "kind:payment_settled", "channel:noop", "account:a000001"]
)
def test_what_is_paused_is_held_and_the_rest_goes_on(
    conn: Conn, connect: Connect, run: Run, target: str
) -> None:
    add_due(conn, 6, accounts=3)
    add_due(conn, 6, accounts=3, kind="payment_refunded", payments_from=10)
    held = {"all": 12, "kind:payment_settled": 6, "channel:noop": 12, "account:a000001": 4}[target]
    pause(connect, target, mode="hold", reason="look first", by="ann")
    report = run()
    assert (report.counts.held, report.counts.sent) == (held, 12 - held)
    assert value(conn, "select array_agg(distinct cause) from duebook.held") == ["paused"]
    assert run().counts.claimed == 0
    assert resume(connect, target, reason="looked", by="ann")["released"] == held
    assert run().counts.sent == held
    assert places(conn) == {"outcome": 12}


@pytest.mark.parametrize(
    "target", ["all", "kind:payment_settled", "channel:noop", "account:a000000"]
)
def test_drop_ends_what_comes_due(conn: Conn, connect: Connect, run: Run, target: str) -> None:
    add_due(conn, 3)
    add_due(conn, 2, due_in=timedelta(hours=1), payments_from=10)
    pause(connect, target, mode="drop", reason="a wrong file", by="ann")
    channel = ScriptedChannel()
    run(channel)
    assert outcomes(conn) == {("expired", "dropped"): 3}
    resume(connect, target, reason="over", by="ann")
    conn.execute("update duebook.due set due_at = clock_timestamp()")
    run(channel)
    assert len(channel.log) == 2


def test_of_two_pauses_drop_wins_and_both_have_to_end(
    conn: Conn, connect: Connect, run: Run
) -> None:
    add_due(conn, 2)
    pause(connect, "all", mode="hold", reason="one", by="ann")
    pause(connect, "channel:noop", mode="hold", reason="two", by="bob")
    assert run().counts.held == 2
    assert resume(connect, "channel:noop", reason="over", by="bob")["released"] == 0
    conn.execute("update duebook.held set retest_at = clock_timestamp()")
    assert run().counts.claimed == 0
    pause(connect, "kind:payment_settled", mode="drop", reason="three", by="cy")
    conn.execute("update duebook.held set retest_at = clock_timestamp()")
    run()
    assert outcomes(conn) == {("expired", "dropped"): 2}


def test_a_pause_after_the_claim_holds_from_the_next_window_on(
    conn: Conn, connect: Connect, run: Run
) -> None:
    add_due(conn, 3)

    def answer(message: Any, number: int) -> SendResult:
        pause(connect, "account:a000000", mode="hold", reason="stop", by="ann")
        return SendResult("accepted")

    channel = ScriptedChannel(answer)
    run(channel, window_messages=1)
    assert len(channel.log) == 1
    assert places(conn) == {"outcome": 1, "held": 2}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"catch_up": "all"}, {("sent", None): 4}),
        ({"catch_up": "latest"}, {("sent", None): 1, ("expired", "superseded"): 3}),
        (
            {"catch_up": "all", "max_occurrences": 3},
            {("sent", None): 3, ("expired", "superseded"): 1},
        ),
        ({"catch_up": "skip"}, {("expired", "skipped"): 4}),
        (
            {"catch_up": "all", "catch_up_window": timedelta(hours=4)},
            {("expired", "too_late"): 4},
        ),
    ],
    ids=str,
)
def test_a_resume_leaves_each_to_its_catch_up_policy(
    conn: Conn, connect: Connect, run: Run, policy: dict[str, Any], expected: dict[Any, int]
) -> None:
    add_kind(conn, **policy)
    add_due(conn, 4)
    conn.execute("update duebook.intent set subject = 'payment:one'")
    pause(connect, "all", mode="hold", reason="outage", by="ann")
    run()
    make_older(conn, timedelta(hours=5))
    due = value(conn, "select array_agg(due_at order by intent_id) from duebook.held")
    resume(connect, "all", reason="over", by="ann")
    assert run().released_held == 4
    assert outcomes(conn) == expected
    assert value(conn, "select array_agg(due_at order by intent_id) from duebook.outcome") == due
    assert value(conn, "select array_agg(distinct reason) from duebook.intent_change") == [
        "resumed"
    ]


def test_what_is_paused_ends_at_its_limit(conn: Conn, connect: Connect, run: Run) -> None:
    add_due(conn, 2, give_up_in=timedelta(hours=1))
    pause(connect, "all", mode="hold", reason="outage", by="ann")
    run()
    conn.execute("update duebook.held set give_up_at = clock_timestamp(), retest_at = give_up_at")
    conn.execute("update duebook.held set retest_at = clock_timestamp()")
    run()
    assert outcomes(conn) == {("expired", "too_late"): 2}


def test_a_long_pause_is_tested_less_and_less_often(conn: Conn, connect: Connect, run: Run) -> None:
    add_due(conn, 1)
    pause(connect, "all", mode="hold", reason="outage", by="ann")
    run()
    waits = []
    for age in (timedelta(0), timedelta(hours=1), timedelta(days=3)):
        conn.execute(
            "update duebook.held"
            " set since = clock_timestamp() - %s::interval, retest_at = clock_timestamp()",
            [age],
        )
        run()
        waits.append(
            value(
                conn, "select date_trunc('second', retest_at - clock_timestamp()) from duebook.held"
            )
        )
    assert timedelta(0) < waits[0] <= timedelta(minutes=1) < waits[1] < waits[2]
    assert waits[2] <= timedelta(hours=6)


def test_a_pass_beside_a_resume_puts_nothing_off_for_long(
    conn: Conn, connect: Connect, run: Run
) -> None:
    """A resume that is not committed yet: its pause is locked, so what it means is not known."""
    add_due(conn, 5)
    pause(connect, "all", mode="hold", reason="outage", by="ann")
    run()
    conn.execute(
        "update duebook.held set since = since - interval '3 days', retest_at = clock_timestamp()"
    )
    with connect() as other, other.transaction(force_rollback=True):
        other.execute("delete from duebook.pause")
        assert run().released_held == 0
    assert value(
        conn, "select max(retest_at) <= clock_timestamp() + interval '1 minute' from duebook.held"
    )
    assert places(conn) == {"held": 5}


def test_one_sweep_puts_back_more_than_one_pass_holds(
    conn: Conn, connect: Connect, run: Run
) -> None:
    add_due(conn, 2500, accounts=50, with_books=False)
    conn.execute(
        """
        with gone as (delete from duebook.due returning *)
        insert into duebook.held (
            account_id, intent_id, cause, due_at, kind, channel, give_up_at, tries, claims
        )
        select account_id, intent_id, 'paused', due_at, kind, channel, give_up_at, tries, claims
        from gone
        """
    )
    report = run(ScriptedChannel(), batch_size=1000, window_messages=1000)
    assert report.released_held == 2500
    assert value(conn, "select count(*) from duebook.held where cause = 'paused'") == 0


def test_pause_and_resume_are_audited_and_repeatable(conn: Conn, connect: Connect) -> None:
    add_kind(conn)
    first = pause(connect, "kind:payment_settled", mode="hold", reason="why", by="ann")
    assert first["done"] == "paused"
    for mode, reason, done in (
        ("hold", "why", "unchanged"),
        ("drop", "why", "changed"),
        ("drop", "better", "changed"),
    ):
        again = pause(connect, "kind:payment_settled", mode=mode, reason=reason, by="bob")  # type: ignore[arg-type]
        assert again["done"] == done
    assert resume(connect, "kind:payment_settled", reason="done", by="cy")["done"] == "resumed"
    assert resume(connect, "kind:payment_settled", reason="done", by="cy")["done"] == "not_paused"
    events = conn.execute(
        "select actor, action, subject, detail ->> 'reason', detail ->> 'mode'"
        " from duebook.audit_event where action in ('pause', 'resume') order by audit_event_id"
    ).fetchall()
    assert events == [
        ("ann", "pause", "kind:payment_settled", "why", "hold"),
        ("bob", "pause", "kind:payment_settled", "why", "drop"),
        ("bob", "pause", "kind:payment_settled", "better", "drop"),
        ("cy", "resume", "kind:payment_settled", "done", "drop"),
    ]


SLIPS: list[tuple[str, type[Exception], str]] = [
    ("payment_settled", InputError, "expected all, kind:"),
    ("kind:", InputError, "expected all, kind:"),
    ("region:FR", InputError, "expected all, kind:"),
    ("kind:payment_setled", InputError, "no kind is known by the name 'payment_setled'"),
    ("channel:pigeon", InputError, "no channel is known"),
    ("account:nobody", InputError, "no account is known"),
    ("channel:internal", RefusedError, "holds always expire"),
    ("kind:hold_expiry", RefusedError, "holds always expire"),
]


def test_a_slip_pauses_nothing_in_silence(conn: Conn, connect: Connect) -> None:
    add_due(conn, 1)
    for target, error, said in SLIPS:
        with pytest.raises(error, match=said):
            pause(connect, target, mode="hold", reason="why", by="ann")
    for target in ("kind:payment_setled", "account:nobody", "payment_settled"):
        with pytest.raises(InputError):
            resume(connect, target, reason="why", by="ann")
    assert value(conn, "select count(*) from duebook.pause") == 0


def test_why_is_required_also_in_sql(conn: Conn, connect: Connect) -> None:
    with pytest.raises(InputError, match="say why"):
        pause(connect, "all", mode="hold", reason=" ", by="ann")
    for statement in (
        "select duebook.pause_intents('all', '*', 'hold', '', 'ann')",
        "select duebook.pause_intents('channel', 'internal', 'hold', 'why', 'ann')",
        "select duebook.resume_intents('all', '*', 'why', ' ')",
    ):
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            conn.execute(statement.encode())
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        conn.execute("select duebook.pause_intents('all', '*', 'maybe', 'why', 'ann')")


def test_status_and_explain_say_who_paused_and_why(conn: Conn, connect: Connect, run: Run) -> None:
    add_due(conn, 1)
    add_due(conn, 1, due_in=timedelta(hours=1), payments_from=2)
    pause(connect, "kind:payment_settled", mode="hold", reason="the relay is replaced", by="ann")
    run()
    shown = status(connect).to_json()
    [paused] = shown["pauses"]
    assert (paused["scope"], paused["name"], paused["held_count"]) == ("kind", "payment_settled", 1)
    needs = [need for need in shown["needs"] if "the relay is replaced" in need["what"]]
    assert len(needs) == 1
    assert "duebook resume kind:payment_settled" in needs[0]["do"]
    told = [
        answer.text for match in explain(connect, "a000000").matches for answer in match.answers
    ]
    assert Counter("by ann: the relay is replaced" in text for text in told) == {True: 2}
    assert any("held: kind:payment_settled is paused (hold) since" in text for text in told)
    assert any("will be held: kind:payment_settled is paused" in text for text in told)
    resume(connect, "kind:payment_settled", reason="replaced", by="ann")
    assert status(connect).to_json()["pauses"] == []


def test_the_commands(conn: Conn, duebook_cli: DuebookCli) -> None:
    add_due(conn, 1)
    done = duebook_cli.in_process("pause", "all", "--mode", "hold", "--reason", "why", "--json")
    assert (done.code, done.json["done"], done.json["by"]) == (0, "paused", "pytest")
    said = duebook_cli.in_process("pause", "account:a000000", "--mode", "drop", "--reason", "why")
    assert said.stdout == "account:a000000 is paused: what comes due ends unsent (dropped)\n"
    said = duebook_cli.in_process("resume", "all", "--reason", "over")
    assert said.stdout.startswith("all is resumed: 0 held go back")
    assert duebook_cli.in_process("resume", "all", "--reason", "over").stdout == (
        "all was not paused\n"
    )
    refused = duebook_cli.in_process("pause", "all", "--reason", "why")
    assert refused.code == 2
    assert "--mode" in refused.stderr
    assert duebook_cli.in_process("pause", "kind:x", "--mode", "hold", "--reason", "y").code == 2
    assert isinstance(value(conn, "select paused_at from duebook.pause"), datetime)
