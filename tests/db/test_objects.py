from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from duebook.db.connect import connect_url
from duebook.db.objects import ObjectError, apply_objects
from duebook.db.sql import script
from duebook.errors import RefusedError

FUNCTION = """\
create or replace function duebook.{name}({arguments}) returns {returns}
language {language}
set search_path = ''
as $$ {body} $$;
"""


class Tree:
    """A small sql/ of its own, and a database that it is applied to."""

    def __init__(self, root: Path, connection: psycopg.Connection) -> None:
        self.root = root
        self.connection = connection

    def view(self, name: str, body: str) -> None:
        text = f"create or replace view duebook_reports.{name} as\n{body};\n"
        (self.root / "views" / f"{name}.sql").write_text(text)

    def function(
        self,
        name: str,
        body: str,
        arguments: str = "",
        returns: str = "integer",
        language: str = "sql",
    ) -> None:
        text = FUNCTION.format(
            name=name, arguments=arguments, returns=returns, language=language, body=body
        )
        (self.root / "functions" / f"{name}.sql").write_text(text)

    def apply(self) -> list[str]:
        with self.connection.transaction():
            return apply_objects(self.connection, self.root)

    def ask(self, statement: str) -> object:
        row = self.connection.execute(statement.encode()).fetchone()
        assert row is not None
        return row[0]


@pytest.fixture
def tree(tmp_path: Path, empty_database_url: str) -> Iterator[Tree]:
    for folder in ("functions", "views"):
        (tmp_path / folder).mkdir()
    with connect_url(empty_database_url, autocommit=True) as connection:
        connection.execute(script("bootstrap.sql"))
        yield Tree(tmp_path, connection)


def test_objects_are_made_in_the_order_that_they_need(tree: Tree) -> None:
    tree.view("a_last", "select n + duebook.plus_one(n) as n from duebook_reports.b_middle")
    tree.view("b_middle", "select n from duebook_reports.c_first")
    tree.view("c_first", "select duebook.plus_one(1) as n")
    tree.function("count_rows", "select count(*)::integer from duebook_reports.a_last")
    tree.function("plus_one", "select n + 1", "n integer")
    assert len(tree.apply()) == 5
    assert tree.ask("select n from duebook_reports.a_last") == 5
    assert tree.ask("select duebook.count_rows()") == 1


def test_only_what_changed_is_applied(tree: Tree) -> None:
    tree.view("a", "select 1 as n")
    tree.view("b", "select n from duebook_reports.a")
    assert tree.apply() == ["views/a.sql", "views/b.sql"]
    assert tree.apply() == []
    tree.view("a", "select 2 as n, 3 as added")
    assert tree.apply() == ["views/a.sql"]
    assert tree.ask("select n from duebook_reports.b") == 2


def test_a_view_that_others_read_may_change_its_columns(tree: Tree) -> None:
    tree.view("a", "select 1 as n, 'x' as gone")
    tree.view("b", "select n from duebook_reports.a")
    tree.view("c", "select n from duebook_reports.b")
    tree.apply()
    tree.view("a", "select 2::bigint as n")
    tree.apply()
    assert tree.ask("select n from duebook_reports.c") == 2
    assert tree.ask("select pg_typeof(n)::text from duebook_reports.c") == "bigint"


def test_a_view_of_somebody_else_is_never_dropped(tree: Tree) -> None:
    tree.view("a", "select 1 as n")
    tree.apply()
    tree.connection.execute("create schema theirs")
    tree.connection.execute("create view theirs.own as select n from duebook_reports.a")
    tree.view("a", "select 'text' as n")
    with pytest.raises(RefusedError, match=r"theirs\.own depends on it") as caught:
        tree.apply()
    assert "view duebook_reports.a has to be made again" in str(caught.value)
    assert tree.ask("select n from theirs.own") == 1


def test_a_changed_signature_leaves_no_overload(tree: Tree) -> None:
    tree.function("f", "select n", "n integer")
    tree.view("v", "select duebook.f(1) as n")
    tree.apply()
    tree.function("f", "select n + m", "n integer, m integer default 1")
    tree.apply()
    assert tree.ask("select count(*) from pg_proc where proname = 'f'") == 1
    assert tree.ask("select n from duebook_reports.v") == 2


def test_a_changed_return_type_is_followed(tree: Tree) -> None:
    tree.function("f", "select 1")
    tree.view("v", "select duebook.f() as n")
    tree.apply()
    tree.function("f", "select 'one'::text", returns="text")
    tree.apply()
    assert tree.ask("select n from duebook_reports.v") == "one"


def test_a_trigger_function_changes_under_its_trigger(tree: Tree) -> None:
    tree.function("stamp", "begin return new; end", returns="trigger", language="plpgsql")
    tree.apply()
    tree.connection.execute("create table duebook.t (n integer)")
    tree.connection.execute(
        "create trigger t before insert on duebook.t for each row execute function duebook.stamp()"
    )
    tree.function(
        "stamp", "begin new.n = 7; return new; end", returns="trigger", language="plpgsql"
    )
    tree.apply()
    assert tree.ask("insert into duebook.t values (1) returning n") == 7


def test_what_has_no_file_any_more_is_dropped(tree: Tree) -> None:
    tree.view("a", "select duebook.f() as n")
    tree.view("b", "select n from duebook_reports.a")
    tree.function("f", "select 1")
    tree.apply()
    tree.view("b", "select 2 as n")
    (tree.root / "views" / "a.sql").unlink()
    (tree.root / "functions" / "f.sql").unlink()
    assert tree.apply() == ["views/b.sql", "functions/f.sql", "views/a.sql"]
    assert tree.ask("select to_regclass('duebook_reports.a')") is None
    assert tree.ask("select to_regproc('duebook.f')") is None
    assert tree.ask("select n from duebook_reports.b") == 2
    assert tree.apply() == []


def test_a_missing_column_is_named_with_its_place(tree: Tree) -> None:
    tree.view("good", "select 1 as n")
    tree.view("bad", "select\n    no_such\nfrom duebook_reports.good")
    with pytest.raises(ObjectError, match=r'^sql/views/bad\.sql line 3: column "no_such" does not'):
        tree.apply()
    assert tree.ask("select to_regclass('duebook_reports.good')") is None


def test_a_body_that_reads_what_is_not_there_is_found_at_once(tree: Tree) -> None:
    tree.function("f", "select n from duebook.no_such")
    with pytest.raises(
        ObjectError, match=r'^sql/functions/f\.sql .*"duebook.no_such" does not exist'
    ):
        tree.apply()


def test_a_syntax_error_is_named_with_its_place(tree: Tree) -> None:
    tree.function("f", "begin retrun 1; end", language="plpgsql")
    with pytest.raises(ObjectError, match=r"^sql/functions/f\.sql line 4: "):
        tree.apply()


def test_a_file_that_makes_another_object_is_refused(tree: Tree) -> None:
    tree.view("a", "select 1 as n")
    (tree.root / "views" / "a.sql").rename(tree.root / "views" / "b.sql")
    with pytest.raises(ObjectError, match=r"sql/views/b\.sql: creates a, expected b"):
        tree.apply()
