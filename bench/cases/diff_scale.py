"""diff-5m, diff-again and diff-growth: the same comparison larger, with nothing new, and by size.

The peers of `diff-1m` and DuckDB stand beside it, and one plain COPY of the same file into a table
of text: the floor of whatever brings the rows to the server at all.
"""

from __future__ import annotations

from functools import partial

from bench.cases.diff_1m import SECONDS, Start, memory
from bench.harness import Bench, Figures, Goal, Metric, Row, rows_of

_OF_COPY_LARGE, _OF_COPY_AGAIN = 1 / 1.3, 1 / 1.2
_GROWTH = 1.1
_PER_MILLION = "seconds a million rows"
_SIZES, _LARGE = (100_000, 1_000_000), 10_000_000


class DiffLarge:
    """Five million entries, one in a hundred changed; one round, in the full run only."""

    name = "diff-5m"
    rows = 5_000_000

    def run(self, bench: Bench) -> list[Row]:
        if not bench.is_full:
            return []
        start = Start.make(bench, "diff_large", bench.scaled(self.rows))
        peers = {
            "pandas": partial(start.theirs, bench, "bench.peers.pandas_diff"),
            "polars": partial(start.theirs, bench, "bench.peers.polars_diff"),
            "duckdb": partial(start.theirs, bench, "bench.peers.duckdb_diff"),
        }
        found = bench.interleave(
            self.name,
            {"ours": partial(start.ours, bench), **peers, "copy": partial(start.copied, bench)},
        )
        start.remove(bench)
        goals = {name: Goal("ratio", ">=", 1) for name in peers}
        goals["copy"] = Goal("ratio", ">=", round(_OF_COPY_LARGE, 3))
        title = "file to committed intents, 5 M rows"
        rows = rows_of(self.name, _seconds(title, goals), found)
        return rows + rows_of(self.name, memory("5 M rows"), found)


class DiffAgain:
    """A million entries that the database has already, in a file that it has not seen."""

    name = "diff-again"
    rows = 1_000_000

    def run(self, bench: Bench) -> list[Row]:
        start = Start.make(bench, "diff_again", bench.scaled(self.rows), changed=0)
        found = bench.interleave(
            self.name,
            {
                "ours": partial(start.ours, bench),
                "polars": partial(start.theirs, bench, "bench.peers.polars_diff"),
                "copy": partial(start.copied, bench),
            },
        )
        start.remove(bench)
        goals = {"copy": Goal("ratio", ">=", round(_OF_COPY_AGAIN, 3))}
        return rows_of(self.name, _seconds("nothing changed, 1 M rows", goals), found)


class DiffGrowth:
    """What a row costs at 100 k, 1 M and (in the full run) 10 M entries: the smallest beside it."""

    name = "diff-growth"

    def run(self, bench: Bench) -> list[Row]:
        sizes = (*_SIZES, _LARGE) if bench.is_full else _SIZES
        found: dict[int, list[Figures]] = {}
        for rows in sizes:
            start = Start.make(bench, f"diff_growth_{rows}", bench.scaled(rows))
            title = f"{self.name}-{rows}"
            measured = bench.interleave(title, {"ours": partial(start.ours, bench)})["ours"]
            found[rows] = [_a_million(figures, start.file.rows) for figures in measured]
            start.remove(bench)
        smallest = found.pop(sizes[0])
        rows_found = []
        for rows, figures in found.items():
            metric = Metric(
                key=_PER_MILLION,
                name=f"{_PER_MILLION}, at {rows:,} beside {sizes[0]:,}",
                unit="s",
                is_smaller_better=True,
                goals={"at the smallest": Goal("ratio", ">=", round(1 / _GROWTH, 3))},
            )
            beside = {"ours": figures, "at the smallest": smallest}
            rows_found += rows_of(self.name, metric, beside)
        return rows_found


def _a_million(figures: Figures, rows: int) -> Figures:
    return {_PER_MILLION: figures[SECONDS] * 1_000_000 / rows}


def _seconds(name: str, goals: dict[str, Goal]) -> Metric:
    return Metric(key=SECONDS, name=name, unit="s", is_smaller_better=True, goals=goals)
