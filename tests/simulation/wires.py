"""Connections whose every round trip is a step of the history, and which break on request.

The statements are the product's own and run on the server as they are. A statement outside a
transaction gets one around it, which is what the server does anyway, so that the moment between a
statement and its commit can be looked at. A wire that waits for a lock hands the baton on.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Generator
from typing import Any

import psycopg
from psycopg import pq
from psycopg.waiting import Ready, Wait

from tests.simulation.actors import Actor

Note = Callable[[psycopg.Cursor[Any]], None]
OnExecute = Callable[["Wire", Any, Any], Note | None]

_READS = select.POLLIN | select.POLLERR | select.POLLHUP
_LOOK_AGAIN_MS = 5
LOST = "the connection is lost"


class NotingCursor(psycopg.Cursor[Any]):
    """Says which statement its process is at."""

    def execute(self, query: Any, *arguments: Any, **named: Any) -> Any:
        wire = self.connection
        if isinstance(wire, Wire) and wire.actor is not None:
            wire.actor.statement = query
        return super().execute(query, *arguments, **named)


class Wire(psycopg.Connection[Any]):
    """A connection of one process; `pool` gets it back, cleaned, when it is closed."""

    pool: Pool
    actor: Actor | None = None
    is_lost = False

    @property
    def is_in_transaction(self) -> bool:
        """Whether it holds a transaction open, or a statement runs."""
        return self.pgconn.transaction_status != pq.TransactionStatus.IDLE

    def execute(  # type: ignore[override]
        self, statement: Any, params: Any = None, **how: Any
    ) -> psycopg.Cursor[Any]:
        if self.actor is None:
            return super().execute(statement, params, **how)
        note = self.pool.on_execute(self, statement, params)
        if self.is_lost or self.is_in_transaction or statement in self.pool.reads:
            return self._noted(note, super().execute(statement, params, **how))
        self.actor.step()
        self.pgconn.exec_(b"begin")
        try:
            cursor = self._noted(note, super().execute(statement, params, **how))
            with self.lock:
                self.wait(self._commit_gen())
        except psycopg.Error:
            if not self.is_lost:
                self.pgconn.exec_(b"rollback")
            raise
        return cursor

    def _noted(self, note: Note | None, cursor: psycopg.Cursor[Any]) -> psycopg.Cursor[Any]:
        if note is not None:
            note(cursor)
        return cursor

    def wait(self, gen: Any, interval: float = 0.0, timeout: float | None = None) -> Any:
        if self.actor is None:
            return super().wait(gen)
        if self.is_lost:
            gen.close()
            raise psycopg.OperationalError(LOST)
        self.actor.step()
        fault = self.actor.take_fault()
        if fault == "lose_before":
            gen.close()
            self.is_lost = True
            raise psycopg.OperationalError(LOST)
        if fault == "fail_over" and self.pool.lose_commit(self):
            gen.close()
            return None
        value = self._drive(gen)
        if fault == "lose_after":
            self.is_lost = True
            raise psycopg.OperationalError(LOST)
        return value

    def _drive(self, gen: Generator[Any, Any, Any]) -> Any:
        poll, wanted = select.poll(), 0
        try:
            wait = next(gen)
            while True:
                flags = (_READS if wait & Wait.R else 0) | (select.POLLOUT if wait & Wait.W else 0)
                if flags != wanted:
                    poll.register(self.pgconn.socket, flags)
                    wanted = flags
                found = poll.poll(_LOOK_AGAIN_MS)
                if found:
                    can_read = found[0][1] & _READS
                    can_write = found[0][1] & select.POLLOUT
                    wait = gen.send(
                        Ready((Ready.R if can_read else 0) | (Ready.W if can_write else 0))
                    )
                elif self.pool.is_blocked(self):
                    assert self.actor is not None
                    self.actor.block()
        except StopIteration as end:
            return end.value

    def has_answer(self) -> bool:
        """Whether the server has answered a statement that waited."""
        poll = select.poll()
        poll.register(self.pgconn.socket, _READS)
        return bool(poll.poll(0))

    def close(self) -> None:
        if self.actor is not None:
            self.actor.wires.remove(self)
            self.pool.give_back(self)

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self, *_: object) -> None:
        if hasattr(self, "pgconn"):
            self.pgconn.finish()


class Pool:
    """Physical connections, used again: making one takes longer than a whole transaction."""

    def __init__(self, open_wire: Callable[[], Wire]) -> None:
        self._open = open_wire
        self._free: list[Wire] = []
        self._all: list[Wire] = []
        self.observer = open_wire()
        # What only reads is one step: nothing happens between it and its end.
        self.reads: frozenset[Any] = frozenset()
        self.on_execute: OnExecute = lambda wire, statement, params: None
        self.lose_commit: Callable[[Wire], bool] = lambda wire: False

    def connect(self, actor: Actor | None) -> Wire:
        """A wire for a process; None: for the world itself."""
        wire = self._free.pop() if self._free else self._make()
        wire.actor, wire.is_lost = actor, False
        if actor is not None:
            actor.wires.append(wire)
        return wire

    def _make(self) -> Wire:
        wire = self._open()
        wire.pool = self
        self._all.append(wire)
        return wire

    def give_back(self, wire: Wire) -> None:
        """End what the wire had begun, as the server does when its client is gone."""
        wire.actor, wire.is_lost = None, False
        raw = wire.pgconn
        status = pq.TransactionStatus
        if raw.transaction_status == status.ACTIVE:
            raw.get_cancel().cancel()
            while (result := raw.get_result()) is not None:
                if result.status == pq.ExecStatus.COPY_IN:
                    raw.put_copy_end(b"the client is gone")
        if raw.transaction_status in (status.INTRANS, status.INERROR):
            raw.exec_(b"rollback")
        if raw.transaction_status != status.IDLE:
            raw.finish()
            self._all.remove(wire)
            return
        wire._num_transactions = 0
        wire.isolation_level, wire.read_only = None, None
        self._free.append(wire)

    def is_blocked(self, wire: Wire) -> bool:
        """Whether the server says that the wire's statement waits for another one's lock."""
        row = self.observer.execute(
            "select cardinality(pg_blocking_pids(%s)) > 0", [wire.pgconn.backend_pid]
        ).fetchone()
        return bool(row is not None and row[0])

    def close(self) -> None:
        """End every connection."""
        for wire in [*self._all, self.observer]:
            wire.pgconn.finish()


def open_wire(url: str) -> Wire:
    """One physical connection with the session that the product gives each of its own."""
    from duebook.db.connect import connect_url

    with connect_url(url) as checked:
        dsn, password = checked.info.dsn, checked.info.password
    options = (
        "-c search_path=pg_catalog -c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres"
        r" -c default_transaction_isolation=read\ committed -c jit=off"
        " -c application_name=duebook-simulation"
    )
    wire = Wire.connect(
        dsn, password=password, options=options, autocommit=True, cursor_factory=NotingCursor
    )
    return wire


def opener(url: str) -> Callable[[], Wire]:
    """open_wire(), for a pool."""
    return lambda: open_wire(url)
