"""Run the real `localstripe` application on loopback, with nothing kept on disk.

Its own start listens on every address and pickles its store into the temporary directory at each
change. Printed first: its address.

    python -m tests.stripe_stub.localstripe [--port N]
"""

from __future__ import annotations

import argparse
import socket

from aiohttp import web
from localstripe.resources import Store
from localstripe.server import app


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.stripe_stub.localstripe")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    told = parser.parse_args()
    Store.dump_to_disk = lambda self: None
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", told.port))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    web.run_app(app, sock=listener, access_log=None, print=None)


if __name__ == "__main__":
    main()
