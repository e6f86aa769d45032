"""Times of a mapped CSV: local ones in the account's zone, instants with their own offset."""

from __future__ import annotations

import pytest

from tests.settlement_files import World

ACCOUNT = {
    "provider": "csv",
    "mode": "dry_run",
    "settle_within": "P3D",
    "zone": "America/New_York",
    "columns": {
        "entry_id": "id",
        "type": "type",
        "amount": "amount",
        "currency": "currency",
        "occurred_at": "at",
        "updated_at": "updated",
    },
    "types": {"charge": "charge"},
}
HEADER = "id,type,amount,currency,at,updated\n"


@pytest.fixture
def shop(world: World) -> World:
    world.configure(provider_accounts={"shop": ACCOUNT})
    return world


@pytest.mark.parametrize(
    ("stated", "utc"),
    [
        ("2026-11-28T10:00:00Z", "2026-11-28T10:00:00+00:00"),
        ("2026-11-28 10:00:00+02:00", "2026-11-28T08:00:00+00:00"),
        ("2026-11-28 10:00:00 -0800", "2026-11-28T18:00:00+00:00"),
        ("2026-11-28T10:00:00.250Z", "2026-11-28T10:00:00.250000+00:00"),
        ("2026-11-28 10:00:00.5", "2026-11-28T15:00:00.500000+00:00"),
        ("2026-11-28 10:00:00", "2026-11-28T15:00:00+00:00"),
        ("2026-07-01", "2026-07-01T04:00:00+00:00"),
    ],
)
def test_a_stated_offset_wins_over_the_zone_of_the_account(
    shop: World, stated: str, utc: str
) -> None:
    shop.reconcile(shop.text(f"{HEADER}a,charge,1.00,EUR,{stated},\n"), account="shop")
    found = shop.rows("select occurred_at from duebook.settlement_entry")
    assert [row["occurred_at"].isoformat() for row in found] == [utc]


@pytest.mark.parametrize(
    "stated",
    [
        "10.11.2026",
        "2026-02-30T10:00:00Z",
        "2026-11-28T25:00:00Z",
        "2026-11-28T10:00:00+99:00",
        "2026+11-28",
        "tomorrow",
        "1.5",
    ],
)
def test_what_is_no_time_is_named_and_the_good_row_goes_on(shop: World, stated: str) -> None:
    file = shop.text(
        f"{HEADER}a,charge,1.00,EUR,{stated},\nb,charge,1.00,EUR,2026-11-28T10:00:00Z,\n"
    )
    report = shop.reconcile(file, account="shop")
    assert (report.entries_new, report.quarantined) == (1, 1)
    faults = shop.rows("select line_no, column_name, value, reason from duebook.quarantined_row")
    assert faults == [
        {"line_no": 2, "column_name": "at", "value": stated, "reason": "not a date and time"}
    ]


def test_the_newer_statement_wins_whichever_way_its_time_is_written(shop: World) -> None:
    later = "a,charge,2.00,EUR,2026-11-28T10:00:00Z,2026-11-29T12:00:00Z\n"
    earlier = "a,charge,1.00,EUR,2026-11-28T10:00:00Z,2026-11-29 06:59:59\n"
    shop.reconcile(shop.text(HEADER + later), account="shop")
    report = shop.reconcile(shop.text(HEADER + earlier), account="shop")
    assert (report.entries_changed, report.entries_stale) == (0, 1)
    assert shop.value("select gross_minor from duebook.settlement_entry") == 200
