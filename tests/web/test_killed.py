"""A receiver as a process of its own, killed between receiving and commit."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest

from duebook.db.connect import connect_url
from tests.conftest import DuebookCli
from tests.web.receiving import CONFIGURATION, STANDARD_SECRET, STRIPE_SECRET, event, stripe_headers

DEADLINE_S = 60
WAITING = """
    select count(*) from pg_stat_activity
    where datname = current_database() and application_name = 'duebook receiver'
"""


@pytest.fixture
def serving(duebook_cli: DuebookCli, tmp_path: Path) -> Callable[[], Any]:
    """Starts `duebook serve webhooks`; gives its process and its address."""
    file = tmp_path / "duebook.toml"
    file.write_text(CONFIGURATION)
    duebook_cli.environment |= {
        "DUEBOOK_CONFIG_FILE": str(file),
        "AIRFLOW_CONN_STRIPE_WEBHOOK": json.dumps({"conn_type": "http", "password": STRIPE_SECRET}),
        "AIRFLOW_CONN_STANDARD_WEBHOOK": json.dumps(
            {"conn_type": "http", "password": STANDARD_SECRET}
        ),
    }

    @contextmanager
    def start() -> Iterator[tuple[subprocess.Popen[str], str]]:
        with duebook_cli.start("serve", "webhooks", "--port", "0", "--json") as process:
            try:
                assert process.stdout is not None
                told = json.loads(process.stdout.readline())
                assert f"{told['url']}/webhooks/stripe" in told["endpoints"]
                yield process, told["url"]
            finally:
                process.kill()

    return start


def post(url: str, body: bytes) -> httpx.Response:
    return httpx.post(
        f"{url}/webhooks/stripe",
        content=body,
        headers=stripe_headers(body),
        timeout=DEADLINE_S,
        trust_env=False,
    )


def until(conn: psycopg.Connection[Any], condition: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while conn.execute(condition.encode()).fetchone() != (1,):
        assert time.monotonic() < deadline, condition
        time.sleep(0.02)


@pytest.mark.crash
def test_one_that_is_killed_before_the_commit_answered_nothing_and_stored_nothing(
    serving: Callable[[], Any], conn: psycopg.Connection[Any], database_url: str
) -> None:
    body = event("1")
    with (
        serving() as (process, url),
        ThreadPoolExecutor() as pool,
        connect_url(database_url) as blocker,
    ):
        blocker.execute("lock table duebook.webhook_receipt")
        answer = pool.submit(post, url, body)
        until(conn, f"{WAITING} and wait_event_type = 'Lock'")
        process.kill()
        with pytest.raises(httpx.TransportError):
            answer.result(timeout=DEADLINE_S)
    until(conn, WAITING.replace("count(*)", "1 - count(*)"))
    assert conn.execute("select count(*) from duebook.webhook_receipt").fetchone() == (0,)
    with serving() as (process, url):
        assert [post(url, body).json()["status"] for _ in range(2)] == ["stored", "duplicate"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=DEADLINE_S) in (0, -signal.SIGTERM)
    assert conn.execute("select count(*) from duebook.webhook_receipt").fetchone() == (1,)


def test_serving_says_in_one_line_what_keeps_it_from_it(
    duebook_cli: DuebookCli, tmp_path: Path
) -> None:
    file = tmp_path / "duebook.toml"
    file.write_text(CONFIGURATION)
    duebook_cli.environment["DUEBOOK_CONFIG_FILE"] = str(file)
    missing = duebook_cli.in_process("serve", "webhooks", "--port", "0")
    assert (missing.code, missing.stdout) == (2, "")
    assert "AIRFLOW_CONN_STRIPE_WEBHOOK" in missing.stderr
    file.write_text(CONFIGURATION[: CONFIGURATION.index("[webhooks.stripe]")])
    nothing = duebook_cli.in_process("serve", "webhooks", "--port", "0")
    assert "nothing to receive" in nothing.stderr


@pytest.mark.slow
def test_a_gigabyte_in_chunks_leaves_its_memory_as_it_was(serving: Callable[[], Any]) -> None:
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    head = b"POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with serving() as (process, url):
        port = int(url.rpartition(":")[2])
        watched = psutil.Process(process.pid)
        _pour(port, head, chunk, 16 * 1024 * 1024)
        before = watched.memory_info().rss
        poured = _pour(port, head, chunk, 1024 * 1024 * 1024)
        grown = watched.memory_info().rss - before
        assert httpx.get(f"{url}/health", trust_env=False, timeout=DEADLINE_S).status_code == 200
    assert poured >= 1024 * 1024 * 1024
    assert grown < 16 * 1024 * 1024


def _pour(port: int, head: bytes, chunk: bytes, most: int) -> int:
    """Send chunks without an end, over as many connections as it takes; gives the bytes taken."""
    poured = 0
    while poured < most:
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as raw:
            try:
                raw.sendall(head)
                while poured < most:
                    raw.sendall(chunk)
                    poured += len(chunk)
            except OSError:
                # It has answered 413 and hung up.
                continue
    return poured
