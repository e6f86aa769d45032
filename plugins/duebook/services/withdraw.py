"""Takes a wrong settlement file back: before or after its notices left, its consequences first.

A withdrawal is a run of the provider account: each entry of the file goes back to what was said
before it, or counts no more; positions, changes, differences and batches follow by the same
statements as every night. Nobody is told of it. Notices of the file that wait end as superseded;
those that have left are listed, for a person to decide on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from psycopg.rows import dict_row

from duebook.config import Config
from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.errors import InputError, RefusedError
from duebook.services.reconcile import ReconcileRequest, Withdrawal, reconcile

_MOST: Final = 1000


def list_files(
    connect: Connect, provider_account: str, *, limit: int = 100
) -> dict[str, list[dict[str, Any]]]:
    """The settlement files of an account, newest first: `{files: […]}`."""
    return {"files": _find(connect, provider_account, None, limit)}


def withdraw(
    connect: Connect,
    config: Config,
    provider_account: str,
    file: str,
    *,
    by: str,
    reason: str,
    dry_run: bool,
) -> dict[str, Any]:
    """Take a file back, named or by the first six or more digits of its checksum.

    Returns what it does (with `dry_run`: what it would do): entries that go back or count no more,
    payments that change, notices that end, are asked for or have left already. Raises InputError
    (no such file, or several), RefusedError (it is withdrawn already; no reason).
    """
    if not reason.strip():
        raise RefusedError("--reason is empty; expected why the file is wrong")
    found = _the_file(connect, provider_account, file)
    report = reconcile(
        connect,
        ReconcileRequest(
            account=provider_account,
            dry_run=dry_run,
            scope="payments",
            triggered_by=f"withdrawal by {by}",
            withdrawal=Withdrawal(found["file_id"], found["name"], by, reason.strip()),
        ),
        config,
        _no_source,
    )
    notices: Mapping[str, Any] = report.withdrawn or {}
    return {
        "provider_account": provider_account,
        "file": found["name"],
        "sha256": found["sha256"],
        "dry_run": dry_run,
        "run_id": report.run_id,
        "entries": report.entries_changed,
        "ledger_changes": report.ledger_changes,
        "notices_ended": notices.get("ended", 0),
        "notices_asked_for": notices.get("requested", 0),
        "notices_sent": notices.get("sent", 0),
        "sent_keys": list(notices.get("sent_keys", ())),
        "discrepancies": dict(report.discrepancies),
    }


def _the_file(connect: Connect, provider_account: str, file: str) -> dict[str, Any]:
    found = _find(connect, provider_account, file, _MOST)
    counting = [each for each in found if each["withdrawn_at"] is None]
    if not found:
        raise InputError(
            f"{provider_account} has taken no file {file}; `duebook settlement list` names them"
        )
    if not counting:
        last = found[0]
        raise RefusedError(
            f"{last['name']} was withdrawn by {last['withdrawn_by']} on "
            f"{last['withdrawn_at']:%Y-%m-%d}"
        )
    if len(counting) > 1:
        named = ", ".join(each["sha256"][:12] for each in counting[:5])
        raise InputError(
            f"{provider_account} has taken {len(counting)} files {file}: name one by its checksum "
            f"({named})"
        )
    return counting[0]


def _find(
    connect: Connect, provider_account: str, file: str | None, limit: int
) -> list[dict[str, Any]]:
    values = {"provider_account": provider_account, "file": file, "row_limit": limit}
    with connect() as conn, conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query("find_settlement_files"), values).fetchall()


def _no_source(name: str, account: Any) -> Any:
    raise AssertionError(f"a withdrawal asks no provider ({name}, {account.provider})")
