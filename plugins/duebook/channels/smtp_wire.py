"""An SMTP connection from its login on: what is said, and the replies to it in their order.

A library makes the connection, secures it and logs in. From there on the machinery of a library
around each reply costs more than the reply, and it knows no PIPELINING. Here is only that: lines to
replies, each for the one who asked. Envelopes take turns: while one waits for the answer to its
text, the next one's commands are under way already, written together with that text (RFC 2920 3.1
lets a text be the first of a group), so that a message costs one write and one read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_LONGEST_LINE: Final = 8192
_MOST_LINES: Final = 100
_MARKS: Final = (b" ", b"-", b"\r", b"")
_CLOSING: Final = 421


class Reply(NamedTuple):
    """One reply; the texts of several lines are joined by line feeds."""

    code: int
    raw: bytes

    @property
    def text(self) -> str:
        """The text, whatever bytes the server put into it."""
        return self.raw.decode("utf-8", "replace")


@dataclass(slots=True, eq=False)
class _Asked:
    """Replies that the server owes: to somebody, or to nobody who waits."""

    count: int
    waiter: asyncio.Future[None] | None
    said: bytes = b""
    replies: list[Reply] = field(default_factory=list)
    is_abandoned: bool = False

    def wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


class Wire(asyncio.Protocol):
    """Takes over a connection on which the server owes no reply.

    A reply that nobody was to get, or that is no reply at all, ends the connection.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._is_lost = transport.is_closing()
        self._rest = b""
        self._lines: list[bytes] = []
        self._owed: deque[_Asked] = deque()
        self._turns: deque[_Asked] = deque()
        self._is_taken = False
        transport.set_protocol(self)

    @property
    def is_open(self) -> bool:
        """Whether it can carry another command, as far as is known."""
        return not self._is_lost and not self._transport.is_closing()

    async def begin(self, commands: bytes, replies: int) -> list[Reply]:
        """Say the commands of an envelope when it is its turn; the replies to them.

        The turn is over with `finish` or `pass_on`. Fewer replies: the connection was lost. After a
        421 no more are waited for: by it a server says that it closes.
        """
        asked = _Asked(replies, self._loop.create_future(), commands)
        if not self.is_open:
            return []
        if self._is_taken:
            self._turns.append(asked)
        else:
            self._is_taken = True
            self._say(commands, asked)
        return await self._replies_to(asked)

    async def go_on(self, command: bytes) -> list[Reply]:
        """Say a further command of the envelope whose turn it is; the reply, if it came."""
        asked = _Asked(1, self._loop.create_future())
        if not self.is_open:
            return []
        self._say(command, asked)
        return await self._replies_to(asked)

    async def finish(self, text: bytes) -> list[Reply]:
        """Say the text, and with it the next envelope's commands; the reply, if it came."""
        asked = _Asked(1, self._loop.create_future())
        self._say(text, asked, ends_turn=True)
        return await self._replies_to(asked)

    def pass_on(self, command: bytes, replies: int) -> None:
        """End the turn without a text; nobody waits for the replies to `command`."""
        self._say(command, _Asked(replies, None), ends_turn=True)

    def abort(self) -> None:
        """End the connection without a word."""
        self._lose()
        # close() alone waits for the server's part of the TLS goodbye.
        self._transport.abort()

    def _say(self, data: bytes, asked: _Asked, *, ends_turn: bool = False) -> None:
        self._owed.append(asked)
        if ends_turn:
            self._is_taken = bool(self._turns)
            if self._turns:
                following = self._turns.popleft()
                self._owed.append(following)
                data += following.said
        self._transport.write(data)

    async def _replies_to(self, asked: _Asked) -> list[Reply]:
        assert asked.waiter is not None
        try:
            await asked.waiter
        except BaseException:
            self._abandon(asked)
            raise
        return asked.replies

    def _abandon(self, asked: _Asked) -> None:
        """Nobody waits any more: the connection ends, but not before those ahead are answered."""
        if asked in self._turns:
            self._turns.remove(asked)
            return
        asked.is_abandoned = True
        if asked not in self._owed or self._owed[0] is asked:
            self.abort()

    def data_received(self, data: bytes) -> None:
        if self._is_lost:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if not self._take(line):
                self.abort()
                return
        if len(self._rest) > _LONGEST_LINE:
            self.abort()

    def _take(self, line: bytes) -> bool:
        """One line of a reply; False when it is none, or nobody was to get one."""
        code, mark = line[:3], line[3:4]
        if not self._owed or not code.isdigit() or mark not in _MARKS:
            return False
        text = line[4:].strip()
        if mark == b"-" or self._lines:
            self._lines.append(text)
            if mark == b"-":
                return len(self._lines) < _MOST_LINES
            text = b"\n".join(self._lines)
            self._lines.clear()
        self._deliver(Reply(int(code), text))
        return True

    def _deliver(self, reply: Reply) -> None:
        asked = self._owed[0]
        asked.replies.append(reply)
        if reply.code == _CLOSING:
            self._lose()
            return
        if len(asked.replies) == asked.count:
            self._owed.popleft()
            asked.wake()
            if self._owed and self._owed[0].is_abandoned:
                self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._lose()

    def _lose(self) -> None:
        self._is_lost = True
        for asked in (*self._owed, *self._turns):
            asked.wake()
        self._owed.clear()
        self._turns.clear()
