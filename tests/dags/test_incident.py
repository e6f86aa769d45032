"""While an incident is open: what somebody asked for fails by its name, the schedule goes on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from duebook.airflow.failures import TaskRefused
from duebook.db.connect import connect_url
from duebook.services import incident
from tests.conftest import ENVIRONMENT
from tests.due_work import add_due, places
from tests.services.test_incident import CONFIG

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

pytestmark = pytest.mark.filterwarnings("default")  # Airflow's own, on import

# The tasks of each DAG that do something, with what they are called with.
TASKS: list[tuple[str, str, dict[str, Any]]] = [
    ("due_sweep", "sweep", {}),
    ("due_sweep", "send", {"sender": 1}),
    ("nightly_reconciliation", "accounts", {}),
    ("nightly_reconciliation", "reconcile", {"account": "one"}),
    ("provider_events", "read", {}),
    ("housekeeping", "look_up", {}),
    ("housekeeping", "check", {}),
]
ASKED_FOR = ["manual", "backfill", "operator_triggered", "asset_materialization"]


@pytest.fixture(autouse=True)
def open_incident(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / "duebook.toml"
    config.write_text(CONFIG)
    monkeypatch.setenv("DUEBOOK_CONFIG_FILE", str(config))
    monkeypatch.setenv("DUEBOOK_ENVIRONMENT", ENVIRONMENT)
    monkeypatch.setenv("DUEBOOK_WITNESS", str(tmp_path / "witness"))
    monkeypatch.setenv("AIRFLOW_CONN_DUEBOOK", database_url)
    incident.open_incident(
        partial(connect_url, database_url, autocommit=True),
        name="relay-down",
        reason="a test",
        band=timedelta(minutes=5),
        pauses_sweep=True,
        by="ada",
    )


@contextmanager
def context(run_type: str, clear_number: int = 0) -> Iterator[dict[str, Any]]:
    """The task's context, as Airflow gives it; what it pushes is in `pushed`."""
    from airflow.sdk.api.datamodels._generated import DagRunType
    from airflow.sdk.execution_time.context import set_current_context

    pushed: dict[str, Any] = {}
    given: Any = {
        "dag_run": SimpleNamespace(run_type=DagRunType(run_type), clear_number=clear_number),
        "run_id": f"{run_type}__1",
        "params": {"account": "all", "as_of": None, "dry_run": False},
        "ti": SimpleNamespace(xcom_push=pushed.__setitem__),
    }
    with set_current_context(given):
        yield pushed


def call(bag: DagBag, dag_id: str, task_id: str, arguments: dict[str, Any]) -> Any:
    task: Any = bag.dags[dag_id].get_task(task_id)
    return task.python_callable(**arguments)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]


def test_every_run_that_somebody_asked_for_fails_with_the_name_in_one_line(
    bag: DagBag, caplog: pytest.LogCaptureFixture
) -> None:
    for run_type in ASKED_FOR:
        for dag_id, task_id, arguments in TASKS:
            caplog.clear()
            with context(run_type), pytest.raises(TaskRefused) as refused:
                call(bag, dag_id, task_id, arguments)
            assert refused.value.code == 2
            assert errors(caplog) == [
                f"incident relay-down is open (by ada): a run of type {run_type} is frozen until "
                "`duebook incident close relay-down`"
            ]


def test_a_run_of_the_schedule_that_was_cleared_fails_too(
    bag: DagBag, caplog: pytest.LogCaptureFixture
) -> None:
    with context("scheduled", clear_number=1), pytest.raises(TaskRefused):
        call(bag, "nightly_reconciliation", "accounts", {})
    assert "relay-down is open (by ada): a cleared run is frozen" in errors(caplog)[0]


@pytest.mark.parametrize("run_type", ["scheduled", "asset_triggered"])
def test_what_airflow_starts_by_itself_goes_on_and_sweeps_nothing(
    bag: DagBag, conn: psycopg.Connection[Any], run_type: str
) -> None:
    add_due(conn, 5)
    with context(run_type) as pushed:
        assert call(bag, "due_sweep", "sweep", {}) == []
        assert call(bag, "nightly_reconciliation", "accounts", {}) == ["one"]
    assert (pushed["counts"]["paused"], pushed["counts"]["claimed"]) == ("relay-down", 0)
    assert places(conn) == {"due": 5}


def test_without_an_incident_nothing_is_refused(
    bag: DagBag, conn: psycopg.Connection[Any], database_url: str
) -> None:
    connect = partial(connect_url, database_url, autocommit=True)
    incident.resume_incident(connect, None, by="ada")
    incident.close_incident(connect, None, by="ada")
    with context("manual"):
        assert call(bag, "nightly_reconciliation", "accounts", {}) == ["one"]
        assert call(bag, "due_sweep", "sweep", {}) == []
