"""The story of what the real services wrote: two nights of one account, told as they happened."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.config import Config, ProviderAccountConfig, parse_config
from duebook.db.connect import connect_url
from duebook.services.apply import apply_config
from duebook.services.explain import explain
from duebook.services.imports import import_contacts, import_ledger
from duebook.services.reconcile import ReconcileRequest, reconcile
from duebook.services.status import status
from duebook.services.story import Match
from duebook.settlements.base import ApiSource

Connect = Callable[[], psycopg.Connection[Any]]

HEADER = "id,kind,amount,currency,reference,at"


def config_of(mode: str) -> Config:
    policy = {
        "enabled": True,
        "channel": "email",
        "notify_after": "P7D",
        "give_up_after": "P7D",
        "supersedes": True,
        "catch_up": "all",
        "catch_up_window": "P3D",
        "max_occurrences": 10,
        "spread_per_minute": 60,
        "max_tries": 8,
        "max_claims": 5,
    }
    account = {
        "provider": "csv",
        "mode": mode,
        "notify_from": "2026-01-01T00:00:00Z",
        "settle_within": "P3D",
        "zone": "UTC",
        "columns": {
            "entry_id": "id",
            "type": "kind",
            "amount": "amount",
            "currency": "currency",
            "payment_ref": "reference",
            "occurred_at": "at",
        },
        "types": {"sale": "charge", "back": "refund"},
    }
    return parse_config(
        {
            "provider_accounts": {"shop": account},
            "kinds": {"payment_settled": policy},
            "channels": {"email": {"connection": "smtp_default", "sender": "d@example.com"}},
            "quiet_hours": "none",
        },
        "duebook.toml",
    )


def no_api(name: str, block: ProviderAccountConfig) -> ApiSource:
    raise AssertionError(f"{name} is read from files, not from the API of {block.provider}")


class House:
    """One provider account with files; every act goes through the services."""

    def __init__(self, connect: Connect, folder: Path, mode: str) -> None:
        self.connect, self.folder, self.config = connect, folder, config_of(mode)
        apply_config(connect, self.config, by="pytest")

    def file(self, name: str, *lines: str) -> Path:
        path = self.folder / name
        path.write_text("\n".join(lines) + "\n")
        return path

    def book(self, *lines: str) -> None:
        header = "account_id,payment_id,reference,amount,currency,status,expected_at"
        import_ledger(self.connect, self.file("ledger.csv", header, *lines), self.config)

    def night(self, name: str, *lines: str) -> None:
        request = ReconcileRequest(
            account="shop", files=(self.file(name, HEADER, *lines),), as_of=None, dry_run=False
        )
        reconcile(self.connect, request, self.config, no_api)

    def story(self, subject: str) -> Match:
        (match,) = explain(self.connect, subject).matches
        return match


@pytest.fixture
def connect(database_url: str) -> Connect:
    return partial(connect_url, database_url, autocommit=True)


def codes(match: Match) -> list[str]:
    return [answer.code for answer in match.answers]


def test_two_nights_of_one_payment(connect: Connect, tmp_path: Path) -> None:
    house = House(connect, tmp_path, "live")
    house.book("acme,P1,R1,12345678.90,EUR,paid,2026-11-28T00:00:00Z")
    contacts = house.file(
        "contacts.csv", "account_id,channel,address,zone", "acme,email,a@example.com,UTC"
    )
    import_contacts(connect, contacts)
    house.night("night-1.csv", "e1,sale,12000000.00,EUR,R1,2026-11-28")
    match = house.story("P1")
    assert codes(match) == ["not_due_yet"]
    assert "7 d after the change" in match.answers[0].text
    assert [e.event for e in match.events][:4] == ["booked", "entry", "ledger_change", "intent"]

    house.night("night-2.csv", "e2,sale,345678.90,EUR,R1,2026-11-29")
    match = house.story("P1")
    assert codes(match) == ["superseded", "not_due_yet"]
    entries = [event.text for event in match.events if event.event == "entry"]
    assert "night-1.csv line 2, run 1" in entries[0]
    assert "night-2.csv line 2, run 2" in entries[1]
    changes = [event.text for event in match.events if event.event == "ledger_change"]
    assert "captured EUR 12,000,000.00 → EUR 12,345,678.90" in changes[1]
    assert status(connect, house.config).needs == ()


def test_the_same_file_again_changes_nothing(connect: Connect, tmp_path: Path) -> None:
    house = House(connect, tmp_path, "live")
    house.book("acme,P1,R1,50.00,EUR,paid,2026-11-28T00:00:00Z")
    for _ in range(2):
        house.night("night.csv", "e1,sale,50.00,EUR,R1,2026-11-28")
    assert codes(house.story("run:2")) == ["nothing_changed"]


def test_a_settlement_that_comes_before_its_payment(connect: Connect, tmp_path: Path) -> None:
    house = House(connect, tmp_path, "dry_run")
    house.night("night-1.csv", "e1,sale,50.00,EUR,R1,2026-11-28")
    assert codes(house.story("R1")) == ["suspense"]
    house.book("acme,P1,R1,50.00,EUR,paid,2026-11-28T00:00:00Z")
    assert "gives it to that payment" in house.story("P1").answers[0].text
    house.night("night-2.csv", "e2,sale,1.00,EUR,R9,2026-11-28")
    assert codes(house.story("P1")) == ["proposed"]


def test_two_payments_of_one_reference(connect: Connect, tmp_path: Path) -> None:
    house = House(connect, tmp_path, "live")
    house.book(
        "acme,P1,R1,50.00,EUR,paid,2026-11-28T00:00:00Z",
        "acme,P2,R1,50.00,EUR,paid,2026-11-28T00:00:00Z",
    )
    house.night("night.csv", "e1,sale,50.00,EUR,R1,2026-11-28")
    assert codes(house.story("P1")) == ["duplicate_reference"]
    assert codes(house.story("e1")) == ["duplicate_reference"]


def test_what_is_older_than_notify_from_and_what_no_kind_tells(
    connect: Connect, tmp_path: Path
) -> None:
    house = House(connect, tmp_path, "live")
    house.book(
        "acme,P1,R1,50.00,EUR,paid,2025-11-28T00:00:00Z",
        "acme,P2,R2,50.00,EUR,paid,2026-11-28T00:00:00Z",
    )
    house.night("night.csv", "e1,sale,50.00,EUR,R1,2025-11-28", "e2,back,-5.00,EUR,R2,2026-11-28")
    assert codes(house.story("P1")) == ["baseline"]
    assert codes(house.story("P2")) == ["kind_disabled"]
    assert sorted(codes(house.story("run:1"))) == ["baseline", "kind_disabled"]
