"""Accepting a database that was copied or restored: who it is from now on, and what is in doubt."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row

from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.errors import InputError, RefusedError
from duebook.services.moving import with_moving_locked
from duebook.services.witness import Lost, Witness, compare
from duebook.settings import ENVIRONMENT_NAME

if TYPE_CHECKING:
    from duebook.config import Config


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """What a person accepts.

    `name` is the environment that the database is from now on, None when it stays what it is;
    `environment` is the one that this process runs as. `witness` is where the witness is, if there
    is one. `is_unwitnessed`: a person says that the database was put back, though no witness does.
    """

    environment: str
    by: str
    name: str | None = None
    is_test: bool = False
    witness: str | None = None
    is_unwitnessed: bool = False
    dry_run: bool = False


def accept(connect: Connect, request: RestoreRequest) -> dict[str, Any]:
    """Accept the database, in one transaction; with `dry_run` only say what that would do.

    Returns the document of `duebook restore accept --json`: `environment, is_test, behind, lost,
    put_in_doubt {due, held, batches}, kinds, lost_provider_accounts, intents_were_lost`. Raises
    InputError (no name of an environment), RefusedError (a copy without a new name; nothing that
    could say that it is behind), UnavailableError (the witness or the database is away).
    """
    if request.name is not None and not re.fullmatch(ENVIRONMENT_NAME, request.name):
        raise InputError(
            f"{request.name!r} is no name of an environment; expected one like `staging` or "
            "`eu-1`: small letters, digits, dots, dashes, underscores"
        )
    environment = request.name or request.environment
    witness = Witness(request.witness, environment) if request.witness else None
    if request.name is None:
        _require_reason(connect, request)

    def work(conn: psycopg.Connection[Any]) -> tuple[dict[str, Any], list[Lost]]:
        return _accept(conn, request, witness)

    document, lost = with_moving_locked(connect, work, keeps=not request.dry_run)
    if witness is not None and not request.dry_run:
        witness.archive([each.name for each in lost])
    return document


def _require_reason(connect: Connect, request: RestoreRequest) -> None:
    with connect() as conn:
        refusal = conn.execute(
            query("read_environment_refusal"), {"environment": request.environment}
        ).fetchone()
    if refusal is not None and refusal[0] is not None:
        raise RefusedError(
            f"{refusal[0]}: name the environment that it is from now on, "
            f"`duebook restore accept {request.environment}`"
        )
    if request.witness is None and not request.is_unwitnessed:
        raise RefusedError(
            "no witness is set, so nothing says whether this database was restored; if you know "
            "that it was, run `duebook restore accept --without-witness`"
        )


def _accept(
    conn: psycopg.Connection[Any], request: RestoreRequest, witness: Witness | None
) -> tuple[dict[str, Any], list[Lost]]:
    if request.name is not None:
        conn.execute(
            query("accept_environment"),
            {"name": request.name, "is_test": request.is_test, "accepted_by": request.by},
        )
    lost = compare(conn, witness).lost if witness is not None else []
    name, is_test = conn.execute(query("read_environment")).fetchone() or (None, None)
    document: dict[str, Any] = {
        "environment": name,
        "is_test": is_test,
        "behind": bool(lost),
        "lost": [_lost_json(each) for each in lost],
        "dry_run": request.dry_run,
        "put_in_doubt": {"due": 0, "held": 0, "batches": 0},
        "kinds": [],
        "lost_provider_accounts": [],
        "intents_were_lost": False,
    }
    if lost or request.is_unwitnessed:
        document |= _put_in_doubt(conn, request, lost)
    return document, lost


def _put_in_doubt(
    conn: psycopg.Connection[Any], request: RestoreRequest, lost: list[Lost]
) -> dict[str, Any]:
    with conn.cursor(row_factory=dict_row) as cursor:
        done = cursor.execute(
            query("accept_restore"),
            {
                "witnessed": json.dumps([each.witnessed.to_json() for each in lost]),
                "is_unwitnessed": request.is_unwitnessed,
                "accepted_by": request.by,
            },
        ).fetchone()
        assert done is not None, "the function returns a row"
        kinds = cursor.execute(query("list_restored_kinds")).fetchall()
    return {
        "restore_id": done["restore_id"],
        "put_in_doubt": {
            "due": done["from_due"],
            "held": done["from_held"],
            "batches": done["from_batches"],
        },
        "kinds": kinds,
        "lost_provider_accounts": done["lost_provider_accounts"],
        "intents_were_lost": done["intents_were_lost"],
    }


def _lost_json(lost: Lost) -> dict[str, Any]:
    return {
        "sender": lost.witnessed.sender,
        "batch_id": lost.witnessed.batch_id,
        "flush_no": lost.witnessed.flush_no,
        "known_flush_no": lost.known_flush_no,
        "at": lost.witnessed.at,
    }


def require_witness(
    connect: Connect, config: Config, witness: str | None, *, account: str | None = None
) -> None:
    """Refuse to let a provider account be live without a witness, but in a test database.

    With `account` only that one is looked at, and only if it is not live yet: what runs goes on,
    and `doctor` says what it lacks. Raises RefusedError.
    """
    live = [name for name, block in config.provider_accounts.items() if block.mode == "live"]
    if account is not None:
        live = [name for name in live if name == account]
    if witness is not None or not live:
        return
    with connect() as conn:
        row = conn.execute(
            query("find_unwitnessed_account"),
            {"accounts": live, "only_new": account is not None},
        ).fetchone()
    if row is not None:
        raise RefusedError(
            f"provider account {row[0]} can't be live without a witness: set DUEBOOK_WITNESS to a "
            "folder or URL that no restore of the database takes back (docs/restore.md)"
        )
