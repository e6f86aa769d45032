"""Makes the moving tables again from the facts, and intents that were never tried.

It runs under the claim's lock, so that no claim, flush or rescue sees half of it, and never touches
what a live batch holds. A dry run is the same, taken back.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import dict_row

from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.services.moving import with_moving_locked


def rebuild(connect: Connect, *, by: str, apply: bool) -> dict[str, Any]:
    """The document of `duebook rebuild --json`.

    `{applied, intents, moves: [{was, place, …}], remade: [{done, intents, keys}]}`. Remade are
    intents that follow from ledger changes, occurrences or holds and were gone (`made`), or that
    follow from none of them (`removed`). A move names how many intents go from where (`was`, the
    places they stood in) to which place, and up to twenty of their keys. Raises UnavailableError
    when the moving tables stay in use.
    """

    def work(conn: psycopg.Connection[Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        values = {"rebuilt_by": by}
        with conn.cursor(row_factory=dict_row) as cursor:
            remade = cursor.execute(query("rebuild_intents"), values).fetchall()
            return remade, cursor.execute(query("rebuild_moving"), values).fetchall()

    remade, moves = with_moving_locked(connect, work, keeps=apply)
    return {
        "applied": apply,
        "intents": sum(move["intents"] for move in moves),
        "moves": moves,
        "remade": remade,
    }
