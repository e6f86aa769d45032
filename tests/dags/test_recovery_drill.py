"""The DAG recovery_drill: its lines are the task's log, its counts are returned, wrong is red."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from duebook.airflow.failures import TaskRefused
from duebook.drill import run

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

pytestmark = pytest.mark.filterwarnings("default")  # Airflow's own, on import

REPORT = {
    "name": "drill",
    "reason": "a drill",
    "opened_at": "2026-12-01T03:55:54+00:00",
    "opened_by": "drill",
    "resumed_at": "2026-12-01T04:33:03+00:00",
    "resumed_by": "drill",
    "closed_at": "2026-12-01T04:33:16+00:00",
    "closed_by": "drill",
    "as_of": "2026-12-01T04:33:16+00:00",
    "lasted_s": 2242,
    "band_s": 300,
    "due": 1,
    "outcomes": {"sent": 1, "done": 0, "expired": {}},
    "elsewhere": {"held": {}, "in_doubt": 0, "later": {}, "due_again": 0, "proposed": 0},
    "differs": {},
    "differing_keys": [],
    "backlog": 0,
    "oldest_due_s": 0,
    "in_doubt": 0,
    "in_doubt_keys": [],
    "policies": [],
    "policy_changes": [],
    "pauses": [],
    "samples": [],
    "pauses_sweep": True,
    "refused": [],
}
LINE = {"group": "a group", "keys": 1, "expected": "1 sent", "got": "1 sent", "ok": True}
WRONG = {
    "group": "a group",
    "account_id": "a",
    "operation_key": "remind:email:s:2026-12-01",
    "expected": "sent, received 1x",
    "got": "received 2x",
}


def document(**changed: Any) -> dict[str, Any]:
    return {
        "ok": True,
        "lost": 0,
        "doubled": 0,
        "in_doubt": 0,
        "holds_expired": 420,
        "reminders_sent": 18,
        "explained": 1,
        "keys": 1,
        "catch_up": {"reminder": {"send": 18}},
        "were_in_doubt": 16,
        "tasks_twice": 1,
        "flushes_twice": 5,
        "table": [LINE],
        "wrong": [],
        "violations": [],
        "untold": [],
        "report": REPORT,
        "seconds": 26.0,
        **changed,
    }


@pytest.fixture(autouse=True)
def _connection(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DUEBOOK", database_url)


def call(bag: DagBag) -> Any:
    task: Any = bag.dags["recovery_drill"].get_task("drill")
    return task.python_callable()


def test_it_is_started_by_hand_only(bag: DagBag) -> None:
    dag = bag.dags["recovery_drill"]
    assert dag.timetable.can_be_scheduled is False
    assert [task.task_id for task in dag.tasks] == ["drill"]


def test_counts_are_returned_and_the_table_and_the_report_are_logged(
    bag: DagBag, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run, "run_drill", lambda settings, console: document())
    with caplog.at_level(logging.INFO, "duebook.drill"):
        counts = call(bag)
    assert counts["holds_expired"] == 420
    assert set(counts) == {
        *("lost", "doubled", "in_doubt", "holds_expired", "reminders_sent", "explained", "keys"),
        *("catch_up", "seconds"),
    }
    said = "\n".join(record.getMessage() for record in caplog.records)
    assert "a group" in said
    assert "incident drill: a drill" in said


def test_a_wrong_key_makes_it_red_and_is_named(
    bag: DagBag, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told = document(ok=False, wrong=[WRONG], doubled=1)
    monkeypatch.setattr(run, "run_drill", lambda settings, console: told)
    with caplog.at_level(logging.INFO, "duebook.drill"), pytest.raises(TaskRefused):
        call(bag)
    said = "\n".join(record.getMessage() for record in caplog.records)
    assert "wrong: remind:email:s:2026-12-01 (a): expected sent, received 1x" in said


@pytest.mark.prove
@pytest.mark.crash
@pytest.mark.timeout(400)
def test_it_rehearses_beside_the_database_of_its_connection(bag: DagBag) -> None:
    counts = call(bag)
    assert (counts["lost"], counts["doubled"], counts["in_doubt"]) == (0, 0, 0)
    assert counts["holds_expired"] == 420
