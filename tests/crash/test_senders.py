"""Senders as real processes: many at once, killed, stopped, cut off. At most one send a key."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.db.connect import connect_url
from duebook.services.sweep import SweepRequest, sweep
from tests.crash.sender_process import LoggingChannel
from tests.due_work import add_due, places, start_sender, value, wait_for

pytestmark = pytest.mark.crash

Conn = psycopg.Connection[Any]


@contextmanager
def running(url: str, log: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A sender process that has begun; killed at the end whatever happens."""
    process = start_sender(url, *arguments, log=log)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        go_on(process)
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def wait_until_paused(process: subprocess.Popen[str]) -> None:
    """Returns once the sender waits at its send; what it logs before that is passed over."""
    assert process.stdout is not None
    for line in process.stdout:
        if line == "paused\n":
            return
    raise AssertionError("the sender ended without a pause")


def report_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The report that ends a sender's output, after its log lines."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            report: dict[str, Any] = json.loads(line)
            return report
    raise AssertionError("the sender ended without a report")


def sends(log: Path) -> Counter[str]:
    return Counter(log.read_text().split()) if log.exists() else Counter()


def lapse(conn: Conn) -> None:
    """As if every lease had run out."""
    conn.execute("update duebook.batch set lease_until = clock_timestamp() - interval '1 second'")


def finish(url: str, log: Path) -> dict[str, Any]:
    """A sound sender does the rest, over the same provider."""
    request = SweepRequest(environment="test", sender="survivor", window_messages=50)
    return sweep(
        partial(connect_url, url, autocommit=True), request, {"noop": LoggingChannel(str(log), {})}
    ).to_json()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_eight_processes_claim_each_row_once(conn: Conn, database_url: str, tmp_path: Path) -> None:
    add_due(conn, 100_000, accounts=200, with_books=False)
    log = tmp_path / "sends"
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                running(database_url, log, "bulk=1", "batch=1000", "window=1000", f"sender=s{n}")
            )
            for n in range(8)
        ]
        reports = [report_of(process) for process in processes]
    assert sum(report["claimed"] for report in reports) == 100_000
    assert sum(report["sent"] for report in reports) == 100_000
    assert value(conn, "select count(*) from duebook.attempt") == 100_000
    assert (
        value(conn, "select count(distinct (account_id, intent_id)) from duebook.attempt")
        == 100_000
    )
    assert max(sends(log).values()) == 1
    assert places(conn) == {"outcome": 100_000}


def test_a_sender_killed_in_mid_batch_costs_at_most_one_window(
    conn: Conn, database_url: str, tmp_path: Path
) -> None:
    add_due(conn, 500, accounts=20)
    log = tmp_path / "sends"
    with running(database_url, log, "batch=500", "window=50", "die=after_accept", "at=130") as dead:
        dead.wait(30)
        assert dead.returncode == -signal.SIGKILL
    assert sum(sends(log).values()) == 130
    assert places(conn) == {"outcome": 100, "batch": 400}
    lapse(conn)
    conn.execute("select * from duebook.rescue_batches(10, 50)")
    # Above the mark: due at once. The window that was open: in doubt, sent or not.
    assert places(conn) == {"outcome": 100, "in_doubt": 50, "due": 350}
    assert value(conn, "select count(*) from duebook.due where due_at <= clock_timestamp()") == 350
    finish(database_url, log)
    assert places(conn) == {"outcome": 450, "in_doubt": 50}
    assert set(sends(log).values()) == {1}
    assert value(conn, "select count(*) from duebook.outcome where result = 'sent'") == 450


@pytest.mark.parametrize(
    ("point", "at", "expected_in_doubt"),
    [
        ("before_claim_commit", 1, 0),
        ("after_claim_commit", 1, 0),
        ("before_send", 7, 10),
        ("after_accept", 7, 10),
        ("after_flush", 2, 10),
        ("after_close", 1, 0),
    ],
)
def test_a_sender_may_die_anywhere(
    conn: Conn, database_url: str, tmp_path: Path, point: str, at: int, expected_in_doubt: int
) -> None:
    add_due(conn, 60, accounts=5)
    log = tmp_path / "sends"
    arguments = ("batch=40", "window=10", f"die={point}", f"at={at}")
    with running(database_url, log, *arguments) as dead:
        dead.wait(30)
        assert dead.returncode == -signal.SIGKILL
    wait_for(
        lambda: value(
            conn,
            "select count(*) = 0 from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
            " and state like '%transaction%'",
        ),
        "the server notices the death",
    )
    places(conn)
    lapse(conn)
    finish(database_url, log)
    assert places(conn).get("in_doubt", 0) == expected_in_doubt
    assert places(conn)["outcome"] == 60 - expected_in_doubt
    assert max(sends(log).values()) == 1


