"""duebook.toml into the database: idempotent, and every change on record."""

from __future__ import annotations

from duebook.config import load_config
from duebook.services.apply import apply_config
from tests.settlement_files import World

EVENTS = "select count(*) from duebook.audit_event where action like 'apply%'"


def test_a_second_apply_changes_nothing_and_leaves_no_event(world: World) -> None:
    first = apply_config(world.connect, world.config, by="ann")
    assert len(first.added) == 8
    events = world.value(EVENTS)
    again = apply_config(world.connect, world.config, by="ann")
    assert (again.added, again.changed, len(again.unchanged)) == ([], [], 8)
    assert world.value(EVENTS) == events == 8


def test_a_change_is_audited_with_before_and_after(world: World) -> None:
    apply_config(world.connect, world.config, by="ann")
    world.go_live()
    [event] = world.rows(
        "select actor, detail from duebook.audit_event where action = 'apply_provider_account'"
        " and detail -> 'before' <> 'null'"
    )
    assert event["actor"] == "pytest"
    assert event["detail"]["before"]["mode"] == "dry_run"
    assert event["detail"]["after"]["mode"] == "live"


def test_a_run_applies_its_account_and_the_kinds_on_demand(world: World) -> None:
    world.reconcile()
    assert world.rows("select provider_account from duebook.provider_account") == [
        {"provider_account": "adyen"}
    ]
    assert world.value("select count(*) from duebook.intent_kind") == 5


def test_what_an_operator_changed_is_not_undone_by_a_run(world: World) -> None:
    world.go_live()
    world.config = load_config()
    assert world.reconcile().mode == "live"
