from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from duebook.db import sql
from duebook.errors import ConfigurationError


def write(root: Path, name: str, body: str, header: str | None = None) -> None:
    path = root / "queries" / "area" / f"{name}.sql"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{header or f'-- name: {name}'}\n-- Why it exists.\n{body}\n")


def loaded(root: Path, body: str) -> str:
    write(root, "ask", body)
    return sql.load_queries(root)["ask"]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("select :a::text, :a_2 ;", "select %(a)s::text, %(a_2)s ;"),
        ("select ':a', \"b:c\", :d", "select ':a', \"b:c\", %(d)s"),
        ("select :a -- it's :b", "select %(a)s"),
        ("select :a /* :b '*/, 1", "select %(a)s , 1"),
        ("select x from t where x like '%:a' and y = :b % 2", "'%%:a' and y = %(b)s %% 2"),
        ("select '50%'", "select '50%'"),
        ("select $$ :a % $$, :b", "select $$ :a %% $$, %(b)s"),
        ("select $f$ ':a $$ $f$, :b", "select $f$ ':a $$ $f$, %(b)s"),
        ("select x[1:2], x[i:n], '12:30', :a", "select x[1:2], x[i:n], '12:30', %(a)s"),
        ("select x::text[], (:a)::int", "select x::text[], (%(a)s)::int"),
        ("select f(p => :a, q := :b)", "select f(p => %(a)s, q := %(b)s)"),
        ("select 'it''s :a', :b", "select 'it''s :a', %(b)s"),
    ],
)
def test_parameters_become_psycopgs(tmp_path: Path, written: str, wanted: str) -> None:
    assert wanted in loaded(tmp_path, written)


def test_the_server_gets_what_was_written(tmp_path: Path, conn: psycopg.Connection) -> None:
    text = loaded(
        tmp_path,
        "select\n    :n % 7 as rest, -- what's left\n    '100%' as share,\n"
        "    (array[1, 2, 3])[2:3] as part,\n    ':n' as literal,\n    :word::text as word;",
    )
    row = conn.execute(text.encode(), {"n": 9, "word": "a%b"}).fetchone()
    assert row == (2, "100%", [2, 3], ":n", "a%b")


def test_every_query_of_the_repository_loads_and_says_why() -> None:
    root = sql.sql_root()
    assert sql.load_queries(root)
    for path in (root / "queries").rglob("*.sql"):
        lines = path.read_text().splitlines()
        assert lines[0] == f"-- name: {path.stem}", path
        assert lines[1].startswith("-- "), path
        assert "{{" not in path.read_text(), path


def test_a_name_used_twice_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "ask", "select 1;")
    other = tmp_path / "queries" / "other" / "ask.sql"
    other.parent.mkdir()
    other.write_text("-- name: ask\n-- Again.\nselect 2;\n")
    with pytest.raises(ConfigurationError, match="query ask is in two files"):
        sql.load_queries(tmp_path)


def test_a_name_that_is_not_the_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "ask", "select 1;", header="-- name: tell")
    with pytest.raises(ConfigurationError, match="holds the query tell, not ask"):
        sql.load_queries(tmp_path)


@pytest.mark.parametrize("body", ["select 1;\n-- name: second\nselect 2;", ""])
def test_a_file_holds_one_statement(tmp_path: Path, body: str) -> None:
    write(tmp_path, "ask", body)
    with pytest.raises(ConfigurationError, match=r"ask\.sql: "):
        sql.load_queries(tmp_path)


def test_a_missing_query_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"there is no sql/queries/\*\*/no_such\.sql"):
        sql.query("no_such")


def test_the_sql_directory_may_be_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "ask", "select 1;")
    monkeypatch.setenv("DUEBOOK_SQL_DIR", str(tmp_path))
    sql.sql_root.cache_clear()
    try:
        assert sql.sql_root() == tmp_path.resolve()
        monkeypatch.setenv("DUEBOOK_SQL_DIR", str(tmp_path / "no"))
        sql.sql_root.cache_clear()
        with pytest.raises(ConfigurationError, match="set DUEBOOK_SQL_DIR"):
            sql.sql_root()
    finally:
        sql.sql_root.cache_clear()
