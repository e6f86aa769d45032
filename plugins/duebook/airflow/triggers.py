"""The triggers that wake `due_sweep` when a row has become due, and `provider_events`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

if TYPE_CHECKING:
    import psycopg

DEFAULT_CONNECTION = "duebook"
AWAY_S_FIRST, AWAY_S_MOST = 1.0, 30.0

log = logging.getLogger(__name__)


class DueTrigger(BaseEventTrigger):
    """Looks at the due rows and announces each newly passed due time once.

    It remembers the newest one that it announced, for as long as it lives, so that a row
    which no sweep can take (a paused kind) is not announced for ever; a restart announces at most
    once too often. A row that is written with an older due time is left to the minute schedule.

    `poll_s`: how often new rows are looked for. `spacing_s`: the least time between two
    announcements, since each may become a DAG run; a sweep that runs takes later rows along.
    """

    wake_query = "find_due_wake"

    def __init__(
        self,
        connection_id: str = DEFAULT_CONNECTION,
        poll_s: float = 1.0,
        spacing_s: float = 5.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.connection_id = connection_id
        self.poll_s = poll_s
        self.spacing_s = spacing_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "connection_id": self.connection_id,
                "poll_s": self.poll_s,
                "spacing_s": self.spacing_s,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event per wake, for ever; a database that is away is waited for."""
        import psycopg

        from duebook.db.connect import describe
        from duebook.errors import DuebookError

        announced: datetime | None = None
        away_s = AWAY_S_FIRST
        while True:
            try:
                async with await self._connect() as conn:
                    while True:
                        newest, wait_s = await self._look(conn)
                        away_s = AWAY_S_FIRST
                        if newest is None or (announced is not None and newest <= announced):
                            await asyncio.sleep(wait_s)
                            continue
                        announced = newest
                        yield TriggerEvent(  # type: ignore[no-untyped-call]
                            {"newest_wake_at": newest.isoformat()}
                        )
                        await asyncio.sleep(self.spacing_s)
            except psycopg.Error as error:
                log.warning("the due rows can't be read: %s", describe(error))
            except DuebookError as error:
                log.warning("%s", error)
            await asyncio.sleep(away_s)
            away_s = min(away_s * 2, AWAY_S_MOST)

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        from duebook.airflow.hooks import connect_async_from_connection

        return await connect_async_from_connection(self.connection_id)

    async def _look(self, conn: psycopg.AsyncConnection[Any]) -> tuple[datetime | None, float]:
        from duebook.db.sql import query

        cursor = await conn.execute(query(self.wake_query))
        newest, next_in_s = await cursor.fetchone() or (None, None)
        return newest, self.poll_s if next_in_s is None else min(self.poll_s, next_in_s)


class EventTrigger(DueTrigger):
    """The same look at the received events: announces each newly passed turn of one, once."""

    wake_query = "find_event_wake"
