"""Rows of a database elsewhere: what a query over an Airflow connection gives, as a CSV file.

An import reads files, so the rows are laid down as one first: streamed, never all in memory, exact.
The columns of the query are the columns of the file.
"""

from __future__ import annotations

import contextlib
import csv
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import sqlalchemy
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from duebook.connections import ConnectionSpec
from duebook.errors import ConfigurationError, InputError, UnavailableError

_ROWS_AT_ONCE: Final = 5000
# Airflow's type of a connection: SQLAlchemy's dialect and driver.
_DRIVERS: Final = {"postgres": "postgresql+psycopg", "sqlite": "sqlite", "mysql": "mysql+pymysql"}


@contextlib.contextmanager
def given_rows(
    file: Path | None,
    conn_id: str | None,
    query_file: Path | None,
    connections: Callable[[str], ConnectionSpec | None],
) -> Iterator[Path]:
    """A file as it is, or the rows of a query over a connection. Raises InputError for neither."""
    if file is not None and conn_id is None and query_file is None:
        yield file
        return
    if file is not None or conn_id is None or query_file is None:
        raise InputError("expected a file, or --connection with --query")
    with rows_as_file(conn_id, connections, query_file) as path:
        yield path


@contextlib.contextmanager
def rows_as_file(
    conn_id: str, connections: Callable[[str], ConnectionSpec | None], query_file: Path
) -> Iterator[Path]:
    """The rows of the query in `query_file` over connection `conn_id`, as a CSV file for a while.

    Money must be exact: integers of minor units, or numeric; instants need an offset. Raises
    ConfigurationError (no such connection, no driver), InputError (the query can't be read or
    run, or gives a float) and UnavailableError (the database is away).
    """
    statement = _read(query_file)
    engine = _engine(conn_id, connections)
    try:
        with tempfile.TemporaryDirectory(prefix="duebook-rows-") as folder:
            path = Path(folder) / f"{query_file.stem}.csv"
            _lay_down(engine, statement, query_file.name, path)
            yield path
    finally:
        engine.dispose()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'not readable'}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8") from None


def _engine(conn_id: str, connections: Callable[[str], ConnectionSpec | None]) -> sqlalchemy.Engine:
    spec = connections(conn_id)
    if spec is None:
        raise ConfigurationError(
            f"connection {conn_id} is not defined: set AIRFLOW_CONN_{conn_id.upper()}"
        )
    url = sqlalchemy.URL.create(
        _DRIVERS.get(spec.conn_type, spec.conn_type),
        username=spec.login,
        password=spec.password,
        host=spec.host or None,
        port=spec.port,
        database=spec.schema or (spec.host if spec.conn_type == "sqlite" else None),
    )
    if spec.conn_type == "sqlite":
        url = url.set(host=None, port=None)
    try:
        return sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise ConfigurationError(
            f"connection {conn_id}: no driver for {spec.conn_type} is installed ({error})"
        ) from None


def _lay_down(engine: sqlalchemy.Engine, statement: str, name: str, path: Path) -> None:
    try:
        with (
            engine.connect().execution_options(stream_results=True) as connection,
            contextlib.closing(connection.exec_driver_sql(statement)) as result,
        ):
            if not result.returns_rows:
                raise InputError(f"{name}: expected one query that gives rows")
            _write(path, name, list(result.keys()), result.partitions(_ROWS_AT_ONCE))
    except DBAPIError as error:
        first = str(error.orig).strip().splitlines()[0] if error.orig else "not answering"
        if error.connection_invalidated or isinstance(error, sqlalchemy.exc.OperationalError):
            raise UnavailableError(f"{name}: the database of this query is away: {first}") from None
        raise InputError(f"{name}: {first}") from None
    except SQLAlchemyError as error:
        raise InputError(f"{name}: {str(error).splitlines()[0]}") from None


def _write(
    path: Path,
    name: str,
    columns: Sequence[str],
    partitions: Iterator[Sequence[sqlalchemy.Row[Any]]],
) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        number = 0
        for partition in partitions:
            for row in partition:
                number += 1
                writer.writerow(
                    _text(value, name, number, column)
                    for column, value in zip(columns, row, strict=True)
                )


def _text(value: Any, name: str, number: int, column: str) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            raise InputError(
                f"{name}, row {number}, column {column}: a float is not exact; "
                "expected an integer of minor units or numeric (cast it in the query)"
            )
        case Decimal():
            return f"{value:f}"
        case datetime() | date():
            return value.isoformat()
        case _:
            return str(value)
