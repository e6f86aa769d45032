"""Every minute, and as soon as a webhook was received: read again what it is about, compare it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import (
    AssetOrTimeSchedule,
    CronTriggerTimetable,
    Param,
    dag,
    get_current_context,
    task,
)

from duebook.airflow import tasks
from duebook.airflow.assets import RECEIVED


@dag(
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("* * * * *", timezone="UTC"), assets=[RECEIVED]
    ),
    catchup=False,
    is_paused_upon_creation=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(hours=1),
    tags=["duebook", "reconciliation"],
    default_args={
        "owner": "duebook",
        "retries": 0,
        "execution_timeout": timedelta(minutes=40),
    },
    doc_md=str(Path(__file__).with_suffix(".md")),
    params={
        "account": Param(
            "all",
            type="string",
            minLength=1,
            title="Provider account",
            description="Read the events of this provider account, or of `all`.",
        ),
    },
)
def provider_events() -> None:
    """One task; events that it leaves are the next minute's."""

    @task
    def read() -> dict[str, int]:
        """Claim what was received and is due, and read it from its provider; returns counts."""
        context = get_current_context()
        tasks.refuse_replay(context["dag_run"])
        return tasks.read_events(context["params"], context["run_id"])

    read()


provider_events()
