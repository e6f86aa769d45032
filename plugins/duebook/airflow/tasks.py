"""What the tasks of the DAGs do: from Airflow's params and connections to one service call.

Only counts leave a task, as its return value, in its log and in the asset event: no amount, no
address, no payment. Heavy imports stand inside the functions, since every DAG file imports this.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from duebook.airflow.failures import one_clear_line

log = logging.getLogger("duebook.airflow")

ALL_ACCOUNTS = "all"


@one_clear_line()
def choose_accounts(params: Mapping[str, Any]) -> list[str]:
    """The provider accounts to reconcile: the one that was asked for, or every configured one."""
    from duebook.errors import InputError

    configured = list(_config().provider_accounts)
    asked = str(params["account"]).strip()
    if asked == ALL_ACCOUNTS:
        return configured
    if asked not in configured:
        known = ", ".join(configured) or "none"
        raise InputError(f"unknown provider account {asked}; duebook.toml has {known}")
    return [asked]


@one_clear_line()
def reconcile_account(account: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """One reconciliation of one provider account; returns its counts."""
    from duebook.airflow.hooks import connect_from_hook
    from duebook.services.operate import reconcile_account as reconcile
    from duebook.settings import load_settings

    settings = load_settings()
    report = reconcile(
        connect_from_hook(settings.airflow_connection),
        settings,
        account=account,
        files=(),
        as_of=_instant(params["as_of"]),
        dry_run=bool(params["dry_run"]),
        console=None,
    )
    counts = only_counts(report.to_json())
    log.info("reconciled %s: %s", account, counts)
    return counts


@one_clear_line()
def sweep_first(max_senders: int | None = None) -> tuple[dict[str, Any], list[int]]:
    """Rescue, claim and send one batch at once.

    Returns its counts, and the numbers of the further senders that the backlog is worth.
    """
    raise AssertionError


@one_clear_line()
def sweep_more(sender: int) -> dict[str, Any]:
    """One further sender: batch after batch until nothing is due or its time is up."""
    raise AssertionError


def only_counts(document: Mapping[str, Any]) -> dict[str, Any]:
    """What of a report may leave a task: whole numbers, names and dates, and no money."""
    return {
        key: value
        for key, value in document.items()
        if not key.endswith("_minor") and isinstance(value, int | str | dict | None)
    }


def _instant(text: str | None) -> datetime | None:
    from duebook.errors import InputError

    if not text:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise InputError("as_of is no instant such as 2026-11-30T02:00:00Z") from None
    if instant.tzinfo is None:
        raise InputError("as_of has no offset; write it such as 2026-11-30T02:00:00Z")
    return instant


def _config() -> Any:
    from duebook.config import load_config
    from duebook.settings import load_settings

    return load_config(load_settings().config_file)
