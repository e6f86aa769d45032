"""DuckDB: the file, the entries and the books as relations in memory, joined on every core."""

from __future__ import annotations

import io

import duckdb
import pyarrow as pa
import pyarrow.csv

from bench.peers import dataframe_write
from bench.peers.dataframe_write import Difference
from bench.statements import statement


def diff(path: str, entries_csv: io.BytesIO, books_csv: io.BytesIO) -> Difference:
    """What changed since last night, and how much of tonight agrees with the books."""
    database = duckdb.connect()
    database.register("entries", _table(entries_csv))
    database.register("books", _table(books_csv))
    database.read_csv(path).create_view("settlement_file")
    database.execute(statement("duckdb_read_file"))
    changed: pa.Table = database.execute(statement("duckdb_find_changed")).to_arrow_table()
    counted = database.execute(statement("duckdb_count_matched")).fetchone()
    assert counted is not None, "a count returns one row"
    text = io.BytesIO()
    pyarrow.csv.write_csv(changed, text, pyarrow.csv.WriteOptions(include_header=False))
    return Difference(text.getvalue(), changed.num_rows, int(counted[0]))


def _table(content: io.BytesIO) -> pa.Table:
    return pyarrow.csv.read_csv(content)


if __name__ == "__main__":
    dataframe_write.run(diff)
