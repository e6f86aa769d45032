"""Settlement files of every shape: what is read, what is quarantined, what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from duebook.errors import InputError, UnavailableError
from tests.settlement_files import ADYEN_HEADER, World, adyen_row, booked, settled, shared_file

REAL = [
    "chargeback",
    "deposit_correction",
    "donation",
    "emptynetcredit",
    "invoice_deduction",
    "refund",
]


@pytest.mark.parametrize("name", REAL)
def test_real_files_are_read_whole(world: World, name: str) -> None:
    report = world.reconcile(shared_file("adyen", f"wmf_{name}.csv"))
    assert report.quarantined == 0
    assert report.entries_new > 0
    assert report.unknown_types == {}


def test_reordered_columns_and_a_lower_case_type_say_the_same(world: World) -> None:
    world.reconcile(shared_file("adyen", "wmf_donation.csv"))
    report = world.reconcile(shared_file("adyen", "wmf_donation_reordered.csv"))
    assert (report.entries_new, report.entries_changed, report.entries_unchanged) == (0, 0, 2)


def test_a_spreadsheet_s_dates_are_quarantined_with_a_clear_reason(world: World) -> None:
    report = world.reconcile(shared_file("adyen", "adyen_test.converted.csv"))
    assert report.entries_new == 0
    assert report.quarantined == 21
    rows = world.rows("select distinct column_name, reason from duebook.quarantined_row")
    assert rows == [{"column_name": "Creation Date", "reason": "a spreadsheet's day number"}]


def test_pst_in_july_is_los_angeles_and_a_repeated_hour_is_told_apart(world: World) -> None:
    times = [
        ("2026-07-01 12:00:00", "PST", "2026-07-01T19:00:00+00:00"),
        ("2026-07-01 12:00:00", "PDT", "2026-07-01T19:00:00+00:00"),
        ("2026-10-25 02:30:00", "CEST", "2026-10-25T00:30:00+00:00"),
        ("2026-10-25 02:30:00", "CET", "2026-10-25T01:30:00+00:00"),
        ("2026-01-05 00:21:32", "CET", "2026-01-04T23:21:32+00:00"),
    ]
    world.reconcile(
        world.adyen(*(settled(n, "1.00", created=c, zone=z) for n, (c, z, _) in enumerate(times)))
    )
    found = world.rows("select occurred_at from duebook.settlement_entry order by line_no")
    assert [row["occurred_at"].isoformat() for row in found] == [utc for _, _, utc in times]


def test_days_are_the_provider_s_as_well_as_utc(world: World) -> None:
    world.reconcile(world.adyen(settled(1, "1.00", created="2026-03-29 00:30:00", zone="CET")))
    [row] = world.rows("select * from duebook_reports.settlement_entries")
    assert str(row["occurred_on_utc"]) == "2026-03-28"
    assert str(row["occurred_on_provider"]) == "2026-03-29"


def test_fees_are_in_net_currency_and_a_debit_net_is_kept(world: World) -> None:
    world.reconcile(shared_file("adyen", "wmf_emptynetcredit.csv"))
    [row] = world.rows(
        "select gross_minor, fee_minor, net_minor, currency, net_currency"
        " from duebook.settlement_entry"
    )
    assert tuple(row.values()) == (1000, 14, -3, "INR", "USD")


def test_an_unknown_type_is_kept_as_other_and_flagged(world: World) -> None:
    report = world.reconcile(
        world.adyen(adyen_row("MoonTax", "-1.00", psp="P1", reference="R1"), settled(1, "2.00"))
    )
    assert report.unknown_types == {"MoonTax": 1}
    assert (
        world.value("select entry_type from duebook.settlement_entry where line_no = 2") == "other"
    )


BAD_ROWS: dict[str, tuple[dict[str, str], str, str, str]] = {
    "an unknown currency": ({"Net Currency": "XTX"}, "Net Currency", "XTX", "unknown currency"),
    "an unknown gross currency": (
        {"Gross Currency": "EU"},
        "Gross Currency",
        "EU",
        "unknown currency",
    ),
    "a comma in a number": ({"Net Credit (NC)": "1,00"}, "Net Credit (NC)", "1,00", "not a number"),
    "an exponent": ({"Net Credit (NC)": "1e5"}, "Net Credit (NC)", "1e5", "not a number"),
    "two points": ({"Net Credit (NC)": "1.0.0"}, "Net Credit (NC)", "1.0.0", "not a number"),
    "a minus in the middle": ({"Commission (NC)": "1-2"}, "Commission (NC)", "1-2", "not a number"),
    "a third decimal": (
        {"Net Credit (NC)": "1.001"},
        "Net Credit (NC)",
        "1.001",
        "more decimals than the currency has",
    ),
    "an endless number": (
        {"Net Credit (NC)": "99999999999999999999"},
        "Net Credit (NC)",
        "99999999999999999999",
        "too large a number",
    ),
    "no net at all": (
        {"Net Credit (NC)": ""},
        "Net Debit (NC)",
        None,
        "empty, as is Net Credit (NC)",
    ),  # type: ignore[dict-item]
    "no such day": (
        {"Creation Date": "2026-02-30 00:00:00"},
        "Creation Date",
        "2026-02-30 00:00:00",
        "not a date and time",
    ),
    "an unknown zone": ({"TimeZone": "XST"}, "TimeZone", "XST", "unknown time zone"),
    "no batch": ({"Batch Number": ""}, "Batch Number", None, "not a number"),  # type: ignore[dict-item]
    "a rounded reference": (
        {"Psp Reference": "4.8147E+15"},
        "Psp Reference",
        "4.8147E+15",
        "rounded by a spreadsheet",
    ),
    "no type": ({"Type": ""}, "Type", None, "empty"),  # type: ignore[dict-item]
    "a control character": (
        {"Merchant Reference": "a\x07b"},
        "Merchant Reference",
        "a\x07b",
        "control character",
    ),
}


@pytest.mark.parametrize("what", BAD_ROWS)
def test_a_bad_row_is_named_and_the_good_ones_go_on(world: World, what: str) -> None:
    change, column, value, reason = BAD_ROWS[what]
    file = world.adyen(settled(1, "1.00"), {**settled(2, "2.00"), **change}, settled(3, "3.00"))
    report = world.reconcile(file)
    assert (report.entries_new, report.quarantined) == (2, 1)
    assert report.exit_code == 1
    [row] = world.rows("select * from duebook.quarantined_row")
    assert (row["file_name"], row["line_no"]) == (file.name, 3)
    assert (row["column_name"], row["value"], row["reason"]) == (column, value, reason)
    assert row["expected"]
    assert world.reconcile(file).entries_unchanged == 2
    assert world.value("select count(*) from duebook.quarantined_row") == 1


def test_amounts_follow_the_currency_s_decimals(world: World) -> None:
    world.reconcile(
        world.adyen(
            settled(1, "1500", currency="JPY", net="1500"),
            settled(2, "1.234", currency="KWD", net="1.234"),
            settled(3, "2.5", currency="EUR", net="2.5"),
            settled(4, "7.00", currency="JPY", net="7.000"),
        )
    )
    rows = world.rows(
        "select gross_minor, net_minor from duebook.settlement_entry order by line_no"
    )
    assert [tuple(r.values()) for r in rows] == [(1500, 1500), (1234, 1234), (250, 250), (7, 7)]
    majors = world.rows("select gross from duebook_reports.settlement_entries order by line_no")
    assert [str(r["gross"]) for r in majors] == ["1500", "1.234", "2.50", "7"]


def test_account_rows_that_agree_in_every_name_are_separate_money(world: World) -> None:
    costs = adyen_row("InvoiceDeduction", "-1.00", modification="Invoice 7")
    report = world.reconcile(world.adyen(costs, {**costs, "Net Debit (NC)": "2.00"}, costs))
    assert (report.entries_new, report.batches[0].sum_minor) == (3, -400)
    again = world.reconcile(world.adyen({**costs, "Net Debit (NC)": "2.00"}, costs, costs))
    assert (again.entries_new, again.entries_changed, again.entries_unchanged) == (0, 0, 3)


def test_rows_of_one_file_that_claim_one_identity_are_all_quarantined(world: World) -> None:
    row = settled(1, "1.00")
    other = {**settled(1, "2.00"), "Merchant Reference": "REF2"}
    report = world.reconcile(
        world.adyen(row, other, settled(3, "3.00"), settled(4, "4.00"), settled(4, "4.00"))
    )
    assert (report.entries_new, report.quarantined) == (2, 2)
    lines = world.rows("select line_no from duebook.quarantined_row order by 1")
    assert [r["line_no"] for r in lines] == [2, 3]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"Name,Price\nx,1\n", "column 'Psp Reference' is missing"),
        ((",".join(ADYEN_HEADER) + "\ncaf\xe9\n").encode("latin-1"), "line 2: not UTF-8"),
    ],
)
def test_a_file_that_can_not_be_read_applies_nothing(
    world: World, content: bytes, said: str
) -> None:
    good = world.adyen(settled(1, "1.00"))
    with pytest.raises(InputError, match=said):
        world.reconcile(good, world.text(content))
    assert world.value("select count(*) from duebook.settlement_file") == 0


def test_a_header_alone_is_a_night_without_settlements(world: World) -> None:
    report = world.reconcile(world.adyen())
    assert (report.entries_new, report.quarantined, report.exit_code) == (0, 0, 0)
    assert world.value("select row_count from duebook.settlement_file") == 0


def test_a_truncated_file_gives_its_whole_rows(world: World) -> None:
    content = world.adyen(*(settled(n, "1.00") for n in range(5))).read_bytes()
    report = world.reconcile(world.text(content[: content.rindex(b"Settled")]))
    assert (report.entries_new, report.quarantined) == (4, 1)


def test_the_same_file_twice_in_one_run_counts_once_as_new(world: World) -> None:
    file = world.adyen(settled(1, "1.00"))
    report = world.reconcile(file, file)
    assert (report.entries_new, report.entries_unchanged) == (1, 1)


def test_nothing_personal_is_kept_in_a_body(world: World) -> None:
    world.reconcile(shared_file("adyen", "wmf_emptynetcredit.csv"))
    assert "@" not in str(world.value("select body from duebook.settlement_entry_version"))
    assert (
        world.value("select body ->> 'scheme_fees' from duebook.settlement_entry_version") == "0.04"
    )


def test_files_of_the_folder_are_taken_once(world: World) -> None:
    folder = world.folder / "inbox"
    folder.mkdir()
    world.configure(
        provider_accounts={
            "adyen": {
                **world.config.provider_accounts["adyen"].model_dump(),
                "folder": str(folder),
            }
        }
    )
    world.adyen(settled(1, "1.00")).rename(folder / "a.csv")
    assert world.reconcile().entries_new == 1
    world.adyen(settled(2, "1.00")).rename(folder / "b.csv")
    report = world.reconcile()
    assert (report.entries_new, report.entries_unchanged) == (1, 1)


def test_a_folder_that_is_not_there_is_no_night_without_settlements(world: World) -> None:
    world.configure(
        provider_accounts={
            "adyen": {
                **world.config.provider_accounts["adyen"].model_dump(),
                "folder": "/nowhere/at/all",
            }
        }
    )
    with pytest.raises(UnavailableError, match="its folder /nowhere/at/all is not there"):
        world.reconcile()


# ---- a mapped CSV -----------------------------------------------------------------------------


def test_paypal_s_activity_download_is_read_by_its_mapping(world: World) -> None:
    report = world.reconcile(shared_file("paypal", "oca_activity_en.csv"), account="paypal")
    assert (report.entries_new, report.quarantined) == (76, 0)
    rows = world.rows(
        "select entry_type, gross_minor, fee_minor, net_minor, currency, occurred_at"
        " from duebook.settlement_entry where provider_payment_ref = 'TID4'"
    )
    assert rows == [
        {
            "entry_type": "charge",
            "gross_minor": 165375,
            "fee_minor": 7307,
            "net_minor": 158068,
            "currency": "USD",
            "occurred_at": datetime(2016, 6, 9, 14, 19, 50, tzinfo=UTC),
        }
    ]
    assert (
        world.reconcile(
            shared_file("paypal", "oca_empty_activity.csv"), account="paypal"
        ).entries_new
        == 0
    )


def mapped(world: World, **columns: Any) -> None:
    """An account `bank` whose file has these columns."""
    world.configure(
        provider_accounts={
            "bank": {
                "provider": "csv",
                "mode": "dry_run",
                "settle_within": "P3D",
                "zone": "Europe/Madrid",
                "columns": {"entry_id": "Id", "currency": "Cur", "occurred_at": "Date", **columns},
                "types": {"sale": "charge", "out": "payout"},
                "statuses": {"done": "settled", "open": "pending", "gone": "ignored"},
            }
        }
    )


def test_decimal_commas_day_first_dates_and_debit_columns(world: World) -> None:
    mapped(
        world,
        debit="Debit",
        credit="Credit",
        decimal=",",
        thousands=".",
        dates="day_first",
        delimiter=";",
        type="Type",
    )
    file = world.text(
        "Id;Type;Debit;Credit;Cur;Date\n1;sale;;1.300,05;EUR;1/4/2026\n2;sale;-50,00;;EUR;02/04/2026\n"
    )
    report = world.reconcile(file, account="bank")
    assert report.quarantined == 0
    rows = world.rows(
        "select gross_minor, occurred_at from duebook.settlement_entry order by line_no"
    )
    assert [row["gross_minor"] for row in rows] == [130005, -5000]
    assert rows[0]["occurred_at"] == datetime(2026, 3, 31, 22, tzinfo=UTC)


def test_statuses_pend_settle_and_are_ignored(world: World) -> None:
    mapped(world, amount="Amount", status="State", type="Type", payment_ref="Ref")
    head = "Id,Type,Amount,Cur,Date,State,Ref\n"
    world.book(booked(1, 1000, provider_account="bank"))
    first = world.reconcile(
        world.text(
            head + "1,sale,10.00,EUR,2026-04-01,open,REF1\n2,sale,x,EUR,2026-04-01,gone,\n"
            "3,sale,1.00,EUR,2026-04-01,odd,\n"
        ),
        account="bank",
    )
    assert (first.entries_new, first.quarantined, first.ledger_changes, first.pending) == (
        1,
        1,
        0,
        1,
    )
    second = world.reconcile(
        world.text(head + "1,sale,10.00,EUR,2026-04-01,done,REF1\n"), account="bank"
    )
    assert (second.entries_changed, second.ledger_changes, second.matched) == (1, 1, 1)
    [row] = world.rows("select column_name, value from duebook.quarantined_row")
    assert row == {"column_name": "State", "value": "odd"}


def test_a_source_that_dates_its_rows_orders_them(world: World) -> None:
    mapped(world, amount="Amount", updated_at="Updated", type="Type")
    head = "Id,Type,Amount,Cur,Date,Updated\n"
    world.reconcile(
        world.text(head + "1,sale,9.00,EUR,2026-04-01,2026-04-03 10:00:00\n"), account="bank"
    )
    late = world.reconcile(
        world.text(head + "1,sale,10.00,EUR,2026-04-01,2026-04-02 10:00:00\n"), account="bank"
    )
    assert late.entries_stale == 1
    assert world.value("select gross_minor from duebook.settlement_entry") == 900


def test_a_mapped_batch_is_open_until_its_payout(world: World) -> None:
    mapped(world, amount="Amount", type="Type", batch_ref="Payout")
    head = "Id,Type,Amount,Cur,Date,Payout\n"
    sale = "1,sale,10.00,EUR,2026-04-01,p1\n"
    first = world.reconcile(world.text(head + sale), account="bank")
    assert [batch.status for batch in first.batches] == ["open"]
    second = world.reconcile(
        world.text(head + sale + "2,out,-10.00,EUR,2026-04-02,p1\n"), account="bank"
    )
    assert [batch.status for batch in second.batches] == ["closed"]


def test_a_row_left_out_as_unchanged_still_counts_beside_another(world: World) -> None:
    mapped(world, amount="Amount", type="Type")
    head = "Id,Type,Amount,Cur,Date\n"
    row = "1,sale,10.00,EUR,2026-04-01\n"
    world.reconcile(world.text(head + row), account="bank")
    same = world.reconcile(world.text(head + row.replace("10", "9") + row), account="bank")
    assert (same.entries_new, same.entries_changed) == (0, 0)
    other = world.reconcile(world.text(head + row + row.replace("10", "9")), account="bank")
    assert other.entries_changed == 1
    assert world.value("select gross_minor from duebook.settlement_entry") == 900


def test_the_same_text_means_something_else_under_another_configuration(world: World) -> None:
    mapped(world, amount="Amount", type="Type")
    row = "Id,Type,Amount,Cur,Date\n1,hold,10.00,EUR,2026-04-01\n"
    world.reconcile(world.text(row), account="bank")
    assert world.value("select entry_type from duebook.settlement_entry") == "other"
    account = world.config.provider_accounts["bank"].model_dump(by_alias=True)
    world.configure(provider_accounts={"bank": {**account, "types": {"hold": "reserve"}}})
    report = world.reconcile(world.text(row + "\n"), account="bank")
    assert report.entries_changed == 1
    assert world.value("select entry_type from duebook.settlement_entry") == "reserve"
