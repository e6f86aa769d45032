"""Due intents made in SQL, and what became of them: for the tests of the sweep."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg

from duebook.channels.base import Message, SendResult
from duebook.db.connect import connect_url
from duebook.services.sweep import SweepConfig, SweepRequest, sweep

Conn = psycopg.Connection[Any]

PLACES = ("proposed", "due", "in_doubt", "held", "batch", "outcome")


def add_kind(
    conn: Conn, kind: str = "payment_settled", channel: str = "noop", **other: Any
) -> None:
    """A kind that sends everything for a week; `other` overrides columns."""
    columns = {
        "enabled": True,
        "notify_after": timedelta(0),
        "give_up_after": timedelta(days=7),
        "is_superseded": False,
        "catch_up": "all",
        "catch_up_window": timedelta(days=7),
        "max_occurrences": 1_000_000,
        # Without any distance between two missed ones.
        "spread_per_minute": 1_000_000_000,
        "max_tries": 3,
        "max_claims": 3,
        **other,
    }
    names = ["kind", "channel", *columns]
    marks = ", ".join(["%s"] * len(names))
    conn.execute(
        f"insert into duebook.intent_kind ({', '.join(names)}) values ({marks})"
        " on conflict do nothing",
        [kind, channel, *columns.values()],
    )


_CONTACTS: Final = """
insert into duebook.contact (account_id, channel, address, zone)
select %(prefix)s || lpad(a::text, 6, '0'), %(channel)s, 'x@example.test', 'UTC'
from generate_series(0, %(accounts)s - 1) as a
on conflict do nothing
"""

_INTENTS: Final = """
with wanted as (
    select
        %(prefix)s || lpad((g %% %(accounts)s)::text, 6, '0') as account_id,
        %(prefix)s || g as payment_id,
        g
    from generate_series(
        %(first)s::integer, %(first)s::integer + %(count)s::integer - 1
    ) as g
),
booked as (
    insert into duebook.ledger_payment (
        account_id, payment_id, reference, amount_minor, currency, booked_status,
        expected_at
    )
    select account_id, payment_id, 'ref-' || payment_id, 4200, 'EUR', 'open', now()
    from wanted
    where %(with_books)s
),
changed as (
    insert into duebook.ledger_change (
        account_id, payment_id, run_id, provider_account, change_kind, before_status,
        after_status, currency, before_captured_minor, after_captured_minor,
        before_refunded_minor, after_refunded_minor, before_charged_back_minor,
        after_charged_back_minor, evidence_at
    )
    select
        account_id, payment_id, 1, 'stripe', 'balance', 'pending', 'settled', 'EUR', 0,
        4200, 0, 0, 0, 0, now()
    from wanted
    where %(with_books)s
    returning account_id, payment_id, change_id
),
made as (
    insert into duebook.intent (
        account_id, operation_key, kind, subject, payment_id, channel, notify_at,
        give_up_at, ownership, change_id
    )
    select
        w.account_id,
        %(kind)s || ':' || %(channel)s || ':stripe:' || payment_id || ':t' || g || ':v1',
        %(kind)s, 'payment:' || payment_id, payment_id, %(channel)s,
        clock_timestamp() + %(due_in)s, clock_timestamp() + %(give_up_in)s, 'live',
        c.change_id
    from wanted as w
    left join changed as c using (account_id, payment_id)
    order by g
    returning *
)
insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
select account_id, intent_id, notify_at, kind, channel, give_up_at
from made
"""


def add_due(
    conn: Conn,
    count: int,
    *,
    accounts: int = 1,
    prefix: str = "a",
    channel: str = "noop",
    kind: str = "payment_settled",
    due_in: timedelta = timedelta(seconds=-1),
    give_up_in: timedelta = timedelta(days=7),
    with_contact: bool = True,
    with_books: bool = True,
    payments_from: int = 1,
) -> None:
    """`count` intents over `accounts` accounts, in due, with contact, payment and change."""
    add_kind(conn, kind, channel)
    if with_contact:
        conn.execute(
            _CONTACTS,
            {"prefix": prefix, "channel": channel, "accounts": accounts},
        )
    conn.execute(
        _INTENTS,
        {
            "prefix": prefix,
            "accounts": accounts,
            "kind": kind,
            "channel": channel,
            "due_in": due_in,
            "give_up_in": give_up_in,
            "count": count,
            "with_books": with_books,
            "first": payments_from,
        },
    )


def value(conn: Conn, statement: str, *parameters: Any) -> Any:
    """The first column of the first row."""
    row = conn.execute(statement, parameters or None).fetchone()
    return None if row is None else row[0]


def places(conn: Conn) -> dict[str, int]:
    """How many intents stand in each place; fails when one stands in none or in two."""
    found = {
        place: value(conn, f"select count(*) from duebook.{place}")
        for place in PLACES
        if place != "batch"
    }
    found["batch"] = value(
        conn,
        """
        select count(*)
        from duebook.batch as b
        cross join unnest(b.account_ids, b.intent_ids, b.attempt_nos) as w (a, i, n)
        where not exists (
            select from duebook.attempt_result as r
            where r.account_id = w.a and r.intent_id = w.i and r.attempt_no = w.n
        )
        """,
    )
    astray = conn.execute(
        """
        with standing as (
            select account_id, intent_id, 'proposed' as place from duebook.proposed
            union all select account_id, intent_id, 'due' from duebook.due
            union all select account_id, intent_id, 'in_doubt' from duebook.in_doubt
            union all select account_id, intent_id, 'held' from duebook.held
            union all select account_id, intent_id, 'outcome' from duebook.outcome
            union all
            select w.a, w.i, 'batch'
            from duebook.batch as b
            cross join unnest(b.account_ids, b.intent_ids, b.attempt_nos) as w (a, i, n)
            where not exists (
                select from duebook.attempt_result as r
                where r.account_id = w.a and r.intent_id = w.i and r.attempt_no = w.n
            )
        )
        select i.account_id, i.intent_id, array_agg(s.place)
        from duebook.intent as i
        left join standing as s using (account_id, intent_id)
        group by i.account_id, i.intent_id
        having count(s.place) <> 1
        """
    ).fetchall()
    assert not astray, astray[:5]
    return {place: count for place, count in found.items() if count}


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 30) -> Any:
    """The first true answer of `condition`; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = condition()
        if answer:
            return answer
        time.sleep(0.01)
    raise AssertionError(f"{what}: not within {seconds} s")


