"""The old sender of the rollout drill: a process of its own, with its own log of what it sent.

It knows the books and reads the provider's files by itself, makes the operation key of each payment
that has settled by the published grammar, asks `duebook.ask_to_send` for it as a login that may do
nothing else, and sends: here a line of its log, written at once, is the send. What it may not send
yet it asks for again with the next file. Killed between the answer and the send, it finds on
starting again that it had asked before and has not sent, and sends.

Commands on stdin: `night <file>`. Answers on stdout: one JSON line each.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psycopg

from duebook.db.connect import connect_url
from duebook.db.sql import query

SENDER: Final = "legacy"
ROLE: Final = "duebook_old_sender"
_YES: Final = frozenset({"send", "asked_before"})
Key = tuple[str, str]


class SendLog:
    """What was sent, one JSON line each, on the disk before the next."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def send(self, key: Key) -> None:
        """Send one."""
        sent_at = datetime.fromtimestamp(time.time(), UTC).isoformat()
        line = {"account_id": key[0], "operation_key": key[1], "sent_at": sent_at}
        os.write(self._file, f"{json.dumps(line)}\n".encode())
        os.fsync(self._file)


def sent(path: Path) -> Counter[Key]:
    """How often each key was sent, by the log."""
    if not path.exists():
        return Counter()
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return Counter((line["account_id"], line["operation_key"]) for line in lines)


def escape(part: str) -> str:
    """A part of a key, by the published grammar."""
    return part.replace("%", "%25").replace(":", "%3A")


class OldSender:
    """Its books, and what it waits for."""

    def __init__(self, url: str, books: Path, log: Path, die_after: int) -> None:
        self._url = url
        with books.open(encoding="utf-8", newline="") as stream:
            self._books = {row["reference"]: row for row in csv.DictReader(stream)}
        self._sent = set(sent(log))
        self._log = SendLog(log)
        self._waiting: list[Key] = []
        self._answers_left = die_after

    def night(self, path: Path) -> Counter[str]:
        """Tell what a file says, and what waited; counts the answers."""
        wanted = self._waiting + self._read(path)
        self._waiting = []
        answers: Counter[str] = Counter()
        with connect_url(self._url, autocommit=True) as connection:
            for key in wanted:
                if key not in self._sent:
                    answers[self._tell(connection, key)] += 1
        return answers

    def _tell(self, connection: psycopg.Connection[tuple[str]], key: Key) -> str:
        values = {"account_id": key[0], "operation_key": key[1], "sender": SENDER}
        row = connection.execute(query("ask_to_send"), values).fetchone()
        assert row is not None, "a function returns one row"
        if row[0] in _YES:
            self._answers_left -= 1
            if self._answers_left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self._log.send(key)
            self._sent.add(key)
        elif row[0] == "wait":
            self._waiting.append(key)
        return row[0]

    def _read(self, path: Path) -> list[Key]:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        keys = []
        for row in rows:
            booked = self._books[row["reference"]]
            parts = ("payment_settled", "email", "night", booked["payment_id"], row["entry"], "v1")
            key = ":".join(escape(part) for part in parts)
            keys.append((booked["account_id"], key))
        return keys


def main() -> None:
    """Serve the commands; arguments: the database's address, books, log, die after n answers."""
    url, books, log, die_after = sys.argv[1:]
    sender = OldSender(url, Path(books), Path(log), int(die_after))
    for line in sys.stdin:
        answers = sender.night(Path(line.removeprefix("night ").strip()))
        sys.stdout.write(f"{json.dumps(answers)}\n")
        sys.stdout.flush()


def as_old_sender(url: str) -> str:
    """The same database for a login that may only ask."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    stated = conninfo_to_dict(url)
    options = f"{stated.get('options') or ''} -c role={quote(ROLE)}".strip()
    return make_conninfo(url, options=options)


if __name__ == "__main__":
    main()
