"""Nights through the real scheduler: told once, whatever is repeated, cleared or backfilled."""

from __future__ import annotations

import json
from typing import Any

import pytest

from duebook.airflow.api import FINISHED_STATES, AirflowApi
from tests.e2e.house import NIGHT, RUN_TIMEOUT_S, SWEEP, House, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_new_airflow_has_its_night_paused_and_says_so(house: House) -> None:
    with house.stack().api() as api:
        assert api.import_errors() == {}
        assert api.dags().items() >= {SWEEP: False, NIGHT: True}.items()
    status = house.cli("status", "--json").json
    assert status["dags"].items() >= {SWEEP: False, NIGHT: True}.items()
    assert any(f"{NIGHT} is paused" in need["what"] for need in status["needs"])
    doctor = house.cli("doctor", "--json")
    assert doctor.code == 1
    (dags,) = (each for each in doctor.json["findings"] if each["name"] == "DAGs")
    assert not dags["ok"]
    assert NIGHT in dags["detail"]
    assert SWEEP not in dags["detail"]


def test_a_night_triggered_thrice_at_once_tells_each_account_once(
    house: House, first_night: dict[str, dict[str, Any]]
) -> None:
    assert set(first_night) == {"stripe", "localstripe", "adyen", "shop"}
    assert first_night["stripe"]["intents"] > 100
    sent = house.value("select count(*) from duebook.outcome where result = 'sent'")
    assert sent == house.mails() > 100
    ids = [message["message_id"] for message in house.messages()]
    assert len(set(ids)) == len(ids)
    assert house.cli("check", "--json").json["violations"] == []


def test_a_dry_run_counts_and_writes_nothing(
    house: House, first_night: dict[str, dict[str, Any]]
) -> None:
    runs = house.value("select count(*) from duebook.reconciliation_run")
    with house.no_mail():
        counts = house.night("looked", "adyen", dry_run=True)
    assert counts["adyen"]["run_id"] is None
    assert counts["adyen"]["matched"] == first_night["adyen"]["matched"] > 100
    assert house.value("select count(*) from duebook.reconciliation_run") == runs


def test_a_cleared_sweep_and_a_cleared_night_tell_nobody(
    house: House, first_night: dict[str, dict[str, Any]]
) -> None:
    with house.no_mail(), house.stack().api() as api:
        sweeps = [run for run in api.runs(SWEEP) if run["state"] == "success"]
        busiest = house.value(
            "select substring(sender from 'airflow:(.*)$') from duebook.batch_ended"
            " order by size desc limit 1"
        )
        assert busiest in {run["dag_run_id"] for run in sweeps}, "the one that sent most"
        runs = {SWEEP: busiest, NIGHT: "close-2026-11"}
        before = {dag_id: tries(api.task_instances(dag_id, run)) for dag_id, run in runs.items()}
        for dag_id, run_id in runs.items():
            api.clear(dag_id, run_id)
        for dag_id, run_id in runs.items():
            assert api.wait_for_run(dag_id, run_id, timeout_s=RUN_TIMEOUT_S) == "success"
            assert tries(api.task_instances(dag_id, run_id)) > before[dag_id]


def tries(instances: list[dict[str, Any]]) -> int:
    return sum(instance["try_number"] for instance in instances)


def test_a_backfill_tells_nobody(house: House, first_night: dict[str, dict[str, Any]]) -> None:
    with house.no_mail(), house.stack().api() as api:
        for dag_id, last in ((NIGHT, "2026-01-02T23:00:00Z"), (SWEEP, "2026-01-01T00:01:30Z")):
            api._call(
                "POST",
                "/api/v2/backfills",
                json={
                    "dag_id": dag_id,
                    "from_date": "2026-01-01T00:00:00Z",
                    "to_date": last,
                    "dag_run_conf": {"account": "stripe"} if dag_id == NIGHT else {},
                    "max_active_runs": 2,
                },
            )

        def all_done() -> bool:
            return all(
                [run["state"] for run in api.runs(dag_id) if run["run_type"] == "backfill"]
                == ["success", "success"]
                for dag_id in (NIGHT, SWEEP)
            )

        wait_until(all_done, "two backfilled runs of each", RUN_TIMEOUT_S)
        # After a backfill Airflow may run the newest tick that it finds missing.
        wait_until(lambda: active_nights(api) == [], "no night runs", RUN_TIMEOUT_S)


def active_nights(api: AirflowApi) -> list[str]:
    return [run["dag_run_id"] for run in api.runs(NIGHT) if run["state"] not in FINISHED_STATES]


def test_the_sweep_was_woken_by_the_asset_of_the_night(
    house: House, first_night: dict[str, dict[str, Any]]
) -> None:
    with house.stack().api() as api:
        events = api._call("GET", "/api/v2/assets/events", params={"limit": 100}).json()
    told = [e["extra"] for e in events["asset_events"] if e["source_task_id"] == "reconcile"]
    assert {extra["provider_account"] for extra in told} == set(first_night)
    numbers = json.loads(json.dumps(told), parse_float=str)
    assert all(isinstance(extra["intents"], int) for extra in numbers)