@dataclass
class ScriptedChannel:
    """Answers by script: a function from the message and the number of its send; keeps a log."""

    answer: Callable[[Message, int], SendResult] = lambda message, number: SendResult("accepted")
    name: str = "noop"
    idempotent: bool = False
    safe_retry_for: timedelta | None = None
    io_timeout: timedelta = timedelta(seconds=1)
    max_concurrency: int = 4
    log: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    async def open(self) -> None:
        pass

    async def send(self, message: Message) -> SendResult:
        self.log.append(message.operation_key)
        self.messages.append(message)
        return self.answer(message, self.log.count(message.operation_key))

    async def close(self) -> None:
        pass

    async def verify(self) -> str:
        return "scripted"


def run_sweep(url: str, *channels: Any, config: SweepConfig | None = None, **request: Any) -> Any:
    """One sweep of these channels in this process; `request` are fields of SweepRequest."""
    return sweep(
        partial(connect_url, url, autocommit=True),
        SweepRequest(**{"environment": "test", **request}),
        {channel.name: channel for channel in channels},
        config,
    )


def start_sender(url: str, *arguments: str, log: Path | None = None) -> subprocess.Popen[str]:
    """A sweep in a process of its own; see tests/crash/sender_process.py."""
    script = Path(__file__).parent / "crash" / "sender_process.py"
    return subprocess.Popen(
        [sys.executable, str(script), url, str(log or "-"), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
