"""By hand only: an outage and the way back, rehearsed in a database of its own."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import dag, task


@dag(
    schedule=None,
    catchup=False,
    # A run of a paused DAG would wait; nothing but a person starts one here.
    is_paused_upon_creation=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(minutes=20),
    tags=["duebook", "recovery"],
    default_args={
        "owner": "duebook",
        "retries": 0,
        "execution_timeout": timedelta(minutes=15),
    },
    doc_md=str(Path(__file__).with_suffix(".md")),
)
def recovery_drill() -> None:
    """One task: it starts its own workers, kills some of them, and compares every key."""

    @task
    def drill() -> dict[str, Any]:
        """Rehearse; returns counts, the table and the incident report stand in the log."""
        from duebook.commands.drill import run_in_task

        return run_in_task()

    drill()


recovery_drill()
