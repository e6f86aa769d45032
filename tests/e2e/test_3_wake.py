"""A row that becomes due is sent by the trigger's wake, and not by the minute's tick."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.house import SWEEP, House, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_row_that_falls_due_between_two_ticks_is_sent_by_the_wake(
    house: House, first_night: dict[str, dict[str, Any]]
) -> None:
    """A tick may always come first on a busy machine: one of three rows has to be woken for."""
    kinds = []
    for _ in range(3):
        house.settle()
        run_id = sweep_that_sends_a_row_due_soon(house)
        with house.stack().api() as api:
            run = next(run for run in api.runs(SWEEP) if run["dag_run_id"] == run_id)
            kinds.append(run["run_type"])
            if kinds[-1] != "asset_triggered":
                continue
            path = f"/api/v2/dags/{SWEEP}/dagRuns/{run_id}/upstreamAssetEvents"
            events = api._call("GET", path).json()["asset_events"]
            # An event of no task is one of the trigger.
            assert any(event["source_task_id"] is None for event in events)
            return
    pytest.fail(f"sent by runs of the kinds {kinds}")


def sweep_that_sends_a_row_due_soon(house: House) -> str:
    """Let a waiting notice fall due early in the minute; the id of the run that claimed it."""
    mails = house.mails()
    account_id, intent_id = house.rows(
        """
        update duebook.due as d
        set due_at = greatest(
            clock_timestamp() + interval '3 seconds',
            case when extract(second from clock_timestamp()) > 30
                then date_trunc('minute', clock_timestamp()) + interval '75 seconds'
            end
        )
        where (d.account_id, d.intent_id) = (
            select w.account_id, w.intent_id from duebook.due as w
            where w.kind = 'payment_refunded'
            order by w.account_id, w.intent_id
            limit 1
        )
        returning d.account_id, d.intent_id
        """
    )[0]
    wait_until(lambda: house.mails() > mails, "the row is sent", 120)
    house.settle()
    return str(
        house.value(
            "select substring(b.sender from 'airflow:(.*)$') from duebook.attempt as a"
            " join duebook.batch_ended as b on b.batch_id = a.batch_id"
            " where a.account_id = %s and a.intent_id = %s",
            account_id,
            intent_id,
        )
    )
