"""Every minute, and as soon as a row is due: claim what is due, send it, record how it ended."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable, dag, get_current_context, task

from duebook.airflow import tasks
from duebook.airflow.assets import DUE


@dag(
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("* * * * *", timezone="UTC"), assets=[DUE]
    ),
    catchup=False,
    is_paused_upon_creation=False,
    max_active_runs=2,
    dagrun_timeout=timedelta(minutes=40),
    tags=["duebook", "delivery"],
    default_args={
        "owner": "duebook",
        "retries": 0,
        "pool": "duebook_send",
        "execution_timeout": timedelta(minutes=20),
    },
    doc_md=str(Path(__file__).with_suffix(".md")),
)
def due_sweep() -> None:
    """One task a sweep; only a backlog beyond one batch maps further senders."""

    @task
    def sweep() -> list[int]:
        """Rescue, claim and send one batch; returns the numbers of the senders still needed."""
        context = get_current_context()
        tasks.refuse_replay(context["dag_run"])
        counts, further_senders = tasks.sweep_first(context["run_id"])
        context["ti"].xcom_push("counts", counts)
        return further_senders

    @task(map_index_template="sender {{ task.op_kwargs['sender'] }}")
    def send(sender: int) -> dict[str, Any]:
        context = get_current_context()
        tasks.refuse_replay(context["dag_run"])
        return tasks.sweep_more(sender, context["run_id"])

    send.expand(sender=sweep())


due_sweep()
