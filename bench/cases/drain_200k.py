"""drain-200k: 200,000 due promises to 200,000 outcomes, over 1, 200 and 5,000 accounts.

Ours is the real sweep: fair claim with an attempt row each, lease and token, watermark, the gate's
facts read before each window, fenced flush of results and outcomes; the channel alone does nothing.
Beside it, on the same server: the bare append of attempt and outcome rows (the floor of any design
that keeps both), and PGMQ's read and archive (which keeps neither).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from bench.harness import Bench, Figures, Goal, Metric, Row, rows_of
from bench.processes import BenchError, GroupRun, environment, run_group
from bench.server import BenchServer, connector
from bench.statements import statement
from duebook.config import load_config
from duebook.db.migrate import migrate
from duebook.db.sql import query
from duebook.services.apply import apply_config
from duebook.services.check import check

TEMPLATE = "drain"
ENVIRONMENT = "bench"
_CONFIG = Path(__file__).resolve().parents[1] / "duebook.toml"
_RATE = "rows a second"


class Drain:
    """The case; `senders` is also the number of backends of every peer."""

    name = "drain-200k"
    rows = 200_000
    goals: Mapping[int, float] = {1: 0.35, 200: 0.35, 5_000: 0.2}
    senders = 2
    batch_size = 10_000
    window_messages = 10_000
    queue_batch_size = 1_000

    def run(self, bench: Bench) -> list[Row]:
        prepare(bench.server)
        rows: list[Row] = []
        for accounts, floor in self.goals.items():
            metric = Metric(
                key=_RATE,
                name=f"drain, {accounts:,} account{'s' if accounts > 1 else ''}",
                unit="rows/s",
                is_smaller_better=False,
                goals={"bare append": Goal("ratio", ">=", floor)},
            )
            found = bench.interleave(
                f"{self.name}, {accounts:,} accounts",
                {
                    "ours": partial(self._drain, bench, accounts),
                    "bare append": partial(self._append, bench, accounts),
                    "PGMQ-like archive": partial(self._archive, bench, accounts),
                },
            )
            rows += rows_of(self.name, metric, found)
        bench.server.drop(TEMPLATE)
        return rows

    def _drain(self, bench: Bench, accounts: int) -> Figures:
        rows = bench.scaled(self.rows)
        with bench.server.copy_of(TEMPLATE) as url:
            fill(url, rows, accounts)
            bench.server.settle(url)
            bench.server.start_profile(url)
            options = {
                "environment": ENVIRONMENT,
                "batch_size": self.batch_size,
                "window_messages": self.window_messages,
            }
            profile = bench.folder / f"sender-{accounts}.prof"
            chosen = {"profile": str(profile)} if bench.server.is_profiled else {}
            run = run_group(
                "bench.peers.duebook_sender",
                [options | (chosen if number == 0 else {}) for number in range(self.senders)],
                environment(url),
            )
            bench.reporter.profile(f"{self.name}, {accounts} accounts", bench.server, url)
            verify(url, rows)
        return _figures(run, rows)

    def _append(self, bench: Bench, accounts: int) -> Figures:
        rows = bench.scaled(self.rows)
        with bench.server.copy_of(TEMPLATE) as url:
            bench.server.settle(url)
            options = {"rows": rows, "accounts": accounts, "batch_size": self.batch_size}
            run = self._group("bench.peers.append_floor", options, url)
            _require(url, "count_appended", {"attempts": rows, "outcomes": rows})
        return _figures(run, rows)

    def _archive(self, bench: Bench, accounts: int) -> Figures:
        rows = bench.scaled(self.rows)
        with bench.server.copy_of(TEMPLATE) as url:
            with psycopg.connect(url, autocommit=True) as connection:
                for name in (
                    "create_queue",
                    "create_queue_index",
                    "create_archive",
                    "create_archive_index",
                ):
                    connection.execute(statement(name))
                connection.execute(statement("fill_queue"), {"rows": rows, "accounts": accounts})
            bench.server.settle(url)
            options = {"batch_size": self.queue_batch_size}
            run = self._group("bench.peers.queue_archive", options, url)
            _require(url, "count_archived", {"archived": rows, "waiting": 0})
        return _figures(run, rows)

    def _group(self, module: str, options: Mapping[str, Any], url: str) -> GroupRun:
        each = [
            {**options, "process": number, "processes": self.senders}
            for number in range(self.senders)
        ]
        return run_group(module, each, environment(url))


def prepare(server: BenchServer) -> None:
    """The template: this version's schema, the kinds of the benchmark's duebook.toml, no rows."""
    url = server.create(TEMPLATE)
    migrate(url)
    apply_config(connector(url), load_config(_CONFIG), by="bench")


def fill(url: str, rows: int, accounts: int) -> None:
    """Accept the copy as its own environment and make `rows` promises due in it."""
    sizes = {"rows": rows, "accounts": accounts}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            query("accept_environment"),
            {"name": ENVIRONMENT, "is_test": True, "accepted_by": "bench"},
        )
        connection.execute(statement("fill_contacts"), {"accounts": accounts})
        connection.execute(statement("fill_intents"), sizes)
        connection.execute(statement("fill_due"))


def verify(url: str, rows: int) -> None:
    """Each promise ended once and Duebook's own check finds nothing. Raises BenchError."""
    _require(
        url,
        "count_drained",
        {
            "attempts": rows,
            "results": rows,
            "outcomes": rows,
            "due": 0,
            "batches": 0,
            "elsewhere": 0,
        },
    )
    violations = check(connector(url))["violations"]
    if violations:
        raise BenchError(f"after the drain: {violations}")


def _require(url: str, name: str, expected: Mapping[str, int]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement(name))
        row, columns = cursor.fetchone(), cursor.description
        assert row is not None
        assert columns is not None
        found = dict(zip([column.name for column in columns], row, strict=True))
    wrong = {name: found[name] for name, value in expected.items() if found[name] != value}
    if wrong:
        raise BenchError(f"{name}: found {wrong}, expected {dict(expected)}")


def _figures(run: GroupRun, rows: int) -> Figures:
    return {_RATE: rows / run.seconds, "seconds": run.seconds}
