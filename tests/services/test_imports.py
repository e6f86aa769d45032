"""The booked side and the contacts: incremental, idempotent, every bad row named."""

from __future__ import annotations

from typing import Any

import pytest

from duebook.errors import InputError
from duebook.services.imports import import_contacts, import_ledger
from tests.settlement_files import World, booked

HEAD = "account_id,payment_id,reference,amount,currency,status,expected_at\n"


def ledger(world: World, text: str) -> Any:
    return import_ledger(world.connect, world.text(text), world.config)


def contacts(world: World, text: str) -> Any:
    return import_contacts(world.connect, world.text(text))


def test_a_second_import_changes_nothing(world: World) -> None:
    first = world.book(booked(1, 100), booked(2, 200))
    assert (first.added, first.changed, first.unchanged, first.exit_code) == (2, 0, 0, 0)
    again = world.book(booked(1, 100), booked(2, 200))
    assert (again.added, again.changed, again.unchanged) == (0, 0, 2)
    assert world.value("select max(booked_version) from duebook.ledger_payment") == 1


def test_only_what_differs_is_written(world: World) -> None:
    world.book(booked(1, 100), booked(2, 200))
    report = world.book(booked(1, 150), booked(2, 200), booked(3, 300))
    assert (report.added, report.changed, report.unchanged) == (1, 1, 1)
    rows = world.rows(
        "select payment_id, amount_minor, booked_version from duebook.ledger_payment order by 1"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("pay1", 150, 2),
        ("pay2", 200, 1),
        ("pay3", 300, 1),
    ]


def test_major_amounts_are_exact_in_the_currency_s_decimals(world: World) -> None:
    report = ledger(
        world,
        HEAD
        + "a,p1,r1,2557.68,EUR,paid,2026-01-01\n"
        + "a,p2,r2,1500,JPY,paid,2026-01-01\n"
        + "a,p3,r3,1.234,KWD,paid,2026-01-01\n"
        + "a,p4,r4,-5,EUR,paid,2026-01-01T10:00:00+02:00\n",
    )
    assert report.quarantined == 0
    rows = world.rows("select amount_minor from duebook.ledger_payment order by payment_id")
    assert [row["amount_minor"] for row in rows] == [255768, 1500, 1234, -500]
    assert (
        world.value(
            "select expected_at at time zone 'UTC' from duebook.ledger_payment"
            " where payment_id = 'p4'"
        ).isoformat()
        == "2026-01-01T08:00:00"
    )


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ("a,p,r,1.234,EUR,paid,2026-01-01", "amount", "more decimals than the currency has"),
        ("a,p,r,1e3,EUR,paid,2026-01-01", "amount", "not a number"),
        ("a,p,r,,EUR,paid,2026-01-01", "amount_minor", "empty"),
        ("a,p,r,1,EURO,paid,2026-01-01", "currency", "unknown currency"),
        ("a,p,r,1,eur,paid,2026-01-01", "currency", "unknown currency"),
        (",p,r,1,EUR,paid,2026-01-01", "account_id", "empty"),
        ("a,,r,1,EUR,paid,2026-01-01", "payment_id", "empty"),
        ("a,p,,1,EUR,paid,2026-01-01", "reference", "empty"),
        ("a,p," + "r" * 201 + ",1,EUR,paid,2026-01-01", "reference", "longer than 200 characters"),
        ("a,p,r,1,EUR,,2026-01-01", "status", "empty"),
        ("a,p,r,1,EUR,over due,2026-01-01", "status", "not a word"),
        ("a,p,r,1,EUR,paid,01/02/2026", "expected_at", "not a date or an instant"),
        ("a,p,r,1,EUR,paid,2026-02-30", "expected_at", "not a date or an instant"),
        ("a,p,r,1,EUR,paid", None, "6 cells of 7"),
    ],
)
def test_a_bad_row_is_named_and_the_good_ones_go_on(
    world: World, row: str, column: str | None, reason: str
) -> None:
    good = "a,good1,r1,1.00,EUR,paid,2026-01-01\n"
    report = ledger(world, HEAD + good + row + "\n" + good.replace("1,r1", "2,r2"))
    assert (report.added, report.quarantined, report.exit_code) == (2, 1, 1)
    [fault] = report.faults
    assert (fault.line_no, fault.column, fault.reason) == (3, column, reason)
    assert fault.expected
    kept = world.rows(
        "select source_kind, line_no, column_name, reason from duebook.quarantined_row"
    )
    assert [tuple(r.values()) for r in kept] == [("ledger", 3, column, reason)]


