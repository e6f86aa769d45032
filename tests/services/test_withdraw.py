"""A wrong file is taken back: before or after its notices left, and a right one may follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from duebook.errors import InputError, RefusedError
from duebook.services.check import check
from duebook.services.withdraw import list_files, withdraw
from tests.settlement_files import World, booked, settled

ENTRY = "PSP1:settled:Settled of PSP1"


@pytest.fixture
def world(world: World) -> World:
    """Live: payment 1 settled with 10.00, then a file says 90.00, and payment 2 settles with it."""
    world.go_live()
    world.book(booked(1, 1000), booked(2, 500))
    world.reconcile(world.adyen(settled(1, "10.00"), name="right.csv"))
    world.reconcile(wrong_file(world))
    return world


def wrong_file(world: World) -> Path:
    return world.adyen(settled(1, "90.00", batch=2), settled(2, "5.00", batch=2), name="wrong.csv")


def take_back(world: World, *, dry_run: bool = False, file: str = "wrong.csv") -> dict[str, Any]:
    return withdraw(
        world.connect,
        world.config,
        "adyen",
        file,
        by="ann",
        reason="the provider sent a test file",
        dry_run=dry_run,
    )


def books(world: World) -> list[tuple[Any, ...]]:
    rows = world.rows(
        "select payment_id, captured_minor from duebook.settled_position order by payment_id"
    )
    return [tuple(row.values()) for row in rows]


def places(world: World) -> dict[str, int]:
    rows = world.rows("select state, count(*) as n from duebook_reports.intents group by 1")
    return {row["state"]: row["n"] for row in rows}


def test_before_its_notices_left_they_end_and_nobody_is_told(world: World) -> None:
    assert books(world) == [("pay1", 9000), ("pay2", 500)]
    before = places(world)
    done = take_back(world)
    assert done["entries"] == 2
    assert (done["notices_ended"], done["notices_sent"]) == (2, 0)
    assert books(world) == [("pay1", 1000)]
    # The first file's notice had given way to the wrong one's; nothing new is promised.
    assert sum(places(world).values()) == sum(before.values())
    assert places(world) == {"expired": 4}, "with the one that told that payment 2 was missing"
    reasons = world.rows("select distinct reason from duebook.outcome")
    assert [row["reason"] for row in reasons] == ["superseded"]


def test_what_it_would_do_is_shown_first_and_changes_nothing(world: World) -> None:
    before = (books(world), places(world))
    shown = take_back(world, dry_run=True)
    assert (books(world), places(world)) == before
    assert list_files(world.connect, "adyen")["files"][0]["withdrawn_at"] is None
    done = take_back(world)
    same = ("entries", "ledger_changes", "notices_ended", "notices_sent", "discrepancies")
    assert {name: shown[name] for name in same} == {name: done[name] for name in same}
    assert shown["run_id"] is None


def test_after_its_notices_left_they_are_named_and_the_keys_stay_ended(world: World) -> None:
    with world.connect() as conn:
        conn.execute(
            "with gone as (delete from duebook.due returning account_id, intent_id, due_at)"
            " insert into duebook.outcome (account_id, operation_key, intent_id, kind, payment_id,"
            " result, due_at) select i.account_id, i.operation_key, i.intent_id, i.kind,"
            " i.payment_id, 'sent', g.due_at from gone as g"
            " inner join duebook.intent as i using (account_id, intent_id)"
        )
    done = take_back(world)
    assert (done["notices_ended"], done["notices_sent"]) == (0, 2)
    assert done["sent_keys"] == [
        "payment_settled:email:adyen:pay1:PSP1%3Asettled%3ASettled of PSP1:v2",
        "payment_settled:email:adyen:pay2:PSP2%3Asettled%3ASettled of PSP2:v1",
    ]
    assert places(world)["sent"] == 2


def test_the_facts_stay_and_say_what_became_of_them(world: World) -> None:
    take_back(world)
    rows = world.rows(
        "select version, gross_minor, entry_status, is_current, source"
        " from duebook_reports.settlement_entries where entry_id = %s order by version",
        ENTRY,
    )
    assert [tuple(row.values()) for row in rows] == [
        (1, 1000, "settled", False, "right.csv"),
        (2, 9000, "settled", False, "wrong.csv"),
        (3, 1000, "settled", True, "withdrawal of wrong.csv"),
    ]
    [file] = [each for each in list_files(world.connect, "adyen")["files"] if each["withdrawn_at"]]
    assert (file["withdrawn_by"], file["withdrawn_because"]) == (
        "ann",
        "the provider sent a test file",
    )
    assert world.value("select actor from duebook.audit_event where action = 'withdraw_file'") == (
        "ann"
    )


def test_the_right_file_follows_and_the_same_bytes_may_come_again(world: World) -> None:
    take_back(world)
    report = world.reconcile(world.adyen(settled(2, "5.00", batch=2), name="corrected.csv"))
    assert books(world) == [("pay1", 1000), ("pay2", 500)]
    assert report.ledger_changes > 0
    again = world.reconcile(wrong_file(world))
    assert again.entries_changed == 1, "payment 2 is told as it is"
    assert books(world) == [("pay1", 9000), ("pay2", 500)]
    take_back(world)
    assert books(world) == [("pay1", 1000), ("pay2", 500)]


def test_a_batch_of_a_withdrawn_file_is_gone(world: World) -> None:
    assert world.value("select count(*) from duebook.settlement_batch where batch_ref = '2'") == 1
    take_back(world)
    rows = world.rows("select batch_ref, sum_minor from duebook.settlement_batch")
    assert [tuple(row.values()) for row in rows] == [("1", 1000)]


def test_a_batch_of_two_files_keeps_what_the_other_said(world: World) -> None:
    world.reconcile(world.adyen(settled(2, "5.00", batch=2), settled(3, "2.00", batch=2)))
    take_back(world)
    rows = world.rows("select batch_ref, sum_minor from duebook.settlement_batch order by 1")
    assert [tuple(row.values()) for row in rows] == [("1", 1000), ("2", 200)]
    assert check(world.connect)["violations"] == []


def test_a_file_that_was_overtaken_changes_nothing_when_it_goes(world: World) -> None:
    done = take_back(world, file="right.csv")
    assert (done["entries"], done["ledger_changes"]) == (0, 0)
    assert books(world) == [("pay1", 9000), ("pay2", 500)]
    # And what falls back later passes it over.
    take_back(world)
    assert books(world) == []


def test_a_file_is_named_without_doubt_or_refused(world: World) -> None:
    with pytest.raises(InputError, match=r"adyen has taken no file other\.csv"):
        take_back(world, file="other.csv")
    checksum = list_files(world.connect, "adyen")["files"][0]["sha256"]
    assert take_back(world, file=checksum[:12])["file"] == "wrong.csv"
    with pytest.raises(RefusedError, match="was withdrawn by ann on"):
        take_back(world)
    with pytest.raises(RefusedError, match="--reason is empty"):
        withdraw(
            world.connect, world.config, "adyen", "right.csv", by="a", reason=" ", dry_run=True
        )
