"""What counts as the same payment, and how much may differ."""

from __future__ import annotations

from typing import Any

import pytest

from duebook.errors import ConfigurationError
from tests.settlement_files import World, adyen_row, booked, plain, settled


def set_up(world: World, **settings: Any) -> None:
    """The account adyen with other settings."""
    account = {**plain(world.config.provider_accounts["adyen"]), **settings}
    world.configure(provider_accounts={"adyen": account})


@pytest.mark.parametrize(
    ("amount", "matched", "kinds"),
    [
        ("9.99", 1, {}),
        ("10.01", 1, {}),
        ("9.98", 0, {"amount_mismatch": 1}),
        ("10.02", 0, {"amount_mismatch": 1}),
    ],
)
def test_a_difference_inside_the_tolerance_matches_and_stays_visible(
    world: World, amount: str, matched: int, kinds: dict[str, int]
) -> None:
    set_up(world, tolerance={"EUR": "0.01"})
    world.book(booked(1, 1000))
    report = world.reconcile(world.adyen(settled(1, amount)))
    assert report.matched == matched
    assert dict(report.discrepancies).items() >= kinds.items()
    assert ("amount_mismatch" in report.discrepancies) == bool(kinds)
    [row] = world.rows("select difference_minor from duebook_reports.ledger_vs_provider")
    assert row["difference_minor"] == round(float(amount) * 100) - 1000


def test_tolerance_is_by_currency_and_never_takes_nothing_for_something(world: World) -> None:
    set_up(world, tolerance={"EUR": "20"})
    world.book(booked(1, 1000), booked(2, 1000, currency="USD"))
    report = world.reconcile(world.adyen(settled(2, "9.99", currency="USD")))
    assert report.matched == 0
    assert report.discrepancies["missing_at_provider"] == 1
    assert report.discrepancies["amount_mismatch"] == 1


def test_a_capture_and_its_partial_reversal_match_the_smaller_booking(world: World) -> None:
    """A hundred charged, forty of it taken back: sixty, and no refund."""
    world.book(booked(1, 6000))
    reversal = adyen_row("SettledReversed", "-40.00", psp="PSP1", reference="REF1")
    report = world.reconcile(world.adyen(settled(1, "100.00"), reversal))
    assert report.matched == 1
    assert world.value("select refunded_minor from duebook.settled_position") == 0


def test_references_count_in_the_order_that_is_stated(world: World) -> None:
    """Payment 2 is booked by the provider's own reference; its merchant reference is nobody's."""
    world.book(booked(1, 1000), booked(2, 500, reference="PSP2"))
    first = world.adyen(settled(1, "10.00"), settled(2, "5.00"))
    assert world.reconcile(first).matched == 1
    set_up(world, match_on=["payment_ref", "provider_payment_ref"])
    # What stands in suspense is looked at again when its reference is booked.
    world.book(booked(3, 700, reference="PSP3"))
    world.reconcile(world.adyen(settled(3, "7.00", batch=2), settled(1, "10.00", fee="0.01")))
    world.book(booked(2, 501, reference="PSP2"))
    world.reconcile(world.adyen(settled(9, "1.00", batch=3)))
    rows = world.rows(
        "select payment_id, captured_minor from duebook.settled_position order by payment_id"
    )
    assert [tuple(row.values()) for row in rows] == [("pay1", 1000), ("pay2", 500), ("pay3", 700)]


def test_the_first_reference_that_anybody_has_decides(world: World) -> None:
    set_up(world, match_on=["payment_ref", "provider_payment_ref"])
    world.book(booked(1, 1000), booked(2, 1000, reference="PSP1"))
    world.reconcile(world.adyen(settled(1, "10.00")))
    assert world.value("select payment_id from duebook.settled_position") == "pay1"


def test_two_payments_of_one_reference_are_named_and_neither_is_picked(world: World) -> None:
    """No row is multiplied by the join: the money is counted once, in suspense."""
    world.book(booked(1, 1000, reference="R"), booked(2, 1000, reference="R"))
    row = adyen_row("Settled", "10.00", psp="P", reference="R")
    report = world.reconcile(world.adyen(row))
    assert report.discrepancies["duplicate_reference"] == 1
    assert world.value("select count(*) from duebook.settled_position") == 0
    assert world.value("select sum(gross_minor) from duebook.settlement_entry") == 1000


@pytest.mark.parametrize("wrong", [[], ["payment_ref", "payment_ref"], ["order"]])
def test_a_wrong_order_of_references_is_refused(world: World, wrong: list[str]) -> None:
    with pytest.raises(ConfigurationError, match=r"provider_accounts\.adyen\.match_on"):
        set_up(world, match_on=wrong)


def test_a_reference_that_is_used_again_means_the_payment_of_its_time(world: World) -> None:
    """The same invoice number in March and in June: each entry finds its own, and none in May."""
    for number, expected_at in ((1, "2026-03-02"), (2, "2026-06-02")):
        world.book(booked(number, 1000, reference="REF1", expected_at=expected_at))
    twice = [
        settled(1, "10.00"),
        adyen_row("Settled", "10.00", psp="PSP2", reference="REF1", created="2026-06-03 09:00:00"),
        adyen_row("Settled", "10.00", psp="PSP3", reference="REF1", created="2026-04-20 09:00:00"),
    ]
    set_up(world, match_window="P30D")
    report = world.reconcile(world.adyen(*twice))
    assert report.matched == 2
    assert report.discrepancies["missing_in_ledger"] == 1
    assert "duplicate_reference" not in report.discrepancies
    rows = world.rows("select entry_id, payment_id from duebook.settlement_entry order by 1")
    assert [row["payment_id"] for row in rows] == ["pay1", "pay2", None]
    set_up(world, match_window=None)
    again = [{**row, "Commission (NC)": "0.10", "Net Credit (NC)": "9.90"} for row in twice]
    report = world.reconcile(world.adyen(*again))
    assert report.discrepancies["duplicate_reference"] == 3, "without it nobody can say which"
    assert (
        world.rows("select entry_id, payment_id from duebook.settlement_entry order by 1") == rows
    )
