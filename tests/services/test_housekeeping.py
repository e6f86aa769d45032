"""Partitions and retention: made ahead, dropped by age, and never a reason for a night to fail."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from duebook.config import RetentionConfig, parse_config
from duebook.db.connect import connect_url
from duebook.errors import ConfigurationError
from duebook.services.check import check
from duebook.services.housekeeping import keep_house
from duebook.services.status import status
from tests.settlement_files import World, plain, settled

FOR_EVER = RetentionConfig()
A_YEAR = RetentionConfig(entry_versions=timedelta(days=365))


def partitions(world: World) -> list[str]:
    rows = world.rows(
        "select c.relname from pg_inherits as h inner join pg_class as c on h.inhrelid = c.oid"
        " where h.inhparent = 'duebook.settlement_entry_version'::regclass order by 1"
    )
    return [row["relname"].removeprefix("settlement_entry_version_") for row in rows]


def months(world: World, *ahead: int) -> list[str]:
    return [
        world.value(
            "select to_char((now() at time zone 'UTC') + make_interval(months => %s), 'YYYY_MM')",
            each,
        )
        for each in ahead
    ]


def put_off(world: World, month: str) -> None:
    """A partition of a month that is long over, with every version that there is in it."""
    year, number = month.split("_")
    with world.connect() as conn:
        conn.execute(
            f"create table duebook.settlement_entry_version_{month}"
            " (like duebook.settlement_entry_version including all)".encode()
        )
        conn.execute(
            f"with moved as (delete from duebook.settlement_entry_version returning *)"
            f" insert into duebook.settlement_entry_version_{month} select"
            " provider_account, entry_id, version, is_current_when_stored, entry_type,"
            " provider_type, batch_ref, payment_ref, provider_payment_ref, gross_minor, fee_minor,"
            " net_minor, currency, net_currency, entry_status, occurred_at, available_at,"
            f" source_order, source, file_id, line_no, run_id, '{year}-{number}-05Z'::timestamptz,"
            " body from moved".encode()
        )
        conn.execute(
            f"alter table duebook.settlement_entry_version attach partition"
            f" duebook.settlement_entry_version_{month} for values from ('{year}-{number}-01Z')"
            f" to ('{year}-{number}-28Z')".encode()
        )


def needs(world: World) -> list[str]:
    return [n.what for n in status(world.connect, world.config).needs if "partition" in n.what]


def test_the_months_to_come_have_partitions_and_rows_go_there(world: World) -> None:
    done = keep_house(world.connect, FOR_EVER, dry_run=False)
    assert [each["done"] for each in done["partitions"]] == ["made"] * 4
    assert partitions(world) == [*months(world, 0, 1, 2, 3), "default"]
    assert keep_house(world.connect, FOR_EVER, dry_run=False)["partitions"] == []
    world.reconcile(world.adyen(settled(1, "10.00")))
    this = months(world, 0)[0]
    assert world.value(f"select count(*) from duebook.settlement_entry_version_{this}") == 1
    assert needs(world) == []


def test_a_missing_partition_is_an_alert_and_no_error_at_night(world: World) -> None:
    keep_house(world.connect, FOR_EVER, dry_run=False)
    this = months(world, 0)[0]
    with world.connect() as conn:
        conn.execute(f"drop table duebook.settlement_entry_version_{this}".encode())
    report = world.reconcile(world.adyen(settled(1, "10.00")))
    assert report.entries_new == 1
    assert needs(world) == [
        f"no partition of entry versions for {this.replace('_', '-')}: they go to the default one"
    ]
    done = keep_house(world.connect, FOR_EVER, dry_run=False)
    assert [each["done"] for each in done["partitions"]] == [
        "the default partition holds rows of its time"
    ]
    assert needs(world) != []


def test_a_table_that_is_in_use_is_left_for_the_next_time(world: World) -> None:
    with connect_url(world.url) as busy:
        busy.execute("lock table duebook.settlement_entry_version in access exclusive mode")
        done = keep_house(world.connect, FOR_EVER, dry_run=False)
    assert {each["done"] for each in done["partitions"]} == {"the table is in use"}
    again = keep_house(world.connect, FOR_EVER, dry_run=False)
    assert {each["done"] for each in again["partitions"]} == {"made"}


def test_old_versions_go_and_what_is_current_stays(world: World) -> None:
    world.reconcile(world.adyen(settled(1, "10.00"), settled(2, "20.00")))
    world.reconcile(world.adyen(settled(1, "11.00", batch=2)))
    put_off(world, "2020_03")
    world.reconcile(world.adyen(settled(3, "30.00", batch=3)))
    before = totals(world)
    assert keep_house(world.connect, FOR_EVER, dry_run=False)["dropped"] == []
    dry = keep_house(world.connect, A_YEAR, dry_run=True)
    assert [each["partition_name"] for each in dry["dropped"]] == [
        "settlement_entry_version_2020_03"
    ]
    assert "2020_03" in partitions(world)
    done = keep_house(world.connect, A_YEAR, dry_run=False)
    assert done["dropped"] == dry["dropped"]
    assert totals(world) == before
    assert world.value("select count(*) from duebook_reports.settlement_entries") == 3
    assert check(world.connect)["violations"] == []
    report = world.reconcile(world.adyen(settled(1, "12.00", batch=4), settled(2, "20.00")))
    assert (report.entries_changed, report.entries_unchanged) == (1, 1)
    versions = world.rows(
        "select version from duebook_reports.settlement_entries where entry_id like 'PSP1:%%'"
    )
    assert [row["version"] for row in versions] == [3]


def totals(world: World) -> list[dict[str, Any]]:
    return world.rows(
        "select entry_id, version, gross, account_id from duebook_reports.settlement_entries"
        " where is_current order by 1"
    )


def test_bodies_of_webhooks_go_and_a_repeat_is_still_known(world: World) -> None:
    call = "select duebook.record_receipt('shop', %s, 'stripe', 'stripe', '{}', %s::bytea)"
    for event in ("old", "new"):
        assert world.value(call, event, b"{}") == "stored"
    with world.connect() as conn:
        conn.execute("delete from duebook.pending_event")
        conn.execute(
            "update duebook.webhook_body set received_at = now() - interval '100 days'"
            " where event_id = 'old'"
        )
    kept = RetentionConfig(webhook_bodies=timedelta(days=90))
    assert keep_house(world.connect, kept, dry_run=True)["webhook_bodies"] == 1
    assert keep_house(world.connect, kept, dry_run=False)["webhook_bodies"] == 1
    assert world.rows("select event_id from duebook.webhook_body") == [{"event_id": "new"}]
    assert world.value(call, "old", b"{}") == "duplicate"


def test_less_than_a_month_is_refused(world: World) -> None:
    document = {**plain(world.config), "retention": {"entry_versions": "P7D"}}
    with pytest.raises(ConfigurationError, match=r"retention\.entry_versions.*a month or more"):
        parse_config(document, "duebook.toml")
