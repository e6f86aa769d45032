"""Writes what was measured: `results.json` for programs, the table in `RESULTS.md` for people."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.harness import Row

_OPENS, _CLOSES = "<!-- figures: written by `python -m bench` -->", "<!-- end of figures -->"
_HEADINGS = ("case", "metric", "ours", "peer", "theirs", "ratio", "rounds from to", "goal", "met")


def merge(rows: Sequence[Row], path: Path, cases: Iterable[str]) -> list[Row]:
    """The rows of this run, and those in the file of every case that this run left out."""
    ran = set(cases)
    kept: list[Row] = []
    if path.exists():
        names = {field.name for field in dataclasses.fields(Row)}
        for each in json.loads(path.read_text(encoding="utf-8")):
            if each["case"] not in ran and names <= each.keys():
                kept.append(Row(**{name: each[name] for name in names}))
    return sorted([*kept, *rows], key=lambda row: row.case)


def write_json(rows: Sequence[Row], path: Path) -> None:
    """A list of `{case, metric, unit, ours, peer, theirs, ratio, goal, met, …}`."""
    documents: list[dict[str, Any]] = [dataclasses.asdict(row) for row in rows]
    path.write_text(json.dumps(documents, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_markdown(rows: Sequence[Row], machine: Mapping[str, str], path: Path) -> None:
    """Put table and machine between the markers of `path`; the text around them stays."""
    text = path.read_text(encoding="utf-8")
    before, opens, rest = text.partition(_OPENS)
    _, closes, after = rest.partition(_CLOSES)
    if not opens or not closes:
        raise ValueError(f"{path.name}: the markers of the figures are missing")
    lines = [
        "| " + " | ".join(_HEADINGS) + " |",
        "|" + "|".join(" --- " for _ in _HEADINGS) + "|",
        *("| " + " | ".join(_cells(row)) + " |" for row in rows),
        "",
        *(f"- {name}: {value}" for name, value in machine.items()),
    ]
    body = "\n".join(lines)
    path.write_text(f"{before}{_OPENS}\n\n{body}\n\n{_CLOSES}{after}", encoding="utf-8")


def show(rows: Sequence[Row], machine: Mapping[str, str], console: Console) -> None:
    """The same table in the terminal."""
    for name, value in machine.items():
        console.print(f"{name}: {value}", highlight=False)
    table = Table()
    for number, heading in enumerate(_HEADINGS):
        table.add_column(heading, justify="right" if number in {2, 4, 5} else "left")
    for row in rows:
        table.add_row(*_cells(row), style="red" if row.met is False else "")
    console.print(table)


def _cells(row: Row) -> tuple[str, ...]:
    spread = "" if row.ratio_low is None else f"{row.ratio_low:.2f} – {row.ratio_high:.2f}"
    return (
        row.case,
        row.metric,
        f"{_number(row.ours)} {row.unit}",
        row.peer or "",
        "" if row.theirs is None else f"{_number(row.theirs)} {row.unit}",
        "" if row.ratio is None else f"{row.ratio:.2f}",
        spread,
        row.goal or "",
        {None: "", True: "yes", False: "no"}[row.met],
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
