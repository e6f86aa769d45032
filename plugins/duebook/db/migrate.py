"""Brings a database to the schema of this version: `migrate(url)`, as often as you like.

In this order, each step one transaction, under one advisory lock (a second `migrate` waits):

1. `sql/bootstrap.sql`: the schemas and the list of applied objects; then the group roles
2. each new migration: Alembic orders them, their bodies are `sql/migrations/*.sql`
3. `sql/functions/*.sql` and `sql/views/*.sql` whose text changed, in whatever order they need, then
   `sql/grants.sql`

A step that fails leaves nothing of itself; the earlier ones stay, and the next `migrate` goes on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import alembic.command
import alembic.op
import psycopg
import psycopg.errors
from alembic.config import Config
from alembic.script import ScriptDirectory
from psycopg.rows import TupleRow
from sqlalchemy.exc import DBAPIError

from duebook.db.connect import Limits, connect_url, describe, engine, is_away, unavailable
from duebook.db.objects import apply_objects
from duebook.db.sql import query, script, sql_root
from duebook.errors import DuebookError, RefusedError

ROLES = ("duebook_app", "duebook_receiver", "duebook_old_sender", "duebook_analyst")

_LIMITS = Limits(statement=0, lock=30, idle_in_transaction=0)
_LOCK_LIMITS = Limits(statement=0, lock=300, idle_in_transaction=0)

# `alembic.op` is one per process: two threads would run their bodies on each other's database.
_ALEMBIC_IN_USE = threading.Lock()


class MigrationError(DuebookError):
    """A migration failed; nothing of it was applied."""


@dataclasses.dataclass(frozen=True, slots=True)
class MigrationReport:
    """What `migrate` did. `notices` are lines for a person; empty when there is nothing to do."""

    before: str | None
    after: str | None
    migrations: tuple[str, ...]
    objects: tuple[str, ...]
    notices: tuple[str, ...]


def migrate(url: str, *, wait_seconds: float = 0) -> MigrationReport:
    """Bring the database at `url` to this version's schema.

    Connects directly (not through a pooler), as the owner of the database. Without the right to
    make roles it goes on without them and says in a notice what to run.
    Raises UnavailableError (away, or another `migrate` holds the lock for over five minutes),
    MigrationError (the file and line that failed), RefusedError (something of yours depends on an
    object that has to change).
    """
    try:
        with _exclusive(url, wait_seconds), connect_url(url, limits=_LIMITS) as connection:
            connection.autocommit = True
            _run_script(connection, "bootstrap.sql")
            notices = _ensure_roles(connection)
            before = _revision(connection)
            notices += _edited_migrations(connection)
            _upgrade(url)
            after = _revision(connection)
            applied = _note_migrations(connection)
            with connection.transaction():
                objects = apply_objects(connection)
                if _missing_roles(connection):
                    notices.append("grants were left out: a role is missing")
                else:
                    _run_script(connection, "grants.sql")
    except psycopg.Error as error:
        if is_away(error):
            raise unavailable(error) from None
        raise MigrationError(describe(error)) from None
    return MigrationReport(before, after, tuple(applied), tuple(objects), tuple(notices))


def run_body(name: str) -> None:
    """Execute `sql/migrations/<name>` in the transaction of the migration that Alembic runs."""
    raw: Any = alembic.op.get_bind().connection.driver_connection
    # Without parameters, so that a body may hold several statements and bare percent signs.
    _run_script(raw, f"migrations/{name}")


def head_revision() -> str | None:
    """The newest revision that this version knows."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def current_revision(connection: psycopg.Connection[TupleRow]) -> str | None:
    """The revision of the connected database; None before the first migration."""
    return _revision(connection)


def _config() -> Config:
    config = Config()
    config.set_main_option(
        "script_location", str(Path(__file__).resolve().parent / "alembic").replace("%", "%%")
    )
    return config


@contextlib.contextmanager
def _exclusive(url: str, wait_seconds: float) -> Iterator[None]:
    """Hold the lock of migrations on a connection of its own, so that it spans transactions."""
    with connect_url(url, limits=_LOCK_LIMITS, wait_seconds=wait_seconds) as connection:
        try:
            connection.execute(query("lock_migrations"))
        except psycopg.errors.LockNotAvailable:
            raise RefusedError("another migration of this database does not end") from None
        yield


def _upgrade(url: str) -> None:
    config = _config()
    migration_engine = engine(url, limits=_LIMITS)
    try:
        with _ALEMBIC_IN_USE, migration_engine.connect() as connection:
            config.attributes["connection"] = connection
            alembic.command.upgrade(config, "head")
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.Error):
            raise error.orig from None
        raise
    finally:
        migration_engine.dispose()


def _revision(connection: psycopg.Connection[TupleRow]) -> str | None:
    if connection.execute(query("find_version_table")).fetchone() is None:
        return None
    row = connection.execute(query("read_revision")).fetchone()
    return None if row is None else str(row[0])


def _missing_roles(connection: psycopg.Connection[TupleRow]) -> list[str]:
    found = {row[0] for row in connection.execute(query("list_roles"), {"names": list(ROLES)})}
    return [role for role in ROLES if role not in found]


def _ensure_roles(connection: psycopg.Connection[TupleRow]) -> list[str]:
    for role in _missing_roles(connection):
        rows = connection.execute(query("build_create_group_role"), {"name": role}).fetchall()
        # Another database of the same server may be making it now; or we may not be allowed to.
        with contextlib.suppress(
            psycopg.errors.DuplicateObject,
            psycopg.errors.UniqueViolation,
            psycopg.errors.InsufficientPrivilege,
        ):
            for (statement,) in rows:
                connection.execute(statement)
    missing = _missing_roles(connection)
    if not missing:
        return []
    statements = " ".join(f"create role {role} nologin;" for role in missing)
    return [f"this login may not create roles: let an administrator run `{statements}`"]


def _migration_files() -> dict[str, str]:
    """Path under the SQL root to SHA-256, of the migrations that Alembic knows."""
    return {
        f"migrations/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((sql_root() / "migrations").glob("*.sql"))
    }


def _edited_migrations(connection: psycopg.Connection[TupleRow]) -> list[str]:
    files = _migration_files()
    applied: dict[str, str] = dict(connection.execute(query("list_applied_objects")).fetchall())
    return [
        f"sql/{path} was edited after this database applied it: a released migration never "
        "changes; in development, make the database again"
        for path, digest in files.items()
        if path in applied and applied[path] != digest
    ]


def _note_migrations(connection: psycopg.Connection[TupleRow]) -> list[str]:
    applied: dict[str, str] = dict(connection.execute(query("list_applied_objects")).fetchall())
    new = {path: digest for path, digest in _migration_files().items() if path not in applied}
    for path, digest in new.items():
        connection.execute(query("record_applied_object"), {"path": path, "sha256": digest})
    return list(new)


def _run_script(connection: psycopg.Connection[TupleRow], relative: str) -> None:
    text = script(relative)
    try:
        with connection.transaction():
            connection.execute(text)
    except psycopg.Error as error:
        if is_away(error):
            raise
        position = error.diag.statement_position
        line = f" line {text.count(chr(10), 0, int(position) - 1) + 1}" if position else ""
        raise MigrationError(f"sql/{relative}{line}: {describe(error)}") from None
