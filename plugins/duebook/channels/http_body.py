"""The body of an HTTP request that knows when it is handed over: the point of no return."""

from __future__ import annotations

import aiohttp
from aiohttp.abc import AbstractStreamWriter


class MarkedBody(aiohttp.BytesPayload):
    """`is_sent` from the moment on at which the connection was given any of the request."""

    is_sent = False

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        # The head of the request waits for the body, so nothing left before this.
        self.is_sent = True
        await super().write_with_length(writer, content_length)
