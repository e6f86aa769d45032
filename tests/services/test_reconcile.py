"""One run: evidence in, differences out, and nothing told twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from duebook.domain.keys import EvidenceKey, TransitionKey
from duebook.errors import InputError, RefusedError
from tests.settlement_files import World, adyen_row, booked, settled, shared_file

LIVE_SINCE = "select notify_from from duebook.provider_account where provider_account = 'adyen'"


def test_batch_380_closes_at_zero_and_a_second_run_changes_nothing(world: World) -> None:
    path = shared_file("adyen", "settlement_detail_report_batch_380.csv")
    report = world.reconcile(path)
    assert report.entries_new == 228
    nets = world.rows(
        "select provider_type, sum(net_minor)::bigint as net"
        " from duebook_reports.settlement_entries where is_current group by provider_type"
    )
    assert {row["provider_type"]: row["net"] for row in nets} == {
        "Settled": 5643852,
        "Refunded": -109235,
        "Fee": -3810,
        "MerchantPayout": -5530807,
    }
    assert [(b.batch_ref, b.currency, b.difference_minor, b.status) for b in report.batches] == [
        ("380", "USD", 0, "closed")
    ]
    assert report.batches[0].sum_minor == 5530807
    again = world.reconcile(path)
    assert (again.entries_new, again.entries_changed, again.intents) == (0, 0, 0)
    assert (again.entries_unchanged, again.ledger_changes) == (228, 0)
    assert again.batches == report.batches


def test_both_balance_transfers_of_batch_238_are_kept(world: World) -> None:
    report = world.reconcile(shared_file("adyen", "settlement_detail_report_batch_238.csv"))
    assert (report.entries_new, report.quarantined) == (3, 0)
    assert report.batches[0].difference_minor == 0
    assert report.batches[0].status == "carried"
    assert report.exit_code == 0
    types = world.rows("select provider_type, net_minor from duebook.settlement_entry order by 2")
    assert [tuple(row.values()) for row in types] == [
        ("Balancetransfer", -45433190),
        ("Fee", -9),
        ("Balancetransfer", 45433199),
    ]


def test_batch_100_is_read_past_its_blank_lines(world: World) -> None:
    report = world.reconcile(shared_file("adyen", "settlement_detail_report_batch_100.csv"))
    assert (report.entries_new, report.quarantined) == (3, 0)
    assert report.batches[0].difference_minor == 0
    lines = world.rows("select line_no from duebook.settlement_entry order by line_no")
    assert [row["line_no"] for row in lines] == [4, 6, 7]


def test_the_ragged_row_of_batch_666_is_quarantined_and_its_amount_is_missed(world: World) -> None:
    report = world.reconcile(shared_file("adyen", "settlement_detail_report_batch_666.csv"))
    assert (report.entries_new, report.quarantined) == (2, 1)
    assert (report.batches[0].difference_minor, report.batches[0].status) == (9, "not_closed")
    assert report.discrepancies == {"unexplained_remainder": 1}
    assert report.exit_code == 1
    [row] = world.rows("select line_no, reason from duebook.quarantined_row")
    assert row == {"line_no": 3, "reason": "15 cells of 30"}


def test_a_payment_matches_and_its_settlement_is_told_once(world: World) -> None:
    world.go_live()
    world.book(booked(1, 1000))
    file = world.adyen(settled(1, "10.00", fee="0.30"))
    report = world.reconcile(file)
    assert (report.matched, report.ledger_changes, report.intents) == (1, 1, 1)
    assert report.discrepancies == {"unexplained_remainder": 1}
    [intent] = world.rows("select * from duebook.intent")
    assert intent["operation_key"] == str(
        EvidenceKey("payment_settled", "email", "adyen", "pay1", "PSP1:settled:Settled of PSP1", 1)
    )
    assert intent["ownership"] == "live"
    assert world.value("select count(*) from duebook.due") == 1
    assert world.reconcile(file).intents == 0
    assert world.value("select count(*) from duebook.intent") == 1


def test_keys_made_in_sql_are_the_published_ones(world: World) -> None:
    world.book(booked(1, 1000, expected_at="2026-03-02T23:30:00Z"))
    world.reconcile()
    key = TransitionKey(
        "missing", "email", "adyen", "pay1", datetime(2026, 3, 2, tzinfo=UTC).date(), 1
    )
    assert world.value("select operation_key from duebook.intent") == str(key)


@pytest.mark.parametrize("part", ["a:b", "50%", "%3A:%25", "é:ü"])
def test_parts_of_keys_are_escaped_alike(world: World, part: str) -> None:
    from duebook.domain.keys import escape

    assert world.value("select duebook.key_part(%s)", part) == escape("part", part)


def test_proposals_are_not_due(world: World) -> None:
    world.book(booked(1, 1000))
    world.reconcile(world.adyen(settled(1, "10.00")))
    assert world.value("select count(*) from duebook.due") == 0
    assert world.value("select count(*) from duebook.proposed") == 1


def test_history_older_than_notify_from_tells_nobody(world: World) -> None:
    world.go_live("2026-03-01T12:00:00Z")
    world.book(*(booked(n, 1000 + n) for n in range(200)))
    report = world.reconcile(
        world.adyen(*(settled(n, f"{(1000 + n) / 100:.2f}") for n in range(200)))
    )
    assert (report.matched, report.ledger_changes, report.intents) == (200, 200, 0)


def test_going_live_without_notify_from_takes_the_clock(world: World) -> None:
    before = world.value("select clock_timestamp()")
    world.configure(
        provider_accounts={
            "adyen": {
                "provider": "adyen",
                "mode": "live",
                "settle_within": "P3D",
                "zone": "Europe/Amsterdam",
            }
        }
    )
    first = world.value(LIVE_SINCE)
    assert first > before
    world.configure()
    assert world.value(LIVE_SINCE) == first
    world.go_live("2026-01-01T00:00:00Z")
    assert world.value(LIVE_SINCE) == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_corrected_amount_is_a_new_version_and_the_old_ones_stay(world: World) -> None:
    world.book(booked(1, 10000))
    for amount in ("100.00", "90.00", "100.00"):
        world.reconcile(world.adyen(settled(1, amount)))
        # The same bytes again are the same file; a comment column makes it another.
    versions = world.rows(
        "select version, gross_minor, is_current from duebook_reports.settlement_entries order by 1"
    )
    assert [tuple(row.values()) for row in versions][:2] == [(1, 10000, False), (2, 9000, True)]


def test_100_90_100_is_three_versions_and_three_notices(world: World) -> None:
    world.go_live()
    world.book(booked(1, 10000))
    for number, amount in enumerate(("100.00", "90.00", "100.00")):
        world.reconcile(world.adyen(settled(1, amount, note=f"report {number}")))
    versions = world.rows(
        "select version, gross_minor, is_current from duebook_reports.settlement_entries order by 1"
    )
    assert [tuple(row.values()) for row in versions] == [
        (1, 10000, False),
        (2, 9000, False),
        (3, 10000, True),
    ]
    changes = world.rows(
        "select before_status, after_status from duebook.ledger_change order by change_id"
    )
    assert [tuple(row.values()) for row in changes] == [
        ("expected", "settled"),
        ("settled", "partially_settled"),
        ("partially_settled", "settled"),
    ]
    keys = world.rows("select operation_key from duebook.intent order by intent_id")
    assert [row["operation_key"][-2:] for row in keys] == ["v1", "v2", "v3"]
    # The two older ones were not sent: newer evidence ended them.
    outcomes = world.rows("select result, reason from duebook.outcome")
    assert [tuple(row.values()) for row in outcomes] == [("expired", "superseded")] * 2
    assert world.value("select count(*) from duebook.due") == 1


def test_what_an_older_source_says_is_stored_and_not_current(world: World) -> None:
    world.book(booked(1, 9000))
    world.reconcile(world.adyen(settled(1, "90.00", batch=7)))
    report = world.reconcile(world.adyen(settled(1, "100.00", batch=6)))
    assert (report.entries_stale, report.ledger_changes, report.intents) == (1, 0, 0)
    again = world.reconcile(world.adyen(settled(1, "100.00", batch=6, note="again")))
    assert again.entries_stale == 1
    versions = world.rows(
        "select version, gross_minor, is_current from duebook_reports.settlement_entries order by 1"
    )
    assert [tuple(row.values()) for row in versions] == [(1, 9000, True), (2, 10000, False)]
    newer = world.reconcile(world.adyen(settled(1, "95.00", batch=8)))
    assert newer.entries_changed == 1
    assert world.value("select version from duebook.settlement_entry") == 3


def test_two_files_of_one_run_keep_both_words(world: World) -> None:
    world.book(booked(1, 10000))
    report = world.reconcile(
        world.adyen(settled(1, "100.00", batch=1)), world.adyen(settled(1, "90.00", batch=2))
    )
    assert (report.entries_new, report.ledger_changes) == (1, 1)
    versions = world.rows(
        "select version, gross_minor, is_current from duebook_reports.settlement_entries order by 1"
    )
    assert [tuple(row.values()) for row in versions] == [(1, 10000, False), (2, 9000, True)]


def test_a_refund_lowers_no_match_and_is_its_own_kind(world: World) -> None:
    world.go_live()
    world.book(booked(1, 1000, status="paid"))
    report = world.reconcile(
        world.adyen(
            settled(1, "10.00"),
            adyen_row("Refunded", "-4.00", psp="PSP1", reference="REF1", modification="m1"),
            adyen_row("Refunded", "-3.00", psp="PSP1", reference="REF1", modification="m2"),
        )
    )
    assert (report.matched, report.ledger_changes) == (1, 1)
    [change] = world.rows("select * from duebook.ledger_change")
    assert (change["after_captured_minor"], change["after_refunded_minor"]) == (1000, 700)
    assert change["after_status"] == "partially_refunded"
    kinds = world.rows("select kind from duebook.intent order by kind")
    assert [row["kind"] for row in kinds] == ["payment_refunded", "payment_settled"]


def test_a_chargeback_is_told_and_contradicts_paid(world: World) -> None:
    world.go_live()
    world.book(booked(1, 1000))
    world.reconcile(world.adyen(settled(1, "10.00")))
    report = world.reconcile(
        world.adyen(
            adyen_row("Chargeback", "-10.00", psp="PSP1", reference="REF1", fee="7.50", batch=2)
        )
    )
    assert report.discrepancies["status_mismatch"] == 1
    assert world.value("select kind from duebook.intent order by intent_id desc limit 1") == (
        "payment_disputed"
    )
    world.book(booked(1, 1000, status="disputed"))
    assert "status_mismatch" not in world.reconcile().discrepancies
    reversed_report = world.reconcile(
        world.adyen(adyen_row("ChargebackReversed", "10.00", psp="PSP1", reference="REF1", batch=3))
    )
    assert reversed_report.ledger_changes == 1
    assert reversed_report.discrepancies["status_mismatch"] == 1


def test_pending_then_missing_then_cleared(world: World) -> None:
    world.configure(
        kinds={
            "payment_cleared": {
                **world.config.kinds["payment_cleared"].model_dump(),
                "enabled": True,
            }
        }
    )
    world.go_live()
    world.book(booked(1, 1000, expected_at="2026-03-02"))
    inside = datetime(2026, 3, 4, tzinfo=UTC)
    report = world.reconcile(as_of=inside)
    assert (report.pending, report.discrepancies, report.intents) == (1, {}, 0)
    assert report.exit_code == 0
    late = world.reconcile(as_of=inside + timedelta(days=2))
    assert (late.pending, late.discrepancies, late.intents) == (0, {"missing_at_provider": 1}, 1)
    assert world.reconcile(as_of=inside + timedelta(days=3)).intents == 0
    came = world.reconcile(world.adyen(settled(1, "10.00")), as_of=inside + timedelta(days=4))
    assert came.discrepancies == {"unexplained_remainder": 1}
    kinds = world.rows("select kind, operation_key from duebook.intent order by kind")
    assert [row["kind"] for row in kinds] == [
        "payment_cleared",
        "payment_missing",
        "payment_settled",
    ]
    # The alarm was still waiting: what came after ended it.
    [outcome] = world.rows("select kind, reason from duebook.outcome")
    assert outcome == {"kind": "payment_missing", "reason": "superseded"}


def test_less_than_expected_is_pending_inside_the_promise_and_a_mismatch_after(
    world: World,
) -> None:
    world.book(booked(1, 1000, expected_at="2026-03-02"))
    inside = datetime(2026, 3, 3, tzinfo=UTC)
    report = world.reconcile(world.adyen(settled(1, "4.00")), as_of=inside)
    assert report.pending == 1
    late = world.reconcile(as_of=inside + timedelta(days=5))
    assert late.discrepancies["amount_mismatch"] == 1
    [row] = world.rows("select * from duebook_reports.discrepancies where kind = 'amount_mismatch'")
    assert (row["provider_minor"], row["ledger_minor"]) == (400, 1000)
    assert (str(row["provider_amount"]), str(row["ledger_amount"])) == ("4.00", "10.00")


def test_another_currency_is_said_and_never_added(world: World) -> None:
    world.book(booked(1, 1000, currency="EUR"))
    report = world.reconcile(world.adyen(settled(1, "11.00", currency="USD")))
    assert report.discrepancies["currency_mismatch"] == 1
    assert "amount_mismatch" not in report.discrepancies
    assert report.matched == 0


def test_a_cancelled_payment_that_was_captured_is_said(world: World) -> None:
    world.book(
        booked(1, 1000, void="true"), booked(2, 1000, status="cancelled"), booked(3, 5, void="1")
    )
    report = world.reconcile(world.adyen(settled(1, "10.00"), settled(2, "10.00")))
    assert report.discrepancies["status_mismatch"] == 2
    assert (report.matched, report.pending) == (0, 0)
    assert "missing_at_provider" not in report.discrepancies


def test_an_entry_of_nobody_waits_and_is_told_once_its_payment_is_booked(world: World) -> None:
    world.go_live()
    first = world.reconcile(world.adyen(settled(1, "10.00")))
    assert (first.intents, first.discrepancies["missing_in_ledger"]) == (0, 1)
    world.book(booked(1, 1000))
    second = world.reconcile()
    assert (second.ledger_changes, second.intents) == (1, 1)
    assert "missing_in_ledger" not in second.discrepancies
    assert world.reconcile().intents == 0


def test_two_booked_payments_with_one_reference_are_not_picked_from(world: World) -> None:
    world.book(booked(1, 1000, reference="R"), booked(2, 1000, reference="R"))
    report = world.reconcile(world.adyen(adyen_row("Settled", "10.00", psp="P", reference="R")))
    assert report.discrepancies == {"duplicate_reference": 1, "unexplained_remainder": 1}
    assert world.value("select count(*) from duebook.settled_position") == 0
    world.book(booked(2, 1000, reference="R2"))
    settled_now = world.reconcile()
    assert settled_now.matched == 1
    changes = world.rows("select payment_id, change_kind from duebook.ledger_change order by 1")
    assert [tuple(row.values()) for row in changes] == [("pay1", "balance"), ("pay2", "missing")]
    assert "duplicate_reference" not in settled_now.discrepancies


def test_a_payment_routed_here_is_preferred(world: World) -> None:
    world.book(
        booked(1, 1000, reference="R", provider_account="stripe"),
        booked(2, 1000, reference="R", provider_account=""),
        booked(3, 1000, reference="R", provider_account="adyen"),
    )
    world.reconcile(world.adyen(adyen_row("Settled", "10.00", psp="P", reference="R")))
    assert world.value("select payment_id from duebook.settled_position") == "pay3"


def test_an_unrouted_payment_is_claimed_and_never_missing(world: World) -> None:
    world.book(booked(1, 1000, provider_account=""), booked(2, 1000, provider_account=""))
    report = world.reconcile(world.adyen(settled(1, "10.00")))
    assert report.matched == 1
    assert "missing_at_provider" not in report.discrepancies


def test_a_moved_reference_is_audited_and_told_to_nobody_again(world: World) -> None:
    world.go_live()
    world.book(booked(1, 1000, reference="R"))
    world.reconcile(world.adyen(adyen_row("Settled", "10.00", psp="P", reference="R")))
    world.book(booked(1, 1000, reference="R1"), booked(2, 1000, reference="R", account="other"))
    report = world.reconcile()
    assert (report.ledger_changes, report.intents) == (3, 1)  # both sides, and pay1 is missing now
    told = world.rows("select account_id, kind from duebook.intent order by intent_id")
    assert [row["kind"] for row in told] == ["payment_settled", "payment_missing"]
    [event] = world.rows("select * from duebook.audit_event where action = 'reassign_entry'")
    assert event["detail"]["to_payment"] == "pay2"


def test_an_import_never_undoes_evidence(world: World) -> None:
    world.book(booked(1, 1000))
    world.reconcile(world.adyen(settled(1, "10.00")))
    world.book(booked(1, 1200, status="open"))
    report = world.reconcile()
    assert (report.ledger_changes, report.intents) == (0, 0)
    assert report.discrepancies["amount_mismatch"] == 1
    assert world.value("select captured_minor from duebook.settled_position") == 1000


def test_an_older_as_of_is_refused_but_for_a_dry_run(world: World) -> None:
    world.book(booked(1, 1000))
    newer, older = datetime(2026, 3, 10, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC)
    world.reconcile(as_of=newer)
    with pytest.raises(RefusedError, match="older than the last full run"):
        world.reconcile(as_of=older)
    assert world.reconcile(as_of=older, dry_run=True).pending == 1
    assert world.reconcile(as_of=older, scope="payments").pending == 0
    assert world.value("select last_full_as_of from duebook.provider_account") == newer


def test_an_as_of_over_a_year_ahead_is_refused_and_later_nights_go_on(world: World) -> None:
    clock = world.value("select clock_timestamp()")
    with pytest.raises(RefusedError, match="over a year ahead"):
        world.reconcile(as_of=clock + timedelta(days=400))
    assert world.reconcile(as_of=clock + timedelta(days=400), dry_run=True).run_id is None
    assert world.reconcile().as_of < clock + timedelta(days=1)


def test_a_dry_run_shows_all_and_writes_nothing(world: World) -> None:
    world.book(booked(1, 1000))
    tables = world.rows(
        "select schemaname || '.' || relname as name from pg_stat_user_tables"
        " where schemaname = 'duebook'"
    )

    def counts() -> dict[str, int]:
        return {row["name"]: world.value(f"select count(*) from {row['name']}") for row in tables}

    before = counts()
    report = world.reconcile(world.adyen(settled(1, "10.00")), dry_run=True)
    assert (report.run_id, report.matched, report.intents) == (None, 1, 1)
    assert counts() == before
    assert before["duebook.provider_account"] == 0


def test_discrepancies_close_and_reopen(world: World) -> None:
    world.book(booked(1, 1000))
    world.reconcile(world.adyen(settled(1, "9.00")))
    world.reconcile(world.adyen(settled(1, "10.00", note="2")))
    [row] = world.rows("select * from duebook.discrepancy where kind = 'amount_mismatch'")
    assert (row["status"], row["times_opened"]) == ("closed", 1)
    world.reconcile(world.adyen(settled(1, "9.00", note="3")))
    [row] = world.rows("select * from duebook.discrepancy where kind = 'amount_mismatch'")
    assert (row["status"], row["times_opened"], row["closed_at"]) == ("open", 2, None)


def test_a_second_run_writes_no_discrepancy_again(world: World) -> None:
    world.book(booked(1, 1000), booked(2, 1000))
    world.reconcile(world.adyen(settled(1, "9.00"), settled(3, "1.00")))
    before = world.rows("select xmin::text, subject from duebook.discrepancy order by subject")
    world.reconcile()
    assert before == world.rows(
        "select xmin::text, subject from duebook.discrepancy order by subject"
    )


def test_partial_capture_reversals_lower_what_was_captured(world: World) -> None:
    world.book(booked(1, 6000))
    report = world.reconcile(
        world.adyen(
            settled(1, "100.00"),
            adyen_row("SettledReversed", "-40.00", psp="PSP1", reference="REF1"),
        )
    )
    assert (report.matched, report.ledger_changes) == (1, 1)


def test_an_unknown_account_is_one_clear_line(world: World) -> None:
    with pytest.raises(InputError, match="unknown provider account adyne; duebook"):
        world.reconcile(account="adyne")


def test_sums_that_floats_get_wrong_match(world: World) -> None:
    world.book(booked(1, 50622))
    report = world.reconcile(
        world.adyen(settled(1, "324.71"), settled(1, "181.51", modification="second capture"))
    )
    assert report.matched == 1
    world.book(booked(2, 255768))
    assert world.reconcile(world.adyen(settled(2, "2557.68"))).matched == 2


def test_a_batch_split_in_two_files_closes_with_the_second(world: World) -> None:
    first = world.reconcile(world.adyen(settled(1, "10.00"), settled(2, "5.00")))
    assert first.batches[0].status == "not_closed"
    second = world.reconcile(world.adyen(adyen_row("MerchantPayout", "-15.00")))
    assert second.batches[0].status == "closed"
    assert "unexplained_remainder" not in second.discrepancies


def test_two_net_currencies_of_a_batch_close_apart(world: World) -> None:
    payout = "TX1 batch 1"
    report = world.reconcile(
        world.adyen(
            settled(1, "10.00"),
            settled(2, "7.00", currency="USD"),
            adyen_row("MerchantPayout", "-10.00", modification=payout),
            adyen_row("MerchantPayout", "-7.00", currency="USD", modification=payout),
        )
    )
    assert report.entries_new == 4
    assert [(b.currency, b.status) for b in report.batches] == [
        ("EUR", "closed"),
        ("USD", "closed"),
    ]