def test_an_idempotent_channel_leaves_nothing_in_doubt(
    conn: Conn, database_url: str, tmp_path: Path
) -> None:
    add_due(conn, 60)
    log = tmp_path / "sends"
    arguments = ("batch=60", "window=10", "idempotent=1", "die=after_accept", "at=15")
    with running(database_url, log, *arguments) as dead:
        dead.wait(30)
    lapse(conn)
    request = SweepRequest(environment="test", window_messages=50)
    channel = LoggingChannel(str(log), {"idempotent": "1"})
    sweep(partial(connect_url, database_url, autocommit=True), request, {"noop": channel})
    assert places(conn) == {"outcome": 60}
    # The repeated ones carry the same key: the provider knows them.
    assert sum(count - 1 for count in sends(log).values()) == 5


def test_a_sender_stopped_beyond_its_lease_sends_nothing_on_waking(
    conn: Conn, database_url: str, tmp_path: Path
) -> None:
    add_due(conn, 100)
    log = tmp_path / "sends"
    arguments = (
        "batch=100", "window=50", "lease=2.5", "io_timeout=0.5", "window_time=1", "at=20", "pause=1"
    )  # fmt: skip
    with running(database_url, log, *arguments) as sender:
        wait_until_paused(sender)
        os.kill(sender.pid, signal.SIGSTOP)
        wait_for(
            lambda: value(
                conn, "select bool_and(lease_until < clock_timestamp()) from duebook.batch"
            ),
            "the lease runs out",
        )
        before = sends(log)
        assert sum(before.values()) == 20
        conn.execute("select * from duebook.rescue_batches(10, 50)")
        assert places(conn) == {"in_doubt": 50, "due": 50}
        # Another sender has what is due, and meanwhile nothing else may be sent.
        conn.execute("delete from duebook.due")
        conn.execute(
            "delete from duebook.intent"
            " where intent_id not in (select intent_id from duebook.in_doubt)"
        )
        os.kill(sender.pid, signal.SIGCONT)
        go_on(sender)
        report = report_of(sender)
    assert sends(log) == before
    assert report["stale_starts"] == 30
    assert report["late"] == 20
    # What it had sent before is known by its late flush; the rest stays in doubt.
    assert places(conn) == {"outcome": 20, "in_doubt": 30}


def test_sigterm_finishes_the_window_and_gives_the_rest_back(
    conn: Conn, database_url: str, tmp_path: Path
) -> None:
    add_due(conn, 100)
    log = tmp_path / "sends"
    with running(database_url, log, "batch=100", "window=50", "at=20", "pause=1") as sender:
        wait_until_paused(sender)
        os.kill(sender.pid, signal.SIGTERM)
        go_on(sender)
        report = report_of(sender)
        assert sender.wait(30) == 0
    assert report["sent"] == 20
    assert report["released"] == 80
    assert places(conn) == {"outcome": 20, "due": 80}
    finish(database_url, log)
    assert places(conn) == {"outcome": 100}
    assert set(sends(log).values()) == {1}


def test_a_sender_that_loses_its_connections_leaves_no_doubt(
    conn: Conn, database_url: str, tmp_path: Path
) -> None:
    add_due(conn, 200)
    log = tmp_path / "sends"
    with running(database_url, log, "batch=100", "window=50", "at=60", "pause=1") as sender:
        wait_until_paused(sender)
        ended = conn.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        ).fetchall()
        assert ended
        go_on(sender)
        report = report_of(sender)
    assert report["sent"] == 200
    assert report["unknown"] == 0
    assert places(conn) == {"outcome": 200}
    assert set(sends(log).values()) == {1}
