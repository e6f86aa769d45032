"""Discrepancies that people work on: what they decide stays, until what they decided on changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from duebook.errors import InputError, RefusedError
from duebook.services.discrepancies import (
    deal_with,
    force_match,
    list_discrepancies,
    show_discrepancy,
    unmatch,
)
from tests.settlement_files import World, booked, settled

SUBJECT = "payment:acme:pay1"
KIND = "amount_mismatch"


def differ(world: World, amount: str = "12.00", *, batch: int = 1) -> None:
    """Payment 1 is booked with 10.00 and settles with another amount."""
    world.reconcile(world.adyen(settled(1, amount, batch=batch)))


@pytest.fixture
def world(world: World) -> World:
    world.book(booked(1, 1000), booked(2, 500))
    differ(world)
    return world


def act(world: World, what: str, **others: Any) -> str:
    document = deal_with(world.connect, "adyen", KIND, SUBJECT, what, by="ann", **others)
    return str(document["status"])


def standing(world: World) -> tuple[Any, ...]:
    [row] = world.rows(
        "select status, closed_at is null, times_opened from duebook.discrepancy"
        " where kind = %s and subject = %s",
        KIND,
        SUBJECT,
    )
    return tuple(row.values())


def told(world: World) -> list[tuple[Any, ...]]:
    document = show_discrepancy(world.connect, "adyen", KIND, SUBJECT)
    return [(each["act"], each["status_after"]) for each in document["events"]]


def test_a_difference_is_seen_acknowledged_assigned_and_closes_by_itself(world: World) -> None:
    assert act(world, "acknowledge") == "acknowledged"
    assert act(world, "assign", assignee="bob") == "acknowledged"
    assert act(world, "assign", assignee="bob") == "acknowledged"
    differ(world, "10.00", batch=2)
    assert standing(world) == ("closed", False, 1)
    assert told(world) == [
        ("opened", "open"),
        ("acknowledge", "acknowledged"),
        ("assign", "acknowledged"),
        ("closed", "closed"),
    ]
    [row] = world.rows(
        "select assignee, decided_by from duebook_reports.discrepancies where kind = %s", KIND
    )
    assert tuple(row.values()) == ("bob", "ann")


def test_it_opens_again_when_it_returns(world: World) -> None:
    differ(world, "10.00", batch=2)
    differ(world, "12.00", batch=3)
    assert standing(world) == ("open", True, 2)
    assert told(world)[-1] == ("reopened", "open")


def test_what_is_resolved_and_still_there_is_open_at_the_next_run(world: World) -> None:
    assert act(world, "resolve", reason="a credit note follows") == "resolved"
    assert world.reconcile(world.adyen(settled(9, "1.00"))).discrepancies[KIND] == 1
    assert standing(world)[0] == "open"
    assert told(world)[-2:] == [("resolve", "resolved"), ("reopened", "open")]


@pytest.mark.parametrize(("what", "status"), [("ignore", "ignored"), ("write_off", "written_off")])
def test_what_is_decided_stays_so_until_an_amount_changes(
    world: World, what: str, status: str
) -> None:
    assert act(world, what, reason="a known rounding") == status
    report = world.reconcile(world.adyen(settled(9, "1.00")))
    assert KIND not in report.discrepancies
    assert standing(world)[0] == status
    # Gone and back with the same amounts: it is still what was decided on.
    differ(world, "10.00", batch=2)
    assert standing(world) == (status, False, 1)
    differ(world, "12.00", batch=3)
    assert standing(world) == (status, True, 2)
    differ(world, "12.01", batch=4)
    assert standing(world)[:2] == ("open", True)
    assert told(world)[-1] == ("changed", "open")


def test_what_was_decided_can_be_taken_back(world: World) -> None:
    act(world, "ignore", reason="a known rounding")
    with pytest.raises(RefusedError, match="it is ignored: reopen it first"):
        act(world, "acknowledge")
    assert act(world, "reopen", reason="it is none") == "open"
    assert standing(world)[0] == "open"


def test_a_wrong_act_is_refused_by_its_field(world: World) -> None:
    with pytest.raises(RefusedError, match="reason: empty"):
        act(world, "ignore", reason=" ")
    with pytest.raises(RefusedError, match="assignee: empty"):
        act(world, "assign")
    with pytest.raises(InputError, match="there is no discrepancy amount_mismatch of payment:x"):
        deal_with(world.connect, "adyen", KIND, "payment:x", "acknowledge", by="ann")
    differ(world, "10.00", batch=2)
    with pytest.raises(RefusedError, match=r"it is gone since .* nothing is left to ignore"):
        act(world, "ignore", reason="late")
    assert told(world)[-1] == ("closed", "closed")


def test_severity_is_the_worst_of_kind_difference_and_age(world: World) -> None:
    world.configure(severity={"high": {"EUR": 100}, "critical": {"EUR": 1000}, "high_after": "P5D"})

    def severity() -> str:
        [row] = list_discrepancies(world.connect, kind=KIND)["discrepancies"]
        return str(row["severity"])

    assert severity() == "normal"
    differ(world, "110.00", batch=2)
    assert severity() == "high"
    differ(world, "1010.00", batch=3)
    assert severity() == "critical"
    differ(world, "12.00", batch=4)
    now = world.value("select clock_timestamp()")
    world.reconcile(world.adyen(), as_of=now + timedelta(days=6))
    assert severity() == "high"
    [ageing] = world.rows(
        "select age_bucket, discrepancies, unassigned, difference_minor"
        " from duebook_reports.discrepancy_ageing where kind = %s",
        KIND,
    )
    assert tuple(ageing.values()) == ("6-10", 1, 1, 200)


def match_by_hand(world: World) -> dict[str, Any]:
    """Payment 2 settles under a reference that nobody booked."""
    world.reconcile(world.adyen(settled(77, "5.00", batch=5)))
    return force_match(
        world.connect,
        "adyen",
        "PSP77:settled:Settled of PSP77",
        "acme",
        "pay2",
        by="ann",
        reason="the customer wrote so",
    )


def captured(world: World) -> int:
    return int(
        world.value(
            "select coalesce(sum(captured_minor), 0) from duebook.settled_position"
            " where payment_id = 'pay2'"
        )
    )


def test_an_entry_is_matched_by_hand_and_stays_so(world: World) -> None:
    assert match_by_hand(world)["done"] == "matched"
    assert captured(world) == 0
    report = world.reconcile(world.adyen(settled(8, "1.00", batch=6)))
    assert captured(world) == 500
    assert report.ledger_changes == 2, "it settled, and is missing no more"
    # Told again, with a changed fee: it stays where a person put it.
    world.reconcile(world.adyen(settled(77, "5.00", fee="0.10", batch=7)))
    assert captured(world) == 500
    assert match_by_hand(world)["done"] == "existed"


def test_a_match_by_hand_is_taken_back(world: World) -> None:
    match_by_hand(world)
    world.reconcile(world.adyen(settled(8, "1.00", batch=6)))
    unmatch(
        world.connect, "adyen", "PSP77:settled:Settled of PSP77", by="bob", reason="they did not"
    )
    world.reconcile(world.adyen(settled(8, "1.00", batch=8)))
    assert captured(world) == 0
    acts = world.rows(
        "select actor, action from duebook.audit_event where action like '%%match' order by 1"
    )
    assert [tuple(each.values()) for each in acts] == [("ann", "force_match"), ("bob", "unmatch")]
    with pytest.raises(InputError, match="was not matched by hand"):
        unmatch(world.connect, "adyen", "PSP77:settled:Settled of PSP77", by="b", reason="again")


def test_a_match_with_what_is_not_there_is_refused(world: World) -> None:
    for entry, payment, said in (
        ("none", "pay2", "there is no entry none at adyen"),
        ("PSP1:settled:Settled of PSP1", "pay9", "there is no booked payment pay9"),
    ):
        with pytest.raises(InputError, match=said):
            force_match(world.connect, "adyen", entry, "acme", payment, by="a", reason="r")
