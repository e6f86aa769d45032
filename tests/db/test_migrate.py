from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from duebook.db import sql
from duebook.db.connect import connect_url
from duebook.db.embedded import EmbeddedServer
from duebook.db.migrate import ROLES, MigrationError, MigrationReport, head_revision, migrate
from duebook.errors import UnavailableError


@pytest.fixture
def sql_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of sql/ that a test may spoil, in use meanwhile."""
    copy = tmp_path / "sql"
    shutil.copytree(sql.sql_root(), copy)
    (copy / "views").mkdir(exist_ok=True)
    monkeypatch.setenv("DUEBOOK_SQL_DIR", str(copy))
    sql.sql_root.cache_clear()
    yield copy
    sql.sql_root.cache_clear()


def tables(url: str) -> set[str]:
    with connect_url(url) as connection:
        return {
            row[0]
            for row in connection.execute(
                "select tablename from pg_tables where schemaname = 'duebook'"
            )
        }


def test_an_empty_database_is_brought_to_the_newest_revision(empty_database_url: str) -> None:
    report = migrate(empty_database_url)
    assert (report.before, report.after) == (None, head_revision())
    assert report.notices == ()
    assert {"intent", "outcome", "applied_object", "alembic_version"} <= tables(empty_database_url)


def test_a_second_time_changes_nothing(database_url: str) -> None:
    head = head_revision()
    assert migrate(database_url) == MigrationReport(head, head, (), (), ())


def test_several_at_once_are_safe(empty_database_url: str) -> None:
    reports: list[MigrationReport] = []
    threads = [
        threading.Thread(target=lambda: reports.append(migrate(empty_database_url)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.after for report in reports] == [head_revision()] * 4
    assert sorted(bool(report.migrations) for report in reports) == [False, False, False, True]
    assert sum(bool(report.objects) for report in reports) == 1


def test_a_failing_migration_leaves_nothing_of_itself(
    empty_database_url: str, sql_copy: Path
) -> None:
    third = sorted((sql_copy / "migrations").glob("0003_*.sql"))[0]
    good = third.read_text()
    third.write_text(good + "\ncreate table duebook.half (n integer);\n\nselect no_such;\n")
    line = good.count("\n") + 4
    with pytest.raises(MigrationError) as caught:
        migrate(empty_database_url)
    assert f"sql/migrations/{third.name} line {line}: " in str(caught.value)
    assert 'column "no_such" does not exist' in str(caught.value)
    assert "\n" not in str(caught.value)
    with connect_url(empty_database_url) as connection:
        row = connection.execute("select version_num from duebook.alembic_version").fetchone()
    assert row == ("0002",)
    assert not {"half", "ledger_payment"} & tables(empty_database_url)

    third.write_text(good)
    assert migrate(empty_database_url).after == head_revision()


def test_a_failing_view_leaves_the_old_ones(empty_database_url: str, sql_copy: Path) -> None:
    migrate(empty_database_url)
    broken = sql_copy / "views" / "broken.sql"
    broken.write_text("create or replace view duebook_reports.broken as\nselect no_such;\n")
    function = sql_copy / "functions" / "late.sql"
    function.write_text(
        "create or replace function duebook.late() returns integer\n"
        "language sql set search_path = '' as 'select 1';\n"
    )
    with pytest.raises(Exception, match=r"sql/views/broken\.sql line 2: ") as caught:
        migrate(empty_database_url)
    assert caught.value.exit_code == 2  # type: ignore[attr-defined]
    with connect_url(empty_database_url) as connection:
        assert connection.execute("select to_regproc('duebook.late')").fetchone() == (None,)


def test_an_edited_migration_is_told(empty_database_url: str, sql_copy: Path) -> None:
    migrate(empty_database_url)
    first = sorted((sql_copy / "migrations").glob("0001_*.sql"))[0]
    first.write_text(first.read_text() + "\n-- Later thought.\n")
    (notice,) = migrate(empty_database_url).notices
    assert f"sql/migrations/{first.name} was edited" in notice


def test_a_database_that_is_away_is_told_so() -> None:
    with pytest.raises(UnavailableError, match="is away"):
        migrate("postgresql://duebook:secret@127.0.0.1:1/duebook")


@pytest.fixture
def bare_server(server_home: Path) -> EmbeddedServer:
    """A server on which no migrate ever ran: the roles are the server's, not a database's."""
    server = EmbeddedServer(server_home, durable=False)
    server.start()
    return server


def test_an_owner_who_may_not_make_roles_is_told_what_to_run(
    bare_server: EmbeddedServer,
) -> None:
    with psycopg.connect(bare_server.superuser_url(), autocommit=True) as admin:
        admin.execute("create role plain login password 'plain'")
        admin.execute("create database shop owner plain")
    port = bare_server.status().port
    url = f"postgresql://plain:plain@127.0.0.1:{port}/shop"

    report = migrate(url)
    assert report.after == head_revision()
    assert len(report.notices) == 2
    statements = " ".join(f"create role {role} nologin;" for role in ROLES)
    assert statements in report.notices[0]
    assert "grants were left out" in report.notices[1]

    with psycopg.connect(bare_server.superuser_url(), autocommit=True) as admin:
        admin.execute(statements.encode())
    assert migrate(url).notices == ()
    with connect_url(url) as connection:
        row = connection.execute(
            "select has_table_privilege('duebook_app', 'duebook.due', 'delete')"
        ).fetchone()
    assert row == (True,)


def test_two_databases_of_one_server_share_the_roles(
    databases_at_once: Callable[[], list[str]],
) -> None:
    urls = databases_at_once()
    reports: list[MigrationReport] = []
    threads = [
        threading.Thread(target=lambda url=url: reports.append(migrate(url))) for url in urls
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.notices for report in reports] == [(), ()]


@pytest.fixture
def databases_at_once(bare_server: EmbeddedServer) -> Callable[[], list[str]]:
    return lambda: [bare_server.ensure_database(name) for name in ("one", "two")]
