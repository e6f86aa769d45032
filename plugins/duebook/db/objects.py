"""Applies functions and views: one object a file, again whenever its text changed.

The soft way replaces them in place, in whatever order their dependencies need: what fails for want
of another is tried again after the others. Where a replacement can't be made in place (a view
column went, a signature changed) the hard way drops every view of ours and the changed functions,
newest dependant first and never by CASCADE, and makes them again, all in the caller's transaction.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from pathlib import Path

import psycopg
import psycopg.errors
from psycopg.rows import TupleRow

from duebook.db.connect import describe, is_away
from duebook.db.sql import query, sql_root
from duebook.errors import DuebookError, RefusedError

_NAME = re.compile(
    r"^create\s+(?:or\s+replace\s+)?(?P<kind>function|procedure|view)\s+"
    r"(?P<schema>\w+)\.(?P<name>\w+)",
    re.IGNORECASE | re.MULTILINE,
)
_WANTING = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedObject,
    psycopg.errors.InvalidSchemaName,
)
_NOT_IN_PLACE = (
    psycopg.errors.InvalidTableDefinition,
    psycopg.errors.InvalidFunctionDefinition,
    psycopg.errors.DependentObjectsStillExist,
    psycopg.errors.WrongObjectType,
)


class ObjectError(DuebookError):
    """A function or a view can't be applied; nothing was."""


class _NotInPlaceError(Exception):
    """An object has to be dropped before it can be made again."""


@dataclasses.dataclass(frozen=True, slots=True)
class DatabaseObject:
    """One function, procedure or view: where its text is and what it is called."""

    path: str
    kind: str
    schema: str
    name: str
    text: str
    sha256: str


def read_objects(root: Path) -> list[DatabaseObject]:
    """Every object under `root/functions` and `root/views`, functions first.

    Raises ObjectError when a file does not create exactly one object named as the file.
    """
    return [
        _read_object(root, path)
        for folder in ("functions", "views")
        for path in sorted((root / folder).glob("*.sql"))
    ]


def _read_object(root: Path, path: Path) -> DatabaseObject:
    text = path.read_text(encoding="utf-8")
    relative = path.relative_to(root).as_posix()
    names = {(m["kind"].lower(), m["schema"], m["name"]) for m in _NAME.finditer(text)}
    if len(names) != 1:
        raise ObjectError(f"sql/{relative}: creates {len(names)} objects, expected one")
    kind, schema, name = names.pop()
    if name != path.stem:
        raise ObjectError(f"sql/{relative}: creates {name}, expected {path.stem}")
    digest = hashlib.sha256(text.encode()).hexdigest()
    return DatabaseObject(relative, kind, schema, name, text, digest)


def apply_objects(connection: psycopg.Connection[TupleRow], root: Path | None = None) -> list[str]:
    """Apply what changed, drop what has no file any more; returns the paths concerned.

    `root` is the SQL root, by default the one of this installation. Runs inside the caller's
    transaction. Raises ObjectError (file, line and what is wrong) and RefusedError (an object that
    is not ours depends on one that must be dropped).
    """
    objects = read_objects(root or sql_root())
    applied = {
        path: digest
        for path, digest in connection.execute(query("list_applied_objects")).fetchall()
        if path.startswith(("functions/", "views/"))
    }
    changed = [each for each in objects if applied.get(each.path) != each.sha256]
    gone = sorted(set(applied) - {each.path for each in objects})
    if not changed and not gone:
        return []
    try:
        with connection.transaction():
            if gone:
                raise _NotInPlaceError
            _replace(connection, changed)
    except _NotInPlaceError:
        _make_again(connection, objects, changed, gone)
    for path in gone:
        connection.execute(query("forget_applied_object"), {"path": path})
    for each in changed:
        values = {"path": each.path, "sha256": each.sha256}
        connection.execute(query("record_applied_object"), values)
    return [*(each.path for each in changed), *gone]


