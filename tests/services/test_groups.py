"""One entry for several booked payments: each has its share, and is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from duebook.services.check import check
from duebook.services.explain import explain
from duebook.services.imports import import_ledger
from duebook.services.withdraw import withdraw
from tests.settlement_files import LEDGER_HEADER, World, adyen_row, booked, settled, write_rows

HEADER = [*LEDGER_HEADER, "group_reference"]


def book(world: World, *rows: dict[str, str]) -> Any:
    path = write_rows(world.folder / "groups.csv", HEADER, rows)
    return import_ledger(world.connect, path, world.config)


def invoice(number: int, amount: int, group: str = "ORDER", **others: Any) -> dict[str, str]:
    return {**booked(number, amount, account=f"a{number}", **others), "group_reference": group}


def order(amount: str, **others: Any) -> dict[str, str]:
    return adyen_row("Settled", amount, psp="PSP", reference="ORDER", **others)


def captured(world: World) -> dict[str, tuple[int, int]]:
    rows = world.rows("select payment_id, captured_minor, fee_minor from duebook.settled_position")
    return {row["payment_id"]: (row["captured_minor"], row["fee_minor"]) for row in rows}


def kinds(world: World) -> dict[str, int]:
    rows = world.rows(
        "select kind, count(*) as n from duebook_reports.discrepancies"
        " where closed_at is null and batch_ref is null group by 1"
    )
    return {row["kind"]: row["n"] for row in rows}


@pytest.fixture
def world(world: World) -> World:
    """Live: an order of three invoices, paid by one entry of 100.01 with a fee of 1.00."""
    world.go_live()
    book(world, invoice(1, 5000), invoice(2, 3000), invoice(3, 2001))
    report = world.reconcile(world.adyen(order("100.01", fee="1.00", net="99.01"), name="one.csv"))
    assert report.matched == 3
    return world


def test_each_payment_has_its_share_and_together_they_are_the_entry(world: World) -> None:
    shares = captured(world)
    assert {name: share[0] for name, share in shares.items()} == {
        "pay1": 5000,
        "pay2": 3000,
        "pay3": 2001,
    }
    assert sum(fee for _, fee in shares.values()) == 100
    assert kinds(world) == {}
    told = world.rows("select payment_id from duebook.intent where kind = 'payment_settled'")
    assert {row["payment_id"] for row in told} == {"pay1", "pay2", "pay3"}
    assert check(world.connect)["violations"] == []
    assert "PSP:settled" in str(explain(world.connect, "pay2").to_json())
    [total] = world.rows("select sum(gross) as gross from duebook_reports.entry_allocations")
    assert str(total["gross"]) == "100.01"


def test_less_than_the_group_expects_is_short_for_each_and_a_correction_is_shared_anew(
    world: World,
) -> None:
    world.reconcile(world.adyen(order("50.00", batch=2)))
    assert sum(share for share, _ in captured(world).values()) == 5000
    assert kinds(world) == {"amount_mismatch": 3}
    world.reconcile(world.adyen(order("100.01", batch=3)))
    assert kinds(world) == {}
    told = "select count(*) from duebook.intent where kind = 'payment_settled'"
    assert world.value(told) == 9, "each correction is told to each, once"
    assert check(world.connect)["violations"] == []


def test_a_refund_of_the_group_is_shared_too(world: World) -> None:
    refund = adyen_row("Refunded", "-10.00", psp="PSP", reference="ORDER", batch=2)
    world.reconcile(world.adyen(refund))
    rows = world.rows("select refunded_minor from duebook.settled_position order by payment_id")
    assert [row["refunded_minor"] for row in rows] == [500, 300, 200]


def test_an_entry_of_one_payments_own_is_summed_with_its_share(world: World) -> None:
    world.reconcile(world.adyen(settled(1, "1.00", batch=2)))
    assert captured(world)["pay1"][0] == 5100
    assert check(world.connect)["violations"] == []


def test_who_joins_or_leaves_the_group_changes_the_shares(world: World) -> None:
    book(world, invoice(3, 2001, group=""), invoice(4, 2001))
    world.reconcile(world.adyen(settled(9, "1.00", batch=2)))
    assert {name: share for name, (share, _) in captured(world).items()} == {
        "pay1": 5000,
        "pay2": 3000,
        "pay4": 2001,
    }
    assert check(world.connect)["violations"] == []


def test_an_import_without_the_column_leaves_groups_as_they_are(world: World) -> None:
    world.book(booked(1, 5000, account="a1", status="captured"))
    world.reconcile(world.adyen(order("100.01", batch=2)))
    assert captured(world)["pay1"][0] == 5000


def test_a_group_with_another_currency_or_account_is_shared_by_nobody(world: World) -> None:
    book(world, invoice(5, 100, group="ODD"), invoice(6, 100, group="ODD", currency="USD"))
    book(
        world, invoice(7, 100, group="FAR"), invoice(8, 100, group="FAR", provider_account="paypal")
    )
    odd = [
        adyen_row("Settled", "2.00", psp=f"PSP-{group}", reference=group, batch=2)
        for group in ("ODD", "FAR")
    ]
    world.reconcile(world.adyen(*odd))
    assert kinds(world)["missing_in_ledger"] == 2
    assert len(captured(world)) == 3


def test_a_booked_reference_of_its_own_comes_before_the_group(world: World) -> None:
    world.book(booked(10, 10001, reference="ORDER", account="b"))
    world.reconcile(world.adyen(settled(9, "1.00", batch=2)))
    assert captured(world)["pay10"][0] == 10001
    assert "pay1" not in captured(world)
    assert world.rows("select 1 from duebook.entry_allocation") == []
    assert check(world.connect)["violations"] == []


def test_a_file_that_is_withdrawn_takes_its_shares_back(world: World) -> None:
    withdraw(
        world.connect, world.config, "adyen", "one.csv", by="ann", reason="a test", dry_run=False
    )
    assert captured(world) == {}
    assert check(world.connect)["violations"] == []


def test_a_group_that_is_no_name_is_quarantined(world: World) -> None:
    report = book(world, invoice(11, 100, group="x" * 201))
    assert [(fault.column, fault.expected) for fault in report.faults] == [
        ("group_reference", "1 to 200 printable characters, or nothing")
    ]
