"""Run the real `localstripe` application on loopback, with nothing kept on disk.

Its own start listens on every address and pickles its store into the temporary directory at each
change. What it lacks of the documented API is added: charges by payment intent, balance
transactions by source, and the list of disputes, of which it has none. Printed first: its address.

    python -m tests.stripe_stub.localstripe [--port N]
"""

from __future__ import annotations

import argparse
import socket
from typing import Any

from aiohttp import web
from localstripe.resources import BalanceTransaction, Charge, PaymentIntent, Store
from localstripe.server import app

_list_charges = Charge._api_list_all
_list_balance_transactions = BalanceTransaction._api_list_all


def _charges_of(url: str, payment_intent: str | None = None, **filters: Any) -> Any:
    found = _list_charges(url, **filters)
    if payment_intent is not None:
        charge = PaymentIntent._api_retrieve(payment_intent).latest_charge
        known = charge if isinstance(charge, str) else charge and charge.id
        found._list = [each for each in found._list if each.id == known]
    return found


def _balance_transactions_of(url: str, source: str | None = None, **filters: Any) -> Any:
    found = _list_balance_transactions(url, **filters)
    if source is not None:
        found._list = [each for each in found._list if each.source == source]
    return found


async def _no_disputes(request: web.Request) -> web.Response:
    return web.json_response({"object": "list", "url": request.path, "has_more": False, "data": []})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.stripe_stub.localstripe")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    told = parser.parse_args()
    Store.dump_to_disk = lambda self: None
    Charge._api_list_all = staticmethod(_charges_of)
    BalanceTransaction._api_list_all = staticmethod(_balance_transactions_of)
    app.router.add_get("/v1/disputes", _no_disputes)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", told.port))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    web.run_app(app, sock=listener, access_log=None, print=None)


if __name__ == "__main__":
    main()
