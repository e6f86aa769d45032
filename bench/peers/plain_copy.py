"""The floor: the file put into a table of text by one plain COPY, committed, and no more."""

from __future__ import annotations

import json
import os
import sys

import psycopg

from bench.processes import URL_VARIABLE
from bench.statements import statement

_BLOCK = 1 << 20


def main() -> None:
    """Copy the file `sys.argv[1]`; prints `{"copied": rows}`."""
    with psycopg.connect(os.environ[URL_VARIABLE]) as connection, connection.cursor() as cursor:
        cursor.execute(statement("create_copied_entry"))
        with cursor.copy(statement("copy_entries")) as copy, open(sys.argv[1], "rb") as file:
            while block := file.read(_BLOCK):
                copy.write(block)
        copied = cursor.rowcount
    print(json.dumps({"copied": copied}))


if __name__ == "__main__":
    main()
