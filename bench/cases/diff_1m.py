"""diff-1m: a settlement file of a million entries, one in a hundred changed, to committed intents.

All start from the same database: a ledger of a million payments, each with its settlement entry, as
Duebook's own first night left it. Ours is the command `duebook reconcile`. The peers read the same
file, fetch entries and books, find in memory what changed since last night and what agrees with the
books, and write the changed rows and their intents back in one transaction; versions, positions,
ledger changes, discrepancies, batches, quarantine and the checksum of the file, which ours writes
too, are not asked of them.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from bench.harness import Bench, Figures, Goal, Metric, Row, rows_of
from bench.processes import BenchError, Measured, environment, run_measured
from bench.statements import statement
from duebook.settlements.generator import (
    CsvSettlement,
    generate_csv_ledger,
    generate_csv_settlement,
)

_CONFIG = Path(__file__).resolve().parents[1] / "duebook.toml"
_NOTIFIED_FROM = "notify_from = 2026-01-01T00:00:00Z"
_LATER = "notify_from = 2100-01-01T00:00:00Z"
_SEED = 20260302
_CHANGED = 0.01
SECONDS, MEMORY, CPU = "seconds", "client peak MB", "client CPU s"
_DONE_WITH_DIFFERENCES = (0, 1)
_CLIENT_MB = 200.0


class Diff:
    """The case; the full run adds our own memory at five million rows."""

    name = "diff-1m"
    rows = 1_000_000
    more_rows = 5_000_000

    def run(self, bench: Bench) -> list[Row]:
        start = Start.make(bench, "diff", bench.scaled(self.rows))
        found = bench.interleave(
            self.name,
            {
                "ours": partial(start.ours, bench),
                "pandas": partial(start.theirs, bench, "bench.peers.pandas_diff"),
                "polars": partial(start.theirs, bench, "bench.peers.polars_diff"),
            },
        )
        start.remove(bench)
        rows = rows_of(
            self.name,
            Metric(
                key=SECONDS,
                name="file to committed intents, 1 M rows",
                unit="s",
                is_smaller_better=True,
                goals={"pandas": Goal("ratio", ">", 1)},
            ),
            found,
        )
        rows += rows_of(self.name, memory("1 M rows"), found)
        return rows + (self._more(bench) if bench.is_full else [])

    def _more(self, bench: Bench) -> list[Row]:
        """Flat memory: five times the rows, once."""
        start = Start.make(bench, "diff_5m", bench.scaled(self.more_rows))
        bench.reporter.say(f"{self.name}: ours at {start.file.rows:,} rows")
        found = {"ours": [start.ours(bench)]}
        bench.reporter.note(f"{self.name} at 5 M", 1, "ours", found["ours"][0])
        start.remove(bench)
        return rows_of(self.name, memory("5 M rows"), found)


def memory(size: str) -> Metric:
    return Metric(
        key=MEMORY,
        name=f"client peak memory, {size}",
        unit="MB",
        is_smaller_better=True,
        own_goal=Goal("ours", "<", _CLIENT_MB),
    )


class Start:
    """The database that every contender starts from, as a template, and the file of tonight."""

    def __init__(self, template: str, file: CsvSettlement, config: Path) -> None:
        self.template = template
        self.file = file
        self._config = config

    @classmethod
    def make(cls, bench: Bench, template: str, rows: int, *, changed: float = _CHANGED) -> Start:
        """Generate both files and live through the first night."""
        bench.reporter.say(f"{template}: a ledger and a first night of {rows:,} rows")
        folder = bench.folder / template
        books, before = folder / "ledger.csv", folder / "first-night.csv"
        generate_csv_ledger(_SEED, rows, books)
        generate_csv_settlement(_SEED, rows, 0, before)
        file = generate_csv_settlement(_SEED, rows, changed, folder / "tonight.csv")
        _swap_first_rows(file.path)
        text = _CONFIG.read_text(encoding="utf-8")
        assert _NOTIFIED_FROM in text
        config, config_before = folder / "duebook.toml", folder / "first-night.toml"
        config.write_text(text, encoding="utf-8")
        # What is older than notify_from tells nobody: no million of notices on the first night.
        config_before.write_text(text.replace(_NOTIFIED_FROM, _LATER), encoding="utf-8")

        url = bench.server.create(template)
        _duebook(url, config_before, "migrate")
        _duebook(url, config_before, "apply")
        _fill_ledger(url, books)
        first = _duebook(url, config_before, "reconcile", "--account", "bench", "--file", before)
        if first.document()["matched"] != rows:
            raise BenchError(f"the first night did not match every row: {first.stdout[:300]}")
        _duebook(url, config, "apply")
        bench.server.settle(url)
        books.unlink()
        before.unlink()
        return cls(template, file, config)

    def remove(self, bench: Bench) -> None:
        """Drop the template and the file."""
        bench.server.drop(self.template)
        self.file.path.unlink()

    def ours(self, bench: Bench) -> Figures:
        """The real command, from file to committed intents."""
        with bench.server.copy_of(self.template) as url:
            bench.server.write_back()
            bench.server.start_profile(url)
            done = _duebook(
                url, self._config, "reconcile", "--account", "bench", "--file", self.file.path
            )
            bench.reporter.profile(self.template, bench.server, url)
            report = done.document()
            expected = {
                "entries_new": 0,
                "entries_changed": self.file.changed,
                "quarantined": 0,
                "matched": self.file.rows - self.file.changed,
                "ledger_changes": self.file.changed,
                "intents": self.file.changed,
            }
            wrong = {key: report[key] for key in expected if report[key] != expected[key]}
            if wrong:
                raise BenchError(f"duebook reconcile: found {wrong}, expected {expected}")
            _require_written(url, self.file)
        return _figures(done)

    def copied(self, bench: Bench) -> Figures:
        """One plain COPY of the file."""
        with bench.server.copy_of(self.template) as url:
            bench.server.write_back()
            module = ["-m", "bench.peers.plain_copy", str(self.file.path)]
            done = run_measured(module, environment(url))
            if done.document() != {"copied": self.file.rows}:
                raise BenchError(f"plain copy: {done.stdout}, expected {self.file.rows} rows")
        return _figures(done)

    def theirs(self, bench: Bench, module: str) -> Figures:
        """A peer's program, from the same start."""
        with bench.server.copy_of(self.template) as url:
            bench.server.write_back()
            done = run_measured(["-m", module, str(self.file.path)], environment(url))
            expected = {"changed": self.file.changed, "matched": self.file.rows - self.file.changed}
            if done.document() != expected:
                raise BenchError(f"{module}: found {done.stdout}, expected {expected}")
            _require_written(url, self.file)
        return _figures(done)


