"""Airflow pools that the DAGs name; the same file feeds `airflow pools import`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

POOLS_FILE = Path(__file__).with_name("pools.json")


@dataclass(frozen=True, slots=True)
class Pool:
    """How many tasks may run at once."""

    slots: int
    description: str


def read_pools() -> dict[str, Pool]:
    """Every pool by its name."""
    return {
        name: Pool(int(pool["slots"]), str(pool["description"]))
        for name, pool in json.loads(POOLS_FILE.read_text()).items()
    }
