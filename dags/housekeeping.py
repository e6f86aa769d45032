"""Every hour: look up what is in doubt, ask a person about the rest, keep house, prove."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import CronTriggerTimetable, dag, get_current_context, task, task_group

from duebook.airflow import housekeeping as work
from duebook.airflow import tasks


@dag(
    schedule=CronTriggerTimetable("13 * * * *", timezone="UTC"),
    catchup=False,
    is_paused_upon_creation=False,
    max_active_runs=2,
    dagrun_timeout=timedelta(hours=2),
    tags=["duebook", "delivery"],
    default_args={"owner": "duebook", "retries": 0, "execution_timeout": timedelta(minutes=20)},
    doc_md=str(Path(__file__).with_suffix(".md")),
)
def housekeeping() -> None:
    """Four tasks, and a question for each of at most ten keys that nobody could look up."""

    @task
    def look_up() -> dict[str, int]:
        tasks.refuse_replay(get_current_context()["dag_run"])
        return work.look_up_doubts()

    @task
    def find_questions() -> list[dict[str, str]]:
        return work.open_questions()

    @task_group
    def question(account_id: str, operation_key: str, subject: str, body: str) -> None:
        """Ask, wait without a worker for less than an hour, and do as the person says."""
        asked = HITLOperator(
            task_id="ask",
            subject=subject,
            body=body,
            options=list(work.OPTIONS),
            defaults=[work.LEAVE],
            response_timeout=timedelta(minutes=50),
            # An answer within the second in which it was asked fails in the scheduler; ask again.
            retries=2,
            retry_delay=timedelta(seconds=5),
        )

        @task
        def answer(account_id: str, operation_key: str, given: Any) -> str:
            run_id = get_current_context()["run_id"]
            return work.apply_answer(account_id, operation_key, given, run_id)

        answer(account_id, operation_key, asked.output)

    @task
    def keep_house() -> dict[str, int]:
        return work.keep_house()

    @task
    def check() -> dict[str, int]:
        """Count what `duebook check` finds; red when it finds anything."""
        tasks.refuse_replay(get_current_context()["dag_run"])
        return work.count_violations()

    questions = find_questions()
    look_up() >> questions
    question.expand_kwargs(questions)
    keep_house()
    check()


housekeeping()
