"""An SMTP server that takes everything, as fast as Python can: the other end of `send-smtp`.

It keeps no mail, only how many messages came and how many Message-IDs they had. The first line on
stdout is {"listening": PORT}; each line on stdin is answered with the counts since the last one;
the end of stdin ends it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Final

_EXTENSIONS: Final = (
    b"250-sink.localhost\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n"
    b"250-ENHANCEDSTATUSCODES\r\n250 SIZE 10240000\r\n"
)
_ANSWERS: Final = {
    b"EHLO": _EXTENSIONS,
    b"HELO": b"250 sink.localhost\r\n",
    b"MAIL": b"250 2.1.0 Ok\r\n",
    b"RCPT": b"250 2.1.5 Ok\r\n",
    b"DATA": b"354 End data with <CR><LF>.<CR><LF>\r\n",
    b"RSET": b"250 2.0.0 Ok\r\n",
    b"NOOP": b"250 2.0.0 Ok\r\n",
    b"QUIT": b"221 2.0.0 Bye\r\n",
}
_END: Final = b"\r\n.\r\n"


class _Counts:
    def __init__(self) -> None:
        self.messages = 0
        self.message_ids: set[bytes] = set()


class _Conversation(asyncio.Protocol):
    def __init__(self, counts: _Counts) -> None:
        self._counts = counts
        self._buffer = b""
        self._is_in_text = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(b"220 sink.localhost ESMTP\r\n")

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        answers: list[bytes] = []
        while answer := self._next():
            answers.append(answer)
        if answers:
            self._transport.write(b"".join(answers))
            if answers[-1].startswith(b"221"):
                self._transport.close()

    def _next(self) -> bytes | None:
        """The answer to the next command or text that is there as a whole."""
        mark = _END if self._is_in_text else b"\r\n"
        taken, found, rest = self._buffer.partition(mark)
        if not found:
            return None
        self._buffer = rest
        if self._is_in_text:
            self._is_in_text = False
            return self._keep(taken)
        verb = taken[:4].upper()
        self._is_in_text = verb == b"DATA"
        return _ANSWERS.get(verb, b"502 5.5.1 What?\r\n")

    def _keep(self, text: bytes) -> bytes:
        counts = self._counts
        counts.messages += 1
        start = text.find(b"Message-ID: ") + 12
        counts.message_ids.add(text[start : text.find(b"\r", start)])
        return b"250 2.0.0 Ok: queued as SINK%08d\r\n" % counts.messages


async def _serve() -> None:
    counts = _Counts()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Conversation(counts), "127.0.0.1", 0)
    print(json.dumps({"listening": server.sockets[0].getsockname()[1]}), flush=True)
    asked = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(asked), sys.stdin)
    while await asked.readline():
        found = {"messages": counts.messages, "message_ids": len(counts.message_ids)}
        print(json.dumps(found), flush=True)
        counts.messages = 0
        counts.message_ids.clear()


if __name__ == "__main__":
    asyncio.run(_serve())
