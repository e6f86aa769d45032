"""What both dataframe peers share: the ledger out of PostgreSQL, and the changes back into it."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable

import psycopg

from bench.processes import URL_VARIABLE
from bench.statements import statement

Diff = Callable[[str, io.BytesIO], tuple[bytes, int]]
"""From the path of the file and the ledger as CSV to the changed rows as CSV, and how many."""


def run(diff: Diff) -> None:
    """Fetch the ledger, compare it, and write what changed with its intents in one transaction.

    The ledger comes by COPY as CSV: both libraries read that several times faster than rows of a
    cursor. The file is `sys.argv[1]`; prints `{"changed": n}`.
    """
    with psycopg.connect(os.environ[URL_VARIABLE]) as connection, connection.cursor() as cursor:
        with cursor.copy(statement("fetch_ledger")) as copy:
            ledger = io.BytesIO()
            for block in copy:
                ledger.write(block)
        ledger.seek(0)
        changed, count = diff(sys.argv[1], ledger)
        cursor.execute(statement("create_changed_entry"))
        with cursor.copy(statement("copy_changed_entries")) as copy:
            copy.write(changed)
        cursor.execute(statement("update_changed_entries"))
        cursor.execute(statement("insert_changed_intents"))
    print(json.dumps({"changed": count}))
