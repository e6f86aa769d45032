"""What is particular to the payouts of GoCardless, Square and Braintree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from duebook.errors import InputError
from duebook.services.imports import import_ledger
from duebook.settlements import braintree, gocardless, json_answers, square
from duebook.settlements.delimited import BrokenRow, DataRow, ScannedFile
from duebook.settlements.generator_payouts import PayoutForm, generate_payout
from tests.settlement_files import World, make_world

PAYOUT = {"id": "PO1", "amount": 979, "currency": "GBP", "created_at": "2026-03-02T09:30:00.000Z"}


def item(amount: str, kind: str, payment: str = "PM1", **links: str) -> dict[str, Any]:
    return {"amount": amount, "type": kind, "links": {"payment": payment, **links}}


def write(folder: Path, *answers: Any) -> Path:
    path = folder / "answers.json"
    lines = [each if isinstance(each, str) else json.dumps(each) for each in answers]
    path.write_text("\n".join(lines) + "\n")
    return path


def rows(file: ScannedFile) -> list[dict[str, str | None] | str]:
    """The cells of each row, or why it is broken."""
    assert file.read is not None
    return [
        row.reason
        if isinstance(row, BrokenRow)
        else {name: cell for name, cell in zip(file.fields, row.cells, strict=True) if cell}
        for row in file.read(file)
    ]


def items(folder: Path, *answers: Any) -> list[Any]:
    return rows(gocardless.scan_items(write(folder, *answers)))


def test_gocardless_parts_of_a_penny_stand_in_one_row_by_which_the_payout_closes(
    tmp_path: Path,
) -> None:
    page = {
        "payout_items": [
            item("1000.0", "payment_paid_out"),
            item("-10.5", "gocardless_fee"),
            item("-10.9", "app_fee"),
        ]
    }
    payout, charge, fee, app_fee, rounding = items(tmp_path, {"payouts": PAYOUT}, page)
    assert (payout["type"], payout["gross"]) == ("payout", "-979")
    assert (charge["gross"], charge["payment_ref"], charge["batch_ref"]) == ("1000", "PM1", "PO1")
    assert charge["occurred_at"] == "2026-03-02T09:30:00.000Z"
    # 978.6 is paid as 979: two fees of 10, and one penny less of both together.
    assert (fee["gross"], fee["fee"], app_fee["fee"]) == ("0", "10", "10")
    assert (rounding["entry_id_1"], rounding["gross"]) == ("PO1:rounding", "-1")


def test_gocardless_order_of_items_does_not_change_what_each_is(tmp_path: Path) -> None:
    told = [item("1000.0", "payment_paid_out"), *(item(f"-{n}.5", "app_fee") for n in (1, 2, 3))]
    one = items(tmp_path, {"payouts": PAYOUT}, {"payout_items": told})
    two = items(tmp_path, {"payouts": PAYOUT}, {"payout_items": told[:2]}, *told[2:])
    assert one == two
    assert [row["entry_id_1"] for row in one[2:5]] == [
        "PO1:app_fee:PM1",
        "PO1:app_fee:PM1:2",
        "PO1:app_fee:PM1:3",
    ]


def test_gocardless_money_that_comes_back_has_the_sign_it_is_written_with(tmp_path: Path) -> None:
    told = [item("-5.0", kind) for kind in ("payment_failed", "payment_charged_back", "refund")]
    told.append(item("5.0", "refund_funds_returned", refund="RF1"))
    found = items(tmp_path, {"payouts": {**PAYOUT, "amount": -10}}, {"payout_items": told})[1:]
    assert [row["gross"] for row in found] == ["-5", "-5", "-5", "5"]
    assert found[3]["entry_id_1"] == "PO1:refund_funds_returned:RF1"
    assert [gocardless.TYPES[row["type"]] for row in found] == ["chargeback"] * 2 + ["refund"] * 2


def test_gocardless_items_of_no_known_payout_are_set_aside(tmp_path: Path) -> None:
    page = {"payout_items": [item("1.0", "payment_paid_out")]}
    nameless = "an item whose payout is not named before it"
    assert items(tmp_path, page) == [nameless]
    several = {"payouts": [PAYOUT, {**PAYOUT, "id": "PO2"}]}
    assert items(tmp_path, several, page)[2:] == [nameless]


def test_gocardless_sign_tells_which_way_an_exported_payment_went(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text(
        "resources.type,resources.status,gross_amount,net_amount,currency,payouts.id,"
        "payouts.arrival_date,payments.id\n"
        "payment,charged_back,10.00,9.80,GBP,PO1,2026-03-02,PM1\n"
        "payment,charged_back,-10.00,-9.80,GBP,PO2,2026-03-05,PM1\n"
    )
    paid, taken = rows(gocardless.scan_export(path))
    assert isinstance(paid, dict)
    assert isinstance(taken, dict)
    assert (paid["type"], taken["type"]) == ("payment", "payment (debit)")
    assert gocardless.TYPES["payment (debit)"] == "chargeback"
    assert paid["entry_id_1"] != taken["entry_id_1"]


def entry(gross: int | None, fee: int, net: int, **others: Any) -> dict[str, Any]:
    money = {"gross": gross, "fee": fee, "net": net}
    return {
        "id": "poe_1",
        "payout_id": "po_1",
        "effective_at": "2026-03-02T10:00:00Z",
        "type": "CHARGE",
        "type_charge_details": {"payment_id": "PAY1"},
        **{
            f"{name}_amount_money": {"amount": amount, "currency": "USD"}
            for name, amount in money.items()
            if amount is not None
        },
        **others,
    }


def entries(folder: Path, *answers: Any) -> list[Any]:
    return rows(square.scan_entries(write(folder, *answers)))


def test_square_fee_is_a_cost_however_it_is_signed(tmp_path: Path) -> None:
    told = [entry(1000, 30, 970), entry(1000, -30, 970), entry(-1000, -30, -970)]
    found = entries(tmp_path, {"payout_entries": told})
    assert [row["fee"] for row in found] == ["30", "30", "-30"]
    assert {row["payment_ref"] for row in found} == {"PAY1"}


def test_square_row_that_does_not_add_up_is_no_amount(tmp_path: Path) -> None:
    (found,) = entries(tmp_path, entry(1000, 30, 980))
    assert found["fee"] == "30, although gross less net is 20"


def test_square_amount_with_decimals_is_left_to_be_refused(tmp_path: Path) -> None:
    (found,) = entries(tmp_path, '{"payout_id": "p", "gross_amount_money": {"amount": 10.50}}')
    assert found["gross"] == "10.50"


def test_braintree_credit_goes_out_signed_or_not(tmp_path: Path) -> None:
    path = tmp_path / "report.csv"
    head = (
        "Merchant Account Token,Transaction ID,Transaction Type,Settlement Currency,"
        "Settlement Amount,Settlement Date,Disbursement Date,Total Fee Amount\n"
    )
    path.write_text(
        f"{head}m,a,sale,USD,10.00,2026-03-02,2026-03-04,0.59\n"
        "m,b,credit,USD,10.00,2026-03-02,2026-03-04,0.00\n"
        "m,c,credit,USD,-10.00,2026-03-02,2026-03-04,0.00\n"
        "m,d,novel,USD,-10.00,2026-03-02,2026-03-04,0.00\n"
    )
    found = rows(braintree.scan_report(path, fee="Total Fee Amount"))
    assert [row["gross"] for row in found if isinstance(row, dict)] == [
        "10.00",
        "-10.00",
        "-10.00",
        "-10.00",
    ]
    assert isinstance(found[0], dict)
    assert found[0]["batch_ref"] == "2026-03-04:m"
    assert found[0]["provider_payment_ref"] == "a"


def test_a_line_that_was_cut_off_takes_no_other_with_it(tmp_path: Path) -> None:
    whole = json.dumps(entry(1000, 30, 970))
    found = entries(tmp_path, whole, whole[:60], whole, "", whole[:-1])
    assert [row if isinstance(row, str) else row["gross"] for row in found] == [
        "1000",
        "no JSON object",
        "1000",
        "no JSON object",
    ]


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_an_answer_may_stand_on_many_lines(tmp_path: Path, indent: int | None) -> None:
    note = 'a "{[" in \\ text'
    page = {"payout_entries": [entry(1000, 30, 970, note=note), entry(5, 0, 5)], "cursor": "next"}
    whole = json.dumps(page, indent=indent)
    assert len(entries(tmp_path, whole, whole)) == 4
    assert len(entries(tmp_path, json.dumps([page, page], indent=indent))) == 4
    compact = ["{", '"payout_entries": [', f"{json.dumps(entry(1000, 30, 970))}", "]}"]
    assert len(entries(tmp_path, *compact)) == 1


def test_an_answer_without_end_is_refused_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_answers, "LONGEST_ANSWER", 1000)
    whole = json.dumps({"payout_entries": [entry(1000, 30, 970)] * 9}, indent=1)
    with pytest.raises(InputError, match=r"answers\.json, line 1: one JSON value of over"):
        entries(tmp_path, whole)


def test_a_nul_in_json_is_kept_apart_from_the_database(tmp_path: Path) -> None:
    (found,) = entries(tmp_path, entry(1, 0, 1, id="a\0b"))
    assert found["id" if "id" in found else "entry_id_1"] == "a\ufffdb"


def test_rows_are_numbered_by_their_place(tmp_path: Path) -> None:
    file = square.scan_entries(write(tmp_path, {"payout_entries": [entry(1, 0, 1)] * 3}))
    assert file.read is not None
    made = list(file.read(file))
    assert [row.line_no for row in made if isinstance(row, DataRow)] == [1, 2, 3]


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> World:
    return make_world(database_url, tmp_path)


@pytest.mark.parametrize("form", ["gocardless_json", "square_json"])
def test_a_payout_closes_to_zero_and_its_payments_match(form: PayoutForm, world: World) -> None:
    provider = form.partition("_")[0]
    settings = {"provider": provider, "mode": "dry_run", "settle_within": "P3D", "zone": "UTC"}
    world.configure(provider_accounts={provider: settings})
    made = generate_payout(11, 700, 4, world.folder, form)
    import_ledger(world.connect, made.ledger_path, world.config)
    report = world.reconcile(made.path, account=provider)
    (batch,) = report.batches
    assert (batch.status, batch.difference_minor) == ("closed", 0)
    assert batch.payout_minor == -made.payout_minor
    assert (report.quarantined, dict(report.discrepancies)) == (0, {})
    assert report.matched == made.charges == 700
    assert (
        world.value("select sum(captured_minor)::bigint from duebook.settled_position")
        == made.charged_minor
    )


def test_the_same_seed_writes_the_same_payout(tmp_path: Path) -> None:
    forms: tuple[PayoutForm, ...] = ("gocardless_json", "gocardless_csv", "square_json")
    for form in (*forms, "braintree_flat", "braintree_icplus"):
        one, two, other = (
            generate_payout(seed, 20, 1, tmp_path / str(at), form).path.read_bytes()
            for at, seed in enumerate((1, 1, 2))
        )
        assert one == two
        assert one != other
