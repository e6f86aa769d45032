"""send-smtp: due promises to mail in a server's hands and outcomes on disk, by one sender.

Ours is the real sweep through the real channel: claim, gate, facts, template, MIME, SMTP, results
and outcomes, with the windows that `duebook.toml` has by default and with larger ones. Beside it,
to the same server, what a program pays that only sends: smtplib and aiosmtplib, which promise,
check and record nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg

from bench.cases.drain_200k import verify
from bench.harness import Bench, Figures, Goal, Metric, Row, rows_of
from bench.processes import ROOT, BenchError, GroupRun, environment, run_group
from bench.server import BenchServer, connector
from bench.statements import statement
from duebook.config import load_config
from duebook.db.migrate import migrate
from duebook.db.sql import query
from duebook.services.apply import apply_config

_TEMPLATE = "mail"
_ENVIRONMENT = "bench"
_CONFIG = Path(__file__).resolve().parents[1] / "duebook.toml"
_RATE = "messages a second"
_CPU = "microseconds of processor a message"


class Sink:
    """The SMTP server, a process of its own; `take_counts` says what came since the last time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.port = int(self._answer()["listening"])

    def take_counts(self) -> dict[str, int]:
        """Messages and different Message-IDs."""
        assert self._process.stdin is not None
        self._process.stdin.write("count\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, int]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BenchError("the mail sink ended")
        answer: dict[str, int] = json.loads(line)
        return answer


@contextmanager
def running_sink() -> Iterator[Sink]:
    """A sink that ends with the block."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.peers.mail_sink"],
        env=environment(""),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Sink(process)
        finally:
            process.kill()


class Send:
    """The case. Peers send fewer messages where they are slow: a rate needs no more."""

    name = "send-smtp"
    rows = 20_000
    accounts = 2_000
    windows = (50, 500)
    peers: Mapping[str, int] = {
        "smtplib, bytes": 20_000,
        "smtplib, EmailMessage": 4_000,
        "aiosmtplib, bytes": 20_000,
    }
    goals: Mapping[str, float] = {"smtplib, bytes": 2, "smtplib, EmailMessage": 10}

    def run(self, bench: Bench) -> list[Row]:
        prepare(bench.server)
        rows: list[Row] = []
        with running_sink() as sink:
            for window in self.windows:
                metric = Metric(
                    key=_RATE,
                    name=f"promise to outcome by mail, windows of {window}",
                    unit="messages/s",
                    is_smaller_better=False,
                    goals={peer: Goal("ratio", ">=", goal) for peer, goal in self.goals.items()},
                )
                peers = {
                    name: partial(self._theirs, bench, sink, name, messages)
                    for name, messages in self.peers.items()
                }
                found = bench.interleave(
                    f"{self.name}, windows of {window}",
                    {"ours": partial(self._ours, bench, sink, window), **peers},
                )
                cost = Metric(
                    key=_CPU,
                    name=f"the sender's processor a message, windows of {window}",
                    unit="us",
                    is_smaller_better=True,
                )
                rows += rows_of(self.name, metric, found) + rows_of(self.name, cost, found)
        bench.server.drop(_TEMPLATE)
        return rows

    def _ours(self, bench: Bench, sink: Sink, window: int) -> Figures:
        rows = bench.scaled(self.rows)
        with bench.server.copy_of(_TEMPLATE) as url:
            fill(url, rows, min(rows, self.accounts))
            bench.server.settle(url)
            bench.server.start_profile(url)
            options = {
                "environment": _ENVIRONMENT,
                "window_messages": window,
                "port": sink.port,
            }
            profile = bench.folder / f"mailer-{window}.prof"
            chosen = {"profile": str(profile)} if bench.server.is_profiled else {}
            run = run_group("bench.peers.duebook_mailer", [options | chosen], environment(url))
            bench.reporter.profile(f"{self.name}, windows of {window}", bench.server, url)
            _require_taken(sink, rows)
            verify(url, rows)
        return _figures(run, rows)

    def _theirs(self, bench: Bench, sink: Sink, contender: str, messages: int) -> Figures:
        count = bench.scaled(messages)
        options = {"contender": contender, "messages": count, "port": sink.port}
        run = run_group("bench.peers.mail_of_libraries", [options], environment(""))
        _require_taken(sink, count)
        return _figures(run, count)


def prepare(server: BenchServer) -> None:
    """The template: this version's schema, the kinds of the benchmark's duebook.toml, no rows."""
    url = server.create(_TEMPLATE)
    migrate(url)
    apply_config(connector(url), load_config(_CONFIG), by="bench")


def fill(url: str, rows: int, accounts: int) -> None:
    """Accept the copy as its own environment, with `rows` notices due in it and their books."""
    sizes = {"rows": rows, "accounts": accounts}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            query("accept_environment"),
            {"name": _ENVIRONMENT, "is_test": True, "accepted_by": "bench"},
        )
        connection.execute(statement("fill_addresses"), {"accounts": accounts})
        connection.execute(statement("fill_payments"), sizes)
        for name in ("fill_changes", "fill_notices", "fill_due"):
            connection.execute(statement(name))


def _figures(run: GroupRun, messages: int) -> Figures:
    (report,) = run.reports
    return {_RATE: messages / run.seconds, _CPU: report["cpu_seconds"] / messages * 1e6}


def _require_taken(sink: Sink, messages: int) -> None:
    found, expected = sink.take_counts(), {"messages": messages, "message_ids": messages}
    if found != expected:
        raise BenchError(f"the mail sink took {found}, expected {expected}")