def _swap_first_rows(path: Path) -> None:
    """Other bytes with the same rows, so that it is no file that is known by its checksum."""
    with path.open("r+b") as stream:
        header = stream.readline()
        first, second = stream.readline(), stream.readline()
        stream.seek(len(header))
        stream.write(second + first)


def _duebook(url: str, config: Path, *arguments: str | Path) -> Measured:
    extra = {
        "DUEBOOK_CONFIG_FILE": str(config),
        "DUEBOOK_ENVIRONMENT": "bench",
        "DUEBOOK_OPERATOR": "bench",
        "DUEBOOK_HOME": str(config.parent),
        "DUEBOOK_WITNESS": str(config.parent / "witness"),
    }
    return run_measured(
        ["-m", "duebook.cli", *map(str, arguments), "--json"],
        environment(url, extra),
        accepted_codes=_DONE_WITH_DIFFERENCES,
    )


def _fill_ledger(url: str, books: Path) -> None:
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(statement("create_booked_row"))
        with cursor.copy(statement("copy_booked_rows")) as copy, books.open("rb") as file:
            while block := file.read(2**20):
                copy.write(block)
        cursor.execute(statement("fill_ledger"))


def _require_written(url: str, file: CsvSettlement) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        found: tuple[Any, ...] | None = connection.execute(statement("count_changes")).fetchone()
    expected = (file.rows - file.changed, file.changed, file.changed, file.changed)
    if found is None or found[:4] != expected:
        raise BenchError(f"unchanged, changed, intents, due: {found}, expected {expected}")


def _figures(done: Measured) -> Figures:
    return {SECONDS: done.seconds, MEMORY: done.peak_rss_mb, CPU: done.cpu_seconds}
