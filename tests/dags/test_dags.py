from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import time_machine

from duebook.airflow.pools import read_pools

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

DAGS = Path(__file__).resolve().parents[2] / "dags"
IDS = {
    "nightly_reconciliation",
    "due_sweep",
    "provider_events",
    "recovery_drill",
    "housekeeping",
}


def test_these_dags_and_no_others_are_parsed_without_an_error(bag: DagBag) -> None:
    assert bag.import_errors == {}
    assert set(bag.dags) == IDS


@pytest.mark.parametrize("dag_id", sorted(IDS))
def test_a_dag_is_bounded_owned_tagged_and_never_catches_up(bag: DagBag, dag_id: str) -> None:
    dag = bag.dags[dag_id]
    assert dag.catchup is False
    assert dag.max_active_runs <= 2
    assert dag.dagrun_timeout is not None
    assert "duebook" in dag.tags
    assert dag.owner == "duebook"
    for task in dag.tasks:
        assert task.execution_timeout is not None, task.task_id
        assert task.execution_timeout < dag.dagrun_timeout, task.task_id
        assert task.pool == "default_pool" or task.pool in read_pools(), task.task_id


@pytest.mark.parametrize("dag_id", sorted(IDS))
def test_what_an_operator_reads_says_what_to_do_when_it_is_red(bag: DagBag, dag_id: str) -> None:
    text = bag.dags[dag_id].doc_md
    assert text is not None
    assert "red" in text
    assert "duebook status" in text


@pytest.mark.parametrize("path", sorted(DAGS.glob("*.py")), ids=lambda path: path.name)
def test_a_dag_file_is_thin(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 80
    assert "select " not in text.lower()
    assert "import psycopg" not in text


def test_the_night_maps_one_labelled_task_over_the_accounts(bag: DagBag) -> None:
    dag = bag.dags["nightly_reconciliation"]
    assert {t.task_id: t.downstream_task_ids for t in dag.tasks} == {
        "accounts": {"reconcile"},
        "reconcile": set(),
    }
    mapped = _mapped(bag, "nightly_reconciliation", "reconcile")
    assert mapped.partial_kwargs["map_index_template"] == "{{ task.op_kwargs['account'] }}"
    assert mapped.pool == "duebook_reconcile"


def test_the_night_starts_at_two_utc_through_the_changes_of_the_clock(bag: DagBag) -> None:
    from airflow.timetables.base import TimeRestriction

    timetable = _core_timetable(bag, "nightly_reconciliation")
    for day in ("2026-03-29", "2026-10-25", "2026-12-31"):
        with time_machine.travel(datetime.fromisoformat(f"{day}T01:00:00+00:00"), tick=False):
            following = timetable.next_dagrun_info(
                last_automated_data_interval=None,
                restriction=TimeRestriction(earliest=None, latest=None, catchup=False),
            )
        assert following.run_after.isoformat() == f"{day}T02:00:00+00:00"


def test_unpausing_a_new_dag_starts_no_night_by_itself(bag: DagBag) -> None:
    from airflow.timetables.base import TimeRestriction

    timetable = _core_timetable(bag, "nightly_reconciliation")
    with time_machine.travel(datetime(2026, 12, 1, 2, 8, tzinfo=UTC), tick=False):
        following = timetable.next_dagrun_info(
            last_automated_data_interval=None,
            restriction=TimeRestriction(earliest=None, latest=None, catchup=False),
        )
    assert following.run_after.isoformat() == "2026-12-02T02:00:00+00:00"


def test_a_night_missed_while_airflow_was_down_is_made_up_once(bag: DagBag) -> None:
    from airflow.timetables.base import DataInterval, TimeRestriction

    timetable = _core_timetable(bag, "nightly_reconciliation")
    last = datetime(2026, 11, 20, 2, tzinfo=UTC)
    with time_machine.travel(datetime(2026, 11, 30, 9, 30, tzinfo=UTC), tick=False):
        following = timetable.next_dagrun_info(
            last_automated_data_interval=DataInterval(_pendulum(last), _pendulum(last)),
            restriction=TimeRestriction(earliest=None, latest=None, catchup=False),
        )
    assert following.run_after.isoformat() == "2026-11-30T02:00:00+00:00"


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ({}, {"account": "all", "as_of": None, "dry_run": False}),
        (
            {"account": "stripe", "as_of": "2026-11-30T02:00:00+00:00", "dry_run": True},
            {"account": "stripe", "as_of": "2026-11-30T02:00:00+00:00", "dry_run": True},
        ),
    ],
)
def test_the_form_takes_an_account_an_instant_and_a_dry_run(
    bag: DagBag, conf: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert _filled(bag, conf).validate() == expected


@pytest.mark.parametrize("conf", [{"account": ""}, {"account": 7}, {"dry_run": "yes"}])
def test_the_form_refuses_what_it_can_not_mean(bag: DagBag, conf: dict[str, Any]) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError):
        _filled(bag, conf)


