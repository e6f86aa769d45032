"""What users of comparable systems reported publicly, each with its input and what is right here.

The cases are those that people lost money or sleep over: rows that vanish at an edge, fees with the
wrong sign, days in the wrong zone, an expected payment that is called missing, a reminder a run.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.settlement_files import World, adyen_row, booked, plain, settled
from tests.settlement_forms import PAYPAL_HEADER, csv_text, paypal_text


def as_of(day: int, month: int = 3) -> datetime:
    return datetime(2026, month, day, 12, tzinfo=UTC)


def positions(world: World) -> list[tuple[Any, ...]]:
    rows = world.rows(
        "select payment_id, currency, captured_minor, refunded_minor, fee_minor, net_minor"
        " from duebook.settled_position order by 1, 2"
    )
    return [tuple(row.values()) for row in rows]


def paypal(*rows: dict[str, str]) -> str:
    """A settlement report of these rows; what is not said is empty."""
    usual = {
        "CH": "SB",
        "Transaction Event Code": "T0006",
        "Transaction Initiation Date": "2026/03/01 10:00:00 -0800",
        "Transaction Completion Date": "2026/03/01 10:00:00 -0800",
        "Transaction Debit or Credit": "CR",
        "Gross Transaction Currency": "EUR",
    }
    table = [[{**usual, **row}.get(name, "") for name in PAYPAL_HEADER] for row in rows]
    return paypal_text((PAYPAL_HEADER, table))


def payment(number: int, gross: str, **others: str) -> dict[str, str]:
    return {
        "Transaction ID": f"T{number}",
        "Invoice ID": f"REF{number}",
        "Gross Transaction Amount": gross,
        **others,
    }


def test_a_payment_that_settles_late_is_pending_until_its_promise_is_over(world: World) -> None:
    """A look-back of a day lost it; nobody needs one here, and nobody is alarmed before time."""
    world.book(booked(1, 1000, expected_at="2026-03-01"))
    assert world.reconcile(world.adyen(), as_of=as_of(3)).pending == 1
    report = world.reconcile(world.adyen(settled(1, "10.00")), as_of=as_of(4))
    assert report.matched == 1
    assert world.value("select count(*) from duebook.discrepancy where kind like 'missing%%'") == 0


def test_two_refunds_of_one_payment_in_one_file_both_count(world: World) -> None:
    world.book(booked(1, 2000))
    refunds = [
        adyen_row("Refunded", amount, psp="PSP1", reference="REF1", modification=name)
        for name, amount in (("re_1", "-5.00"), ("re_2", "-3.00"))
    ]
    world.reconcile(world.adyen(settled(1, "20.00"), *refunds))
    assert positions(world) == [("pay1", "EUR", 2000, 800, 0, 1200)]


def test_a_row_in_an_unknown_currency_stops_no_other_and_no_later_run(world: World) -> None:
    rows = [settled(1, "1.00", currency="USD"), settled(2, "2.00", currency="XTS")]
    report = world.reconcile(world.adyen(*rows, settled(3, "3.00", currency="USD")))
    assert (report.entries_new, report.quarantined) == (2, 1)
    [row] = world.rows("select line_no, reason from duebook.quarantined_row")
    assert tuple(row.values()) == (3, "unknown currency")
    assert world.reconcile(world.adyen(settled(4, "4.00"))).entries_new == 1


def test_the_fee_of_money_received_is_a_cost(world: World) -> None:
    """Credit 51.50, fee debited 1.63: net 49.87."""
    world.book(booked(1, 5150, provider_account="paypal"))
    fee = {"Fee Debit or Credit": "DR", "Fee Amount": "163", "Fee Currency": "EUR"}
    world.reconcile(world.text(paypal(payment(1, "5150", **fee))), account="paypal")
    assert positions(world) == [("pay1", "EUR", 5150, 0, 163, 4987)]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (",5150", "5150 without CR or DR"),
        ("XX,5150", "5150 XX"),
        ("CR,51.50", "51.50 CR"),
    ],
)
def test_an_amount_without_a_known_sign_is_kept_aside_and_never_guessed(
    world: World, written: str, kept: str
) -> None:
    text = paypal(payment(1, "5150"), payment(2, "700")).replace("CR,5150", written)
    report = world.reconcile(world.text(text), account="paypal")
    assert (report.entries_new, report.quarantined) == (1, 1)
    [row] = world.rows("select column_name, value from duebook.quarantined_row")
    assert tuple(row.values()) == ("Gross Transaction Amount", kept)
    # And the file's own total says that something is missing.
    assert "gross_credit" in {check["check_name"] for check in report.file_checks}


def test_a_payment_in_a_foreign_currency_is_one_payment_with_linked_legs(world: World) -> None:
    """22.00 BRL paid, 3.60 BRL fee, 18.40 BRL converted into 3.27 USD: no break."""
    world.book(booked(1, 2200, currency="BRL", provider_account="paypal"))
    brl = {"Gross Transaction Currency": "BRL"}
    fee = {"Fee Debit or Credit": "DR", "Fee Amount": "360", "Fee Currency": "BRL"}
    leg = {
        "Transaction Event Code": "T0200",
        "PayPal Reference ID": "T1",
        "PayPal Reference ID Type": "TXN",
        "Invoice ID": "REF1",
    }
    out = {"Transaction Debit or Credit": "DR", "Transaction ID": "L1", **brl}
    back = {"Gross Transaction Currency": "USD", "Transaction ID": "L2"}
    text = paypal(
        payment(1, "2200", **brl, **fee),
        {"Gross Transaction Amount": "1840", **leg, **out},
        {"Gross Transaction Amount": "327", **leg, **back},
    )
    report = world.reconcile(world.text(text), account="paypal")
    assert report.matched == 1
    assert "currency_mismatch" not in report.discrepancies
    assert positions(world) == [
        ("pay1", "BRL", 2200, 0, 360, 0),
        ("pay1", "USD", 0, 0, 0, 327),
    ]


def test_a_byte_order_mark_hides_no_first_column(world: World) -> None:
    text = paypal(payment(1, "1000"))
    world.reconcile(world.text(f"\ufeff{text}"), account="paypal")
    report = world.reconcile(world.text(text), account="paypal")
    assert (report.entries_new, report.entries_unchanged) == (0, 1)


@pytest.mark.parametrize(
    ("instant", "local_day"),
    [
        ("2026-03-29T23:30:00+02:00", "2026-03-29"),
        ("2026-03-28T23:59:59+01:00", "2026-03-28"),
        ("2026-10-25T00:30:00+02:00", "2026-10-25"),
        ("2026-10-25T23:59:59+01:00", "2026-10-25"),
        ("2026-10-26T00:00:00+01:00", "2026-10-26"),
    ],
)
def test_a_day_is_the_providers_also_when_it_has_23_or_25_hours(
    world: World, instant: str, local_day: str
) -> None:
    account = {
        "provider": "csv",
        "mode": "dry_run",
        "settle_within": "P3D",
        "zone": "Europe/Madrid",
        "columns": {
            "entry_id": "id",
            "amount": "amount",
            "currency": "currency",
            "occurred_at": "at",
        },
    }
    world.configure(provider_accounts={"madrid": account})
    table = (["id", "amount", "currency", "at"], [["1", "1.00", "EUR", instant]])
    world.reconcile(world.text(csv_text(table)), account="madrid")
    assert str(
        world.value("select occurred_on_provider from duebook_reports.settlement_entries")
    ) == (local_day)


def test_each_account_has_its_own_totals_and_its_own_days(world: World) -> None:
    """04:00 UTC on New Year's Day is the year before in New York, and nobody's rows are added."""
    adyen = plain(world.config.provider_accounts["adyen"])
    world.configure(
        provider_accounts={
            "one": {**adyen, "zone": "America/New_York"},
            "two": {**adyen, "zone": "UTC"},
        }
    )
    row = settled(1, "1.00", created="2026-01-01 04:00:00", zone="UTC")
    for account in ("one", "two"):
        world.reconcile(world.adyen(row), account=account)
    days = world.rows(
        "select provider_account, occurred_on_provider::text as day, sum(gross_minor)::int as sum"
        " from duebook_reports.settlement_entries group by 1, 2 order by 1"
    )
    assert [tuple(day.values()) for day in days] == [
        ("one", "2025-12-31", 100),
        ("two", "2026-01-01", 100),
    ]


def test_a_settlement_nine_days_late_clears_what_was_missing_once(world: World) -> None:
    world.book(booked(1, 1000, expected_at="2026-03-01"))
    world.reconcile(world.adyen(), as_of=as_of(8))
    assert world.value("select count(*) from duebook.discrepancy where closed_at is null") == 1
    for day in (10, 11, 12):
        world.reconcile(world.adyen(settled(1, "10.00")), as_of=as_of(day))
    changes = world.rows("select change_kind from duebook.ledger_change order by change_id")
    assert [row["change_kind"] for row in changes] == ["missing", "balance", "cleared"]


def test_a_payment_that_fails_after_it_was_paid_out_is_a_break_and_is_told(world: World) -> None:
    world.go_live()
    world.book(booked(1, 1000, status="paid"))
    world.reconcile(world.adyen(settled(1, "10.00", batch=1)))
    failed = adyen_row("Chargeback", "-10.00", psp="PSP1", reference="REF1", batch=9)
    report = world.reconcile(world.adyen(failed))
    assert report.discrepancies["status_mismatch"] == 1
    kinds = world.rows("select kind from duebook.intent order by intent_id")
    assert [row["kind"] for row in kinds] == ["payment_settled", "payment_disputed"]


def test_what_is_told_late_of_an_earlier_state_is_kept_and_not_applied(world: World) -> None:
    world.book(booked(1, 1000))
    world.reconcile(world.adyen(settled(1, "10.00", batch=9)))
    report = world.reconcile(world.adyen(settled(1, "0.00", net="0.00", batch=1)))
    assert report.entries_stale == 1
    assert positions(world)[0][2] == 1000
    assert world.value("select count(*) from duebook.settlement_entry_version") == 2


@pytest.mark.parametrize("cents", [255768, 50622, 32471 + 18151])
def test_amounts_that_floats_can_not_say_are_equal(world: World, cents: int) -> None:
    world.book(booked(1, cents))
    whole, rest = divmod(cents, 100)
    assert world.reconcile(world.adyen(settled(1, f"{whole}.{rest:02}"))).matched == 1


def test_what_is_expected_later_is_no_exception_and_is_told_to_nobody(world: World) -> None:
    world.go_live()
    world.book(booked(1, 1000, expected_at="2026-03-10"))
    report = world.reconcile(world.adyen(), as_of=as_of(9))
    assert (report.pending, dict(report.discrepancies), report.intents) == (1, {}, 0)


def test_the_rest_that_no_row_explains_is_a_row_of_its_own(world: World) -> None:
    """79.51 paid out, rows of 79.50."""
    payout = adyen_row("MerchantPayout", "-79.51", net="-79.51")
    report = world.reconcile(world.adyen(settled(1, "79.50"), payout))
    [batch] = report.batches
    assert (batch.status, batch.difference_minor) == ("not_closed", -1)
    [row] = world.rows(
        "select subject, provider_minor from duebook.discrepancy"
        " where kind = 'unexplained_remainder'"
    )
    assert tuple(row.values()) == ("batch:1:EUR", -1)


def test_three_nights_before_any_sweep_promise_one_notice_a_change(world: World) -> None:
    world.go_live()
    world.book(booked(1, 1000), booked(2, 500, expected_at="2026-02-01"))
    for _ in range(3):
        world.reconcile(world.adyen(settled(1, "10.00")))
    kinds = world.rows("select kind, count(*) as n from duebook.intent group by 1 order by 1")
    assert [tuple(row.values()) for row in kinds] == [
        ("payment_missing", 1),
        ("payment_settled", 1),
    ]


def test_lines_of_one_payout_are_grouped_by_its_reference(world: World) -> None:
    """Twenty lines that name one deposit are one batch, whose sum is the deposit."""
    rows = [settled(number, "1.23", batch=7) for number in range(20)]
    report = world.reconcile(world.adyen(*rows, adyen_row("MerchantPayout", "-24.60", batch=7)))
    [batch] = report.batches
    assert (batch.batch_ref, batch.sum_minor, batch.status) == ("7", 2460, "closed")


def test_an_old_file_with_one_byte_changed_overturns_nothing(world: World) -> None:
    world.book(booked(1, 1000))
    world.reconcile(world.adyen(settled(1, "9.00", batch=1)))
    world.reconcile(world.adyen(settled(1, "10.00", batch=2)))
    before = positions(world)
    report = world.reconcile(world.adyen(settled(1, "9.01", batch=1)))
    assert report.entries_stale == 1
    assert positions(world) == before
    assert (
        world.value(
            "select count(*) from duebook.discrepancy"
            " where kind = 'amount_mismatch' and closed_at is null"
        )
        == 0
    )


def test_a_narrow_run_closes_and_opens_nothing_that_it_did_not_see(world: World) -> None:
    world.book(booked(1, 1000), booked(2, 2000), booked(3, 3000))
    world.reconcile(world.adyen(settled(1, "11.00"), settled(2, "19.00")))
    standing = "select kind, subject from duebook.discrepancy where closed_at is null order by 1, 2"
    before = world.rows(standing)
    assert len(before) == 4, "two amounts, one missing, one batch that does not close"
    world.book(booked(4, 4000))
    narrow = world.reconcile(world.adyen(settled(1, "10.00", batch=2)), scope="payments")
    assert narrow.ledger_changes == 1
    gone = {(row["kind"], row["subject"]) for row in before} - {
        (row["kind"], row["subject"]) for row in world.rows(standing)
    }
    assert gone == {("amount_mismatch", "payment:acme:pay1")}
    assert world.value("select count(*) from duebook.discrepancy where payment_id = 'pay4'") == 0
