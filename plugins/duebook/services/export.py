"""Reports as files: streamed from the server a few thousand rows at a time, whatever their size.

A cell of a CSV that a spreadsheet would take for a formula (it begins with = + - @, a tab or a
carriage return, and is no number) gets an apostrophe before it: references and remarks come from
outside (OWASP, "CSV Injection"). `raw` leaves it as it is.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import IO, Any, Final

import sqlalchemy
from sqlalchemy.exc import DBAPIError

from duebook.db.connect import engine
from duebook.errors import ConfigurationError, InputError, UnavailableError
from duebook.services.frames import REPORTS_SCHEMA, report_names

FORMATS: Final = ("csv", "json", "parquet")
_ROWS_AT_ONCE: Final = 5000
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
# The widest numeric that Parquet holds; major units need no more than four decimals.
_PRECISION, _SCALE = 38, 6
Batches = Iterator[Sequence[Sequence[Any]]]


def write_report(
    url: str,
    name: str,
    stream: IO[bytes],
    fmt: str = "csv",
    *,
    where: Mapping[str, str] | None = None,
    raw: bool = False,
) -> int:
    """Write the report `name` to `stream` as `fmt` (FORMATS); returns how many rows.

    `where` keeps only rows whose column, as text, has that value. Raises InputError (unknown
    report, column or format), ConfigurationError (Parquet without pyarrow) and UnavailableError.
    """
    writer = _writer(fmt, raw=raw)
    known = report_names(url)
    if name not in known:
        raise InputError(f"unknown report {name}; there are {', '.join(known)}")
    source = engine(url)
    try:
        view = sqlalchemy.Table(
            name, sqlalchemy.MetaData(), schema=REPORTS_SCHEMA, autoload_with=source
        )
        statement = sqlalchemy.select(view).where(*_conditions(view, where or {}))
        with source.connect().execution_options(stream_results=True) as connection:
            result = connection.execute(statement)
            try:
                return writer(view, result.partitions(_ROWS_AT_ONCE), stream)
            finally:
                result.close()
    except DBAPIError as error:
        if error.connection_invalidated:
            raise UnavailableError("the database of the reports went away") from None
        raise InputError(f"report {name}: {_first_line(error)}") from None
    finally:
        source.dispose()


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0]


def _conditions(
    view: sqlalchemy.Table, where: Mapping[str, str]
) -> Iterator[sqlalchemy.ColumnElement[bool]]:
    for column, value in where.items():
        if column not in view.columns:
            known = ", ".join(view.columns.keys())
            raise InputError(f"report {view.name} has no column {column}; it has {known}")
        yield sqlalchemy.cast(view.columns[column], sqlalchemy.Text) == value


def _writer(fmt: str, *, raw: bool) -> Callable[[sqlalchemy.Table, Batches, IO[bytes]], int]:
    match fmt:
        case "csv":
            return lambda view, batches, stream: _write_csv(view, batches, stream, raw=raw)
        case "json":
            return _write_json
        case "parquet":
            return _write_parquet
        case _:
            raise InputError(f"unknown format {fmt}: expected one of {', '.join(FORMATS)}")


def _write_csv(view: sqlalchemy.Table, batches: Batches, stream: IO[bytes], *, raw: bool) -> int:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(view.columns.keys())
    count = 0
    for batch in batches:
        for row in batch:
            cells = [_plain(value) for value in row]
            writer.writerow(cells if raw else [_harmless(cell) for cell in cells])
        count += len(batch)
    text.detach()
    return count


def _harmless(cell: Any) -> Any:
    """A cell that no spreadsheet runs. Numbers are no text here, and stay numbers."""
    is_text = isinstance(cell, str) and not isinstance(cell, _Number)
    return f"'{cell}" if is_text and cell.startswith(_FORMULA) else cell


def _write_json(view: sqlalchemy.Table, batches: Batches, stream: IO[bytes]) -> int:
    names = view.columns.keys()
    count = 0
    stream.write(b"[")
    for batch in batches:
        for row in batch:
            document = dict(zip(names, (_json_value(value) for value in row), strict=True))
            lead = b",\n" if count else b"\n"
            stream.write(lead + json.dumps(document, ensure_ascii=False).encode())
            count += 1
    stream.write(b"\n]\n")
    return count


def _json_value(value: Any) -> Any:
    """As text where JSON's numbers are not exact."""
    return value if isinstance(value, bool | int | str | list | dict | None) else _plain(value)


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case bool():
            return "true" if value else "false"
        case date() | time():
            return value.isoformat()
        case Decimal():
            return _Number(f"{value:f}")
        case timedelta():
            return _Number(f"{value.total_seconds():.6f}")
        case list() | dict():
            return json.dumps(value, ensure_ascii=False, default=str)
        case _:
            return value


class _Number(str):
    """A number in its own digits, which is no formula with a minus before it."""

    __slots__ = ()


def _write_parquet(view: sqlalchemy.Table, batches: Batches, stream: IO[bytes]) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ConfigurationError("Parquet needs pyarrow: pip install pyarrow") from None
    schema = pa.schema([(column.name, _arrow_type(pa, column)) for column in view.columns])
    count = 0
    with pq.ParquetWriter(stream, schema) as writer:
        for batch in batches:
            columns = [
                pa.array([_arrow_value(value) for value in told], type=field.type)
                for told, field in zip(zip(*batch, strict=True), schema, strict=True)
            ]
            writer.write_table(pa.table(columns, schema=schema))
            count += len(batch)
    return count


def _arrow_type(pa: Any, column: sqlalchemy.Column[Any]) -> Any:
    kind = column.type
    if isinstance(kind, sqlalchemy.DateTime):
        return pa.timestamp("us", tz="UTC" if kind.timezone else None)
    kinds = (
        (sqlalchemy.Boolean, pa.bool_()),
        (sqlalchemy.Integer, pa.int64()),
        (sqlalchemy.Date, pa.date32()),
        (sqlalchemy.Interval, pa.duration("us")),
        (sqlalchemy.Numeric, pa.decimal128(_PRECISION, _SCALE)),
    )
    return next((arrow for known, arrow in kinds if isinstance(kind, known)), pa.string())


def _arrow_value(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return value
