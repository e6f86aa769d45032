"""A sweeper that expires holds is killed anywhere: each hold ends once, and none is in doubt."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.db.connect import connect_url
from duebook.db.sql import query
from duebook.services.sweep import SweepRequest, sweep
from tests.crash.test_senders import lapse, running
from tests.due_work import places, value, wait_for
from tests.hold_work import confirm, create, endings, make_older, sweep_internal

pytestmark = pytest.mark.crash

Conn = psycopg.Connection[Any]
HOLDS = 30


def kill_at(url: str, log: Path, point: str) -> None:
    """A sweep as a process of its own, dead at this point."""
    with running(url, log, "batch=20", "channel=internal", f"die={point}") as dead:
        dead.wait(60)
        assert dead.returncode == -signal.SIGKILL


def wait_until_noticed(conn: Conn) -> None:
    wait_for(
        lambda: value(
            conn,
            "select count(*) = 0 from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
            " and state like '%transaction%'",
        ),
        "the server notices the death",
        60,
    )


@pytest.mark.parametrize(
    ("point", "left"),
    [
        ("before_claim_commit", {"due": 30}),
        ("after_claim_commit", {"due": 10, "batch": 20}),
        ("before_finish_commit", {"due": 10, "batch": 20}),
        ("after_finish_commit", {"due": 10, "outcome": 20}),
    ],
)
def test_a_sweeper_of_holds_may_die_anywhere(
    conn: Conn, database_url: str, tmp_path: Path, point: str, left: dict[str, int]
) -> None:
    for number in range(HOLDS):
        create(conn, f"h{number:02}", resource="room")
    make_older(conn)
    kill_at(database_url, tmp_path / "sends", point)
    wait_until_noticed(conn)
    assert places(conn) == left
    # To every reader they are expired, whatever became of the sweeper.
    assert value(conn, "select count(*) from duebook_reports.holds where state = 'expired'") == 30
    lapse(conn)
    report = sweep_internal(database_url, batch_size=20).to_json()
    assert report["rescued"] == int("batch" in left)
    assert report["done"] == HOLDS - left.get("outcome", 0)
    assert endings(conn) == {("done", None): HOLDS}
    assert places(conn) == {"outcome": HOLDS}
    assert value(conn, "select count(*) from duebook.in_doubt") == 0


def test_a_hold_paid_while_a_dead_sweeper_had_it_stays_paid(
    conn: Conn, database_url: str, tmp_path: Path
) -> None:
    create(conn, resource="room")
    make_older(conn)
    kill_at(database_url, tmp_path / "sends", "after_claim_commit")
    assert places(conn) == {"batch": 1}
    assert confirm(conn, payment="pay_1") == "reheld"
    lapse(conn)
    assert sweep_internal(database_url).to_json()["expired"] == 1
    assert endings(conn) == {("expired", "settled_meanwhile"): 1}
    assert value(conn, "select expired_at is null and reheld_at is not null from duebook.hold")


class LosingConnection(psycopg.Connection[Any]):
    """Breaks once, after the commit of an internal batch and before its answer is read."""

    is_lost = False
    has_finished = False

    def execute(self, statement: Any, *arguments: Any, **named: Any) -> Any:  # type: ignore[override]
        self.has_finished |= statement == query("finish_internal_batch")
        return super().execute(statement, *arguments, **named)

    @contextmanager
    def transaction(self, *arguments: Any, **named: Any) -> Iterator[Any]:
        with super().transaction(*arguments, **named) as transaction:
            yield transaction
        if self.has_finished and not LosingConnection.is_lost:
            LosingConnection.is_lost = True
            self.close()
            raise psycopg.OperationalError("the connection is lost")


def test_an_answer_that_was_lost_is_counted_once(conn: Conn, database_url: str) -> None:
    """The connection breaks after the commit: the repetition finds it applied."""
    for number in range(HOLDS):
        create(conn, f"h{number}")
    make_older(conn)
    with connect_url(database_url) as checked:
        dsn, password = checked.info.dsn, checked.info.password
    report = sweep(
        partial(LosingConnection.connect, dsn, password=password, autocommit=True),
        SweepRequest(environment="test"),
        {},
    ).to_json()
    assert LosingConnection.is_lost
    assert (report["done"], report["claimed"], report["batches"]) == (HOLDS, HOLDS, 1)
    assert endings(conn) == {("done", None): HOLDS}
