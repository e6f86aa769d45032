"""The fixtures of tests/conftest.py clean up, however a session ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

TESTS = Path(__file__).resolve().parents[1]
PROBE = """
import pathlib, time

def test_waits(conn, tmp_path):
    pathlib.Path({marker!r}).write_text(str(conn.info.port))
    time.sleep(60)
"""


@pytest.fixture
def temporary(server_home: Path) -> Path:
    """The directory that the session below takes for the system's."""
    return server_home


@pytest.fixture
def session(tmp_path: Path, temporary: Path) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Starts a session of its own whose one test, with a database, waits for its end."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        marker = tmp_path / "marker"
        marker.unlink(missing_ok=True)
        (tmp_path / "test_probe.py").write_text(PROBE.format(marker=str(marker)))
        environment = {k: v for k, v in os.environ.items() if k != "DUEBOOK_TEST_DATABASE_URL"}
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider"),
                *("--rootdir", str(tmp_path), str(tmp_path / "test_probe.py")),
            ],
            cwd=tmp_path,
            env={**environment, "PYTHONPATH": str(TESTS), "TMPDIR": str(temporary)},
            stdout=subprocess.DEVNULL,
        )
        started.append(process)
        deadline = time.monotonic() + 60
        while not marker.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def homes(temporary: Path) -> list[Path]:
    return list(temporary.glob("duebook-test-*"))


def servers(temporary: Path) -> list[psutil.Process]:
    return [
        each
        for each in psutil.process_iter(["cmdline"])
        if any(str(temporary) in word for word in each.info["cmdline"] or [])
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_session_leaves_nothing(
    session: Callable[[], subprocess.Popen[bytes]], temporary: Path, kind: signal.Signals
) -> None:
    process = session()
    assert len(homes(temporary)) == 1
    process.send_signal(kind)
    process.wait(timeout=60)
    assert homes(temporary) == []
    assert servers(temporary) == []


@pytest.mark.slow
def test_what_a_killed_session_left_is_cleared_by_the_next(
    session: Callable[[], subprocess.Popen[bytes]], temporary: Path
) -> None:
    killed = session()
    left = homes(temporary)
    killed.kill()
    killed.wait()
    assert len(servers(temporary)) > 0
    following = session()
    assert left[0] not in homes(temporary)
    following.send_signal(signal.SIGINT)
    following.wait(timeout=60)
    assert servers(temporary) == []


def test_each_test_has_a_database_of_its_own(
    conn: psycopg.Connection, make_database: Callable[[], str]
) -> None:
    with psycopg.connect(make_database()) as other:
        assert other.info.dbname != conn.info.dbname
        row = other.execute("select name, is_test from duebook.environment").fetchone()
    assert row == ("test", True)
