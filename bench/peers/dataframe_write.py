"""What both dataframe peers share: the books out of PostgreSQL, and the changes back into it."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

import psycopg

from bench.processes import URL_VARIABLE
from bench.statements import statement

NAMES = {
    "Entry": "entry_id",
    "Type": "provider_type",
    "Batch": "batch_ref",
    "Reference": "payment_ref",
    "Gross": "gross_minor",
    "Fee": "fee_minor",
    "Net": "net_minor",
    "Currency": "currency",
    "Occurred": "occurred",
    "Status": "entry_status",
}
"""Column of the file to column of the entries, in the order of `changed_entry`."""
AMOUNTS = ("gross_minor", "fee_minor", "net_minor")
COMPARED = tuple(name for name in NAMES.values() if name != "entry_id")


class Difference(NamedTuple):
    """Tonight's rows that last night's entries do not have like this, as CSV, and how many; how
    many rows agree with the books.
    """

    changed_csv: bytes
    changed: int
    matched: int


Diff = Callable[[str, io.BytesIO, io.BytesIO], Difference]
"""From the path of the file, the entries and the books (both CSV) to the difference."""


def run(diff: Diff) -> None:
    """Fetch entries and books, compare, and write what changed with its intents in one transaction.

    Both come by COPY as CSV: the libraries read that several times faster than rows of a cursor.
    The file is `sys.argv[1]`; prints `{"changed": n, "matched": n}`.
    """
    with psycopg.connect(os.environ[URL_VARIABLE]) as connection, connection.cursor() as cursor:
        entries = _fetch(cursor, "fetch_entries")
        books = _fetch(cursor, "fetch_ledger")
        found = diff(sys.argv[1], entries, books)
        cursor.execute(statement("create_changed_entry"))
        with cursor.copy(statement("copy_changed_entries")) as copy:
            copy.write(found.changed_csv)
        cursor.execute(statement("update_changed_entries"))
        cursor.execute(statement("insert_changed_intents"))
    print(json.dumps({"changed": found.changed, "matched": found.matched}))


def _fetch(cursor: psycopg.Cursor, name: str) -> io.BytesIO:
    fetched = io.BytesIO()
    with cursor.copy(statement(name)) as copy:
        for block in copy:
            fetched.write(block)
    fetched.seek(0)
    return fetched
