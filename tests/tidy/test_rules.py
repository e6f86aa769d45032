"""The rules catch what they are for, and let pass what they must."""

from __future__ import annotations

import pytest

from tests.tidy import rules


@pytest.mark.parametrize(
    "text",
    [
        "select 1 from duebook.intent",
        "  SELECT pg_advisory_lock(1)",
        "insert into duebook.due (a) values (1)",
        "with found as (select 1) select * from found",
        "update duebook.batch set mark = 1",
        "drop database {name}",
        "create temporary table staged_entry (line_no bigint)",
        "copy staged_entry (a, b) from stdin",
        "set local statement_timeout = 0",
        "listen duebook_due",
    ],
)
def test_a_statement_in_python_is_found(text: str) -> None:
    assert list(rules.sql_strings(f"run({text!r})"))


@pytest.mark.parametrize(
    "text",
    [
        "Select a provider account from the list.",
        "update the contact first",
        "with care",
        "create the database with `duebook migrate`",
        "set DUEBOOK_HOME to another folder",
        "delete_from_due",
    ],
)
def test_prose_is_no_statement(text: str) -> None:
    assert list(rules.sql_strings(f"say({text!r})")) == []


def test_a_docstring_may_speak_of_sql_and_an_f_string_may_not_hold_it() -> None:
    assert list(rules.sql_strings('def f():\n    """select a from b"""\n')) == []
    assert list(rules.sql_strings('run(f"delete from {table}")'))


def test_a_long_function_is_found_with_its_decorators() -> None:
    body = "    x = 1\n" * (rules.FUNCTION_LINES - 1)
    assert list(rules.long_functions("def f():\n" + body)) == []
    assert list(rules.long_functions("@decorated\ndef f():\n" + body))


def test_a_long_line_is_found_and_a_link_is_let_pass() -> None:
    assert list(rules.long_lines("x" * 100)) == []
    assert list(rules.long_lines("x" * 101))
    assert list(rules.long_lines("see https://example.org/" + "x" * 101)) == []


def test_unfinished_words_are_found() -> None:
    assert list(rules.unfinished("# " + "TO" + "DO: later"))
    assert list(rules.unfinished("the method")) == []


def test_registries_and_machine_paths_are_found() -> None:
    assert list(rules.foreign_places("--index-url https://" + "py" + "pi.org/simple"))
    assert list(rules.foreign_places("cd " + "/wor" + "k/main"))
    assert list(rules.foreign_places("docs/" + "work/notes and /opt/airflow")) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("select 1;", 1),
        ("-- it's; fine\nselect ';' as x;\n", 1),
        ("select 1; select 2;", 2),
        ("create function f() returns void as $$ begin; end; $$ language sql;", 1),
        ("-- nothing\n", 0),
    ],
)
def test_statements_are_counted(text: str, count: int) -> None:
    assert rules.statements(text) == count


def test_a_query_states_its_name_and_its_reason() -> None:
    good = "-- name: find_due\n-- The oldest due row.\nselect 1;\n"
    assert list(rules.query_faults("find_due", good)) == []
    assert list(rules.query_faults("find_other", good))
    assert list(rules.query_faults("find_due", "-- name: find_due\nselect 1;\n"))
    assert list(rules.query_faults("find_due", good + "select 2;\n"))


def test_prints_and_imports_are_found() -> None:
    assert list(rules.prints("print('x')"))
    assert list(rules.prints("console.print('x')")) == []
    assert list(rules.imported("def f():\n    from airflow.models import DAG\n")) == [
        (2, "airflow.models")
    ]
