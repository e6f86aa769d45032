"""A cluster of Debian's PostgreSQL 15, the oldest that is supported, for as long as a test runs."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from duebook.db.service_user import ServiceUser, open_way, service_user

BINARIES: Final = Path("/usr/lib/postgresql/15/bin")
OWNER: Final = "duebook"


@contextlib.contextmanager
def serving_15() -> Iterator[str]:
    """The address of its database `duebook`; the test is skipped by name where it is not there."""
    if not (BINARIES / "postgres").exists():
        pytest.skip("Debian's PostgreSQL 15 is not installed: apt install postgresql-15")
    folder = Path(tempfile.mkdtemp(prefix="duebook-pg15-"))
    user = service_user(folder)
    try:
        if user is not None:
            os.chown(folder, user.uid, user.gid)
            open_way(folder, user)
        password = secrets.token_urlsafe(16)
        port = _free_port()
        _make(folder, user, password)
        _run(user, "pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log", *_options(port))
        try:
            yield f"postgresql://{OWNER}:{password}@127.0.0.1:{port}/postgres"
        finally:
            _run(user, "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make(folder: Path, user: ServiceUser | None, password: str) -> None:
    secret = folder / "password"
    secret.write_text(password, encoding="ascii")
    if user is not None:
        os.chown(secret, user.uid, user.gid)
    options: list[Path | str] = [
        "-D",
        folder / "data",
        "-U",
        OWNER,
        "--pwfile",
        secret,
        "--auth=scram-sha-256",
    ]
    _run(user, "initdb", *options, "--encoding=UTF8", "--locale=C", "--no-sync")


def _options(port: int) -> tuple[str, str, str]:
    return "-o", f"-p {port} -h 127.0.0.1 -k '' -F", "start"


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _run(user: ServiceUser | None, program: str, *arguments: Path | str) -> None:
    owner: dict[str, Any] = (
        {} if user is None else {"user": user.uid, "group": user.gid, "extra_groups": []}
    )
    done = subprocess.run(
        [str(BINARIES / program), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
        timeout=120,
        check=False,
        **owner,
    )
    assert done.returncode == 0, done.stderr
