"""A reconciliation run is killed at each of its statements, and asked for again.

Whatever was applied was applied whole: after each kill the database is as it was before the run or
as it is after it, and the run that follows ends where one clean run ends.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.db.connect import connect_url
from duebook.services.reconcile import ReconcileRequest, reconcile
from tests.settlement_files import World, adyen_row, booked, make_world, no_source, settled

State = dict[str, list[tuple[Any, ...]]]
TABLES = {
    "entry": "select entry_id, version, gross_minor, entry_status, account_id, payment_id"
    " from duebook.settlement_entry",
    "version": "select entry_id, version, gross_minor, source"
    " from duebook.settlement_entry_version",
    "position": "select account_id, payment_id, captured_minor, refunded_minor, entry_count"
    " from duebook.settled_position",
    "change": "select payment_id, change_kind, before_captured_minor, after_captured_minor"
    " from duebook.ledger_change",
    "discrepancy": "select kind, subject, status, provider_minor, ledger_minor, times_opened"
    " from duebook.discrepancy",
    "event": "select kind, subject, act, status_after from duebook.discrepancy_event",
    "batch": "select batch_ref, sum_minor, payout_minor, status from duebook.settlement_batch",
    "intent": "select operation_key, ownership from duebook.intent",
    "due": "select i.operation_key from duebook.due as d"
    " inner join duebook.intent as i using (account_id, intent_id)",
    "outcome": "select operation_key, result, reason from duebook.outcome",
    "file": "select name, row_count, quarantined_count from duebook.settlement_file",
    "quarantine": "select file_name, line_no, reason from duebook.quarantined_row",
}


class Counted(psycopg.Connection[Any]):
    """Kills its process at one statement, before it is sent; a commit counts as one, after it."""

    fatal = -1
    seen = 0

    def step(self) -> None:
        if Counted.seen == Counted.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        Counted.seen += 1

    def cursor(self, *arguments: Any, **named: Any) -> Any:
        self.step()
        return super().cursor(*arguments, **named)

    def execute(self, *arguments: Any, **named: Any) -> Any:
        self.step()
        return super().execute(*arguments, **named)

    @contextmanager
    def transaction(self, *arguments: Any, **named: Any) -> Iterator[Any]:
        with super().transaction(*arguments, **named) as transaction:
            yield transaction
        self.step()


def run_counted(world: World, url: str, files: tuple[Path, ...], fatal: int) -> int:
    """One run in a process of its own that dies at that statement; how many it got to."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with connect_url(url) as known:
                dsn, password = known.info.dsn, known.info.password
            Counted.fatal, Counted.seen = fatal, 0
            connect = functools.partial(Counted.connect, dsn, password=password, autocommit=True)
            reconcile(connect, ReconcileRequest("adyen", files), world.config, no_source)
            os.write(write, str(Counted.seen).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
        return int(pipe.read() or -1)


def state(world: World) -> State:
    with world.connect() as conn:
        return {
            name: sorted(map(tuple, conn.execute(text.encode())), key=repr)
            for name, text in TABLES.items()
        }


@pytest.fixture
def files(world: World) -> tuple[Path, ...]:
    """A night with everything: a correction, a refund, a bad row, a payout, a missing payment."""
    world.go_live()
    world.book(booked(1, 1000), booked(2, 2000), booked(3, 3000), booked(4, 400))
    world.reconcile(world.adyen(settled(1, "9.00", batch=1)))
    return (
        world.adyen(
            settled(1, "10.00", batch=2),
            settled(2, "20.00", batch=2),
            settled(5, "1.00", currency="QQQ", batch=2),
            adyen_row("Refunded", "-4.00", psp="PSP2", reference="REF2", batch=2),
            adyen_row("MerchantPayout", "-26.00", batch=2),
        ),
        world.adyen(settled(3, "29.00", batch=3), settled(77, "7.00", batch=3)),
    )


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> World:
    return make_world(database_url, tmp_path)


def test_a_run_that_is_killed_at_any_statement_ends_like_a_clean_one_when_asked_again(
    world: World, files: tuple[Path, ...], make_database: Callable[[], str]
) -> None:
    before = state(world)
    clean = dataclasses.replace(world, url=make_database(), _files=0)
    clean.configure()
    clean.book(booked(1, 1000), booked(2, 2000), booked(3, 3000), booked(4, 400))
    clean.reconcile(clean.adyen(settled(1, "9.00", batch=1)))
    assert state(clean) == before
    statements = run_counted(clean, clean.url, files, fatal=-1)
    assert statements > 80
    after = state(clean)
    assert after != before

    is_applied = False
    for fatal in range(statements):
        assert run_counted(world, world.url, files, fatal) == -1, "it died"
        found = state(world)
        is_applied = is_applied or found == after
        assert found == (after if is_applied else before), f"killed at statement {fatal}"
    assert is_applied, "the last of them was after the commit"
    report = world.reconcile(*files)
    assert (report.entries_new, report.entries_changed, report.intents) == (0, 0, 0)
    assert state(world) == after
