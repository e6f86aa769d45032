"""Lines to replies, however they come in, and each reply for the one who asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duebook.channels.smtp_wire import Reply, Wire

T = TypeVar("T")
codes = st.integers(200, 559).filter(lambda code: code != 421)
words = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=20).map(str.strip)
replies = st.tuples(codes, st.lists(words, min_size=1, max_size=3))


def spelled(code: int, lines: Sequence[str]) -> bytes:
    marks = ["-"] * (len(lines) - 1) + [" "]
    return "".join(
        f"{code}{mark}{line}\r\n" for mark, line in zip(marks, lines, strict=True)
    ).encode()


def talk(
    server: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    act: Callable[[Wire], Awaitable[T]],
) -> T:
    async def run() -> T:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await server(reader, writer)
            writer.close()

        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        host, port = listener.sockets[0].getsockname()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(asyncio.Protocol, host, port)
        wire = Wire(transport)
        try:
            return await act(wire)
        finally:
            wire.abort()
            listener.close()
            await asyncio.sleep(0)

    return asyncio.run(run())


@given(st.lists(replies, min_size=1, max_size=5), st.integers(1, 40))
def test_replies_are_read_however_they_are_cut(
    expected: list[tuple[int, list[str]]], size: int
) -> None:
    async def act() -> list[Reply]:
        here, there = await _pair()
        wire = Wire(here)
        hearing = asyncio.create_task(wire.begin(b"X\r\n", len(expected)))
        await asyncio.sleep(0)
        data = b"".join(spelled(code, lines) for code, lines in expected)
        for start in range(0, len(data), size):
            wire.data_received(data[start : start + size])
        heard = await hearing
        wire.abort()
        there.abort()
        await asyncio.sleep(0)
        return heard

    heard = asyncio.run(act())
    assert heard == [Reply(code, "\n".join(lines).encode()) for code, lines in expected]


async def _pair() -> tuple[asyncio.Transport, asyncio.Transport]:
    import socket

    loop = asyncio.get_running_loop()
    ends = [
        await loop.create_connection(asyncio.Protocol, sock=each) for each in socket.socketpair()
    ]
    return ends[0][0], ends[1][0]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"250 a\r\n250 b\r\n354 c\r\n", [250, 250, 354]),
        (b"250 a\r\n421 closing\r\n", [250, 421]),
        (b"250 a\r\nnonsense\r\n", [250]),
        (b"250 a\r\n25\xc2\xb2 b\r\n", [250]),
        (b"250 a\r\n250-" + b"x" * 10_000, [250]),
        (b"250 a\r\n" + b"250-x\r\n" * 200, [250]),
        (b"250\n250\n354\n", [250, 250, 354]),
        (b"", []),
    ],
    ids=["whole", "421", "nonsense", "digits", "endless line", "endless lines", "bare", "none"],
)
def test_what_came_before_the_end_is_known(said: bytes, expected: list[int]) -> None:
    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(said)
        await writer.drain()

    async def act(wire: Wire) -> list[int]:
        async with asyncio.timeout(10):
            return [reply.code for reply in await wire.begin(b"MAIL\r\n", 3)]

    assert talk(server, act) == expected


def test_a_text_and_the_next_commands_are_one_write() -> None:
    reads: list[bytes] = []

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (b"354 a\r\n", b"250 b\r\n354 c\r\n", b"250 d\r\n"):
            reads.append(await reader.read(1000))
            writer.write(answer)

    async def act(wire: Wire) -> list[list[int]]:
        async def envelope(name: bytes) -> list[int]:
            begun = await wire.begin(b"DATA %b\r\n" % name, 1)
            finished = await wire.finish(b"text of %b\r\n.\r\n" % name)
            return [reply.code for reply in (*begun, *finished)]

        async with asyncio.timeout(10):
            return list(await asyncio.gather(envelope(b"1"), envelope(b"2")))

    assert talk(server, act) == [[354, 250], [354, 250]]
    assert reads == [b"DATA 1\r\n", b"text of 1\r\n.\r\nDATA 2\r\n", b"text of 2\r\n.\r\n"]
