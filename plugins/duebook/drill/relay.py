"""The receiving side: a real SMTP server that logs as Postfix does.

    python -m duebook.drill.relay LOG [address to be put off once ...]

Prints the port that it listens on; SIGTERM ends it. A message stands in the log, on disk, before
the server says 250: what is not in the log was not taken. No address is logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import Final

from duebook.errors import ConfigurationError

HOST: Final = "127.0.0.1"
# How long after taking a message it may take to log it; here that is done before.
KNOWN_WITHIN: Final = timedelta(seconds=1)
_STATISTICS_S: Final = 0.5
_TAKEN: Final = re.compile(r" message-id=(<[^>]+>)$")


class RelayLog:
    """The relay's log, one line an event, each written at once."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._count = 0

    def write(self, daemon: str, text: str) -> None:
        """One line as Postfix writes it with timestamps of RFC 3339."""
        now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="microseconds")
        os.write(self._file, f"{now} relay postfix/{daemon}[{os.getpid()}]: {text}\n".encode())

    def take(self, message_id: str) -> str:
        """Log one message; returns its queue id."""
        self._count += 1
        queue_id = f"D{self._count:09X}"
        self.write("cleanup", f"{queue_id}: message-id={message_id}")
        self.write("qmgr", f"{queue_id}: from=<>, size=1, nrcpt=1 (queue active)")
        return queue_id


def taken(log: Path) -> Counter[str]:
    """How often each Message-ID was taken, by the relay's own log."""
    if not log.exists():
        return Counter()
    lines = log.read_text(encoding="utf-8").splitlines()
    return Counter(match[1] for line in lines if (match := _TAKEN.search(line)))


async def serve(log: RelayLog, put_off: Iterable[str]) -> None:
    """Take mail until SIGTERM; each of `put_off` gets a 451 the first time."""
    try:
        from aiosmtpd.smtp import SMTP, Envelope, Session
    except ImportError:
        raise ConfigurationError(
            "the drill needs an SMTP server to mail to: pip install aiosmtpd"
        ) from None
    waiting = set(put_off)

    class Handler:
        async def handle_RCPT(
            self,
            server: SMTP,
            session: Session,
            envelope: Envelope,
            address: str,
            options: list[str],
        ) -> str:
            if address in waiting:
                waiting.discard(address)
                log.write("smtpd", "NOQUEUE: reject: RCPT: 451 4.2.1 Mailbox busy")
                return "451 4.2.1 Mailbox busy, try again"
            envelope.rcpt_tos.append(address)
            return "250 2.1.5 Ok"

        async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
            headers = BytesHeaderParser().parsebytes(envelope.original_content or b"")
            queue_id = log.take(str(headers["Message-ID"]))
            return f"250 2.0.0 Ok: queued as {queue_id}"

    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    server = await loop.create_server(
        lambda: SMTP(Handler(), hostname="relay.invalid", enable_SMTPUTF8=True), HOST, 0
    )
    log.write("master", "daemon started")
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    while not ended.is_set():
        # A log that stands still tells nothing about the time since; Postfix's goes on like this.
        log.write("anvil", "statistics: cache size 1")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), _STATISTICS_S)
    server.close()


def main() -> None:
    """Serve as the arguments say."""
    path, *put_off = sys.argv[1:]
    asyncio.run(serve(RelayLog(Path(path)), put_off))


if __name__ == "__main__":
    main()
