"""What the tasks of the DAGs do: from Airflow's params and connections to one service call.

Only counts leave a task, as its return value, in its log and in the asset event: no amount, no
address, no payment. Heavy imports stand inside the functions, since every DAG file imports this.
"""

from __future__ import annotations

import json
import logging
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from duebook.airflow.failures import one_clear_line

log = logging.getLogger("duebook.airflow")

ALL_ACCOUNTS = "all"
# What Airflow starts by itself: from the clock, and from an asset event.
OWN_RUN_TYPES = frozenset({"scheduled", "asset_triggered"})


@one_clear_line()
def refuse_replay(dag_run: Any, *, is_asked_again: bool = False) -> None:
    """Fail a task of a run that somebody asked for while an incident is open, with its name.

    Asked for are manual, backfill, operator-triggered and asset-materialization runs, and any run
    that was cleared. What Airflow starts by its schedule or an asset event is not looked at. Where
    the tasks that follow ask again, one that finds the database away leaves the answer to them.
    """
    run_type = str(getattr(dag_run.run_type, "value", dag_run.run_type))
    if run_type in OWN_RUN_TYPES and not getattr(dag_run, "clear_number", None):
        return
    from duebook.airflow.hooks import connect_from_hook
    from duebook.errors import UnavailableError
    from duebook.services import operate
    from duebook.settings import load_settings

    what = "a cleared run" if run_type in OWN_RUN_TYPES else f"a run of type {run_type}"
    connect = connect_from_hook(load_settings().airflow_connection)
    try:
        operate.require_no_incident(connect, what)
    except UnavailableError:
        if not is_asked_again:
            raise


@one_clear_line()
def choose_accounts(params: Mapping[str, Any]) -> list[str]:
    """The provider accounts to reconcile: the one that was asked for, or every configured one."""
    from duebook.errors import InputError
    from duebook.services.operate import load_configuration
    from duebook.settings import load_settings

    configured = list(load_configuration(load_settings()).provider_accounts)
    asked = str(params["account"]).strip()
    if asked == ALL_ACCOUNTS:
        return configured
    if asked not in configured:
        known = ", ".join(configured) or "none"
        raise InputError(f"unknown provider account {asked}; duebook.toml has {known}")
    return [asked]


@one_clear_line()
def reconcile_account(account: str, params: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """One reconciliation of one provider account; returns its counts.

    `run_id` is written down as who asked, and decides nothing.
    """
    from duebook.airflow.hooks import connect_from_hook, find_connection
    from duebook.airflow.object_store import open_object_store
    from duebook.instants import parse_instant
    from duebook.services import operate
    from duebook.settings import load_settings

    as_of = parse_instant(params["as_of"] or None, "as_of")
    settings = load_settings()
    report = operate.reconcile_account(
        connect_from_hook(settings.airflow_connection),
        settings,
        account=account,
        as_of=as_of,
        dry_run=bool(params["dry_run"]),
        triggered_by=f"airflow:{run_id}",
        connections=find_connection,
        stores=open_object_store,
    )
    counts = {"provider_account": account, **count_reconciliation(report.to_json())}
    log.info("reconciled %s: %s", account, json.dumps(counts))
    return counts


def sweep_first(run_id: str) -> tuple[dict[str, Any], list[int]]:
    """Rescue, claim and send one batch at once.

    Returns its counts, and the numbers of the further senders that the backlog is worth: none when
    nothing could be claimed, since what is left then waits for a pause to end.
    """
    counts = _sweep(f"airflow:{run_id}", max_batches=1)
    from duebook.services.operate import load_configuration
    from duebook.settings import load_settings

    limits = load_configuration(load_settings()).sweep
    batches = math.ceil(counts["backlog"] / limits.batch_size)
    senders = min(limits.senders, batches) if counts["claimed"] else 0
    return counts, list(range(1, senders + 1))


def sweep_more(sender: int, run_id: str) -> dict[str, Any]:
    """One further sender: batch after batch until nothing is due or its time is up."""
    return _sweep(f"airflow:{run_id}:{sender}", max_batches=None)


@one_clear_line()
def _sweep(sender: str, *, max_batches: int | None) -> dict[str, Any]:
    from duebook.airflow.hooks import connect_from_hook, find_connection
    from duebook.services import operate
    from duebook.settings import load_settings

    settings = load_settings()
    report = operate.sweep_due(
        connect_from_hook(settings.airflow_connection),
        settings,
        sender=sender,
        max_batches=max_batches,
        connections=find_connection,
    )
    counts = report.to_json()
    log.info("swept: %s", json.dumps(counts))
    if counts.get("paused"):
        log.warning("incident %s pauses the sweeps: nothing is claimed", counts["paused"])
    return counts


@one_clear_line()
def read_events(params: Mapping[str, Any], run_id: str) -> dict[str, int]:
    """Read again what received events are about; returns counts."""
    from duebook.airflow.hooks import connect_from_hook, find_connection
    from duebook.services import operate
    from duebook.settings import load_settings

    settings = load_settings()
    asked = str(params["account"]).strip()
    report = operate.read_provider_events(
        connect_from_hook(settings.airflow_connection),
        settings,
        account=None if asked == ALL_ACCOUNTS else asked,
        triggered_by=f"airflow:{run_id}",
        connections=find_connection,
    )
    counts = report.to_json()
    log.info("read events: %s", json.dumps(counts))
    return counts


def count_reconciliation(document: Mapping[str, Any]) -> dict[str, Any]:
    """What of a reconciliation's report may leave a task: numbers of things, and no money.

    Batches become how many of them stand how, and types that nobody knows (words of the provider's
    file) how many rows have one.
    """
    return {
        **document,
        "batches": dict(Counter(batch["status"] for batch in document["batches"])),
        "unknown_types": sum(document["unknown_types"].values()),
    }
