"""Writes `docs/data-dictionary.md`: every table, view and column as its COMMENT explains it.

`python -m duebook.db.dictionary` (make dictionary) migrates an empty database of a throwaway server
and reads the comments there; a test compares the file with a fresh one.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from psycopg.rows import dict_row

from duebook.db.connect import connect_url
from duebook.db.embedded import EmbeddedServer
from duebook.db.migrate import migrate
from duebook.db.sql import query, sql_root

_HEADER: Final = """\
# Data dictionary

Written by `make dictionary` from the comments of the database; the same text is in `\\d+`. Schema
`duebook_reports` is for analysts: its columns are added and never renamed. Schema `duebook` is
Duebook's own and may change with any version.
"""
_ABOUT: Final = {
    "duebook_reports": "Reports (schema `duebook_reports`)",
    "duebook": "Tables (schema `duebook`)",
}
Row = Mapping[str, Any]


def render_dictionary(rows: Iterable[Row]) -> str:
    """The document, from the rows of list_dictionary in their order."""
    lines = [_HEADER]
    for schema, of_schema in itertools.groupby(rows, key=lambda row: str(row["schema_name"])):
        lines.append(f"## {_ABOUT[schema]}\n")
        for name, of_table in itertools.groupby(of_schema, key=lambda row: str(row["table_name"])):
            lines += _table(name, list(of_table))
    return "\n".join(lines).rstrip("\n") + "\n"


def _table(name: str, columns: list[Row]) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"{columns[0]['table_comment'] or ''}\n"
    yield "| column | type | |"
    yield "|---|---|---|"
    for column in columns:
        key = " (key)" if column["is_key"] else ""
        comment = str(column["column_comment"] or "").replace("|", "\\|").replace("\n", " ")
        yield f"| `{column['column_name']}` | {column['type_name']}{key} | {comment} |"
    yield ""


def read_dictionary(url: str) -> str:
    """The document of the database at `url`."""
    with connect_url(url) as connection, connection.cursor(row_factory=dict_row) as cursor:
        return render_dictionary(cursor.execute(query("list_dictionary")).fetchall())


def make_dictionary() -> str:
    """The document, from a server that lives as long as this call."""
    with tempfile.TemporaryDirectory(prefix="duebook-dictionary-") as home:
        server = EmbeddedServer(Path(home), durable=False)
        try:
            server.start()
            url = server.ensure_database("duebook")
            migrate(url)
            return read_dictionary(url)
        finally:
            server.destroy()


def main() -> None:
    """Write the document beside the other docs."""
    path = sql_root().parent / "docs" / "data-dictionary.md"
    path.write_text(make_dictionary(), encoding="utf-8")
    sys.stdout.write(f"wrote {path}\n")


if __name__ == "__main__":
    main()
