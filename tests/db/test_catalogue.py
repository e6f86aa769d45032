from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest
from alembic.script import ScriptDirectory

from duebook.db.connect import connect_url
from duebook.db.migrate import _config
from duebook.db.objects import read_objects
from duebook.db.sql import sql_root

MIGRATIONS = sorted((sql_root() / "migrations").glob("*.sql"))


def rows(connection: psycopg.Connection, statement: str) -> list[str]:
    return [row[0] for row in connection.execute(statement.encode())]


def test_every_table_view_and_column_has_a_comment(conn: psycopg.Connection) -> None:
    without = rows(
        conn,
        """
        select c.oid::regclass::text || coalesce('.' || a.attname, '')
        from pg_class as c
        left join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where
            c.relnamespace in ('duebook'::regnamespace, 'duebook_reports'::regnamespace)
            and c.relkind in ('r', 'p', 'v', 'm')
            and not c.relispartition
            and (
                obj_description(c.oid, 'pg_class') is null
                or col_description(c.oid, a.attnum) is null
            )
        order by 1
        """,
    )
    assert without == []


def test_every_routine_has_a_comment(conn: psycopg.Connection) -> None:
    without = rows(
        conn,
        """
        select oid::regprocedure::text
        from pg_proc
        where
            pronamespace in ('duebook'::regnamespace, 'duebook_reports'::regnamespace)
            and obj_description(oid, 'pg_proc') is null
        order by 1
        """,
    )
    assert without == []


def test_every_routine_fixes_its_search_path(conn: psycopg.Connection) -> None:
    without = rows(
        conn,
        """
        select oid::regprocedure::text
        from pg_proc
        where
            pronamespace in ('duebook'::regnamespace, 'duebook_reports'::regnamespace)
            and (prosecdef or prolang = (select oid from pg_language where lanname = 'plpgsql'))
            and not coalesce(proconfig::text like '%search_path=%', false)
        order by 1
        """,
    )
    assert without == []


def test_no_column_is_a_float_or_a_naive_instant(conn: psycopg.Connection) -> None:
    found = rows(
        conn,
        """
        select a.attrelid::regclass::text || '.' || a.attname
        from pg_attribute as a
        inner join pg_class as c on a.attrelid = c.oid
        where
            c.relnamespace in ('duebook'::regnamespace, 'duebook_reports'::regnamespace)
            and a.attnum > 0
            and a.atttypid in (
                'real'::regtype, 'double precision'::regtype, 'timestamp'::regtype, 'money'::regtype
            )
            and a.attname not like 'intended\\_local' and a.attname not like 'nominal\\_local'
        order by 1
        """,
    )
    assert found == []


def test_migrations_are_numbered_without_a_gap() -> None:
    numbers = [path.name[:4] for path in MIGRATIONS]
    assert numbers == [f"{number:04}" for number in range(1, len(MIGRATIONS) + 1)]


@pytest.mark.parametrize("path", MIGRATIONS, ids=lambda path: path.stem)
def test_each_migration_is_named_by_a_verb_and_known_to_alembic(path: Path) -> None:
    assert re.fullmatch(
        r"\d{4}_(create|add|alter|drop|rename|seed|move|index|partition)_[a-z0-9_]+", path.stem
    )
    revision = ScriptDirectory.from_config(_config()).get_revision(path.name[:4])
    assert revision is not None
    assert Path(revision.path).stem == path.stem
    assert f'run_body("{path.name}")' in Path(revision.path).read_text()


def test_the_revisions_are_one_line() -> None:
    scripts = ScriptDirectory.from_config(_config())
    assert len(scripts.get_heads()) == 1
    assert [each.revision for each in scripts.walk_revisions()] == [
        path.name[:4] for path in reversed(MIGRATIONS)
    ]


def test_reports_are_in_the_schema_of_analysts() -> None:
    for item in read_objects(sql_root()):
        assert item.schema == ("duebook_reports" if item.kind == "view" else "duebook") or (
            item.kind == "view" and item.schema == "duebook"
        ), item.path


def act_as(url: str, role: str) -> psycopg.Connection:
    return connect_url(url, role=role, autocommit=True)


def test_an_analyst_reads_every_report_and_no_table(
    database_url: str, conn: psycopg.Connection
) -> None:
    views = rows(
        conn,
        "select format('%I.%I', schemaname, viewname) from pg_views"
        " where schemaname = 'duebook_reports'",
    )
    tables = rows(
        conn,
        "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname = 'duebook'",
    )
    with act_as(database_url, "duebook_analyst") as analyst:
        for view in views:
            analyst.execute(f"select * from {view} limit 1".encode())
        for table in tables:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                analyst.execute(f"select * from {table} limit 1".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            analyst.execute("select duebook.accept_environment('x', false, 'analyst')")


def test_no_report_shows_an_address_or_a_raw_body(conn: psycopg.Connection) -> None:
    exposed = rows(
        conn,
        """
        select c.table_name || '.' || c.column_name
        from information_schema.columns as c
        where
            c.table_schema = 'duebook_reports'
            and c.column_name in ('address', 'body', 'raw', 'headers', 'payload')
        """,
    )
    assert exposed == []


def test_the_receiver_reads_nothing(database_url: str, conn: psycopg.Connection) -> None:
    relations = rows(
        conn,
        "select oid::regclass::text from pg_class where relkind in ('r', 'p', 'v')"
        " and relnamespace in ('duebook'::regnamespace, 'duebook_reports'::regnamespace)",
    )
    with act_as(database_url, "duebook_receiver") as receiver:
        for relation in relations:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                receiver.execute(f"select * from {relation} limit 1".encode())


@pytest.mark.parametrize("table", ["outcome", "attempt", "attempt_result", "ledger_change"])
def test_the_application_cannot_rewrite_a_fact(database_url: str, table: str) -> None:
    with act_as(database_url, "duebook_app") as application:
        application.execute(f"select * from duebook.{table} limit 1".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            application.execute(f"delete from duebook.{table}".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            application.execute(f"update duebook.{table} set account_id = 'x'".encode())
