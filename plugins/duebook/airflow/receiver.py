"""The webhook receiver inside Airflow's API server, put together when the first request comes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

log = logging.getLogger("duebook.airflow")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class MountedReceiver:
    """An ASGI application that costs the processes which never serve it nothing.

    Airflow loads plugins in every process, and sends a mounted application no start-up event. What
    can't be put together (a setting is wrong) answers 503 and is tried again by the next request.
    """

    def __init__(self) -> None:
        self._app: Callable[[Scope, Receive, Send], Awaitable[None]] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            try:
                self._app = await asyncio.to_thread(_make)
            except Exception as error:
                self._say(error)
                await _answer_away(scope, send)
                return
        await self._app(scope, receive, send)

    def _say(self, error: Exception) -> None:
        from duebook.errors import DuebookError

        said = str(error) if isinstance(error, DuebookError) else type(error).__name__
        log.error("webhooks can't be received: %s", said)


def _make() -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    from duebook.airflow.hooks import database_url_from_connection, find_connection
    from duebook.settings import load_settings
    from duebook.web.serve import make_receiver

    settings = load_settings()
    own = settings.receiver_database_url
    if own is not None:
        url = own.get_secret_value()
    else:
        url = database_url_from_connection(settings.airflow_connection)
    receiver = make_receiver(settings, find_connection, url)
    for error in receiver.broken.values():
        log.error("an endpoint can't verify anything: %s", error)
    return receiver.app


async def _answer_away(scope: Scope, send: Send) -> None:
    if scope["type"] != "http":
        return
    headers = [(b"content-type", b"application/json"), (b"retry-after", b"30")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"error": "away, try again"}'})
