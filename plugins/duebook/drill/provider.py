"""A small provider: what Stripe's API answers for the few charges that the drill makes.

Lists are of everything or of one source, without pages; that is enough for the real library and the
real source module, which read it over HTTP.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

KEY: Final = "sk_test_drill"
_LISTS: Final = frozenset({"balance_transactions", "payouts", "refunds", "disputes"})

Json = dict[str, Any]


class Provider:
    """The charges that there are; `address` is where they can be read."""

    def __init__(self, address: str, charges: dict[str, Json]) -> None:
        self.address = address
        self._charges = charges

    def settle(self, number: int, order: str, amount_minor: int, at: datetime) -> str:
        """A charge that has settled at `at`; returns its id. Its money row is `txn_<number>`."""
        charge_id = f"ch_drill{number}"
        self._charges[charge_id] = {
            "id": charge_id,
            "object": "charge",
            "amount": amount_minor,
            "currency": "eur",
            "created": int(at.timestamp()),
            "metadata": {"order": order},
            "number": number,
        }
        return charge_id


@contextlib.contextmanager
def serving() -> Iterator[Provider]:
    """A provider on loopback, in threads of this process."""
    charges: dict[str, Json] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            found = _answer(charges, url.path.removeprefix("/v1/").split("/"), parse_qs(url.query))
            body = json.dumps(found or {"error": {"message": "no such thing"}}).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="provider", daemon=True)
    thread.start()
    try:
        yield Provider(f"http://127.0.0.1:{server.server_address[1]}", charges)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(charges: dict[str, Json], path: list[str], asked: dict[str, list[str]]) -> Json | None:
    if len(path) == 2:
        return charges.get(path[1]) if path[0] == "charges" else None
    if path[0] not in _LISTS:
        return None
    rows: list[Json] = []
    if path[0] == "balance_transactions":
        source = asked.get("source", [None])[0]
        rows = [_row(each) for each in charges.values() if source in (None, each["id"])]
    return {"object": "list", "url": f"/v1/{path[0]}", "has_more": False, "data": rows}


def _row(charge: Json) -> Json:
    return {
        "id": f"txn_{charge['number']}",
        "object": "balance_transaction",
        "type": "charge",
        "reporting_category": "charge",
        "amount": charge["amount"],
        "fee": 0,
        "net": charge["amount"],
        "currency": charge["currency"],
        "status": "available",
        "created": charge["created"],
        "available_on": charge["created"],
        "source": charge,
    }
