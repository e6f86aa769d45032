"""Several senders in one process, each sweeping until nothing is due, to a server that limits.

Arguments: database URL, port of the server, number of senders.
"""

from __future__ import annotations

import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial

import aiohttp

from duebook.channels.base import Message, SendResult
from duebook.db.connect import connect_url
from duebook.domain.backoff import parse_retry_after
from duebook.services.sweep import SweepRequest, sweep


class LimitedChannel:
    """Posts each message; 429 asks the whole channel to rest, as its Retry-After says."""

    name = "noop"
    idempotent = False
    safe_retry_for: timedelta | None = None
    io_timeout = timedelta(seconds=10)
    max_concurrency = 8

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/"
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        self._session = aiohttp.ClientSession()

    async def send(self, message: Message) -> SendResult:
        assert self._session is not None
        async with self._session.post(self._url, data=message.operation_key) as answer:
            if answer.status == 200:
                return SendResult("accepted", code="200")
            now = datetime.fromtimestamp(time.time(), UTC)
            wait = parse_retry_after(answer.headers.get("retry-after"), now)
            return SendResult("later", code=str(answer.status), retry_after=wait)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def verify(self) -> str:
        return "limited"


def work(url: str, port: int, number: int) -> None:
    """Sweep again and again, until nothing is due."""
    connect = partial(connect_url, url, autocommit=True)
    request = SweepRequest(
        environment="test",
        sender=f"sender {number}",
        batch_size=20,
        should_stop=lambda: False,
    )
    while True:
        report = sweep(connect, request, {"noop": LimitedChannel(port)})
        if report.backlog == 0:
            return
        time.sleep(1)


def main() -> None:
    """Run the senders, and end when all of them have."""
    url, port, senders = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    threads = [threading.Thread(target=work, args=(url, port, number)) for number in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
