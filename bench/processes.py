"""Starts what is measured, as fresh processes, and ends whatever of it is left.

Two ways: `run_measured` times a whole process, interpreter start and imports included; `run_group`
lets several processes start, import and connect first, and times what they do from a common signal
to the last one's end.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
URL_VARIABLE = "DUEBOOK_DATABASE_URL"
_GIVE_UP_SECONDS = 1800.0
_OWN_VARIABLES = ("DUEBOOK_", "PG", "BENCH_", "AIRFLOW")


class BenchError(Exception):
    """A contender failed or gave a wrong result: there is no figure, and the run ends."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One process from its start to its end."""

    seconds: float
    cpu_seconds: float
    peak_rss_mb: float
    exit_code: int
    stdout: str
    complaint: str

    def document(self) -> Any:
        """Standard output read as JSON. Raises BenchError with the complaint when it is not."""
        try:
            return json.loads(self.stdout)
        except json.JSONDecodeError:
            raise BenchError(f"exit {self.exit_code}: {self.complaint}") from None


@dataclass(frozen=True, slots=True)
class GroupRun:
    """Processes that worked side by side; `reports` is what each printed as its last line."""

    seconds: float
    reports: list[dict[str, Any]]


def environment(url: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without its own Duebook, libpq and Airflow settings.

    The URL goes by environment: command lines can be read by everybody on the machine.
    """
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(_OWN_VARIABLES)
    }
    python_path = os.pathsep.join([str(ROOT), str(ROOT / "plugins")])
    return {**kept, URL_VARIABLE: url, "PYTHONPATH": python_path, "NO_COLOR": "1", **(extra or {})}


def run_measured(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    accepted_codes: Sequence[int] = (0,),
    timeout: float = _GIVE_UP_SECONDS,
) -> Measured:
    """Run `command` (after `sys.executable`) to its end. Raises BenchError when it fails."""
    with tempfile.TemporaryDirectory(prefix="duebook-bench-run-") as folder:
        result, stdout = Path(folder, "result.json"), Path(folder, "stdout")
        launcher = [sys.executable, "-I", "-S", str(ROOT / "bench" / "launch.py"), str(result)]
        with stdout.open("wb") as out, Path(folder, "stderr").open("wb") as err:
            process = subprocess.Popen(
                [*launcher, sys.executable, *command],
                env=dict(env),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            with _ended_at_last([process]):
                process.wait(timeout)
        said = Path(folder, "stderr").read_text(encoding="utf-8", errors="replace")
        if not result.exists():
            raise BenchError(f"{command[0:2]}: ended early: {_last(said)}")
        measured = Measured(
            **json.loads(result.read_text(encoding="utf-8")),
            stdout=stdout.read_text(encoding="utf-8"),
            complaint=_last(said),
        )
    if measured.exit_code not in accepted_codes:
        raise BenchError(f"{' '.join(command[0:2])}: exit {measured.exit_code}: {_last(said)}")
    return measured


def run_group(
    module: str,
    options: Sequence[Mapping[str, Any]],
    env: Mapping[str, str],
    *,
    timeout: float = _GIVE_UP_SECONDS,
) -> GroupRun:
    """Run `python -m module` once for each of `options`, all from one common start.

    The protocol is `bench.peers.starting_line`. Raises BenchError when one of them fails.
    """
    with contextlib.ExitStack() as stack:
        processes: list[subprocess.Popen[str]] = []
        stack.enter_context(_ended_at_last(processes))
        for each in options:
            processes.append(_start(module, each, env))
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                _, said = process.communicate()
                raise BenchError(f"{module}: did not get ready: {_last(said)}")
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        deadline = time.monotonic() + timeout
        reports = [_report_of(module, process, deadline) for process in processes]
    first = min(float(report["started"]) for report in reports)
    last = max(float(report["ended"]) for report in reports)
    return GroupRun(last - first, reports)


def _start(
    module: str, options: Mapping[str, Any], env: Mapping[str, str]
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module, json.dumps(dict(options))],
        env=dict(env),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _report_of(module: str, process: subprocess.Popen[str], deadline: float) -> dict[str, Any]:
    try:
        stdout, said = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise BenchError(f"{module}: not done in time") from None
    if process.returncode != 0:
        raise BenchError(f"{module}: exit {process.returncode}: {_last(said)}")
    report: dict[str, Any] = json.loads(stdout.strip().splitlines()[-1])
    return report


@contextlib.contextmanager
def _ended_at_last(processes: Sequence[subprocess.Popen[Any]]) -> Iterator[None]:
    """Whatever happens, none of `processes` nor their children outlive this block."""
    try:
        yield
    finally:
        for process in processes:
            if process.poll() is None:
                # Each leads a session of its own, so this reaches nothing that we did not start.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


def _last(text: str) -> str:
    """The last line of a complaint; of a traceback the one that names the error."""
    lines = [line for line in text.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"(?!LINE|HINT|DETAIL)[\w.]+: ", line)]
    return (named or lines or ["it said nothing"])[-1][:300]
