"""The SQL of the benchmarks, which stands in files under the same rules as Duebook's own."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import LiteralString

from duebook.db.sql import load_queries

_ROOT = Path(__file__).resolve().parent / "sql"


@functools.cache
def _statements() -> dict[str, str]:
    return load_queries(_ROOT)


def statement(name: str) -> LiteralString:
    """The statement of `bench/sql/queries/**/<name>.sql`; KeyError when there is none."""
    return _statements()[name]
