"""Runs one command and writes how it went: wall seconds, CPU seconds, peak RSS, exit code.

A program of its own because Linux counts the memory of whoever starts a process into that process's
peak: this one has imported next to nothing, so the figure is the command's. Only the standard
library; started as `python -I -S bench/launch.py RESULT.json COMMAND …`.
"""

from __future__ import annotations

import json
import os
import sys
import time


def main() -> None:
    result, *command = sys.argv[1:]
    started = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - started
    document = {
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_rss_mb": usage.ru_maxrss / 1024,
        "exit_code": os.waitstatus_to_exitcode(status),
    }
    with open(result, "w", encoding="utf-8") as file:
        json.dump(document, file)


if __name__ == "__main__":
    main()
