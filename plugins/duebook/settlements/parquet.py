"""Any provider's Parquet file by the mapping of its account: columns by name, or by their path.

It is read batch by batch, so memory follows the width of a batch and not the size of the file.
Numbers come as decimals, whole numbers or text; a float is refused, since what was written can't be
had back from it. Timestamps, dates and times become the text that the mapping's dates have.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from duebook.errors import InputError
from duebook.settlements.delimited import (
    BrokenRow,
    DataRow,
    ScannedFile,
    require_unchanged,
)
from duebook.settlements.json_answers import storable

WHAT: Final = "a Parquet file with the columns that duebook.toml maps"
BATCH_ROWS: Final = 8_192
_BUFFER_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class _Column:
    """One mapped column: its name at the top, and the fields that lead from there into it."""

    name: str
    inside: tuple[str, ...]
    type: pa.DataType


def scan_parquet(path: Path, columns: Mapping[str, str], decimal: str) -> ScannedFile:
    """Look at a file once; `columns` is field to column, `decimal` how the mapping writes numbers.

    Raises InputError for one that can't be read as a whole, lacks a column or has a float in one.
    """
    try:
        with path.open("rb") as stream:
            status = os.fstat(stream.fileno())
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            stream.seek(0)
            file = _open(path.name, stream)
            rows = file.metadata.num_rows
            found = [_find(path.name, file.schema_arrow, column) for column in columns.values()]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'not readable'}") from None
    return ScannedFile(
        path=path,
        name=path.name,
        sha256=digest,
        size=status.st_size,
        modified_ns=status.st_mtime_ns,
        delimiter=",",
        header_line=0,
        data_start=0,
        data_end=status.st_size,
        lines=rows,
        is_plainly_quoted=False,
        has_controls=True,
        fields=tuple(columns),
        read=partial(_read, columns=found, decimal=decimal),
        typed=frozenset(
            field for field, each in zip(columns, found, strict=True) if _is_number(each.type)
        ),
    )


def _open(name: str, stream: Any) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(stream, buffer_size=_BUFFER_BYTES, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{name}: Parquet that can't be read ({_first_line(error)})") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


def _find(name: str, schema: pa.Schema, column: str) -> _Column:
    """The column of that name, else the one that its path leads to by points."""
    by_name = {each.strip().casefold(): each for each in schema.names}
    whole = by_name.get(column.strip().casefold())
    if whole is not None:
        return _readable(name, column, _Column(whole, (), schema.field(whole).type))
    first, *inside = column.strip().split(".")
    top = by_name.get(first.casefold())
    kind = schema.field(top).type if top is not None else None
    for step in inside:
        if kind is None or not pa.types.is_struct(kind) or kind.get_field_index(step) < 0:
            kind = None
            break
        kind = kind.field(step).type
    if top is None or kind is None:
        raise InputError(f"{name}: column {column!r} is missing; expected {WHAT}")
    return _readable(name, column, _Column(top, tuple(inside), kind))


def _readable(name: str, column: str, found: _Column) -> _Column:
    kind = found.type.value_type if pa.types.is_dictionary(found.type) else found.type
    if pa.types.is_floating(kind):
        raise InputError(
            f"{name}: column {column!r} is a float ({kind}), which is not exact; expected decimal, "
            "whole numbers or text: write it again from its source, not from the float"
        )
    if not any(test(kind) for test in _READABLE):
        raise InputError(
            f"{name}: column {column!r} is {str(kind)[:60]}; expected text, a number or a date"
        )
    return found


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) or pa.types.is_integer(kind))


_READABLE: Final[tuple[Callable[[pa.DataType], bool], ...]] = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_decimal,
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_timestamp,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_null,
)


def _read(
    file: ScannedFile, *, columns: list[_Column], decimal: str
) -> Iterator[DataRow | BrokenRow]:
    """Every row with its number in the file, from 1."""
    number = 0
    with file.path.open("rb") as stream:
        source = _open(file.name, stream)
        names = list(dict.fromkeys(column.name for column in columns))
        try:
            for batch in source.iter_batches(batch_size=BATCH_ROWS, columns=names):
                cells = [_texts(batch.column(each.name), each, decimal) for each in columns]
                for row in zip(*cells, strict=True):
                    number += 1
                    yield DataRow(number, row)
        except (pa.ArrowException, OSError) as error:
            where = f"{file.name}, after row {number}"
            raise InputError(
                f"{where}: Parquet that can't be read ({_first_line(error)})"
            ) from None
        require_unchanged(stream, file)


def _texts(values: pa.Array, column: _Column, decimal: str) -> list[str | None]:
    for step in column.inside:
        values = pc.struct_field(values, step)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        # Nobody settles by the nanosecond, and Python knows none.
        values = values.cast(pa.timestamp("us", values.type.tz), safe=False)
    elif pa.types.is_time64(values.type):
        values = values.cast(pa.time64("us"), safe=False)
    return [_text(each, decimal) for each in values.to_pylist()]


def _text(value: Any, decimal: str) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Decimal):
        return format(value, "f").replace(".", decimal)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value).lower()
