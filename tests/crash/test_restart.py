"""The server goes away in mid-window and comes back: nothing is lost, nothing doubled."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from duebook.db.connect import connect_url
from duebook.db.embedded import EmbeddedServer
from duebook.db.migrate import migrate
from tests.crash.test_senders import go_on, report_of, running, sends, wait_until_paused
from tests.due_work import add_due, places, value, wait_for

pytestmark = [pytest.mark.crash, pytest.mark.slow]


@pytest.fixture
def server(server_home: Path) -> Iterator[EmbeddedServer]:
    """A durable server of this test's own, with the environment `test`."""
    with EmbeddedServer(server_home) as server:
        url = server.ensure_database("duebook")
        migrate(url)
        with connect_url(url, autocommit=True) as conn:
            conn.execute("select duebook.accept_environment('test', true, 'pytest')")
        yield server


def restart(server: EmbeddedServer) -> None:
    server.stop()
    server.start()


def crash(server: EmbeddedServer) -> None:
    """One backend dies without a word: the server drops every session and recovers."""
    with connect_url(server.url(), autocommit=True) as conn:
        pid = value(
            conn,
            "select pid from pg_stat_activity"
            " where datname = 'duebook' and pid <> pg_backend_pid()"
            " and backend_type = 'client backend'",
        )
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: _answers(server), "the server recovers")


def _answers(server: EmbeddedServer) -> bool:
    try:
        with psycopg.connect(server.url(), connect_timeout=1):
            return True
    except psycopg.OperationalError:
        return False


@pytest.mark.parametrize("going", [restart, crash])
def test_a_server_that_goes_away_in_mid_window(
    server: EmbeddedServer, tmp_path: Path, going: Callable[[EmbeddedServer], None]
) -> None:
    with connect_url(server.url(), autocommit=True) as conn:
        add_due(conn, 120, accounts=7)
    log = tmp_path / "sends"
    with running(server.url(), log, "batch=60", "window=20", "at=30", "pause=1") as sender:
        wait_until_paused(sender)
        going(server)
        go_on(sender)
        report = report_of(sender)
    assert report["sent"] == 120
    assert report["unknown"] == 0
    assert set(sends(log).values()) == {1}
    with connect_url(server.url(), autocommit=True) as conn:
        assert places(conn) == {"outcome": 120}
