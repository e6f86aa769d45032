"""Intents that were never tried are made again from the facts: the same keys, and no send."""

from __future__ import annotations

from typing import Any

import pytest

from duebook.services.check import check
from duebook.services.imports import import_contacts
from duebook.services.rebuild import rebuild
from duebook.services.sweep import SweepRequest, sweep
from tests.due_work import ScriptedChannel
from tests.services.test_rollout import live, roll_out
from tests.settlement_files import World, adyen_row, booked, settled

SAME = (
    "account_id, operation_key, kind, subject, payment_id, channel, provider_account, run_id,"
    " change_id, ownership, cohort_version, intended_local, zone, tzdb_version"
)


@pytest.fixture
def world(world: World) -> World:
    """Changes under changing policies and cohorts, and a hold; two were sent, some superseded."""
    roll_out(world, mode="live")
    accounts = [booked(number, 1000, account=f"a{number}") for number in range(1, 9)]
    world.book(*accounts)
    lines = [f"a{number},email,a{number}@customers.invalid,UTC" for number in (1, 2)]
    import_contacts(
        world.connect, world.text("account_id,channel,address,zone\n" + "\n".join(lines))
    )
    world.reconcile(world.adyen(settled(1, "10.00"), settled(2, "10.00")))
    connect = world.connect
    sweep(connect, SweepRequest("test", batch_size=2), {"email": ScriptedChannel()}, world.config)
    kinds = {
        name: {**kind.model_dump(by_alias=True), "enabled": name != "payment_refunded"}
        for name, kind in world.config.kinds.items()
    }
    world.configure(kinds=kinds)
    roll_out(world, mode="shadow", cohorts=live("a3"))
    refund = adyen_row("Refunded", "-4.00", psp="PSP1", reference="REF1", batch=2)
    world.reconcile(world.adyen(settled(3, "10.00"), settled(4, "10.00"), refund, name="two.csv"))
    world.configure(kinds={name: {**kind, "enabled": True} for name, kind in kinds.items()})
    roll_out(world, mode="live")
    world.reconcile(world.adyen(settled(5, "10.00", batch=3), name="three.csv"))
    with world.connect() as conn:
        conn.execute(
            "select duebook.create_hold('a6', 'seat:7', clock_timestamp() + interval '1 day',"
            " p_by => 'shop')"
        )
    return world


def intents(world: World) -> list[dict[str, Any]]:
    return world.rows(f"select {SAME} from duebook.intent order by account_id, operation_key")


def places(world: World) -> list[dict[str, Any]]:
    return world.rows(
        "select account_id, operation_key, state, reason from duebook_reports.intents order by 1, 2"
    )


def lose_untried(world: World) -> int:
    with world.connect() as conn:
        conn.execute("delete from duebook.due")
        conn.execute("delete from duebook.proposed")
        conn.execute("delete from duebook.held")
        return conn.execute(
            "delete from duebook.intent as i where not exists (select from duebook.attempt as a"
            " where a.account_id = i.account_id and a.intent_id = i.intent_id)"
            " and not exists (select from duebook.outcome as o where o.account_id = i.account_id"
            " and o.operation_key = i.operation_key)"
        ).rowcount


def test_what_is_there_is_what_follows_from_the_facts(world: World) -> None:
    done = rebuild(world.connect, by="ann", apply=False)
    assert (done["remade"], done["moves"]) == ([], [])


def test_intents_that_are_gone_are_made_again_with_the_same_keys_and_nothing_is_sent(
    world: World,
) -> None:
    before, stood = intents(world), places(world)
    lost = lose_untried(world)
    assert 5 < lost < len(before)
    sent = world.value("select count(*) from duebook.outcome where result = 'sent'")
    dry = rebuild(world.connect, by="ann", apply=False)
    assert len(intents(world)) == len(before) - lost, "a dry run changes nothing"
    done = rebuild(world.connect, by="ann", apply=True)
    assert done["remade"] == dry["remade"]
    assert [(each["done"], each["intents"]) for each in done["remade"]] == [("made", lost)]
    assert intents(world) == before
    assert places(world) == stood
    assert check(world.connect)["violations"] == []
    assert rebuild(world.connect, by="ann", apply=True)["remade"] == []
    assert world.value("select count(*) from duebook.outcome where result = 'sent'") == sent
    actions = world.rows("select 1 from duebook.audit_event where action = 'rebuild_intent'")
    assert len(actions) == lost


def test_a_key_that_has_ended_is_not_made_again(world: World) -> None:
    ended = world.rows("select account_id, operation_key from duebook.outcome")
    assert ended
    with world.connect() as conn:
        conn.execute(
            "delete from duebook.intent as i using duebook.outcome as o"
            " where i.account_id = o.account_id and i.operation_key = o.operation_key"
        )
    assert rebuild(world.connect, by="ann", apply=True)["remade"] == []


def test_where_an_attempt_lost_its_intent_nothing_is_made_since_it_may_be_that_one(
    world: World,
) -> None:
    """a1 was mailed, and both the intent and the outcome are gone: nobody can say what it told."""
    with world.connect() as conn:
        conn.execute("delete from duebook.intent where account_id in ('a1', 'a5')")
        conn.execute("delete from duebook.outcome where account_id = 'a1'")
        conn.execute("delete from duebook.due where account_id in ('a1', 'a5')")
    done = rebuild(world.connect, by="ann", apply=True)
    keys = [key for each in done["remade"] for key in each["keys"]]
    assert {key.split()[0] for key in keys} == {"a5"}


def test_an_intent_of_no_change_is_taken_away_and_kept_on_record(world: World) -> None:
    with world.connect() as conn:
        conn.execute("delete from duebook.ledger_change where account_id = 'a5'")
    done = rebuild(world.connect, by="ann", apply=True)
    [removed] = [each for each in done["remade"] if each["done"] == "removed"]
    assert removed["intents"] > 0
    assert {key.split()[0] for key in removed["keys"]} == {"a5"}
    assert world.rows("select 1 from duebook.due where account_id = 'a5'") == []
    kept = "select detail #>> '{intent,account_id}' as account_id from duebook.audit_event"
    kept += " where action = 'rebuild_intent'"
    assert {row["account_id"] for row in world.rows(kept)} == {"a5"}


def test_what_the_old_sender_took_comes_back_as_a_proposal(world: World) -> None:
    lose_untried(world)
    key = world.value(
        "select operation_key from duebook.derive_intents() where account_id = 'a5'"
        " and kind = 'payment_settled'"
    )
    with world.connect() as conn:
        conn.execute(
            "delete from duebook.sender_key where account_id = 'a5' and operation_key = %s", (key,)
        )
        conn.execute(
            "insert into duebook.sender_key (account_id, operation_key, sender)"
            " values ('a5', %s, 'legacy')",
            (key,),
        )
    rebuild(world.connect, by="ann", apply=True)
    [row] = world.rows(
        "select state from duebook_reports.intents where account_id = 'a5' and operation_key = %s",
        key,
    )
    assert row["state"] == "proposed"
