"""`python -m bench [--full] [--case NAME] [--rounds N] [--profile]`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

os.environ.setdefault("PYTHONTZPATH", "")

from rich.console import Console

from bench import report
from bench.cases.diff_1m import Diff
from bench.cases.diff_scale import DiffAgain, DiffGrowth, DiffLarge
from bench.cases.drain_200k import Drain
from bench.cases.send_https import SendHttps
from bench.cases.send_smtp import Send
from bench.environment import describe_machine, describe_server
from bench.harness import Bench, Case, Reporter, Row
from bench.processes import BenchError
from bench.server import BenchServer
from duebook.errors import DuebookError

_HERE = Path(__file__).resolve().parent
_ROUNDS = 3


def cases() -> dict[str, Case]:
    """Every case by its name, in the order of running."""
    known: tuple[Case, ...] = (
        *(Diff(), DiffAgain(), DiffGrowth(), DiffLarge()),
        *(Drain(), Send(), SendHttps()),
    )
    return {case.name: case for case in known}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print the table, write the files. 0: measured; 1: a goal was missed; 3: no figures."""
    options = _parse(arguments)
    console = Console(stderr=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    chosen = [cases()[name] for name in options.case or cases()]
    try:
        rows, machine = _measure(options, chosen, console)
    except (BenchError, DuebookError) as error:
        console.print(f"bench: {error}", style="red", highlight=False, markup=False)
        return 3
    except KeyboardInterrupt:
        console.print("bench: interrupted; nothing was written")
        return 130
    report.show(rows, machine, Console(width=None if sys.stdout.isatty() else 160))
    if not options.profile:
        folder: Path = options.output
        merged = report.merge(rows, folder / "results.json", [case.name for case in chosen])
        report.write_json(merged, folder / "results.json")
        report.write_markdown(merged, machine, folder / "RESULTS.md")
    return 1 if any(row.met is False for row in rows) else 0


def _measure(
    options: argparse.Namespace, chosen: Sequence[Case], console: Console
) -> tuple[list[Row], dict[str, str]]:
    rows: list[Row] = []
    with BenchServer(is_profiled=options.profile) as server:
        machine = {
            **describe_machine(),
            **describe_server(server.administration_url, server.parameters),
        }
        bench = Bench(
            server=server,
            rounds=options.rounds,
            is_full=options.full,
            reporter=Reporter(console),
            folder=_HERE / "out" if options.profile else server.home / "files",
        )
        bench.folder.mkdir(parents=True, exist_ok=True)
        for case in chosen:
            rows += case.run(bench)
    return rows, machine


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="also what takes long (5 M rows)")
    parser.add_argument("--case", action="append", choices=list(cases()), help="repeatable")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="interleaved; default 3")
    parser.add_argument(
        "--profile",
        action="store_true",
        help="print where our time goes, by pg_stat_statements; cProfile in bench/out; no figures",
    )
    parser.add_argument("--output", type=Path, default=_HERE, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds: expected 1 or more")
    return options


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
