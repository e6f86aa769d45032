"""A provider's JSON lines by the mapping of its account: one object a line, columns by their path.

A path leads into nested objects by points (`source.id`). Numbers are taken as they are written, so
that no amount passes through a float.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from duebook.settlements.delimited import (
    BrokenRow,
    DataRow,
    ScannedFile,
    UnknownLayoutError,
    read_lines,
    scan_records,
)
from duebook.settlements.json_answers import text_at

WHAT: Final = "JSON lines, one object a line"


def scan_lines(path: Path, columns: Mapping[str, str]) -> ScannedFile:
    """Look at a file once; `columns` is field to path.

    Raises UnknownLayoutError for a file whose first line is no JSON object or has none of the
    columns, InputError for one that can't be read as a whole.
    """
    file = scan_records(path, WHAT, tuple(columns), _is_object, partial(read_rows, columns=columns))
    first = next(read_rows(file, columns=columns), None)
    if isinstance(first, DataRow) and not any(first.cells):
        raise UnknownLayoutError(
            f"{path.name}, line {first.line_no}: has none of the columns that duebook.toml maps; "
            f"expected {WHAT}"
        )
    return file


def _is_object(cells: Sequence[str]) -> bool:
    return bool(cells) and cells[0].lstrip().startswith("{")


def read_rows(file: ScannedFile, *, columns: Mapping[str, str]) -> Iterator[DataRow | BrokenRow]:
    """Every object of the file as cells in the order of `columns`; blank lines are passed over."""
    paths = [path.split(".") for path in columns.values()]
    for line_no, line in read_lines(file):
        if not line.strip():
            continue
        try:
            # Amounts stay the text that was written.
            found = json.loads(line, parse_float=str, parse_int=str, parse_constant=str)
        except ValueError:
            yield BrokenRow(line_no, line, line[:200], "no JSON", WHAT)
            continue
        if not isinstance(found, dict):
            yield BrokenRow(line_no, line, line[:200], "no JSON object", WHAT)
            continue
        yield DataRow(line_no, [_cell(found, path) for path in paths])


def _cell(found: Mapping[str, Any], path: Sequence[str]) -> str | None:
    """The text at a path, None where there is none; true and false as JSON writes them."""
    value: Any = found
    for number, name in enumerate(path):
        if not isinstance(value, Mapping):
            return None
        # A name may have points itself.
        whole = ".".join(path[number:])
        if whole in value:
            value = value[whole]
            break
        value = value.get(name)
    return text_at(value)
