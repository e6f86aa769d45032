"""A provider that is read over its API: pending money, payouts, the cursor, broken pages."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duebook.errors import UnavailableError
from duebook.settlements.base import BatchFact, Cursor, RejectedRow, SettlementEntry
from tests.settlement_files import World, booked

NIGHT = datetime(2026, 3, 1, 2, tzinfo=UTC)


def transaction(name: str, gross: int, **others: Any) -> SettlementEntry:
    """One settled charge without a fee; its payment is known by `ch_<name>`."""
    values: dict[str, Any] = {
        "line_no": 1,
        "entry_id": f"txn_{name}",
        "entry_type": "charge",
        "provider_type": "charge",
        "batch_ref": None,
        "payment_ref": f"ch_{name}",
        "provider_payment_ref": f"ch_{name}",
        "gross_minor": gross,
        "fee_minor": 0,
        "net_minor": gross,
        "currency": "EUR",
        "net_currency": "EUR",
        "entry_status": "settled",
        "occurred_at": NIGHT,
        "available_at": NIGHT,
        "source_order": 0,
        "body": {"id": f"txn_{name}"},
    }
    return SettlementEntry(**{**values, **others})


@dataclasses.dataclass(slots=True)
class FakePull:
    """What one read of the fake gives."""

    entries: Iterator[SettlementEntry]
    rejects: Sequence[RejectedRow]
    batches: Sequence[BatchFact]
    cursor: Cursor


@dataclasses.dataclass(slots=True)
class FakeProvider:
    """An API whose next answer a test sets; it notes what it was asked."""

    entries: list[SettlementEntry] = dataclasses.field(default_factory=list)
    rejects: list[RejectedRow] = dataclasses.field(default_factory=list)
    batches: list[BatchFact] = dataclasses.field(default_factory=list)
    position: datetime = NIGHT
    breaks_after: int | None = None
    read_at: datetime | None = None
    asked: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def pull(
        self,
        *,
        cursor: Cursor | None,
        pending_ids: Sequence[str],
        open_batches: Sequence[str],
        look_back: timedelta,
        now: datetime,
    ) -> FakePull:
        self.asked.append(
            {
                "cursor": cursor,
                "pending": list(pending_ids),
                "open": list(open_batches),
                "look_back": look_back,
            }
        )
        order = int((self.read_at or now).timestamp() * 1_000_000)
        return FakePull(self._pages(order), self.rejects, self.batches, Cursor(self.position))

    def _pages(self, order: int) -> Iterator[SettlementEntry]:
        for number, entry in enumerate(self.entries, start=1):
            if self.breaks_after is not None and number > self.breaks_after:
                raise UnavailableError("the provider dropped the connection")
            yield dataclasses.replace(entry, line_no=number, source_order=order)


@pytest.fixture
def provider(world: World) -> FakeProvider:
    """The fake behind the account `stripe`."""
    fake = FakeProvider()
    world.source = lambda name, account: fake
    return fake


def test_pending_then_available_is_one_change(world: World, provider: FakeProvider) -> None:
    world.go_live("2020-01-01T00:00:00Z", "stripe")
    world.book(
        booked(1, 1000, reference="ch_a", provider_account="stripe", expected_at="2026-03-01")
    )
    provider.entries = [transaction("a", 1000, entry_status="pending")]
    first = world.reconcile(account="stripe")
    assert (first.entries_new, first.ledger_changes, first.pending) == (1, 0, 1)
    provider.entries = [transaction("a", 1000)]
    second = world.reconcile(account="stripe")
    assert (second.entries_changed, second.ledger_changes, second.intents) == (1, 1, 1)
    assert second.matched == 1
    assert provider.asked[1]["pending"] == ["txn_a"]
    assert world.reconcile(account="stripe").ledger_changes == 0
    assert provider.asked[2]["pending"] == []


def test_the_cursor_is_kept_and_given_back(world: World, provider: FakeProvider) -> None:
    world.reconcile(account="stripe")
    assert provider.asked[0]["cursor"] is None
    provider.position = NIGHT - timedelta(days=1)
    world.reconcile(account="stripe")
    assert provider.asked[1]["cursor"] == Cursor(NIGHT)
    assert provider.asked[1]["look_back"] == timedelta(minutes=10)
    world.reconcile(account="stripe")
    assert provider.asked[2]["cursor"] == Cursor(NIGHT)


def test_a_page_that_breaks_applies_nothing(world: World, provider: FakeProvider) -> None:
    provider.entries = [transaction(str(n), 100) for n in range(5)]
    provider.breaks_after = 3
    with pytest.raises(UnavailableError, match="dropped the connection"):
        world.reconcile(account="stripe")
    assert world.value("select count(*) from duebook.settlement_entry") == 0
    assert (
        world.value(
            "select cursor_position from duebook.provider_account where provider_account = 'stripe'"
        )
        is None
    )
    provider.breaks_after = None
    assert world.reconcile(account="stripe").entries_new == 5


def test_overlapping_pages_count_once_and_the_list_does_not_unset_the_payout(
    world: World, provider: FakeProvider
) -> None:
    world.book(booked(1, 1000, reference="ch_a", provider_account="stripe"))
    paid = transaction("a", 1000, batch_ref="po_1")
    payout = transaction(
        "p", -1000, entry_type="payout", payment_ref=None, batch_ref="po_1", provider_type="payout"
    )
    fact = BatchFact("po_1", "EUR", True, True, "paid", None)
    provider.entries = [paid, payout, transaction("a", 1000)]
    provider.batches = [fact]
    first = world.reconcile(account="stripe")
    assert (first.entries_new, first.entries_unchanged) == (2, 0)
    assert [(b.batch_ref, b.status) for b in first.batches] == [("po_1", "closed")]
    provider.entries, provider.batches = [transaction("a", 1000)], []
    second = world.reconcile(account="stripe")
    assert (second.entries_changed, second.entries_unchanged) == (0, 1)
    assert (
        world.value("select batch_ref from duebook.settlement_entry where payment_id = 'pay1'")
        == "po_1"
    )


def test_a_payout_is_open_until_its_rows_are_all_named(
    world: World, provider: FakeProvider
) -> None:
    payout = transaction("p", -1000, entry_type="payout", payment_ref=None, batch_ref="po_1")
    provider.entries = [payout]
    provider.batches = [BatchFact("po_1", "EUR", True, False, "in_transit", None)]
    first = world.reconcile(account="stripe")
    assert [(b.status, b.difference_minor) for b in first.batches] == [("open", -1000)]
    assert first.exit_code == 0
    provider.entries = [transaction("a", 990, batch_ref="po_1")]
    provider.batches = [BatchFact("po_1", "EUR", True, True, "paid", None)]
    second = world.reconcile(account="stripe")
    assert provider.asked[1]["open"] == ["po_1"]
    assert [(b.status, b.difference_minor) for b in second.batches] == [("not_closed", -10)]
    assert second.discrepancies["unexplained_remainder"] == 1


def test_a_manual_payout_can_not_be_itemised(world: World, provider: FakeProvider) -> None:
    payout = transaction("p", -1000, entry_type="payout", payment_ref=None, batch_ref="po_2")
    provider.entries = [payout]
    provider.batches = [BatchFact("po_2", "EUR", False, False, "paid", None)]
    report = world.reconcile(account="stripe")
    assert [b.status for b in report.batches] == ["not_itemisable"]
    assert "unexplained_remainder" not in report.discrepancies


def test_a_read_that_commits_late_is_older_than_what_was_confirmed_meanwhile(
    world: World, provider: FakeProvider
) -> None:
    world.book(booked(1, 1000, reference="ch_a", provider_account="stripe"))
    early = world.value("select clock_timestamp()") - timedelta(minutes=5)
    provider.entries, provider.read_at = [transaction("a", 1000)], early - timedelta(minutes=5)
    world.reconcile(account="stripe")
    provider.read_at = None
    world.reconcile(account="stripe")
    # Read between the two, committed after both: what it saw is older.
    provider.entries, provider.read_at = [transaction("a", 900)], early
    report = world.reconcile(account="stripe")
    assert (report.entries_stale, report.ledger_changes) == (1, 0)


def test_rows_that_the_api_can_not_say_are_kept_once(world: World, provider: FakeProvider) -> None:
    provider.rejects = [RejectedRow(1, "currency", "xts", "unknown currency", "an ISO 4217 code")]
    provider.entries = [transaction("a", 100), transaction("b", 100)]
    first = world.reconcile(account="stripe")
    assert (first.entries_new, first.quarantined) == (2, 1)
    world.reconcile(account="stripe")
    rows = world.rows("select file_name, line_no, value from duebook.quarantined_row")
    assert rows == [{"file_name": "api", "line_no": 1, "value": "xts"}]


def test_a_partial_capture_reversal_is_no_refund(world: World, provider: FakeProvider) -> None:
    world.book(booked(1, 6000, reference="ch_a", provider_account="stripe"))
    provider.entries = [
        transaction("a", 10000),
        transaction("r", -4000, payment_ref="ch_a", provider_type="partial_capture_reversal"),
    ]
    report = world.reconcile(account="stripe")
    assert (report.matched, report.ledger_changes) == (1, 1)
    assert world.value("select after_status from duebook.ledger_change") == "settled"
