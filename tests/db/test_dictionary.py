"""The data dictionary is what the comments of the database say."""

from __future__ import annotations

import re

from duebook.db.dictionary import make_dictionary
from duebook.db.sql import sql_root


def test_the_committed_dictionary_is_that_of_the_database() -> None:
    committed = (sql_root().parent / "docs" / "data-dictionary.md").read_text(encoding="utf-8")
    assert make_dictionary() == committed, "run `make dictionary` and commit what it changed"


def test_every_table_view_and_column_is_explained() -> None:
    committed = (sql_root().parent / "docs" / "data-dictionary.md").read_text(encoding="utf-8")
    tables = re.split(r"^### ", committed, flags=re.MULTILINE)[1:]
    assert len(tables) > 60
    unexplained = [
        line
        for table in tables
        for line in table.splitlines()[2:3] + re.findall(r"^\| `.*$", table, flags=re.MULTILINE)
        if not line or line.endswith("|  |")
    ]
    assert unexplained == []
