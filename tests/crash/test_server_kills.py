"""PostgreSQL is killed again and again under senders that mail: no key is lost or mailed twice.

Counted by the SMTP server's own log. A sender that lives and reconnects within its lease leaves no
doubt; one that was killed leaves at most the window that it had in the air.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from duebook.channels.base import message_id_for
from duebook.db.connect import connect_url
from duebook.db.embedded import EmbeddedServer
from duebook.db.migrate import migrate
from duebook.services.check import check
from tests.due_work import add_due, places, value, wait_for

pytestmark = [pytest.mark.crash, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
WINDOW = 20


@dataclass(frozen=True, slots=True)
class Size:
    """How much, how long, how often; seconds."""

    intents: int
    senders: int
    lasting: float
    every: float
    kills_of_senders: int
    lease: float


@dataclass
class Mailing:
    """A server, an SMTP server, and the senders between them."""

    server: EmbeddedServer
    size: Size
    log: Path
    port: int
    stack: ExitStack
    living: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    dead: list[str] = field(default_factory=list)

    def start_sender(self) -> None:
        """One more sender, with a name of its own."""
        name = f"sender-{len(self.living) + len(self.dead) + 1}"
        script = Path(__file__).parent / "mailing_process.py"
        numbers = (str(self.port), name, str(self.size.lease), str(WINDOW), "200")
        report = self.log.with_name(f"{name}.jsonl").open("w")
        self.stack.callback(report.close)
        process = subprocess.Popen(
            [sys.executable, str(script), self.server.url(), *numbers], stdout=report, text=True
        )
        self.stack.callback(_end, process)
        self.living[name] = process

    def kill_sender(self) -> None:
        """The longest-living one dies by SIGKILL, another one takes its place."""
        name = next(iter(self.living))
        process = self.living.pop(name)
        process.kill()
        process.wait()
        self.dead.append(name)
        self.start_sender()

    def kill_server(self) -> None:
        """SIGKILL to every process of PostgreSQL, and a new start at once."""
        pid = self.server.status().pid
        assert pid is not None
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        for each in family:
            try:
                each.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(family, 30)
        self.server.start()

    def mails(self) -> Counter[str]:
        """Accepted messages by Message-ID, as the SMTP server logged them."""
        with self.log.open() as lines:
            return Counter(json.loads(line)["message_id"] for line in lines)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


@contextmanager
def mailing(home: Path, folder: Path, size: Size) -> Iterator[Mailing]:
    """Everything started, and all intents due."""
    log = folder / "mails.jsonl"
    with ExitStack() as stack:
        server = stack.enter_context(EmbeddedServer(home))
        url = server.ensure_database("duebook")
        migrate(url)
        with connect_url(url, autocommit=True) as conn:
            conn.execute("select duebook.accept_environment('test', true, 'pytest')")
            add_due(conn, size.intents, accounts=500, channel="email")
            conn.execute("analyze")
        sink = subprocess.Popen(
            [sys.executable, "-m", "tests.smtp_sink", "--out", str(log)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(_end, sink)
        assert sink.stdout is not None
        stack.callback(sink.stdout.close)
        port = json.loads(sink.stdout.readline())["listening"]
        made = Mailing(server, size, log, port, stack)
        for _ in range(size.senders):
            made.start_sender()
        wait_for(lambda: log.exists() and log.stat().st_size, "the first mail", 120)
        yield made


def kill_and_kill_again(mail: Mailing) -> int:
    """Kill the server every so often, and now and then a sender; returns how many servers died."""
    size, began, kills = mail.size, time.monotonic(), 0
    pace, killed_at = threading.Event(), began
    while (passed := time.monotonic() - began) < size.lasting:
        # From kill to kill; a start that takes long leaves the senders a moment all the same.
        pace.wait(max(1.0, killed_at + size.every - time.monotonic()))
        killed_at = time.monotonic()
        mail.kill_server()
        kills += 1
        if passed > size.lasting * (len(mail.dead) + 1) / (size.kills_of_senders + 1):
            mail.kill_sender()
    return kills


def finish(mail: Mailing) -> None:
    """No more kills: the senders do the rest, the leases of the dead run out."""

    def nothing_is_left() -> bool:
        try:
            with connect_url(mail.server.url(), autocommit=True) as conn:
                if mail.dead:
                    # What is left of a lease is not waited for; the senders that live renew theirs.
                    conn.execute(
                        "update duebook.batch set lease_until = clock_timestamp()"
                        " where sender = any(%s)",
                        [mail.dead],
                    )
                return not value(
                    conn,
                    "select exists (select from duebook.due)"
                    " or exists (select from duebook.batch)"
                    " or exists (select from duebook.held)",
                )
        except psycopg.OperationalError:
            return False

    wait_for(nothing_is_left, "all is sent", 600)
    for process in mail.living.values():
        process.send_signal(signal.SIGTERM)
    for process in mail.living.values():
        # One that has only begun has nothing in hand, and dies of the signal itself.
        assert process.wait(60) in (0, -signal.SIGTERM)


def judge(mail: Mailing) -> dict[str, Any]:
    """Hold the database against the SMTP server's log; returns what it came to."""
    mails = mail.mails()
    with connect_url(mail.server.url(), autocommit=True) as conn:
        found = places(conn)
        keys = conn.execute(
            "select i.account_id, i.operation_key, o.result, u.intent_id is not null"
            " from duebook.intent as i"
            " left join duebook.outcome as o using (account_id, operation_key)"
            " left join duebook.in_doubt as u on i.account_id = u.account_id"
            " and i.intent_id = u.intent_id"
        ).fetchall()
        doubts = conn.execute(
            "select e.sender, count(*) from duebook.in_doubt as u"
            " inner join duebook.batch_ended as e using (batch_id) group by e.sender"
        ).fetchall()
    assert set(found) <= {"outcome", "in_doubt"}, found
    assert sum(found.values()) == mail.size.intents
    assert max(mails.values()) == 1, "a key was mailed twice"
    sent = {message_id_for(account, key, None) for account, key, how, _ in keys if how == "sent"}
    doubted = {message_id_for(account, key, None) for account, key, _, doubt in keys if doubt}
    assert sent <= set(mails), "said to be sent, and the SMTP server never took it"
    assert set(mails) - sent <= doubted, "mailed, and neither sent nor in doubt"
    assert {sender for sender, _ in doubts} <= set(mail.dead), "a sender that lived left doubt"
    assert all(count <= WINDOW for _, count in doubts), doubts
    report = check(lambda: connect_url(mail.server.url(), autocommit=True))
    # The intents were not made by a night: no entry stands behind them.
    broken = [
        each
        for each in report["violations"]
        if "sum of" not in each["invariant"] and "ledger change" not in each["invariant"]
    ]
    assert broken == []
    return {"mails": sum(mails.values()), "in_doubt": dict(doubts), **found}


def run(home: Path, folder: Path, size: Size) -> None:
    with mailing(home, folder, size) as mail:
        began = time.monotonic()
        kills = kill_and_kill_again(mail)
        finish(mail)
        seconds = time.monotonic() - began
        result = judge(mail)
    print(f"{kills} kills, senders {mail.dead} died, {seconds:.0f} s: {result}")
    assert kills >= size.lasting / size.every / 2


@pytest.mark.timeout(600)
def test_a_server_killed_every_few_seconds(server_home: Path, tmp_path: Path) -> None:
    run(server_home, tmp_path, Size(2_000, 4, 20, 5, 1, 40))


@pytest.mark.prove
@pytest.mark.timeout(1800)
def test_a_server_killed_every_five_seconds_for_three_minutes(
    server_home: Path, tmp_path: Path
) -> None:
    run(server_home, tmp_path, Size(50_000, 8, 180, 5, 3, 60))
