"""Pause and resume, by kind, channel, account or all; audited with who and why.

The functions `duebook.pause_intents` and `duebook.resume_intents` do the work, and are an
application's way to it. Every sender reads the pauses before each window, so that a pause holds
from the next window of sends on, also for what was claimed before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import psycopg

from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.errors import InputError, RefusedError

Mode = Literal["hold", "drop"]
SCOPES: Final = ("kind", "channel", "account")
_EXPECTED: Final = "expected all, kind:<kind>, channel:<channel> or account:<account>"


@dataclass(frozen=True, slots=True)
class Target:
    """What is paused: everything, or one kind, channel or account."""

    scope: str
    name: str

    def __str__(self) -> str:
        return "all" if self.scope == "all" else f"{self.scope}:{self.name}"


def parse_target(text: str) -> Target:
    """`all`, `kind:…`, `channel:…` or `account:…`. Raises InputError."""
    if text == "all":
        return Target("all", "*")
    scope, _, name = text.partition(":")
    if scope not in SCOPES or not name or "\0" in name or len(name) > 200:
        raise InputError(f"{text!r} names nothing that can be paused: {_EXPECTED}")
    return Target(scope, name)


def pause(connect: Connect, target: str, *, mode: Mode, reason: str, by: str) -> dict[str, Any]:
    """Pause `target`. Again the same is a no-op; another mode or reason takes the place of the old.

    Returns `{target, scope, name, mode, reason, by, done}`, done being paused, changed or
    unchanged. Raises InputError (no such target, no reason), RefusedError (holds never pause).
    """
    what = parse_target(target)
    _require_reason(reason)
    with connect() as conn, conn.transaction():
        if (what.scope, what.name) in (("channel", "internal"), ("kind", "hold_expiry")):
            raise RefusedError("holds always expire: nothing pauses them")
        _require_known(conn, what)
        values = {"scope": what.scope, "name": what.name, "mode": mode, "reason": reason, "by": by}
        row = conn.execute(query("pause_intents"), values).fetchone()
    assert row is not None
    return {"target": str(what), **values, "done": row[0]}


def resume(connect: Connect, target: str, *, reason: str, by: str) -> dict[str, Any]:
    """End the pause of `target`; the next sweeps put back what it held, with its own due time.

    Returns `{target, scope, name, reason, by, done, released}`: done is resumed or not_paused,
    released how many intents no pause holds any more. Raises InputError as `pause` does.
    """
    what = parse_target(target)
    _require_reason(reason)
    with connect() as conn, conn.transaction():
        values = {"scope": what.scope, "name": what.name, "reason": reason, "by": by}
        row = conn.execute(query("resume_intents"), values).fetchone()
        assert row is not None
        was_paused, released = row
        if not was_paused:
            _require_known(conn, what)
    done = "resumed" if was_paused else "not_paused"
    return {"target": str(what), **values, "done": done, "released": released}


def _require_reason(reason: str) -> None:
    if not reason.strip() or "\0" in reason:
        raise InputError("--reason: say why; it is kept with your name")


def _require_known(conn: psycopg.Connection[Any], what: Target) -> None:
    row = conn.execute(query("is_pausable"), {"scope": what.scope, "name": what.name}).fetchone()
    if row is None or not row[0]:
        raise InputError(f"no {what.scope} is known by the name {what.name!r}: nothing was changed")
