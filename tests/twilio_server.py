"""A local server of Twilio's messages: its paths, forms, answers and errors as documented."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web

ACCOUNT, TOKEN = "AC" + "0" * 32, "the auth token"
Answer = Callable[[dict[str, str]], web.StreamResponse | None]


@dataclass(frozen=True)
class Sms:
    """One message that was made."""

    sid: str
    to: str
    body: str
    form: dict[str, str]


def error(status: int, code: int, **headers: str) -> web.Response:
    """An error as Twilio writes it; see its API's "Twilio's response to errors"."""
    document = {
        "code": code,
        "message": "told to +15005550006 that it is not so",
        "more_info": f"https://www.twilio.com/docs/errors/{code}",
        "status": status,
    }
    return web.json_response(document, status=status, headers=headers)


class TwilioServer:
    """Makes every message but those that `answer` says something else of."""

    def __init__(self) -> None:
        self.made: list[Sms] = []
        self.tried: list[dict[str, str]] = []
        self.answer: Answer = lambda form: None
        self.hang_up_after = False
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *unused: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _run(self) -> None:
        self._loop.run_until_complete(self._start())
        self._loop.run_forever()
        self._loop.run_until_complete(self._runner.cleanup())
        self._loop.close()

    async def _start(self) -> None:
        app = web.Application()
        place = "/2010-04-01/Accounts/{account}"
        app.router.add_post(f"{place}/Messages.json", self._make)
        app.router.add_get(f"{place}.json", self._account)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        server = site._server
        assert isinstance(server, asyncio.Server)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()

    def _refusal(self, request: web.Request) -> web.Response | None:
        stated = base64.b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
        if request.headers.get("Authorization") != f"Basic {stated}":
            return error(401, 20003)
        return None

    async def _account(self, request: web.Request) -> web.Response:
        return self._refusal(request) or web.json_response({"sid": ACCOUNT, "status": "active"})

    async def _make(self, request: web.Request) -> web.StreamResponse:
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.tried.append(form)
        answer = self.answer(form)
        if answer is not None:
            return answer
        sms = Sms(f"SM{len(self.made):032x}", form["To"], form["Body"], form)
        self.made.append(sms)
        if self.hang_up_after:
            assert request.transport is not None
            request.transport.abort()
        document: dict[str, Any] = {
            "sid": sms.sid,
            "status": "queued",
            "to": sms.to,
            "body": sms.body,
            "account_sid": ACCOUNT,
            "error_code": None,
        }
        return web.json_response(document, status=201)
