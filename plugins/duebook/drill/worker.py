"""A worker that carries sender tasks, one after another, as an executor's worker does.

    python -m duebook.drill.worker

Reads one JSON task a line from stdin and answers each with one line: its report. Everything else is
told by the environment, as for any sender. A task may ask it to die, by SIGKILL at one point; and
of every ten flushes the first is delivered twice: its answer is lost after the commit, so the
sender connects again and repeats it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal

import psycopg
from psycopg.rows import TupleRow

from duebook.channels.base import Channel, Message, SendResult
from duebook.db.connect import connect_url, database_url, session_conninfo
from duebook.db.sql import query
from duebook.drill.zone import zones_of
from duebook.logs import configure_logs
from duebook.services.internal import INTERNAL
from duebook.services.operate import from_environment, load_configuration, make_channels
from duebook.services.sweep import SweepRequest, sweep
from duebook.settings import load_settings

ZONES_VARIABLE: Final = "DUEBOOK_DRILL_ZONES"
# Long enough for a machine that is busy with other things, short enough to be waited for.
LEASE: Final = timedelta(seconds=10)
_WINDOW_TIME: Final = timedelta(seconds=3)
_TWICE_EVERY: Final = 10


@dataclass(frozen=True, slots=True)
class Task:
    """One sender task. `dies_after`: of its messages, the one after whose acceptance it dies."""

    sender: str
    batch_size: int = 50
    window_messages: int = 16
    dies: Literal["never", "after_claim", "in_window"] = "never"
    dies_after: int = 0

    def to_json(self) -> dict[str, Any]:
        """As it is handed over."""
        return asdict(self)


@dataclass(slots=True)
class Mishaps:
    """What goes wrong in this worker, and how often it did."""

    task: Task = field(default_factory=lambda: Task("idle"))
    flushes: int = 0
    doubled: int = 0
    accepted: int = 0

    def note_claim(self, batch_id: int | None) -> None:
        """Die if this task is to die after its claim, which has committed."""
        if self.task.dies == "after_claim" and batch_id is not None:
            die()

    def loses_answer(self) -> bool:
        """Count one flush that has committed; whether its answer is lost."""
        self.flushes += 1
        is_lost = self.flushes % _TWICE_EVERY == 1
        self.doubled += is_lost
        return is_lost

    def note_accepted(self) -> None:
        """Die if this was the message to die after."""
        self.accepted += 1
        if self.task.dies == "in_window" and self.accepted == self.task.dies_after:
            die()


def die() -> None:
    """As by the kernel: nothing is closed, flushed or rolled back."""
    os.kill(os.getpid(), signal.SIGKILL)


class UnluckyConnection(psycopg.Connection[TupleRow]):
    """A connection that may end right after a flush has committed."""

    mishaps: Mishaps
    _is_flush = False

    def execute(self, statement: Any, *arguments: Any, **named: Any) -> Any:  # type: ignore[override]
        """As psycopg's; notes claims and flushes."""
        cursor = super().execute(statement, *arguments, **named)
        if statement == query("claim_batch") and arguments[0]["channel"] != INTERNAL:
            row = cursor.fetchone()
            self.mishaps.note_claim(row[0] if row else None)
            cursor.scroll(0, mode="absolute")
        if statement in (query("lock_batch"), query("finish_internal_batch")):
            self._is_flush = True
        return cursor

    @contextlib.contextmanager
    def transaction(self, *arguments: Any, **named: Any) -> Iterator[Any]:
        """As psycopg's; the answer to a flush may be lost after its commit."""
        self._is_flush = False
        with super().transaction(*arguments, **named) as opened:
            yield opened
        if self._is_flush and self.mishaps.loses_answer():
            self.close()
            raise psycopg.OperationalError("the answer was lost")


class UnluckyChannel:
    """A channel whose process may die right after a message was accepted."""

    def __init__(self, inner: Channel, mishaps: Mishaps) -> None:
        self._inner = inner
        self._mishaps = mishaps
        self.name = inner.name
        self.idempotent = inner.idempotent
        self.safe_retry_for = inner.safe_retry_for
        self.io_timeout = inner.io_timeout
        self.max_concurrency = inner.max_concurrency

    async def open(self) -> None:
        await self._inner.open()

    async def send(self, message: Message) -> SendResult:
        result = await self._inner.send(message)
        if result.status == "accepted":
            self._mishaps.note_accepted()
        return result

    async def close(self) -> None:
        await self._inner.close()

    async def verify(self) -> str:
        return await self._inner.verify()


def carry(task: Task, mishaps: Mishaps) -> dict[str, Any]:
    """One sweep, until nothing is due; returns its report and how many flushes came twice."""
    settings = load_settings()
    config = load_configuration(settings)
    url = database_url(settings)
    mishaps.task, mishaps.accepted, doubled = task, 0, mishaps.doubled

    def connect() -> psycopg.Connection[TupleRow]:
        with connect_url(url) as plain:
            role = plain.info.user
        conninfo = session_conninfo(url, role=role, application_name=f"duebook {task.sender}")
        connection = UnluckyConnection.connect(conninfo, autocommit=True)
        connection.mishaps = mishaps
        return connection

    channels, missing = make_channels(config, from_environment)
    if missing:
        raise missing[0]
    request = SweepRequest(
        environment=settings.environment,
        sender=f"{task.sender}@{os.getpid()}",
        batch_size=task.batch_size,
        window_messages=task.window_messages,
        lease=LEASE,
        window_time=_WINDOW_TIME,
        time_budget=timedelta(seconds=60),
        horizon=config.sweep.horizon,
        witness=settings.witness_location,
    )
    unlucky = {name: UnluckyChannel(channel, mishaps) for name, channel in channels.items()}
    report = sweep(connect, request, unlucky, config)
    return {**report.to_json(), "doubled": mishaps.doubled - doubled}


def main() -> None:
    """Carry tasks until stdin ends."""
    configure_logs()
    mishaps = Mishaps()
    with zones_of(Path(os.environ[ZONES_VARIABLE])):
        for line in sys.stdin:
            told: Mapping[str, Any] = json.loads(line)
            sys.stdout.write(json.dumps(carry(Task(**told), mishaps)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
