"""Every night: what each provider settled, compared with the ledger, and what follows from it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import CronTriggerTimetable, Param, dag, get_current_context, task

from duebook.airflow import tasks
from duebook.airflow.assets import DUE
from duebook.airflow.failures import retry_when_away


@dag(
    # Without it, unpausing up to 2.4 hours after a tick starts that tick's run: False means 10 %.
    schedule=CronTriggerTimetable("0 2 * * *", timezone="UTC", run_immediately=timedelta(0)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(hours=6),
    tags=["duebook", "reconciliation"],
    default_args={"owner": "duebook", "retries": 0},
    doc_md=str(Path(__file__).with_suffix(".md")),
    params={
        "account": Param(
            "all",
            type="string",
            minLength=1,
            title="Provider account",
            description="A provider account of duebook.toml, or `all`.",
        ),
        "as_of": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="As of",
            description="Judge pending and missing as of this instant; empty: now.",
        ),
        "dry_run": Param(
            False,
            type="boolean",
            title="Dry run",
            description="Compare and count, but write nothing at all.",
        ),
    },
)
def nightly_reconciliation() -> None:
    """One mapped task a provider account, so that one account's trouble stops no other's."""

    @task(execution_timeout=timedelta(minutes=5))
    def accounts() -> list[str]:
        context = get_current_context()
        tasks.refuse_replay(context["dag_run"], is_asked_again=True)
        return tasks.choose_accounts(context["params"])

    @task(
        map_index_template="{{ task.op_kwargs['account'] }}",
        pool="duebook_reconcile",
        outlets=[DUE],
        execution_timeout=timedelta(hours=2),
        retries=6,
        retry_policy=retry_when_away(timedelta(minutes=5)),
    )
    def reconcile(account: str) -> dict[str, Any]:
        context = get_current_context()
        tasks.refuse_replay(context["dag_run"])
        counts = tasks.reconcile_account(account, context["params"], context["run_id"])
        context["outlet_events"][DUE].extra = counts
        return counts

    reconcile.expand(account=accounts())


nightly_reconciliation()
