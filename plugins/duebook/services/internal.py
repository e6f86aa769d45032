"""Internal acts: promises that leave nothing to send, such as the expiry of a hold.

They are claimed like everything else, on the channel `internal`, which no configuration names and
nothing pauses. What a batch is about is then done in one transaction that its token fences, so
there is no window, no watermark and never a doubt: a sender that dies has done all of it or none.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg
import structlog

from duebook.db.sql import query

INTERNAL: Final = "internal"

_log = structlog.get_logger(__name__)


class Finished(NamedTuple):
    """How a batch ended, in intents; `state` is applied, repeated or gone."""

    state: str
    done: int = 0
    expired: int = 0
    skipped: int = 0
    held: int = 0


class InternalBatch:
    """The one transaction of a batch. Safe to repeat after a lost answer."""

    def __init__(self, batch_id: int, token: UUID, due_offset: timedelta) -> None:
        self._batch_id = batch_id
        self._values = {"batch_id": batch_id, "token": token, "due_offset": due_offset}
        self._tried: Finished | None = None

    def finish(self, conn: psycopg.Connection[Any]) -> Finished:
        """Do it; what was counted is known before the commit, whose answer may be lost."""
        before = self._tried
        with conn.transaction():
            row = conn.execute(
                query("finish_internal_batch"), self._values, prepare=True
            ).fetchone()
            assert row is not None
            self._tried = Finished(*row)
        if self._tried.state == "repeated" and before is not None:
            return before
        if self._tried.state == "gone":
            _log.warning("internal_batch_rescued", batch_id=self._batch_id)
        if self._tried.held:
            _log.error("internal_acts_held", batch_id=self._batch_id, held=self._tried.held)
        return self._tried
