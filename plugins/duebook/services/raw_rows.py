"""Copies a delimited file into the session's table raw_row: text by column, with line numbers.

The fast way hands the file's bytes to COPY; the tolerant way goes row by row and rejects what has
not the header's shape. Both lay down the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg
import structlog

from duebook.db.sql import query
from duebook.settlements.delimited import (
    BrokenRow,
    DataRow,
    ScannedFile,
    raw_chunks,
    tolerant_rows,
)

log = structlog.get_logger(__name__)

_REJECTS_AT_ONCE: Final = 5000


def create_raw_rows(
    connection: psycopg.Connection[Any], fields: Sequence[str], same_as: Mapping[str, str]
) -> None:
    """Make raw_row with a text column for each field; `same_as` names fields that are copies."""
    _execute_built(
        connection,
        "build_create_raw_row",
        {"fields": list(fields), "same_as": [same_as.get(each) for each in fields]},
    )


def enter_source(connection: psycopg.Connection[Any], number: int, file: ScannedFile) -> None:
    """Enter a file under its number, before its rows."""
    connection.execute(
        query("put_staged_source"),
        {
            "source_no": number,
            "name": file.name,
            "sha256": file.sha256,
            "size_bytes": file.size,
        },
    )


def _built(connection: psycopg.Connection[Any], name: str, values: Mapping[str, Any]) -> bytes:
    row = connection.execute(query(name), values).fetchone()
    assert row is not None, "a builder returns one row"
    return str(row[0]).encode()


def _execute_built(
    connection: psycopg.Connection[Any], name: str, values: Mapping[str, Any]
) -> None:
    connection.execute(_built(connection, name, values))


def copy_file(connection: psycopg.Connection[Any], number: int, file: ScannedFile) -> None:
    """Lay down the rows of one file, each with its physical line."""
    _execute_built(
        connection,
        "build_prepare_raw_row",
        {
            "source_no": number,
            "first_line": file.header_line + 1,
            "extra_fields": [each for each in file.fields if each.startswith("extra_")],
        },
    )
    if not _copy_bytes(connection, number, file):
        log.info("file is read row by row", file=file.name)
        _copy_rows(connection, number, file)


def _copy_bytes(connection: psycopg.Connection[Any], number: int, file: ScannedFile) -> bool:
    """The fast way; False when the file is not one row of the header's width a physical line."""
    if not file.is_plainly_quoted:
        return False
    if file.lines == 0:
        return True
    statement = _built(
        connection,
        "build_copy_raw_row",
        {"fields": list(file.fields), "delimiter": file.delimiter},
    )
    try:
        with connection.cursor() as cursor:
            with cursor.copy(statement) as copy:
                for chunk in raw_chunks(file):
                    copy.write(chunk)
            if cursor.rowcount == file.lines:
                return True
    except psycopg.DataError:
        return False
    connection.execute(query("delete_raw_rows_of_source"), {"source_no": number})
    return False


def _copy_rows(connection: psycopg.Connection[Any], number: int, file: ScannedFile) -> None:
    statement = _built(connection, "build_copy_numbered_row", {"fields": list(file.fields)})
    rows = (file.read or tolerant_rows)(file)
    exhausted = False
    while not exhausted:
        broken: list[BrokenRow] = []
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            exhausted = _write_rows(copy, rows, broken)
        _copy_broken(connection, number, broken)


def _write_rows(
    copy: psycopg.Copy, rows: Iterator[DataRow | BrokenRow], broken: list[BrokenRow]
) -> bool:
    for row in rows:
        if isinstance(row, DataRow):
            copy.write_row((row.line_no, *row.cells))
            continue
        broken.append(row)
        if len(broken) >= _REJECTS_AT_ONCE:
            return False
    return True


def _copy_broken(
    connection: psycopg.Connection[Any], number: int, broken: Sequence[BrokenRow]
) -> None:
    if not broken:
        return
    with connection.cursor() as cursor, cursor.copy(query("copy_rejects")) as copy:
        for row in broken:
            copy.write_row(
                (number, row.line_no, None, row.value, row.reason, row.expected, row.raw)
            )