def test_an_unknown_provider_account_is_named(world: World) -> None:
    report = world.book(booked(1, 100, provider_account="adyne"), booked(2, 100))
    assert (report.added, report.quarantined) == (1, 1)
    assert report.faults[0].reason == "unknown provider account"


def test_any_lower_case_word_is_a_status_and_case_does_not_matter(world: World) -> None:
    world.book(booked(1, 100, status="Awaiting_pickup"))
    assert world.value("select booked_status from duebook.ledger_payment") == "awaiting_pickup"


def test_routing_rules_send_payments_that_name_no_account(world: World) -> None:
    world.configure(
        routing={
            "default": "paypal",
            "rules": [
                {"provider_account": "stripe", "reference_prefix": "ch_"},
                {"provider_account": "adyen", "currency": "USD"},
            ],
        }
    )
    ledger(
        world,
        HEAD
        + "a,p1,ch_1,1,EUR,paid,2026-01-01\n"
        + "a,p2,x,1,USD,paid,2026-01-01\n"
        + "a,p3,x,1,EUR,paid,2026-01-01\n",
    )
    rows = world.rows("select provider_account from duebook.ledger_payment order by payment_id")
    assert [row["provider_account"] for row in rows] == ["stripe", "adyen", "paypal"]


def test_a_file_without_the_columns_leaves_route_and_void_as_they_are(world: World) -> None:
    world.book(booked(1, 100, void="true"))
    ledger(world, HEAD + "acme,pay1,REF1,1.50,EUR,paid,2026-03-02\n")
    [row] = world.rows("select * from duebook.ledger_payment")
    assert (row["amount_minor"], row["provider_account"], row["is_void"]) == (150, "adyen", True)


def test_the_last_line_about_a_payment_counts(world: World) -> None:
    report = world.book(booked(1, 100), booked(2, 200), booked(1, 300))
    assert (report.added, report.quarantined) == (2, 0)
    assert (
        world.value("select amount_minor from duebook.ledger_payment where payment_id = 'pay1'")
        == 300
    )


def test_a_bom_and_crlf_and_a_quoted_newline_do_not_matter(world: World) -> None:
    text = (
        "\ufeff" + HEAD + 'a,p1,"r\n1",1.00,EUR,paid,2026-01-01\na,p2,r2,1.00,EUR,paid,2026-01-01\n'
    )
    report = ledger(world, text.replace("\n", "\r\n"))
    assert (report.added, report.quarantined) == (1, 1)  # a reference on two lines is no reference
    assert report.faults[0].line_no == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("account_id,payment_id\n", "column 'reference' is missing"),
        (HEAD.replace("amount,", ""), "column 'amount_minor' is missing"),
    ],
)
def test_a_file_that_can_not_be_read_is_refused(world: World, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ledger(world, text)


def test_contacts_are_taken_and_changed(world: World) -> None:
    head = "account_id,channel,address,zone,locale,region\n"
    first = contacts(
        world, head + "acme,email,a@example.com,Europe/Madrid,es,ES\nb,email,b@example.com,UTC,,\n"
    )
    assert (first.added, first.quarantined) == (2, 0)
    again = contacts(
        world, head + "acme,email,a@example.org,Europe/Madrid,es,ES\nb,email,b@example.com,UTC,,\n"
    )
    assert (again.added, again.changed, again.unchanged) == (0, 1, 1)
    rows = world.rows("select account_id, address, locale from duebook.contact order by 1")
    assert [tuple(r.values()) for r in rows] == [
        ("acme", "a@example.org", "es"),
        ("b", "b@example.com", "en"),
    ]


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ("a,email,a@example.com,CEST", "zone", "unknown time zone"),
        ("a,email,a@example.com,", "zone", "empty"),
        ("a,email,nobody,UTC", "address", "not an e-mail address"),
        ('a,email,"x@y.z,w@y.z",UTC', "address", "not an e-mail address"),
        ("a,email,,UTC", "address", "empty"),
        ("a,e mail,a@example.com,UTC", "channel", "not a channel"),
        (",email,a@example.com,UTC", "account_id", "empty"),
    ],
)
def test_a_bad_contact_is_named(world: World, row: str, column: str, reason: str) -> None:
    report = contacts(
        world, f"account_id,channel,address,zone\n{row}\ngood,email,g@example.com,UTC\n"
    )
    assert (report.added, report.quarantined, report.exit_code) == (1, 1, 1)
    assert (report.faults[0].line_no, report.faults[0].column, report.faults[0].reason) == (
        2,
        column,
        reason,
    )
