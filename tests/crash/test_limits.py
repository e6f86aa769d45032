"""64 senders and a server that allows so many a second and says when to come back."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import psycopg
import pytest
from aiohttp import web

from duebook.config import BudgetConfig
from duebook.services.check import check
from tests.doubt_work import connector
from tests.due_work import add_due, places, value, wait_for
from tests.services.test_budgets import put_budget

Conn = psycopg.Connection[Any]

LIMIT = 50
PROCESSES, THREADS = 8, 8


class LimitingServer:
    """Takes LIMIT requests in any second; beyond that, and in its times off, it answers 429."""

    def __init__(self) -> None:
        self.port = 0
        self.accepted: Counter[str] = Counter()
        self.arrivals: list[float] = []
        self.refusals: list[float] = []
        self.most_in_a_second = 0
        self.off_until = 0.0
        self._recent: deque[float] = deque()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> LimitingServer:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *unused: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    def _run(self) -> None:
        self._loop.run_until_complete(self._start())
        self._loop.run_forever()
        self._loop.run_until_complete(self._runner.cleanup())
        self._loop.close()

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_post("/", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        server = site._server
        assert isinstance(server, asyncio.Server)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()

    async def _answer(self, request: web.Request) -> web.Response:
        now = time.monotonic()
        key = await request.text()
        self.arrivals.append(now)
        while self._recent and self._recent[0] <= now - 1:
            self._recent.popleft()
        self._recent.append(now)
        self.most_in_a_second = max(self.most_in_a_second, len(self._recent))
        if now < self.off_until or len(self._recent) > LIMIT:
            self.refusals.append(now)
            # In seconds and as a date in turn: both forms of RFC 9110.
            asked = "2" if len(self.refusals) % 2 else formatdate(time.time() + 2, usegmt=True)
            return web.Response(status=429, headers={"Retry-After": asked})
        self.accepted[key] += 1
        return web.Response()


@pytest.fixture
def server() -> Iterator[LimitingServer]:
    with LimitingServer() as started:
        yield started


# Alone on the machine: a server that is kept from running counts late arrivals together.
@pytest.mark.prove
@pytest.mark.timeout(300)
def test_sixty_four_senders_keep_the_rate_and_the_pauses(
    conn: Conn, database_url: str, server: LimitingServer
) -> None:
    count = 400
    put_budget(conn, BudgetConfig(per_second=LIMIT))
    add_due(conn, count, accounts=30)
    script = Path(__file__).parent / "limited_process.py"
    arguments = [sys.executable, str(script), database_url, str(server.port), str(THREADS)]
    # Somebody else uses the account up: the first answer is no.
    server.off_until = time.monotonic() + 60
    processes = [subprocess.Popen(arguments) for _ in range(PROCESSES)]
    try:
        wait_for(lambda: server.refusals, "a refusal", 60)
        first = server.refusals[0]
        server.off_until = first + 1.5
        for process in processes:
            assert process.wait(240) == 0
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert server.most_in_a_second <= LIMIT
    # Open windows, two seconds at most, go on; then nothing comes before the pause is over, which
    # is never shorter than the backoff: half of 15 seconds and up.
    assert not [at for at in server.arrivals if first + 2.5 < at < first + 7.5]
    assert server.accepted == Counter(dict.fromkeys(server.accepted, 1))
    assert len(server.accepted) == count
    assert places(conn) == {"outcome": count}
    assert value(conn, "select count(*) from duebook.outcome where result = 'sent'") == count
    assert value(conn, "select max(tries) from duebook.attempt") == 0
    assert check(connector(database_url))["violations"] == []
