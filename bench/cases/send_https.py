"""send-https: webhooks a second of one sender, from due rows to outcomes, over TLS.

Ours is the real sweep with the real channel: claim, gate, facts, signature, post, flush of results
and outcomes. Beside it aiohttp, which posts the same bodies over as many connections and does
nothing else. Both post to a receiver of its own process, which reads each body and answers 204.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg

from bench.cases import drain_200k
from bench.harness import Bench, Figures, Goal, Metric, Row, rows_of
from bench.processes import ROOT, BenchError, environment, run_group
from bench.statements import statement
from duebook.db.sql import query
from tests.channels.servers import Certificate, make_certificate

_RATE = "messages a second"


class SendHttps:
    """The case."""

    name = "send-https"
    rows = 20_000
    accounts = 200
    batch_size = 2_000
    window_messages = 1_000
    connections = 50

    def run(self, bench: Bench) -> list[Row]:
        drain_200k.prepare(bench.server)
        metric = Metric(
            key=_RATE,
            name="webhooks over TLS, one sender",
            unit="messages/s",
            is_smaller_better=False,
            goals={"aiohttp": Goal("ratio", ">=", 0.8)},
        )
        certificate = make_certificate(bench.folder)
        found = bench.interleave(
            self.name,
            {
                "ours": partial(self._send, bench, certificate),
                "aiohttp": partial(self._post, bench, certificate),
            },
        )
        bench.server.drop(drain_200k.TEMPLATE)
        return rows_of(self.name, metric, found)

    def _send(self, bench: Bench, certificate: Certificate) -> Figures:
        rows = bench.scaled(self.rows)
        with bench.server.copy_of(drain_200k.TEMPLATE) as url, receiving(certificate) as receiver:
            self._fill(url, rows, receiver.url)
            bench.server.settle(url)
            bench.server.start_profile(url)
            options = {
                "environment": drain_200k.ENVIRONMENT,
                "batch_size": self.batch_size,
                "window_messages": self.window_messages,
                "connections": self.connections,
                "ca_file": str(certificate.ca_file),
            }
            if bench.server.is_profiled:
                options["profile"] = str(bench.folder / "send-https.prof")
            run = run_group("bench.peers.webhook_sender", [options], environment(url))
            bench.reporter.profile(self.name, bench.server, url)
            receiver.require(rows)
            drain_200k.verify(url, rows)
        return {_RATE: rows / run.seconds, "seconds": run.seconds}

    def _post(self, bench: Bench, certificate: Certificate) -> Figures:
        rows = bench.scaled(self.rows)
        with receiving(certificate) as receiver:
            options = {
                "url": receiver.url,
                "rows": rows,
                "accounts": self.accounts,
                "connections": self.connections,
                "ca_file": str(certificate.ca_file),
            }
            run = run_group("bench.peers.webhook_posts", [options], environment(""))
            receiver.require(rows)
        return {_RATE: rows / run.seconds, "seconds": run.seconds}

    def _fill(self, url: str, rows: int, address: str) -> None:
        values = {"rows": rows, "accounts": self.accounts, "url": address}
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                query("accept_environment"),
                {"name": drain_200k.ENVIRONMENT, "is_test": True, "accepted_by": "bench"},
            )
            connection.execute(statement("fill_hooks"), values)
            connection.execute(statement("fill_due"))


class Receiver:
    """The receiver's process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["listening"]
        self.url = f"https://localhost:{port}/hooks"

    def require(self, rows: int) -> None:
        """End it. Raises BenchError unless it was posted exactly so much."""
        self._process.send_signal(signal.SIGTERM)
        said, _ = self._process.communicate(timeout=30)
        received = json.loads(said)["received"]
        if received != rows:
            raise BenchError(f"the receiver got {received} posts of {rows}")


@contextlib.contextmanager
def receiving(certificate: Certificate) -> Iterator[Receiver]:
    """A receiver that counts, until its block ends."""
    folder: Path = certificate.ca_file.parent
    command = [
        *(sys.executable, "-m", "tests.webhook_sink", "--quiet"),
        *("--tls-certificate", str(certificate.ca_file)),
        *("--tls-key", str(folder / "localhost.key")),
    ]
    process = subprocess.Popen(
        command, env=environment(""), cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Receiver(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
