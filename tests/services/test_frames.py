"""Reports as frames: every value as the view has it, money never a float."""

from __future__ import annotations

from decimal import Decimal

import pytest

from duebook.errors import InputError
from duebook.reports import read_report, report_names
from tests.settlement_files import World, booked, settled

# More than a float can hold: 2^53 + 1.
HUGE = "90071992547409.93"


def test_minor_units_stay_whole_and_major_units_exact_beside_nulls(world: World) -> None:
    world.book(booked(1, 9007199254740993))
    world.reconcile(world.adyen(settled(2, "1.00")), as_of=world.value("select clock_timestamp()"))
    frame = read_report(world.url, "discrepancies").set_index("kind")
    missing, unknown = frame.loc["missing_at_provider"], frame.loc["missing_in_ledger"]
    assert missing["ledger_minor"] == 9007199254740993
    assert missing["ledger_amount"] == Decimal(HUGE)
    assert unknown["provider_minor"] == 100
    assert frame["ledger_minor"].isna()["missing_in_ledger"]
    assert str(frame["ledger_minor"].dtype) == "Int64"
    assert "float" not in {str(kind) for kind in frame.dtypes}


def test_instants_know_their_zone_and_only_asked_columns_are_read(world: World) -> None:
    world.reconcile(world.adyen(settled(1, "1.00")))
    frame = read_report(world.url, "settlement_entries", ["entry_id", "occurred_at"])
    assert list(frame.columns) == ["entry_id", "occurred_at"]
    assert frame["occurred_at"].dt.tz is not None


def test_what_there_is_not_is_named(world: World) -> None:
    world.reconcile()
    assert {"discrepancies", "intents", "outcomes"} <= set(report_names(world.url))
    with pytest.raises(InputError, match="unknown report contact; there are catch_up_decisions"):
        read_report(world.url, "contact")
    with pytest.raises(InputError, match="has no column address"):
        read_report(world.url, "intents", ["address"])
