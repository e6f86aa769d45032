"""The reversible rollout: whose a key is, how it is taken, moved and compared."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from duebook.db.connect import connect_url
from duebook.drill.old_sender import as_old_sender
from duebook.errors import ConfigurationError, InputError, RefusedError
from duebook.services.check import check
from duebook.services.explain import explain
from duebook.services.imports import import_contacts, import_sends
from duebook.services.rebuild import rebuild
from duebook.services.rollout import compare, move_keys, rollout_status, whose
from tests.settlement_files import World, adyen_row, booked, settled

NOTIFY_FROM = "2020-01-01T00:00:00Z"
# Published in docs/rollout.md: md5 of "early:a1", its first 32 bits, modulo 10000.
BUCKETS = {"a1": 9725, "a2": 5902, "a3": 5144, "a4": 1791}


@pytest.fixture
def world(world: World) -> World:
    """Payments 1 to 4 of the accounts a1 to a4; adyen in shadow; the old sender asks."""
    roll_out(world)
    world.book(*(booked(number, 1000, account=f"a{number}") for number in range(1, 5)))
    return world


def roll_out(world: World, *, mode: str = "shadow", asks: bool = True, **sections: Any) -> None:
    adyen = world.config.provider_accounts["adyen"].model_dump(by_alias=True)
    world.config = world.config.model_copy(update={"cohorts": {}})
    world.configure(
        provider_accounts={"adyen": {**adyen, "mode": mode, "notify_from": NOTIFY_FROM}},
        old_senders={"legacy": {"asks": asks}},
        **sections,
    )


def live(*accounts: str) -> dict[str, Any]:
    return {"early": {"mode": "live", "accounts": list(accounts)}}


def settle(world: World, *numbers: int) -> None:
    world.reconcile(world.adyen(*(settled(number, "10.00") for number in numbers)))


def key(number: int) -> str:
    entry = f"PSP{number}%3Asettled%3ASettled of PSP{number}"
    return f"payment_settled:email:adyen:pay{number}:{entry}:v1"


def ask(world: World, number: int, sender: str = "legacy") -> str:
    with world.connect() as conn:
        values = (f"a{number}", key(number), sender)
        row = conn.execute("select duebook.ask_to_send(%s, %s, %s)", values).fetchone()
    assert row is not None
    return str(row[0])


def places(world: World) -> dict[str, str]:
    rows = world.rows(
        "select account_id, state from duebook_reports.intents where kind = 'payment_settled'"
    )
    return {row["account_id"]: row["state"] for row in rows}


def verdicts(world: World) -> dict[str, str]:
    rows = world.rows(
        "select account_id, verdict from duebook_reports.rollout_comparison"
        " where kind = 'payment_settled'"
    )
    return {row["account_id"]: row["verdict"] for row in rows}


def observe(world: World, *lines: str) -> Any:
    header = "id,account_id,sent_at,operation_key,kind,channel,payment_id"
    path = world.text("\n".join([header, *lines, ""]), name=None)
    return import_sends(world.connect, path, "legacy")


# ---- whose a change is ------------------------------------------------------------------------


def test_the_first_cohort_that_fits_decides(world: World) -> None:
    roll_out(
        world,
        cohorts={
            "out": {"mode": "dry_run", "accounts": ["a2"]},
            "some": {"mode": "live", "accounts": ["a1", "a2"]},
        },
    )
    settle(world, 1, 2, 3)
    rows = world.rows(
        "select account_id, ownership from duebook.intent where kind = 'payment_settled'"
    )
    assert {row["account_id"]: row["ownership"] for row in rows} == {
        "a1": "live",
        "a2": "dry_run",
        "a3": "shadow",
    }
    assert places(world) == {"a1": "scheduled", "a2": "proposed", "a3": "proposed"}
    adyen = whose(world.connect, "a1")["provider_accounts"][0]
    assert (adyen["provider_account"], adyen["mode"], adyen["cohort"]) == ("adyen", "live", "some")


def test_a_share_is_counted_as_published_and_a_larger_one_keeps_everybody(world: World) -> None:
    for account, bucket in BUCKETS.items():
        assert world.value("select duebook.cohort_bucket('early', %s)", account) == bucket
        digest = hashlib.md5(f"early:{account}".encode(), usedforsecurity=False).hexdigest()
        assert int(digest[:8], 16) % 10_000 == bucket
    inside: list[set[str]] = []
    for percent in (0, "17.91", "17.92", 50, 100):
        roll_out(world, cohorts={"early": {"mode": "live", "percent": percent}})
        modes = {
            account: whose(world.connect, account)["provider_accounts"][0]["mode"]
            for account in BUCKETS
        }
        inside.append({account for account, mode in modes.items() if mode == "live"})
    below = [{a for a, bucket in BUCKETS.items() if bucket < top} for top in (1792, 5000)]
    assert inside == [set(), set(), *below, set(BUCKETS)]
    assert len(below[0]) == 1


def test_an_attribute_of_the_contact_decides(world: World) -> None:
    contacts = "account_id,channel,address,zone,locale,region\n"
    contacts += "a1,email,a1@customers.invalid,Europe/Paris,fr,FR\n"
    contacts += "a2,email,a2@customers.invalid,Europe/Berlin,de,DE\n"
    import_contacts(world.connect, world.text(contacts))
    roll_out(world, cohorts={"french": {"mode": "live", "region": ["FR", "BE"]}})
    settle(world, 1, 2, 3)
    assert places(world) == {"a1": "scheduled", "a2": "proposed", "a3": "proposed"}


def test_a_provider_account_in_dry_run_lets_nothing_out(world: World) -> None:
    roll_out(world, mode="dry_run", cohorts=live("a1"))
    settle(world, 1)
    assert places(world) == {"a1": "proposed"}
    assert verdicts(world) == {}, "a dry run is compared with nobody"


def test_live_without_saying_from_when_on_is_refused(world: World) -> None:
    paypal = world.config.provider_accounts["paypal"].model_dump(by_alias=True)
    world.configure(provider_accounts={"paypal": {**paypal, "mode": "shadow"}})
    with pytest.raises(RefusedError, match="provider account paypal, which has no notify_from"):
        roll_out(world, cohorts=live("a1"))
    assert world.rows("select 1 from duebook.cohort") == []


def test_every_version_of_a_cohort_is_kept_with_who_stated_it(world: World) -> None:
    for percent in (10, 10, 50):
        roll_out(world, cohorts={"early": {"mode": "live", "percent": percent}})
    roll_out(world)
    rows = world.rows("select mode, percent, stated_by from duebook.cohort order by cohort_version")
    assert [(row["mode"], row["percent"]) for row in rows] == [
        ("live", 10),
        ("live", 50),
        (None, None),
    ]
    assert {row["stated_by"] for row in rows} == {"pytest"}
    audited = "select action from duebook.audit_event where subject = 'cohort:early' order by 1"
    assert [row["action"] for row in world.rows(audited)] == [
        "apply_cohort",
        "apply_cohort",
        "end_cohort",
    ]
    assert rollout_status(world.connect)["cohorts"] == []


def test_the_mode_when_the_change_committed_decides_for_ever(world: World) -> None:
    settle(world, 1)
    roll_out(world, cohorts=live("a1", "a2"))
    settle(world, 2)
    roll_out(world)
    assert places(world) == {"a1": "proposed", "a2": "scheduled"}
    assert (ask(world, 1), ask(world, 2)) == ("send", "duebook")
    versions = world.rows(
        "select cohort_version from duebook.intent where kind = 'payment_settled' order by 1"
    )
    assert [row["cohort_version"] for row in versions] == [0, 1]


@pytest.mark.parametrize(
    ("cohort", "message"),
    [
        ({"mode": "live"}, "expected who is in it"),
        ({"mode": "live", "percent": 101}, "less than or equal to 100"),
        ({"mode": "live", "region": ["FR"], "zone": ["UTC"]}, "one of region, locale, zone"),
        ({"mode": "live", "accounts": ["a"], "accounts_file": "x"}, "not both"),
        ({"mode": "loud", "percent": 1}, "'dry_run', 'shadow' or 'live'"),
        ({"mode": "live", "accounts_file": "/nowhere/list.txt"}, "No such file"),
    ],
)
def test_a_cohort_that_can_not_be_right_is_refused_by_name(
    world: World, cohort: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message) as refused:
        roll_out(world, cohorts={"early": cohort})
    assert "early" in str(refused.value)


# ---- asking -----------------------------------------------------------------------------------


def test_in_shadow_a_key_is_given_once(world: World) -> None:
    settle(world, 1)
    assert [ask(world, 1), ask(world, 1)] == ["send", "asked_before"]
    assert ask(world, 2) == "send", "it has seen the change before us"
    settle(world, 2)
    assert ask(world, 2) == "asked_before"
    assert verdicts(world) == {"a1": "both", "a2": "both"}


def test_where_duebook_is_to_tell_the_old_sender_waits_and_then_leaves_it(world: World) -> None:
    roll_out(world, cohorts=live("a1"))
    assert ask(world, 1) == "wait"
    settle(world, 1)
    assert [ask(world, 1), ask(world, 1)] == ["duebook", "duebook"]
    assert places(world) == {"a1": "scheduled"}


def test_a_key_that_was_taken_in_shadow_stays_the_old_senders(world: World) -> None:
    assert ask(world, 1) == "send"
    roll_out(world, cohorts=live("a1"))
    settle(world, 1)
    assert places(world) == {"a1": "proposed"}
    assert ask(world, 1) == "asked_before"
    assert check(world.connect)["violations"] == []


def test_two_old_senders_do_not_both_have_a_key(world: World) -> None:
    world.configure(old_senders={"older": {"asks": True}})
    assert [ask(world, 1), ask(world, 1, "older")] == ["send", "taken"]


def test_who_is_not_stated_is_refused(world: World) -> None:
    roll_out(world, asks=False)
    for sender in ("legacy", "nobody"):
        with pytest.raises(psycopg.Error, match=f"{sender} is no old sender that asks"):
            ask(world, 1, sender)


def test_a_night_waits_for_an_answer_that_is_not_committed_and_leaves_that_key(
    world: World,
) -> None:
    roll_out(world, cohorts={})
    asking = connect_url(world.url)
    asking.execute("select duebook.ask_to_send(%s, %s, 'legacy')", ("a1", key(1)))
    roll_out(world, cohorts=live("a1", "a2"))
    night = threading.Thread(target=settle, args=(world, 1, 2))
    night.start()
    wait_for_blocked(world)
    asking.commit()
    asking.close()
    night.join()
    assert places(world) == {"a1": "proposed", "a2": "scheduled"}


def wait_for_blocked(world: World) -> None:
    with world.connect() as conn:
        conn.execute("set statement_timeout = '20s'")
        waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
        waiting += " and datname = current_database()"
        while not conn.execute(waiting.encode()).fetchone():
            conn.execute("select pg_sleep(0.01)")


@pytest.mark.crash
def test_nights_and_many_askers_at_once_share_no_key(world: World) -> None:
    """Half of the accounts live; 300 keys asked for by four, over and over, in the night."""
    numbers = range(10, 310)
    world.book(*(booked(number, 1000, account=f"a{number}") for number in numbers))
    roll_out(world, cohorts={"early": {"mode": "live", "percent": 50}})
    night = threading.Thread(target=settle, args=(world, *numbers))

    def ask_all(offset: int) -> list[tuple[int, str]]:
        answers = []
        with connect_url(as_old_sender(world.url), autocommit=True) as conn:
            for number in (*numbers[offset:], *numbers[:offset]):
                values = (f"a{number}", key(number))
                statement = "select duebook.ask_to_send(%s, %s, 'legacy')"
                row = conn.execute(statement, values).fetchone()
                assert row is not None
                answers.append((number, str(row[0])))
        return answers

    with ThreadPoolExecutor(4) as pool:
        night.start()
        asked = [each for got in pool.map(ask_all, (0, 75, 150, 225)) for each in got]
    night.join()
    theirs = Counter(number for number, answer in asked if answer == "send")
    assert set(theirs.values()) <= {1}
    states = places(world)
    ours = {number for number in numbers if states[f"a{number}"] == "scheduled"}
    assert ours.isdisjoint(theirs)
    refused = {number for number, answer in asked if answer == "duebook"}
    assert refused <= ours
    left = [number for number in numbers if number not in ours and number not in theirs]
    assert [ask(world, number) for number in left] == ["send"] * len(left)
    assert len(ours) > 100
    assert len(theirs) > 100
    assert check(world.connect)["violations"] == []


def test_the_login_of_an_old_sender_may_ask_and_report_and_nothing_else(world: World) -> None:
    with connect_url(as_old_sender(world.url), autocommit=True) as conn:
        conn.execute("select duebook.ask_to_send('a1', %s, 'legacy')", (key(1),))
        reported = "select duebook.record_observed_send('legacy', 'x', 'a1', now(), %s)"
        conn.execute(reported, (key(1),))
        for statement in (
            "select * from duebook.observed_send",
            "select * from duebook.sender_key",
            "select * from duebook_reports.rollout_comparison",
            "select duebook.move_key('a1', 'k', 'live', 'r', 'b')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(statement.encode())


# ---- moved by name ----------------------------------------------------------------------------


def move(world: World, number: int, to: Any) -> str:
    keys = [(f"a{number}", key(number))]
    done = move_keys(world.connect, keys, to, by="ann", reason="asked by the customer")
    return str(done["keys"][0]["answer"])


def test_going_live_moves_no_proposal_unless_it_is_named(world: World) -> None:
    settle(world, 1, 2, 3)
    roll_out(world, mode="live")
    assert places(world) == {"a1": "proposed", "a2": "proposed", "a3": "proposed"}
    assert [move(world, 1, "live"), move(world, 1, "live")] == ["moved", "already"]
    assert places(world) == {"a1": "scheduled", "a2": "proposed", "a3": "proposed"}
    assert ask(world, 1) == "duebook"
    with world.connect() as conn:
        conn.execute("delete from duebook.due")
    rebuild(world.connect, by="ann", apply=True)
    assert places(world)["a1"] == "scheduled", "what was moved is made again as it was moved"
    assert "move_key" in {row["action"] for row in world.rows("select * from duebook.audit_event")}


def test_what_the_old_sender_has_is_not_moved(world: World) -> None:
    settle(world, 1, 2, 3)
    assert ask(world, 1) == "send"
    observe(world, "7,a2,2026-11-30T02:00:00Z,,payment_settled,email,pay2")
    assert [move(world, number, "live") for number in (1, 2, 3)] == ["sent", "sent", "moved"]
    assert places(world) == {"a1": "proposed", "a2": "proposed", "a3": "scheduled"}
    assert ask(world, 2) == "send", "a refused move leaves nothing behind"


def test_while_an_old_sender_does_not_ask_nothing_is_moved_to_us(world: World) -> None:
    settle(world, 1)
    world.configure(old_senders={"silent": {"asks": False}})
    assert move(world, 1, "live") == "never_asks"


def test_back_to_the_old_sender_and_there_again(world: World) -> None:
    roll_out(world, mode="live")
    settle(world, 1)
    assert ask(world, 1) == "duebook"
    assert move(world, 1, "shadow") == "moved"
    assert places(world) == {"a1": "proposed"}
    assert ask(world, 1) == "send"
    assert move(world, 1, "live") == "sent"
    assert [move(world, 4, "live"), move(world, 4, "shadow")] == ["unknown", "unknown"]


# ---- what the old sender sent, and the comparison ----------------------------------------------


def test_night_by_night_both_sides_stand_beside_each_other(world: World) -> None:
    world.book(*(booked(number, 1000, account=f"a{number}") for number in (5, 6)))
    settle(world, 1, 2, 3, 4, 6)
    now = world.value("select clock_timestamp()")
    hours = {1: 2, 2: -30, 3: 30}
    times = {
        number: world.value("select %s + make_interval(hours => %s)", now, hour).isoformat()
        for number, hour in hours.items()
    }
    report = observe(
        world,
        f"log-1,a1,{times[1]},{key(1)},,,",
        f"log-2,a2,{times[2]},,payment_settled,email,pay2",
        f"log-3,a3,{times[3]},,payment_settled,,pay3",
        f"log-5,a5,{times[1]},{key(5)},,,",
    )
    assert (report.added, report.quarantined) == (4, 0)
    assert verdicts(world) == {
        "a1": "both",
        "a2": "later",
        "a3": "earlier",
        "a4": "waiting",
        "a5": "only_theirs",
        "a6": "waiting",
    }
    world.configure(old_senders={"legacy": {"asks": True, "same_within": "PT0S"}})
    assert verdicts(world)["a4"] == "only_ours"
    differing = compare(world.connect, provider_account="adyen")["keys"]
    evidence = {row["account_id"]: (row["entry_id"], row["external_id"]) for row in differing}
    assert evidence["a2"] == ("PSP2:settled:Settled of PSP2", "log-2")
    assert evidence["a5"] == (None, "log-5")
    nights = rollout_status(world.connect)["nights"]
    assert sum(night["only_theirs"] for night in nights) == 1


def test_a_key_that_both_sent_is_shown_as_told_twice(world: World) -> None:
    settle(world, 1, 2)
    observe(
        world,
        f"1,a1,2026-11-30T02:00:00Z,{key(1)},,,",
        f"2,a1,2026-11-30T02:05:00Z,{key(1)},,,",
        f"3,a2,2026-11-30T02:05:00Z,{key(2)},,,",
    )
    rows = compare(world.connect)["keys"]
    doubled = {row["account_id"]: row["theirs_count"] for row in rows if row["is_doubled"]}
    assert doubled == {"a1": 2}


def test_what_newer_evidence_ended_after_its_time_would_have_been_sent(world: World) -> None:
    settle(world, 1)
    world.reconcile(
        world.adyen(adyen_row("Settled", "2.00", psp="PSP1", reference="REF1", modification="M2"))
    )
    rows = world.rows(
        "select verdict, result from duebook_reports.rollout_comparison as r"
        " left join duebook.outcome as o using (account_id, operation_key)"
        " where r.kind = 'payment_settled' order by r.ours_at"
    )
    assert [(row["verdict"], row["result"]) for row in rows] == [
        ("waiting", "expired"),
        ("waiting", None),
    ]


def test_without_an_old_sender_there_is_nothing_to_compare(world: World) -> None:
    settle(world, 1)
    with world.connect() as conn:
        conn.execute("delete from duebook.old_sender")
    assert verdicts(world) == {}


def test_bad_rows_of_its_log_are_named_and_kept_and_the_good_ones_taken(world: World) -> None:
    lines = (
        f"1,a1,2026-11-30T02:00:00Z,{key(1)},,,",
        f"2,a2,2026-11-30T02:00:00,{key(2)},,,",
        ",a3,2026-11-30T02:00:00Z,,payment_settled,,pay3",
        "4,a4,2026-11-30T02:00:00Z,,payment_settled,,",
        "5,a4,yesterday,,payment_settled,,pay4",
        "6,a4,2026-11-30T02:00:00Z,settled-pay4,,,",
    )
    report = observe(world, *lines)
    assert [(each.line_no, each.column, each.reason) for each in report.faults] == [
        (3, "sent_at", "without an offset"),
        (4, "id", "empty"),
        (5, "operation_key", "neither a key nor kind and payment"),
        (6, "sent_at", "not a time"),
        (7, "operation_key", "not an operation key"),
    ]
    assert (report.added, report.quarantined) == (1, 5)
    again = observe(world, *lines)
    assert (again.added, again.unchanged) == (0, 1)
    with pytest.raises(InputError, match="unknown old sender nobody"):
        import_sends(world.connect, world.text("id,account_id,sent_at,operation_key\n"), "nobody")


def test_what_an_old_sender_reports_is_recorded_once(world: World) -> None:
    settle(world, 1)
    statement = (
        "select duebook.record_observed_send('legacy', 'x1', 'a1', '2026-11-30T02:00:00Z', %s)"
    )
    assert [world.value(statement, key(1)) for _ in range(2)] == ["recorded", "known"]
    with pytest.raises(psycopg.Error, match="x1 of legacy was recorded with other content"):
        world.value(statement, key(2))
    with pytest.raises(psycopg.Error, match="unknown old sender nobody"):
        world.value(statement.replace("legacy", "nobody"), key(1))


def test_a_send_that_is_told_by_a_webhook_is_recorded_with_its_receipt(world: World) -> None:
    settle(world, 1, 2)
    world.configure(old_senders={"legacy": {"asks": True, "webhook": "stripe"}})
    told = {"account_id": "a1", "sent_at": "2026-11-30T02:00:00Z", "operation_key": key(1)}
    by_payment = {**told, "account_id": "a2", "payment_id": "pay2", "kind": "payment_settled"}
    del by_payment["operation_key"]
    call = "select duebook.record_receipt('stripe', %s, 'adyen', 'standard', '{}', %s::bytea)"
    bodies = {
        "1": {"type": "sent", "data": told},
        "2": {"type": "sent", "data": by_payment},
        "3": {"type": "sent", "data": {**told, "sent_at": "yesterday"}},
        "4": {"type": "ping"},
    }
    for event, body in bodies.items():
        content = json.dumps(body).encode()
        assert [world.value(call, event, content) for _ in range(2)] == ["stored", "duplicate"]
    rows = world.rows("select external_id, source from duebook.observed_send order by 1")
    assert [(row["external_id"], row["source"]) for row in rows] == [
        ("1", "webhook"),
        ("2", "webhook"),
    ]
    assert {"a1", "a2"} <= set(verdicts(world))
    audited = "select detail ->> 'event_id' as id from duebook.audit_event"
    audited += " where action = 'send_not_readable' order by 1"
    assert [row["id"] for row in world.rows(audited)] == ["3", "4"]
    assert world.rows("select 1 from duebook.pending_event") == [], "nothing to read again"
    with pytest.raises(ConfigurationError, match=r"old_senders\.legacy\.webhook: expected one of"):
        world.configure(old_senders={"legacy": {"asks": True, "webhook": "nowhere"}})


def test_the_story_says_who_tells(world: World) -> None:
    roll_out(world, cohorts={"careful": {"mode": "shadow", "accounts": ["a1"]}}, mode="live")
    settle(world, 1)
    ask(world, 1)
    told = str(explain(world.connect, "pay1").to_json())
    assert "cohort careful (version 1) was in mode shadow" in told
    assert "legacy sent it" in told
