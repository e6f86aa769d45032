"""Airflow's database is dropped and made again: nobody is told twice, and nothing is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Databases
from tests.e2e.house import NIGHT, SWEEP, House, wait_until
from tests.e2e.test_4_leaks import leaks, metadata

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]


def test_airflows_database_is_dropped_and_made_again(
    house: House, databases: Databases, first_night: dict[str, dict[str, Any]]
) -> None:
    house.settle()
    ((account_id, intent_id, key, payment_id),) = house.rows(
        """
        select d.account_id, d.intent_id, i.operation_key, i.payment_id
        from duebook.due as d
        join duebook.intent as i on i.account_id = d.account_id and i.intent_id = d.intent_id
        where d.due_at > clock_timestamp() + interval '1 day'
        order by d.due_at desc, d.intent_id
        limit 1
        """
    )
    run_id = first_night["stripe"]["run_id"]
    subjects = [key, payment_id, account_id, str(run_id)]
    mails = house.mails()

    house.stack().stop(drain_s=10)
    before = {subject: house.story(subject) for subject in subjects}
    databases.drop(house.metadata_url)
    house.metadata_url = databases.create()
    house.stack().start()

    with house.stack().api() as api:
        assert api.dags().items() >= {SWEEP: False, NIGHT: True}.items()
        for pool in ("duebook_reconcile", "duebook_send"):
            assert api.pool(pool)["slots"] >= 2
        wait_until(
            lambda: any(run["state"] == "success" for run in api.runs(SWEEP)), "a sweep", 120
        )
    assert house.mails() == mails
    assert {subject: house.story(subject) for subject in subjects} == before
    assert any(NIGHT in need["what"] for need in house.cli("status", "--json").json["needs"])

    # The seven days of the waiting notice pass.
    house.rows(
        "update duebook.due set due_at = clock_timestamp() + interval '2 seconds'"
        " where account_id = %s and intent_id = %s returning 1",
        account_id,
        intent_id,
    )
    wait_until(lambda: house.mails() > mails, "the notice that waited is sent", 120)
    house.settle()
    assert house.mails() == mails + 1
    assert house.cli("check", "--json").json["violations"] == []
    assert leaks(house.secrets, metadata(house.metadata_url)) == {}