def _make_again(
    connection: psycopg.Connection[TupleRow],
    objects: list[DatabaseObject],
    changed: list[DatabaseObject],
    gone: list[str],
) -> None:
    _drop(connection, objects, changed, gone)
    views = [each for each in objects if each.kind == "view"]
    try:
        _replace(connection, [*(each for each in changed if each.kind != "view"), *views])
    except _NotInPlaceError as error:
        raise ObjectError(f"{error}: something that is no view depends on it") from None


def _replace(connection: psycopg.Connection[TupleRow], objects: list[DatabaseObject]) -> None:
    before = {each.path: _signatures(connection, each) for each in objects}
    connection.execute(query("set_check_function_bodies"), {"value": "off"})
    waiting = list(objects)
    while waiting:
        failures = {
            each.path: failure for each in waiting if (failure := _attempt(connection, each))
        }
        if len(failures) == len(waiting):
            raise ObjectError(next(iter(failures.values())))
        waiting = [each for each in waiting if each.path in failures]
    for each in objects:
        old = before[each.path]
        if old and _signatures(connection, each) - old:
            # A changed signature made an overload beside the old one instead of replacing it.
            raise _NotInPlaceError(f"sql/{each.path}: its signature changed")
    _recheck(connection, [each for each in objects if each.kind != "view"])


def _recheck(connection: psycopg.Connection[TupleRow], functions: list[DatabaseObject]) -> None:
    """Make the functions once more, their bodies checked, now that everything is there."""
    connection.execute(query("set_check_function_bodies"), {"value": "on"})
    for each in functions:
        failure = _attempt(connection, each)
        if failure:
            raise ObjectError(failure)


def _attempt(connection: psycopg.Connection[TupleRow], item: DatabaseObject) -> str | None:
    """Apply one object. Returns why not, when it may only want another object first."""
    try:
        with connection.transaction():
            connection.execute(item.text.encode())
    except _NOT_IN_PLACE as error:
        raise _NotInPlaceError(_place(item, error)) from None
    except _WANTING as error:
        return _place(item, error)
    except psycopg.Error as error:
        if is_away(error):
            raise
        raise ObjectError(_place(item, error)) from None
    return None


def _place(item: DatabaseObject, error: psycopg.Error) -> str:
    position = error.diag.statement_position
    line = f" line {item.text.count(chr(10), 0, int(position) - 1) + 1}" if position else ""
    return f"sql/{item.path}{line}: {describe(error)}"


def _signatures(connection: psycopg.Connection[TupleRow], item: DatabaseObject) -> set[str]:
    if item.kind == "view":
        return set()
    values = {"schema": item.schema, "name": item.name}
    return {row[0] for row in connection.execute(query("list_function_signatures"), values)}


def _drop(
    connection: psycopg.Connection[TupleRow],
    objects: list[DatabaseObject],
    changed: list[DatabaseObject],
    gone: list[str],
) -> None:
    """Drop all our views, then the changed and the vanished functions."""
    view_names = [each.name for each in objects if each.kind == "view"]
    view_names += [Path(path).stem for path in gone if path.startswith("views/")]
    names = [each.name for each in changed if each.kind != "view"]
    names += [Path(path).stem for path in gone if path.startswith("functions/")]
    while statements := [
        row[0] for row in connection.execute(query("build_drop_free_views"), {"names": view_names})
    ]:
        for statement in statements:
            connection.execute(statement)
    rows = connection.execute(query("list_views"), {"names": view_names}).fetchall()
    if rows:
        raise RefusedError(
            f"view {rows[0][0]} has to be made again, but {rows[0][1]} depends on it: "
            "drop that, migrate, and make it again"
        )
    for (statement,) in connection.execute(
        query("build_drop_functions"), {"names": names}
    ).fetchall():
        try:
            with connection.transaction():
                connection.execute(statement)
        except psycopg.errors.DependentObjectsStillExist:
            # A trigger or an index holds it; when its signature is unchanged it is replaced.
            continue
