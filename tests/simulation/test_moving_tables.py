"""Any order of claims, flushes, deaths, rescues and cancels: an intent stands in one place, and a
provider that knows no repeats is never asked twice.

A model of what must be true walks beside the database: which keys the provider took, and which may
still be sent.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from duebook.db.connect import connect_url
from duebook.db.sql import query
from duebook.services.check import check
from duebook.services.flush import Claimed, Ending, Flush, Move, apply_flush
from tests.due_work import add_due, places

Conn = psycopg.Connection[Any]

FINISHED = datetime(2026, 11, 30, 12, tzinfo=UTC)
WINDOW = 3
RESULTS = ("sent", "sent", "sent", "failed", "deferred", "unknown", "held", "expired")


@dataclass
class Held:
    """A batch in the hands of a sender that may be slow, deaf or dead."""

    flush: Flush
    size: int
    position: int = 0
    rows: tuple[Claimed, ...] = ()
    is_over: bool = False


class MovingTables(RuleBasedStateMachine):
    """Rules are what senders, sweeps and people do; every one is a committed transaction."""

    url: ClassVar[str]
    senders = Bundle("senders")

    def __init__(self) -> None:
        super().__init__()
        self.conn = connect_url(self.url, autocommit=True)
        self.conn.execute(
            "truncate duebook.intent, duebook.due, duebook.held, duebook.in_doubt,"
            " duebook.proposed, duebook.batch, duebook.batch_ended, duebook.attempt,"
            " duebook.attempt_result, duebook.outcome, duebook.intent_request,"
            " duebook.intent_change, duebook.ledger_payment, duebook.ledger_change"
        )
        self.taken: list[int] = []
        self.payments = 0

    def teardown(self) -> None:
        """The facts hold together, as `duebook check` proves them."""
        try:
            self.facts_hold()
        finally:
            self.conn.close()

    @initialize(target=senders)
    def begin(self) -> Any:
        """Nothing is worth watching before something was claimed."""
        self.promise(6, 2)
        return self.claim(6, alone=False)

    @rule(count=st.integers(1, 8), accounts=st.integers(1, 3))
    def promise(self, count: int, accounts: int) -> None:
        """New intents fall due."""
        add_due(self.conn, count, accounts=accounts, payments_from=self.payments + 1)
        self.payments += count

    @rule(
        target=senders, size=st.integers(1, 12), alone=st.sampled_from([False, False, False, True])
    )
    def claim(self, size: int, alone: bool) -> Any:
        """A sender claims."""
        token = uuid4()
        row = self.conn.execute(
            query("claim_batch"),
            {
                "token": token,
                "sender": "model",
                "channel": "noop",
                "batch_size": size,
                "lease": timedelta(minutes=5),
                "max_age": timedelta(minutes=15),
                "safe_retry_for": None,
                "due_offset": timedelta(0),
                "alone": alone,
            },
        ).fetchone()
        assert row is not None
        flush = Flush(
            batch_id=row[0] or 0,
            token=token,
            follows=0,
            channel="noop",
            environment="test",
            lease=timedelta(minutes=5),
            endings=(),
            action="keep",
        )
        return multiple() if row[0] is None else Held(flush, size=row[1])

    @rule(
        target=senders,
        held=consumes(senders),
        results=st.lists(st.sampled_from(RESULTS), min_size=3, max_size=3),
    )
    def work_a_window(self, held: Held, results: list[str]) -> Any:
        """A sender flushes the window before and opens the next one, and sends it."""
        self.go_on(held, results)
        return multiple() if held.is_over else held

    def go_on(self, held: Held, results: list[str]) -> None:
        endings = self.endings(held, results)
        if held.position >= held.size:
            self.finish(held, endings, None)
            return
        opening = replace(
            held.flush,
            endings=endings,
            action="open",
            start=held.position,
            mark=min(held.position + WINDOW, held.size),
        )
        window = apply_flush(self.conn, opening).window
        again = apply_flush(self.conn, opening).window
        held.flush = replace(held.flush, follows=held.flush.follows + 1)
        if window is None:
            held.is_over, held.rows = True, ()
            return
        assert again is not None
        held.rows = tuple(window.rows)
        held.position = opening.mark
        for row in held.rows:
            # What a sender may send: nothing that has ended, is claimed elsewhere or was sent.
            is_over = row.has_outcome or row.is_claimed_elsewhere or row.sent_attempt_no is not None
            if not is_over and not row.requests:
                assert row.intent_id not in self.taken

    def endings(self, held: Held, results: list[str]) -> list[Ending]:
        """Results of the window in I/O, as judge would write them."""
        endings = []
        for row, result in zip(held.rows, results, strict=False):
            if row.has_outcome or row.is_claimed_elsewhere:
                endings.append(Ending(row, "skipped", "lost_claim", FINISHED))
            elif row.requests:
                endings.append(Ending(row, "expired", "cancelled", FINISHED))
            else:
                if result == "sent":
                    self.taken.append(row.intent_id)
                endings.append(Ending(row, result, REASONS[result], FINISHED, move=MOVES[result]))
        return endings

    def finish(self, held: Held, endings: list[Ending], release_from: int | None) -> None:
        closing = replace(held.flush, endings=endings, action="close", release_from=release_from)
        apply_flush(self.conn, closing)
        apply_flush(self.conn, closing)
        held.is_over, held.rows = True, ()

    @rule(
        held=consumes(senders), results=st.lists(st.sampled_from(RESULTS), min_size=3, max_size=3)
    )
    def give_back(self, held: Held, results: list[str]) -> None:
        """SIGTERM: what was sent is flushed, the rest goes back."""
        release_from = held.position if held.position < held.size else None
        self.finish(held, self.endings(held, results), release_from)

    @rule(held=consumes(senders), sent=st.integers(0, 3))
    def die(self, held: Held, sent: int) -> None:
        """SIGKILL in mid-window: the provider took some, and nobody will ever say so."""
        self.taken += [
            row.intent_id
            for row in held.rows[:sent]
            if not row.has_outcome and not row.is_claimed_elsewhere and not row.requests
        ]

    @rule(most=st.integers(2, 9))
    def rescue(self, most: int) -> None:
        """All leases run out; a sweep rescues some. Their senders do not know."""
        self.conn.execute("update duebook.batch set lease_until = clock_timestamp()")
        self.conn.execute(query("rescue_batches"), {"most": most, "window_size": WINDOW})

    @rule()
    def housekeep(self) -> None:
        """The passes beside the claims, and time that goes by."""
        self.conn.execute("update duebook.held set retest_at = clock_timestamp()")
        self.conn.execute("update duebook.due set due_at = clock_timestamp()")
        self.conn.execute(query("retest_held"), {"most": 5, "environment": "test"})
        self.conn.execute(query("expire_due"), {"most": 5})

    @precondition(lambda self: self.payments)
    @rule(number=st.integers(0, 1000))
    def cancel(self, number: int) -> None:
        """Somebody cancels."""
        self.conn.execute(
            """
            select duebook.cancel_intent(account_id, operation_key, 'model', 'model')
            from (
                select * from duebook.intent
                where payment_id = 'a' || (%s::integer %% %s::integer + 1)
            ) as chosen
            """,
            [number, self.payments],
        )

    @precondition(lambda self: self.payments)
    @rule(number=st.integers(0, 1000))
    def lose_time(self, number: int) -> None:
        """One waiting intent reaches its limit."""
        self.conn.execute(
            """
            update duebook.due set give_up_at = clock_timestamp()
            where intent_id = (select intent_id from duebook.due order by intent_id limit 1)
            """
        )

    @invariant()
    def each_intent_stands_in_one_place(self) -> None:
        """The design's sentence, after every committed transaction."""
        places(self.conn)

    @invariant()
    def no_key_is_sent_twice(self) -> None:
        """By the provider's own count."""
        assert len(self.taken) == len(set(self.taken))

    def facts_hold(self) -> None:
        moving = [
            each
            for each in check(lambda: connect_url(self.url, autocommit=True))["violations"]
            if "sum of" not in each["invariant"] and "ledger change" not in each["invariant"]
        ]
        assert moving == []


REASONS = {
    "sent": None,
    "failed": "retry",
    "deferred": "quiet_hours",
    "unknown": "connection",
    "held": "template",
    "expired": "refused",
}
MOVES = {
    "sent": None,
    "expired": None,
    "failed": Move("due", "retry", due_at=FINISHED, burns=True),
    "deferred": Move("due", "quiet_hours", due_at=FINISHED),
    "unknown": Move("in_doubt", "connection"),
    "held": Move("held", "template"),
}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_any_order_of_events(database_url: str) -> None:
    run_state_machine_as_test(
        type("Machine", (MovingTables,), {"url": database_url}),
        settings=settings(
            max_examples=int(os.environ.get("DUEBOOK_MODEL_EXAMPLES", "40")),
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
