"""The claim's lock: a transaction during which no claim, flush or rescue runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import psycopg

from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.errors import UnavailableError

T = TypeVar("T")

_PATIENCE: Final = 60.0
_PAUSE: Final = 0.05


def with_moving_locked(
    connect: Connect, work: Callable[[psycopg.Connection[Any]], T], *, keeps: bool
) -> T:
    """`work` in one transaction that holds every moving table; taken back unless `keeps`.

    The tables are asked for again and again, each time for less than the server takes to look for a
    deadlock, so that whoever works goes first. Raises UnavailableError when a minute brought none.
    """
    deadline = time.monotonic() + _PATIENCE
    with connect() as conn:
        while True:
            try:
                with conn.transaction(force_rollback=not keeps):
                    conn.execute(query("limit_lock_wait"))
                    conn.execute(query("lock_moving"))
                    conn.execute(query("lift_lock_wait"))
                    return work(conn)
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                if time.monotonic() >= deadline:
                    raise UnavailableError(
                        "the moving tables are in use all the time: stop the sweeps, and try again"
                    ) from None
            time.sleep(_PAUSE)