def test_what_was_away_is_tried_again_and_what_is_wrong_is_not(bag: DagBag) -> None:
    from airflow.sdk import RetryAction

    from duebook.airflow.failures import TaskAway, TaskBroken, TaskRefused

    task = _mapped(bag, "nightly_reconciliation", "reconcile")
    policy = task.partial_kwargs["retry_policy"]
    away = policy.evaluate(TaskAway(3), try_number=1, max_tries=task.retries)
    assert away.action is RetryAction.RETRY
    assert away.retry_delay == timedelta(minutes=5)
    assert away.reason
    assert task.retries >= 5
    for wrong in (TaskRefused(2), TaskBroken(70)):
        decided = policy.evaluate(wrong, try_number=1, max_tries=task.retries)
        assert decided.action is RetryAction.FAIL


def test_a_reconciliation_writes_the_asset_that_the_sweep_waits_for(bag: DagBag) -> None:
    from airflow.sdk import AssetOrTimeSchedule

    written = _mapped(bag, "nightly_reconciliation", "reconcile").partial_kwargs["outlets"]
    schedule: Any = bag.dags["due_sweep"].timetable
    assert isinstance(schedule, AssetOrTimeSchedule)
    condition: Any = schedule.asset_condition
    awaited = list(condition.objects)
    assert [asset.uri for asset in written] == ["duebook://due/"]
    assert awaited == written
    assert [watcher.name for watcher in awaited[0].watchers] == ["duebook_due_row"]


def test_the_sweep_starts_every_minute_and_is_not_paused_when_it_is_new(bag: DagBag) -> None:
    dag = bag.dags["due_sweep"]
    assert dag.is_paused_upon_creation is False
    schedule: Any = dag.timetable
    assert schedule.timetable.expression == "* * * * *"


def test_the_sweep_is_one_task_that_maps_further_senders(bag: DagBag) -> None:
    dag = bag.dags["due_sweep"]
    assert {t.task_id: t.downstream_task_ids for t in dag.tasks} == {
        "sweep": {"send"},
        "send": set(),
    }
    assert _mapped(bag, "due_sweep", "send")
    assert {task.pool for task in dag.tasks} == {"duebook_send"}
    # The next minute's run is the retry; a task's own would hold a run slot meanwhile.
    assert {task.retries for task in dag.tasks} == {0}


def test_received_events_are_read_every_minute_and_when_one_was_received(bag: DagBag) -> None:
    dag = bag.dags["provider_events"]
    assert dag.is_paused_upon_creation is False
    assert dag.max_active_runs == 1
    schedule: Any = dag.timetable
    assert schedule.timetable.expression == "* * * * *"
    awaited = list(schedule.asset_condition.objects)
    assert [asset.uri for asset in awaited] == ["duebook://received/"]
    assert [watcher.name for watcher in awaited[0].watchers] == ["duebook_received_event"]
    # The next minute's run is the retry, and a reading wakes nothing by itself: due rows do.
    assert {task.task_id: (task.retries, task.outlets) for task in dag.tasks} == {"read": (0, [])}
    assert dag.params["account"] == "all"


def test_the_dags_survive_airflows_serialization(bag: DagBag) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    for dag in bag.dags.values():
        stored = json.loads(json.dumps(DagSerialization.to_dict(dag)))
        assert DagSerialization.from_dict(stored).dag_id == dag.dag_id


def _mapped(bag: DagBag, dag_id: str, task_id: str) -> Any:
    task = bag.dags[dag_id].get_task(task_id)
    assert task.is_mapped
    return task


def _filled(bag: DagBag, conf: dict[str, Any]) -> Any:
    """The params of the night with a caller's values in them."""
    params = copy.deepcopy(bag.dags["nightly_reconciliation"].params)
    params.update(conf)
    params.validate()
    return params


def _core_timetable(bag: DagBag, dag_id: str) -> Any:
    """The scheduler's side of a DAG's schedule."""
    from airflow.serialization.serialized_objects import DagSerialization

    return DagSerialization.from_dict(DagSerialization.to_dict(bag.dags[dag_id])).timetable


def _pendulum(instant: datetime) -> Any:
    import pendulum

    return pendulum.instance(instant)
