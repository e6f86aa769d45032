"""Books and evidence each have their cut-off; cancelled and re-booked payments keep their facts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from duebook.errors import InputError
from duebook.services.imports import import_ledger
from tests.settlement_files import LEDGER_HEADER, World, booked, settled, write_rows

TEN = "2026-03-01 10:00:00"
NOON = "2026-03-01 12:00:00"


def until(
    world: World, instant: str, *rows: dict[str, str], accounts: tuple[str, ...] = ()
) -> None:
    path = write_rows(world.folder / f"until{len(rows)}.csv", LEDGER_HEADER, rows)
    import_ledger(
        world.connect,
        path,
        world.config,
        until=datetime.fromisoformat(instant).replace(tzinfo=UTC),
        complete_for=accounts,
    )


def missing_in_ledger(world: World) -> list[str]:
    rows = world.rows(
        "select entry_id from duebook_reports.discrepancies"
        " where kind = 'missing_in_ledger' and closed_at is null order by 1"
    )
    return [str(row["entry_id"]).split(":")[0] for row in rows]


@pytest.fixture
def world(world: World) -> World:
    """The account adyen is applied; its rows are in UTC."""
    world.configure()
    return world


def night(world: World, *numbers: int) -> None:
    rows = [settled(n, "10.00", created=TEN if n == 1 else NOON, zone="UTC") for n in numbers]
    world.reconcile(world.adyen(*rows))


def test_what_occurred_after_the_books_cut_off_is_not_missing_in_them_yet(world: World) -> None:
    until(world, "2026-03-01 11:00:00")
    night(world, 1, 2)
    assert missing_in_ledger(world) == ["PSP1"]
    until(world, "2026-03-01 12:00:00")
    world.reconcile(world.adyen(settled(3, "1.00", created=NOON, zone="UTC")))
    assert missing_in_ledger(world) == ["PSP1"], "the cut-off itself is not covered"
    until(world, "2026-03-01 12:00:01", booked(3, 100))
    world.reconcile(world.adyen(settled(9, "1.00", created="2026-03-02 10:00:00", zone="UTC")))
    assert missing_in_ledger(world) == ["PSP1", "PSP2"]


def test_a_cut_off_never_goes_back_and_is_an_accounts_own(world: World) -> None:
    until(world, "2026-03-01 13:00:00", accounts=("adyen",))
    until(world, "2026-03-01 09:00:00")
    night(world, 1, 2)
    assert missing_in_ledger(world) == ["PSP1", "PSP2"]
    assert world.value(
        "select books_until from duebook.provider_account where provider_account = 'paypal'"
    ) == datetime(2026, 3, 1, 9, tzinfo=UTC)
    with pytest.raises(InputError, match="--account adeyn: no provider account of that name"):
        until(world, "2026-03-01 13:00:00", accounts=("adeyn",))


def test_without_a_cut_off_every_unclaimed_entry_is_missing(world: World) -> None:
    night(world, 1, 2)
    assert missing_in_ledger(world) == ["PSP1", "PSP2"]


def claims(world: World) -> list[tuple[str, str]]:
    rows = world.rows("select account_id, payment_id from duebook.settlement_entry order by 1, 2")
    return [(row["account_id"], row["payment_id"]) for row in rows]


def told(world: World) -> list[tuple[str, str]]:
    rows = world.rows(
        "select account_id, kind from duebook.intent where kind = 'payment_settled' order by 1 desc"
    )
    return [(row["account_id"], row["kind"]) for row in rows]


def test_of_two_with_one_reference_the_cancelled_one_is_not_meant(world: World) -> None:
    world.book(booked(1, 1000, void="true"), booked(2, 1000, reference="REF1"))
    night(world, 1)
    assert claims(world) == [("acme", "pay2")]
    differing = "select kind from duebook_reports.discrepancies where batch_ref is null"
    assert world.rows(differing) == []


def test_a_payment_that_was_booked_anew_under_a_merged_account_is_not_told_again(
    world: World,
) -> None:
    world.go_live()
    world.book(booked(1, 1000, account="old"))
    night(world, 1)
    assert told(world) == [("old", "payment_settled")]
    world.book(booked(1, 1000, account="old", void="true"), booked(1, 1000, account="new"))
    world.reconcile(world.adyen(settled(5, "1.00")))
    assert claims(world)[0] == ("new", "pay1")
    assert told(world) == [("old", "payment_settled")], "what the old account was told counts"
    assert (
        world.value("select count(*) from duebook.audit_event where action = 'reassign_entry'") == 1
    )
    positions = world.rows("select account_id, captured_minor from duebook.settled_position")
    assert [(row["account_id"], row["captured_minor"]) for row in positions] == [("new", 1000)]
    world.reconcile(world.adyen(settled(1, "12.00", batch=2)))
    assert told(world) == [("old", "payment_settled"), ("new", "payment_settled")]
