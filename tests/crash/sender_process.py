"""One sender as a process of its own, made to die or stop where a test wants it.

    sender_process.py URL LOG [name=value ...]

`LOG` gets one line a send, by the channel itself: the provider's own count. Names: `sender`,
`batch`, `window`, `lease` (seconds), `idempotent` (0, 1), `die` (a point), `at` (the number of the
send or window at which it dies or pauses), `pause` (1: prints "paused" at that send and waits for a
line), `bulk` (1: whole windows at once), `channel` (whose claim it dies at: noop or internal).
Prints "ready", waits for a line, then its report.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plugins"))

from duebook.channels.base import Message, SendResult
from duebook.db.connect import connect_url
from duebook.db.sql import query
from duebook.services.deliver import Sender
from duebook.services.internal import InternalBatch
from duebook.services.sweep import SweepRequest, sweep


def die() -> None:
    """As by the kernel: nothing is closed, flushed or rolled back."""
    os.kill(os.getpid(), signal.SIGKILL)


class LoggingChannel:
    """Accepts everything and logs each operation key before it answers."""

    def __init__(self, log: str, options: dict[str, str]) -> None:
        self.name = "noop"
        self.idempotent = options.get("idempotent") == "1"
        self.safe_retry_for = timedelta(days=1) if self.idempotent else None
        self.io_timeout = timedelta(seconds=float(options.get("io_timeout", "1")))
        self.max_concurrency = int(options.get("concurrency", "1"))
        self._options = options
        self._at = int(options.get("at", "0"))
        self._count = 0
        self._file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT) if log != "-" else None

    async def open(self) -> None:
        pass

    async def send(self, message: Message) -> SendResult:
        self._count += 1
        is_here = self._count == self._at
        if is_here and self._options.get("die") == "before_send":
            die()
        self._write(message.operation_key)
        if is_here and self._options.get("die") == "after_accept":
            die()
        if is_here and self._options.get("pause") == "1":
            print("paused", flush=True)
            sys.stdin.readline()
        return SendResult("accepted", message.operation_key, "250")

    def _write(self, text: str) -> None:
        if self._file is not None:
            os.write(self._file, f"{text}\n".encode())

    async def close(self) -> None:
        pass

    async def verify(self) -> str:
        return "logs"


class BulkLoggingChannel(LoggingChannel):
    """The same, a window at once."""

    async def send_keys(self, operation_keys: Sequence[str]) -> list[SendResult]:
        self._write("\n".join(operation_keys))
        return [SendResult("accepted", code="250")] * len(operation_keys)


class DyingConnection(psycopg.Connection[Any]):
    """Dies around the claim's commit, or before that of an internal batch."""

    point = ""
    channel = "noop"

    def execute(self, statement: Any, *arguments: Any, **named: Any) -> Any:  # type: ignore[override]
        if statement == query("finish_internal_batch") and self.point == "before_finish_commit":
            super().execute(statement, *arguments, **named)
            die()
        if statement != query("claim_batch") or arguments[0]["channel"] != self.channel:
            return super().execute(statement, *arguments, **named)
        if self.point == "before_claim_commit":
            with self.transaction():
                super().execute(statement, *arguments, **named)
                die()
        result = super().execute(statement, *arguments, **named)
        if self.point == "after_claim_commit":
            die()
        return result


def main() -> None:
    url, log, *rest = sys.argv[1:]
    options = dict(each.split("=", 1) for each in rest)
    point = options.get("die", "")
    DyingConnection.point = point
    DyingConnection.channel = options.get("channel", "noop")
    if point in ("after_flush", "after_close"):
        _die_after_flush(point, int(options.get("at", "1")))
    if point == "after_finish_commit":
        _die_after_finish()

    def connect() -> psycopg.Connection[Any]:
        with connect_url(url) as checked:
            information = checked.info.dsn, checked.info.password
        return DyingConnection.connect(
            information[0], password=information[1], autocommit=True, options="-c timezone=UTC"
        )

    channel_type = BulkLoggingChannel if options.get("bulk") == "1" else LoggingChannel
    request = SweepRequest(
        environment="test",
        sender=options.get("sender", "process"),
        batch_size=int(options.get("batch", "500")),
        lease=timedelta(seconds=float(options.get("lease", "60"))),
        window_messages=int(options.get("window", "50")),
        window_time=timedelta(seconds=float(options.get("window_time", "2"))),
        max_batches=int(options["batches"]) if "batches" in options else None,
    )
    query("claim_batch")
    print("ready", flush=True)
    sys.stdin.readline()
    report = sweep(connect, request, {"noop": channel_type(log, options)})
    print(json.dumps(report.to_json()), flush=True)


def _die_after_flush(point: str, at: int) -> None:
    count = 0
    flush = Sender._flush

    def dying(self: Sender, batch: Any, applied: Any) -> Any:
        nonlocal count
        flushed = flush(self, batch, applied)
        if point == "after_close" and applied.action == "close":
            die()
        if applied.endings:
            count += 1
            if point == "after_flush" and count == at:
                die()
        return flushed

    Sender._flush = dying  # type: ignore[method-assign, assignment]


def _die_after_finish() -> None:
    finish = InternalBatch.finish

    def dying(self: InternalBatch, conn: psycopg.Connection[Any]) -> Any:
        finish(self, conn)
        die()

    InternalBatch.finish = dying  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
