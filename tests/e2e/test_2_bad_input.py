"""What goes wrong is said in one line, what is good is applied, and the next run picks up."""

from __future__ import annotations

from typing import Any

import pytest

from duebook.airflow.api import AirflowApi
from tests.e2e.conftest import REFUSED, TROUBLED, TroubledNight
from tests.e2e.house import (
    NIGHT,
    RUN_TIMEOUT_S,
    SWEEP,
    House,
    counts_of,
    end_stray_nights,
    reconciliations,
    the_one_clear_line,
    wait_until,
)

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

GOOD_FILE = """\
id,gross,currency,at
z-1,86789.12,EUR,2026-01-04T10:00:05
"""
LATER_FILE = """\
id,type,order,gross,currency,at
e-5,charge,O-4,84567.81,EUR,{day}T13:00:05
"""


@pytest.mark.parametrize(
    ("account", "state", "said"),
    [
        ("unconnected", "failed", "forgotten"),
        ("garbled", "failed", "codepage.csv, line 2: not UTF-8"),
        ("overloaded", "up_for_retry", "500"),
        ("limited", "up_for_retry", "429"),
        ("hanging_up", "up_for_retry", "stripe"),
    ],
)
def test_trouble_with_one_account_is_one_line_in_its_own_log(
    troubled_night: TroubledNight, account: str, state: str, said: str
) -> None:
    assert troubled_night.states[account] == state
    assert said.lower() in the_one_clear_line(troubled_night.logs[account]).lower()


def test_the_other_accounts_and_the_good_rows_went_on(
    house: House, troubled_night: TroubledNight
) -> None:
    for account in ("stripe", "localstripe", "adyen", "shop"):
        assert troubled_night.states[account] == "success"
    assert taken(house) == (3, 1, 3)
    ((line, column, value),) = house.rows(
        "select line_no, column_name, value from duebook.quarantined_row"
        " where file_name = 'first.csv'"
    )
    assert (line, column, value) == (5, "gross", "84567,81")
    for account in ("garbled", *TROUBLED):
        assert entries_of(house, account) == 0, "nothing of it was applied"


def test_a_refused_mail_and_a_missing_template_stop_no_other(
    house: House, troubled_night: TroubledNight
) -> None:
    house.settle()
    told = {message["rcpt_to"][0] for message in house.messages()}
    assert {"anna.private@payers.example", "bert.private@payers.example"} <= told
    assert REFUSED not in told
    assert house.rows("select result, reason from duebook.outcome where account_id = 'cleo'") == [
        ("expired", "refused")
    ]
    assert house.rows("select cause from duebook.held where kind = 'unwritten'") == [("template",)]


def test_the_same_run_picks_up_once_the_trouble_is_over(
    house: House, troubled_night: TroubledNight
) -> None:
    for failure in troubled_night.failures:
        failure.times = 0
    (house.garbled / "codepage.csv").write_text(GOOD_FILE, encoding="utf-8")
    with house.no_mail(), house.stack().api() as api:
        # As the line in the log asks for: under Admin, Connections.
        api._call(
            "POST",
            "/api/v2/connections",
            json={
                "connection_id": "forgotten",
                "conn_type": "http",
                "host": house.troubled["overloaded"].address,
                "password": "sk_test_found",
            },
        )
        api.clear(NIGHT, "troubled")
        assert api.wait_for_run(NIGHT, "troubled", timeout_s=RUN_TIMEOUT_S) == "success"
        counts = counts_of(api, "troubled")
        api._call("DELETE", "/api/v2/connections/forgotten")
    assert set(counts) == set(troubled_night.states)
    assert counts["garbled"]["entries_new"] == 1
    assert taken(house) == (3, 1, 3)


def test_a_database_that_goes_away_leaves_nothing_half_applied(
    house: House, troubled_night: TroubledNight
) -> None:
    house.settle()
    mails = house.mails()
    day = house.value("select (clock_timestamp() - interval '1 day')::date")
    (house.shop / "second.csv").write_text(LATER_FILE.format(day=day), encoding="utf-8")
    with house.stack().api() as api:
        house.server.stop()
        try:
            api.trigger(NIGHT, conf={"account": "shop"}, run_id="away")
            api.trigger(SWEEP, run_id="swept-away")
            said = the_one_clear_line(log_of_try(api, 1))
            assert "is away" in said
            assert api.wait_for_run(SWEEP, "swept-away", timeout_s=RUN_TIMEOUT_S) == "failed"
            assert "is away" in the_one_clear_line(api.task_log(SWEEP, "swept-away", "sweep", 1))
        finally:
            house.server.start()

        stop_in_the_middle(house, api)
        said = the_one_clear_line(log_of_try(api, 2))
        assert "the database went away" in said
        assert taken(house) == (3, 1, 3)
        assert entries_of(house, "shop") == 3
        assert (
            house.value("select count(*) from duebook.settlement_file where name like 'sec%'") == 0
        )

        api.clear(NIGHT, "away")
        assert api.wait_for_run(NIGHT, "away", timeout_s=RUN_TIMEOUT_S) == "success"
    assert taken(house) == (4, 1, 4)
    house.settle()
    assert house.mails() == mails + 1
    assert house.cli("check", "--json").json["violations"] == []


def stop_in_the_middle(house: House, api: AirflowApi) -> None:
    """Take the database away while the run waits, with half of it written, for a locked payment."""
    holder = house.connect()
    try:
        holder.execute("begin")
        holder.execute(
            "select 1 from duebook.ledger_payment where payment_id = 'shop-4' for update"
        )
        end_stray_nights(api)
        api.clear(NIGHT, "away")
        wait_until(
            lambda: house.value(
                "select count(*) from pg_stat_activity"
                " where wait_event_type = 'Lock' and datname = current_database()"
            ),
            "the run waits for the payment",
        )
    finally:
        house.server.stop()
        holder.close()
        house.server.start()


def log_of_try(api: AirflowApi, number: int) -> list[dict[str, Any]]:
    """The log of one try of the run `away`, once that try has failed."""

    def failed() -> bool:
        end_stray_nights(api, "away")
        task = reconciliations(api, "away").get("shop", {})
        return (task.get("state"), task.get("try_number")) == ("up_for_retry", number)

    wait_until(failed, f"try {number} fails")
    return api.task_log(NIGHT, "away", "reconcile", number, 0)


def taken(house: House) -> tuple[int, int, int]:
    """Entries, quarantined rows and notices of all runs over the shop, whichever took them."""
    ((entries, quarantined, notices),) = house.rows(
        "select sum(entries_new), sum(quarantined), sum(intents) from duebook.reconciliation_run"
        " where provider_account = 'shop'"
    )
    return int(entries), int(quarantined), int(notices)


def entries_of(house: House, account: str) -> int:
    return int(
        house.value(
            "select count(*) from duebook.settlement_entry where provider_account = %s", account
        )
    )


def files_taken(house: House, name: str) -> int:
    return int(house.value("select count(*) from duebook.settlement_file where name = %s", name))
