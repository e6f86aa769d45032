from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.rows import TupleRow

if TYPE_CHECKING:
    from duebook.airflow.triggers import DueTrigger

pytestmark = pytest.mark.filterwarnings("default")  # Airflow's own, on import

WAKE_S = 20.0
QUIET_S = 0.7


@pytest.fixture
def trigger(monkeypatch: pytest.MonkeyPatch, database_url: str) -> DueTrigger:
    from duebook.airflow.triggers import DueTrigger

    monkeypatch.setenv("AIRFLOW_CONN_DUEBOOK", database_url)
    return DueTrigger(poll_s=0.05, spacing_s=0.05)


class Wakes:
    """The events of a running trigger, one at a time."""

    def __init__(self, trigger: DueTrigger) -> None:
        self._queue: asyncio.Queue[object] = asyncio.Queue()
        self._task = asyncio.create_task(self._collect(trigger))

    async def _collect(self, trigger: DueTrigger) -> None:
        async for event in trigger.run():
            await self._queue.put(event)

    async def next(self) -> object:
        return await asyncio.wait_for(self._queue.get(), WAKE_S)

    async def none(self) -> bool:
        try:
            await asyncio.wait_for(self._queue.get(), QUIET_S)
        except TimeoutError:
            return True
        return False

    async def close(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task


@contextlib.asynccontextmanager
async def wakes_of(trigger: DueTrigger) -> AsyncIterator[Wakes]:
    wakes = Wakes(trigger)
    try:
        yield wakes
    finally:
        await wakes.close()


def put_due(conn: psycopg.Connection[TupleRow], number: int, in_seconds: float) -> None:
    """A due row; the trigger looks at its time alone."""
    conn.execute(
        """
        insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
        values ('a', %s, clock_timestamp() + %s * interval '1 second', 'payment_settled', 'email',
                clock_timestamp() + interval '1 day')
        """,
        [number, in_seconds],
    )


def test_a_row_wakes_when_it_is_due_and_not_before(
    trigger: DueTrigger, conn: psycopg.Connection[TupleRow]
) -> None:
    put_due(conn, 1, in_seconds=2.0)

    async def scenario() -> None:
        async with wakes_of(trigger) as wakes:
            assert await wakes.none()
            await wakes.next()

    asyncio.run(scenario())
    assert conn.execute("select due_at <= clock_timestamp() from duebook.due").fetchone() == (True,)


def test_a_row_that_nobody_takes_wakes_once_and_hides_no_later_one(
    trigger: DueTrigger, conn: psycopg.Connection[TupleRow]
) -> None:
    put_due(conn, 1, in_seconds=-60.0)

    async def scenario() -> None:
        async with wakes_of(trigger) as wakes:
            await wakes.next()
            assert await wakes.none()
            put_due(conn, 2, in_seconds=0.0)
            await wakes.next()
            assert await wakes.none()

    asyncio.run(scenario())


def test_the_end_of_a_channels_pause_wakes_for_what_fell_due_meanwhile(
    trigger: DueTrigger, conn: psycopg.Connection[TupleRow]
) -> None:
    put_due(conn, 1, in_seconds=-60.0)
    conn.execute(
        "insert into duebook.budget (channel, paused_until)"
        " values ('email', clock_timestamp() + interval '2 seconds')"
    )

    async def scenario() -> None:
        async with wakes_of(trigger) as wakes:
            assert await wakes.none()
            await wakes.next()
            assert await wakes.none()

    asyncio.run(scenario())


def test_a_connection_that_breaks_is_made_again(
    trigger: DueTrigger,
    conn: psycopg.Connection[TupleRow],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with wakes_of(trigger) as wakes:
            assert await wakes.none()
            ended = conn.execute(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity"
                " where application_name = 'duebook trigger' and datname = current_database()"
            ).fetchone()
            assert ended == (1,)
            put_due(conn, 1, in_seconds=0.0)
            await wakes.next()

    asyncio.run(scenario())
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_missing_connection_is_said_and_waited_for(
    monkeypatch: pytest.MonkeyPatch, trigger: DueTrigger, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_DUEBOOK")

    async def scenario() -> None:
        async with wakes_of(trigger) as wakes:
            assert await wakes.none()

    asyncio.run(scenario())
    assert "AIRFLOW_CONN_DUEBOOK" in caplog.text


def test_airflow_can_store_it_and_make_it_again(trigger: DueTrigger) -> None:
    path, arguments = trigger.serialize()
    module, _, name = path.rpartition(".")
    again = getattr(importlib.import_module(module), name)(**arguments)
    assert again.serialize() == (path, arguments)


def test_a_received_event_wakes_its_readers_at_once_and_a_postponed_one_when_its_wait_ends(
    trigger: DueTrigger, conn: psycopg.Connection[TupleRow]
) -> None:
    from duebook.airflow.triggers import EventTrigger

    events = EventTrigger(**trigger.serialize()[1])
    assert events.serialize()[0].endswith(".EventTrigger")
    receive = """
        insert into duebook.pending_event (provider_account, event_id, endpoint, not_before)
        values ('stripe', %s, 'stripe', clock_timestamp() + %s * interval '1 second')
    """

    async def scenario() -> None:
        async with wakes_of(events) as wakes:
            put_due(conn, 1, in_seconds=0.0)
            assert await wakes.none()
            conn.execute(receive, ["evt_1", 0])
            await wakes.next()
            assert await wakes.none()
            conn.execute(receive, ["evt_2", 1.5])
            await wakes.next()
            row = conn.execute(
                "select max(not_before) <= clock_timestamp() from duebook.pending_event"
            ).fetchone()
            assert row == (True,)

    asyncio.run(scenario())


def test_a_look_reads_a_row_a_probe_of_the_index_at_any_size(
    conn: psycopg.Connection[TupleRow],
) -> None:
    from duebook.db.sql import query

    conn.execute(
        """
        insert into duebook.due (account_id, intent_id, due_at, kind, channel, give_up_at)
        select 'a' || n % 100, n, clock_timestamp() + (n - 25000) * interval '1 second',
               'k', 'email', clock_timestamp() + interval '90 days'
        from generate_series(1, 50000) as n
        """
    )
    conn.execute("analyze duebook.due")
    row = conn.execute("explain (analyze, format json) " + query("find_due_wake")).fetchone()
    assert row is not None
    scans = [node for node in walk(row[0][0]["Plan"]) if node.get("Relation Name") == "due"]
    assert len(scans) == 4, "two to find the channels, two in each"
    for scan in scans:
        assert scan["Node Type"] in {"Index Scan", "Index Only Scan"}
        assert scan["Index Name"] == "due_by_time"
        assert scan["Actual Rows"] * scan["Actual Loops"] <= 1
        assert scan.get("Rows Removed by Filter", 0) == 0


def walk(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for part in plan.get("Plans", []) for node in walk(part))]
