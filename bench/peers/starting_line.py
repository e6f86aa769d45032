"""How a process of a group waits for the common start, and says how it went.

It prints `ready` when it has imported and connected, works when it reads a line, and ends by
printing one JSON line with the instants of both ends on the clock that all processes share, and
with its processor time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from bench.processes import URL_VARIABLE


def options() -> dict[str, Any]:
    """What the harness wants of this process."""
    document: dict[str, Any] = json.loads(sys.argv[1])
    return document


def database_url() -> str:
    """The database to work on."""
    return os.environ[URL_VARIABLE]


def run_from_common_start(work: Callable[[], Mapping[str, Any]]) -> None:
    """Wait for the start, do the work, print what it returned with the times of both ends."""
    print("ready", flush=True)
    sys.stdin.readline()
    started, used = time.monotonic(), time.process_time()
    report = work()
    ended, used = time.monotonic(), time.process_time() - used
    times = {"started": started, "ended": ended, "cpu_seconds": used}
    print(json.dumps({**report, **times}), flush=True)
