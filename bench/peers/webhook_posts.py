"""The limit: aiohttp posting the same bodies, as many at a time; nothing is signed or recorded."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator
from typing import Any

import aiohttp

from bench.peers.starting_line import options, run_from_common_start


def main() -> None:
    wanted = options()
    url, rows, accounts = str(wanted["url"]), int(wanted["rows"]), int(wanted["accounts"])
    context = ssl.create_default_context(cafile=str(wanted["ca_file"]))
    connections = int(wanted["connections"])

    async def post_all() -> None:
        connector = aiohttp.TCPConnector(limit=connections, ssl=context)
        async with aiohttp.ClientSession(connector=connector) as session:
            numbers = iter(range(rows))

            async def post_some(numbers: Iterator[int]) -> None:
                for number in numbers:
                    async with session.post(
                        url,
                        data=body_of(number, accounts),
                        headers={"Content-Type": "application/json"},
                    ) as response:
                        await response.read()
                        response.raise_for_status()

            async with asyncio.TaskGroup() as group:
                for _ in range(connections):
                    group.create_task(post_some(numbers))

    def post() -> dict[str, Any]:
        asyncio.run(post_all())
        return {"posted": rows}

    run_from_common_start(post)


def body_of(number: int, accounts: int) -> bytes:
    """What Duebook posts of the payment with this number."""
    at = "2026-11-30T12:00:00.000000Z"
    facts = {
        "account_id": f"account-{number % accounts:06}",
        "payment_id": f"P{number:010}",
        "reference": f"R-{number}",
        "amount_minor": 4200 + number,
        "expected_minor": 4200 + number,
        "currency": "EUR",
        "exponent": 2,
        "occurred_on": "2026-11-30",
        "status_before": "pending",
        "status_after": "settled",
        "occurred_at": at,
    }
    document = {"type": "payment_settled", "timestamp": at, "data": facts}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


if __name__ == "__main__":
    main()
