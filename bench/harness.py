"""Rounds, rows and ratios: what every case has in common.

A round runs ours, then each peer, each from the same start; rounds follow each other, so that a
slow minute of the machine falls on all. A ratio is the median of the ratios of each round, above 1
where we are better, never the ratio of two medians of different minutes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.server import BenchServer

Figures = Mapping[str, float]
"""Metric to figure, of one contender in one round."""
Contender = Callable[[], Figures]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a row is to reach: a ratio to the peer, or a figure of our own."""

    of: str
    comparison: str
    bound: float

    def __str__(self) -> str:
        return f"{self.of} {self.comparison} {self.bound:g}"

    def is_met(self, ours: float, ratio: float | None) -> bool:
        """Whether the row's figures reach it."""
        value = ours if self.of == "ours" else ratio
        if value is None:
            return False
        tests = {
            ">": value > self.bound,
            ">=": value >= self.bound,
            "<": value < self.bound,
            "<=": value <= self.bound,
        }
        return tests[self.comparison]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the results. `ratio_low` and `ratio_high` are of single rounds."""

    case: str
    metric: str
    unit: str
    ours: float
    peer: str | None
    theirs: float | None
    ratio: float | None
    goal: str | None
    met: bool | None
    rounds: int
    ratio_low: float | None = None
    ratio_high: float | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """How one figure is shown: `name` may say more than the key that contenders report it by."""

    key: str
    name: str
    unit: str
    is_smaller_better: bool
    goals: Mapping[str, Goal] = field(default_factory=dict)
    own_goal: Goal | None = None


class Case(Protocol):
    """One benchmark."""

    name: str

    def run(self, bench: Bench) -> list[Row]:
        """Measure, verify and return the rows. Raises BenchError when a result is wrong."""
        ...


@dataclass(slots=True)
class Bench:
    """What a case works with. `scale` below 1 is for smoke tests: its figures mean nothing."""

    server: BenchServer
    rounds: int
    is_full: bool
    reporter: Reporter
    folder: Path
    scale: float = 1.0

    def scaled(self, rows: int) -> int:
        """The number of rows of this run."""
        return max(100, round(rows * self.scale))

    def interleave(
        self, title: str, contenders: Mapping[str, Contender]
    ) -> dict[str, list[Figures]]:
        """Every contender once a round, ours (the first) first; the figures by contender."""
        found: dict[str, list[Figures]] = {name: [] for name in contenders}
        with self.reporter.rounds(title, self.rounds * len(contenders)) as tick:
            for number in range(1, self.rounds + 1):
                for name, contender in contenders.items():
                    tick(f"{title}: round {number}, {name}")
                    figures = contender()
                    found[name].append(figures)
                    self.reporter.note(title, number, name, figures)
        return found


def rows_of(
    case: str, metric: Metric, found: Mapping[str, Sequence[Figures]], ours: str = "ours"
) -> list[Row]:
    """One row a peer that has the metric, and one for ours alone where that has a goal."""
    rows: list[Row] = []
    own = [figures[metric.key] for figures in found[ours]]
    median = statistics.median(own)
    if metric.own_goal is not None:
        rows.append(_row(case, metric, median, None, None, [], metric.own_goal, len(own)))
    for peer, rounds in found.items():
        if peer == ours or metric.key not in rounds[0]:
            continue
        theirs = [figures[metric.key] for figures in rounds]
        ratios = [
            their / our if metric.is_smaller_better else our / their
            for our, their in zip(own, theirs, strict=True)
        ]
        goal = metric.goals.get(peer)
        rows.append(
            _row(case, metric, median, peer, statistics.median(theirs), ratios, goal, len(own))
        )
    return rows


def _row(
    case: str,
    metric: Metric,
    ours: float,
    peer: str | None,
    theirs: float | None,
    ratios: Sequence[float],
    goal: Goal | None,
    rounds: int,
) -> Row:
    ratio = statistics.median(ratios) if ratios else None
    return Row(
        case=case,
        metric=metric.name,
        unit=metric.unit,
        ours=round(ours, 3),
        peer=peer,
        theirs=None if theirs is None else round(theirs, 3),
        ratio=None if ratio is None else round(ratio, 3),
        goal=None if goal is None else str(goal),
        met=None if goal is None else goal.is_met(ours, ratio),
        rounds=rounds,
        ratio_low=round(min(ratios), 3) if ratios else None,
        ratio_high=round(max(ratios), 3) if ratios else None,
    )


class Reporter:
    """Progress for a person: a bar in a terminal, a line per measurement anywhere else."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def say(self, text: str) -> None:
        """One line of what goes on."""
        self.console.print(f"[dim]{text}[/dim]", highlight=False)

    def note(self, title: str, number: int, name: str, figures: Figures) -> None:
        """One measurement, as soon as it is there."""
        shown = ", ".join(f"{key} {value:,.2f}" for key, value in figures.items())
        self.console.print(f"{title} · round {number} · {name}: {shown}", highlight=False)

    def profile(self, title: str, server: BenchServer, url: str) -> None:
        """Where the server's time went; nothing on a server that is not profiled."""
        for total_ms, calls, rows, wal_bytes, is_toplevel, text in server.read_profile(url):
            inside = "  " if is_toplevel else "    "
            shown = f"{total_ms:10,.0f} ms {calls:8,} calls {rows:10,} rows {wal_bytes:13,} B"
            self.console.print(f"{shown}{inside}{text[:110]}", highlight=False, markup=False)

    def rounds(self, title: str, total: int) -> _Ticks:
        """A bar over all measurements of a title."""
        return _Ticks(self.console, title, total)


class _Ticks:
    def __init__(self, console: Console, title: str, total: int) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(title, total=total)
        self._is_first = True

    def __enter__(self) -> Callable[[str], None]:
        self._progress.start()
        return self._tick

    def __exit__(self, *failure: object) -> None:
        self._progress.stop()

    def _tick(self, description: str) -> None:
        advance = 0 if self._is_first else 1
        self._is_first = False
        self._progress.update(self._task, description=description, advance=advance)
