"""A receiver of webhooks that keeps what it is posted: for tests and for measurements.

python -m tests.webhook_sink --out posts.jsonl [--tls-certificate FILE --tls-key FILE] [--quiet]

One JSON line a request, written before its answer, so that its count is the truth; `--quiet` keeps
and writes nothing. The first line on stdout is {"listening": PORT}; SIGTERM ends it and prints
{"received": N}.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from aiohttp import web
from standardwebhooks import Webhook


@dataclass(frozen=True)
class Post:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def webhook_id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    def verify(self, secret: str) -> Any:
        """What a customer's own code does; raises where the signature is not by `secret`."""
        return Webhook(secret).verify(self.body, dict(self.headers))


@dataclass(frozen=True)
class Answer:
    """What the receiver says."""

    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class WebhookSink:
    """The server, in a thread of its own between __enter__ and __exit__.

    `answer` is asked with each request and how many came before it.
    """

    def __init__(
        self,
        *,
        answer: Callable[[Post, int], Answer] = lambda post, number: Answer(),
        tls: ssl.SSLContext | None = None,
        out: Path | None = None,
        keeps: bool = True,
        port: int = 0,
    ) -> None:
        self.answer = answer
        self.posts: list[Post] = []
        self.count = 0
        self.port = port
        self._tls = tls
        self._keeps = keeps
        self._file: IO[str] | None = None if out is None else out.open("a", encoding="utf-8")
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def url(self) -> str:
        """Where to post to."""
        scheme = "https" if self._tls else "http"
        return f"{scheme}://localhost:{self.port}/hooks"

    @property
    def ids(self) -> list[str]:
        """The webhook-id of each request, in order."""
        return [post.webhook_id for post in self.posts]

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise TimeoutError("the webhook sink did not start")
        return self

    def __exit__(self, *failure: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(10)
        if self._file is not None:
            self._file.close()

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._run())
        finally:
            self._loop.close()

    async def _run(self) -> None:
        server = web.Server(self._handle, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=self._tls)
        await site.start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        await self._stopped.wait()
        await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        number, self.count = self.count, self.count + 1
        post = Post(request.path, {k.lower(): v for k, v in request.headers.items()}, body)
        if self._keeps:
            self.posts.append(post)
        if self._file is not None:
            line = {"id": post.headers.get("webhook-id"), "headers": dict(post.headers)}
            self._file.write(json.dumps(line | {"body": body.decode()}) + "\n")
            self._file.flush()
        answer = self.answer(post, number)
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tls-certificate", type=Path)
    parser.add_argument("--tls-key", type=Path)
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    tls = None
    if options.tls_certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(options.tls_certificate, options.tls_key)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: ended.set())
    sink = WebhookSink(tls=tls, out=options.out, keeps=not options.quiet, port=options.port)
    with sink:
        print(json.dumps({"listening": sink.port}), flush=True)
        ended.wait()
    print(json.dumps({"received": sink.count}), flush=True)


if __name__ == "__main__":
    main()
