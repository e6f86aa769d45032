"""Mail by libraries alone: no promise is claimed, checked or recorded, the message is just sent.

`smtplib, bytes`: one connection used again, and bytes that were ready before the clock started.
`smtplib, EmailMessage`: the same connection, an EmailMessage built for each message, as its manual
shows. `aiosmtplib, bytes`: as many connections as Duebook's sender has, bytes ready.
"""

from __future__ import annotations

import asyncio
import smtplib
from collections.abc import Callable
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any, Final

import aiosmtplib

from bench.peers.starting_line import options, run_from_common_start

_SENDER: Final = "billing@shop.example"
_RECIPIENT: Final = "customer@example.org"
_TEXT: Final = (
    "Hello,\n\nwe have received your payment ref-P{n:010d} of EUR 42.00 on 1 December 2026. "
    "Thank you.\n\nYou do not need to do anything.\n"
)


def main() -> None:
    wanted = options()
    port, count = int(wanted["port"]), int(wanted["messages"])
    contenders: dict[str, Callable[[int, int], Callable[[], dict[str, Any]]]] = {
        "smtplib, bytes": _smtplib_bytes,
        "smtplib, EmailMessage": _smtplib_messages,
        "aiosmtplib, bytes": _aiosmtplib_bytes,
    }
    run_from_common_start(contenders[str(wanted["contender"])](port, count))


def _message(number: int) -> EmailMessage:
    message = EmailMessage()
    message["From"] = f"Shop <{_SENDER}>"
    message["To"] = _RECIPIENT
    message["Subject"] = f"We have received your payment ref-P{number:010d}"
    message["Date"] = formatdate(usegmt=True)
    message["Message-ID"] = f"<{number:040d}@shop.example>"
    message.set_content(_TEXT.format(n=number))
    return message


def _ready_bytes(count: int) -> list[bytes]:
    # One template: building them is not measured, and should not take longer than sending them.
    template = _message(0).as_bytes().replace(b"\n", b"\r\n")
    zeros = b"<%040d@" % 0
    return [template.replace(zeros, b"<%040d@" % number) for number in range(count)]


def _smtplib_bytes(port: int, count: int) -> Callable[[], dict[str, Any]]:
    texts = _ready_bytes(count)
    connection = smtplib.SMTP("127.0.0.1", port)

    def send() -> dict[str, Any]:
        for text in texts:
            connection.sendmail(_SENDER, [_RECIPIENT], text)
        connection.quit()
        return {"sent": len(texts)}

    return send


def _smtplib_messages(port: int, count: int) -> Callable[[], dict[str, Any]]:
    connection = smtplib.SMTP("127.0.0.1", port)

    def send() -> dict[str, Any]:
        for number in range(count):
            connection.send_message(_message(number))
        connection.quit()
        return {"sent": count}

    return send


def _aiosmtplib_bytes(port: int, count: int) -> Callable[[], dict[str, Any]]:
    texts = _ready_bytes(count)

    async def send_all() -> None:
        waiting = iter(texts)

        async def work() -> None:
            smtp = aiosmtplib.SMTP(hostname="127.0.0.1", port=port, start_tls=False)
            await smtp.connect()
            for text in waiting:
                await smtp.sendmail(_SENDER, [_RECIPIENT], text)
            await smtp.quit()

        async with asyncio.TaskGroup() as group:
            for _ in range(10):
                group.create_task(work())

    def send() -> dict[str, Any]:
        asyncio.run(send_all())
        return {"sent": len(texts)}

    return send


if __name__ == "__main__":
    main()
