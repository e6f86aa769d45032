"""duebook.toml into the database: idempotent, and every change on record."""

from __future__ import annotations

from datetime import time

import pytest

from duebook.config import load_config, parse_config
from duebook.errors import RefusedError
from duebook.services.apply import apply_config
from tests.settlement_files import World, plain

EVENTS = "select count(*) from duebook.audit_event where action like 'apply%'"


def test_a_second_apply_changes_nothing_and_leaves_no_event(world: World) -> None:
    # Every account and kind, and the quiet hours and the severity as one each.
    parts = len(world.config.provider_accounts) + len(world.config.kinds) + 2
    first = apply_config(world.connect, world.config, by="ann")
    assert len(first.added) == parts
    events = world.value(EVENTS)
    again = apply_config(world.connect, world.config, by="ann")
    assert (again.added, again.changed, len(again.unchanged)) == ([], [], parts)
    assert world.value(EVENTS) == events == parts


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
    assert world.value("select count(*) from duebook.intent_kind") == len(world.config.kinds)


def test_what_an_operator_changed_is_not_undone_by_a_run(world: World) -> None:
    world.go_live()
    world.config = load_config()
    assert world.reconcile().mode == "live"


NIGHT = {"kind": "payment_missing", "from": "21:00", "until": "08:00"}


def test_nothing_goes_live_before_quiet_hours_are_stated(world: World) -> None:
    document = plain(world.config)
    live = {**document["provider_accounts"]["adyen"], "mode": "live"}
    document["provider_accounts"] = {**document["provider_accounts"], "adyen": live}
    unstated = parse_config({**document, "quiet_hours": None}, "duebook.toml")
    with pytest.raises(RefusedError, match=r"provider_accounts\.adyen.*needs quiet hours"):
        apply_config(world.connect, unstated, by="ann")
    assert world.value("select count(*) from duebook.provider_account") == 0
    world.config = unstated
    with pytest.raises(RefusedError, match="needs quiet hours"):
        world.reconcile()
    for stated in ("none", [NIGHT]):
        config = parse_config({**document, "quiet_hours": stated}, "duebook.toml")
        assert "provider account adyen" not in apply_config(world.connect, config, by="ann").changed
    assert world.value("select mode from duebook.provider_account where provider = 'adyen'")


def test_quiet_hours_are_those_of_the_file_and_each_change_is_audited(world: World) -> None:
    def apply(*windows: dict[str, str]) -> list[str]:
        config = parse_config({**plain(world.config), "quiet_hours": windows}, "duebook.toml")
        report = apply_config(world.connect, config, by="ann")
        assert "quiet hours" in report.added + report.changed + report.unchanged
        return report.added + report.changed

    apply()
    assert apply(NIGHT, {"region": "FR", "from": "20:00", "until": "09:00"}) == ["quiet hours"]
    stated = world.rows(
        "select region, channel, kind, from_local, until_local from duebook.quiet_hours order by 1"
    )
    assert [tuple(row.values()) for row in stated] == [
        ("FR", None, None, time(20), time(9)),
        (None, None, "payment_missing", time(21), time(8)),
    ]
    assert apply(NIGHT, {"region": "FR", "from": "20:00", "until": "09:00"}) == []
    assert apply(NIGHT) == ["quiet hours"]
    assert apply() == ["quiet hours"]
    assert world.value("select are_none from duebook.quiet_hours_statement")
    events = world.rows(
        "select actor, detail from duebook.audit_event where action = 'apply_quiet_hours'"
        " order by audit_event_id"
    )
    assert [len(event["detail"]["after"]) for event in events] == [0, 2, 1, 0]
    assert [event["detail"]["before"] is None for event in events] == [True, False, False, False]


def test_a_run_leaves_the_quiet_hours_alone_that_an_operator_applied(world: World) -> None:
    apply_config(world.connect, world.config, by="ann")
    world.config = parse_config({**plain(world.config), "quiet_hours": [NIGHT]}, "duebook.toml")
    world.reconcile()
    assert world.value("select count(*) from duebook.quiet_hours") == 0
