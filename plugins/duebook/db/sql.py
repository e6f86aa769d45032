"""Finds the SQL: every statement is a file under `sql/`, and Python only names it.

`query("claim_due")` is the text of `sql/queries/**/claim_due.sql`, its `:name` parameters written
as psycopg's `%(name)s`. The same file runs in psql with `-v name=value`.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import LiteralString

from aiosql.adapters.pyformat import PyFormatAdapter
from aiosql.query_loader import QueryLoader
from aiosql.types import QueryDatum, SQLOperationType
from aiosql.utils import SQLParseException

from duebook.errors import ConfigurationError

_TOKEN = re.compile(
    r"""
      (?P<comment> --[^\n]* | /\*.*?\*/ )
    | (?P<dollar> \$(?P<tag>\w*)\$ .*? \$(?P=tag)\$ )
    | (?P<quoted> '(?:''|[^'])*' | "(?:""|[^"])*" )
    | (?P<cast> ::+ )
    | (?<![\w\]]) : (?P<name> [a-z_]\w* )
    """,
    re.DOTALL | re.VERBOSE,
)


class _Adapter(PyFormatAdapter):
    """aiosql's own pattern leaves `%` bare and takes an apostrophe in a trailing comment for a
    quote; psycopg would misread both.
    """

    def process_sql(self, query_name: str, op_type: SQLOperationType, sql: str) -> str:
        del query_name, op_type
        names = [match for match in _TOKEN.finditer(sql) if match["name"]]
        parts: list[str] = []
        position = 0
        for match in _TOKEN.finditer(sql):
            parts.append(_literal(sql[position : match.start()], bool(names)))
            if match["name"]:
                parts.append(f"%({match['name']})s")
            elif not match["comment"]:
                parts.append(_literal(match[0], bool(names)))
            position = match.end()
        parts.append(_literal(sql[position:], bool(names)))
        return "".join(parts).strip()


def _literal(text: str, has_parameters: bool) -> str:
    return text.replace("%", "%%") if has_parameters else text


@functools.cache
def sql_root() -> Path:
    """The directory that holds `queries/`, `migrations/`, `functions/` and `views/`.

    `DUEBOOK_SQL_DIR`, else the sibling of `plugins/` (a checkout or an Airflow home), else what
    the installed package carries. Raises ConfigurationError when none of them is there.
    """
    here = Path(__file__).resolve()
    stated = os.environ.get("DUEBOOK_SQL_DIR")
    candidates = [Path(stated)] if stated else [here.parents[3] / "sql", here.parents[1] / "_sql"]
    for candidate in candidates:
        if (candidate / "queries").is_dir():
            return candidate.resolve()
    looked = ", ".join(str(candidate) for candidate in candidates)
    raise ConfigurationError(
        f"the SQL files are not there (looked for queries/ in {looked}); set DUEBOOK_SQL_DIR"
    )


def load_queries(root: Path) -> dict[str, str]:
    """Every statement under `root/queries`, by name, for psycopg.

    Raises ConfigurationError when two files use one name, when a file holds no statement or more
    than one, or when its name is not the file's.
    """
    loader = QueryLoader(
        _Adapter(),  # type: ignore[no-untyped-call]
        None,
        mandatory_parameters=False,
    )
    found: dict[str, str] = {}
    origin: dict[str, Path] = {}
    for path in sorted((root / "queries").rglob("*.sql")):
        datum = _load_file(loader, path)
        name = datum.query_name
        if name in origin:
            raise ConfigurationError(f"query {name} is in two files: {origin[name]} and {path}")
        origin[name] = path
        found[name] = datum.sql
    return found


def _load_file(loader: QueryLoader, path: Path) -> QueryDatum:
    try:
        data = loader.load_query_data_from_file(path, encoding="utf-8")
    except SQLParseException as error:
        raise ConfigurationError(f"{path}: {error}") from None
    if len(data) != 1:
        raise ConfigurationError(
            f"{path}: expected one statement under `-- name:`, {len(data)} found"
        )
    datum: QueryDatum = data[0]
    if datum.query_name != path.stem:
        raise ConfigurationError(f"{path}: holds the query {datum.query_name}, not {path.stem}")
    return datum


@functools.cache
def _queries() -> dict[str, str]:
    return load_queries(sql_root())


def query(name: str) -> LiteralString:
    """The statement of `sql/queries/**/<name>.sql`, ready for `connection.execute`.

    A statement with parameters takes a mapping; one without is executed without (its `%` are
    written once). The text comes from our own files alone, hence the LiteralString.
    Raises ConfigurationError when there is no such file.
    """
    try:
        return _queries()[name]
    except KeyError:
        raise ConfigurationError(f"there is no sql/queries/**/{name}.sql") from None


def script(relative: str) -> LiteralString:
    """The whole text of a script under the SQL root (a migration body, a function, a view).

    It is executed without parameters. Raises ConfigurationError when the file is missing.
    """
    path = sql_root() / relative
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise ConfigurationError(f"there is no sql/{relative}") from None
