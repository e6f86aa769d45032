"""`explain` of a schedule and of one of its keys: the four facts, and why late."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from duebook.config import parse_config
from duebook.db.connect import connect_url
from duebook.domain.calendar import tzdb_version
from duebook.errors import InputError
from duebook.services.explain import explain
from duebook.services.status import status
from duebook.services.story import Match
from duebook.services.sweep import SweepRequest, sweep
from tests.calendar_work import add_reminders, backdate, clock, far_time, put, run_passes
from tests.due_work import ScriptedChannel, value

Conn = psycopg.Connection[Any]
EVERY_DAY = [1, 2, 3, 4, 5, 6, 7]


def match_of(url: str, subject: str) -> Match:
    story = explain(partial(connect_url, url, autocommit=True), subject)
    story.to_json()
    (match,) = story.matches
    return match


def sweep_once(url: str) -> None:
    connect = partial(connect_url, url, autocommit=True)
    sweep(connect, SweepRequest(environment="test"), {"noop": ScriptedChannel()})


def test_a_key_shows_the_four_facts_and_why_it_was_late(conn: Conn, database_url: str) -> None:
    add_reminders(conn)
    put(conn, weekdays=EVERY_DAY, zone="Asia/Tokyo", catch_up="latest", wall_time=far_time(conn))
    backdate(conn, timedelta(days=7))
    sweep_once(database_url)
    row = conn.execute(
        "select operation_key, intended_local, due_at, ended_at from duebook_reports.occurrences"
        " where result = 'sent'"
    ).fetchone()
    assert row is not None
    key, local, due_at, ended_at = row
    match = match_of(database_url, key)
    (facts,) = [line for line in match.summary if key in line]
    assert f"{local:%Y-%m-%d %H:%M} Asia/Tokyo" in facts
    assert f"due {due_at.astimezone().astimezone(ended_at.tzinfo):%Y}" in facts
    assert f"by tzdb {tzdb_version()}" in facts
    assert "late" in facts
    (answer,) = match.answers
    assert answer.was_sent
    assert "the policy of its schedule sends the newest that is at most 365 d old" in answer.text
    shown = match.to_json()["facts"]["occurrence"]
    assert shown["operation_key"] == key
    assert shown["result"] == "sent"
    assert shown["late_seconds"] > 0
    older = value(
        conn,
        "select operation_key from duebook_reports.occurrences where reason = 'superseded' limit 1",
    )
    (answer,) = match_of(database_url, older).answers
    assert answer.code == "superseded"
    assert "newer)" in answer.text


def test_a_schedule_tells_its_rule_its_dates_and_its_acts(conn: Conn, database_url: str) -> None:
    add_reminders(conn)
    put(conn, weekdays=EVERY_DAY, wall_time=far_time(conn))
    backdate(conn, timedelta(days=30))
    run_passes(conn)
    put(conn, weekdays=EVERY_DAY, wall_time=far_time(conn), catch_up="skip", replace=True)
    match = match_of(database_url, "rent")
    assert match.match == "schedule"
    assert match.summary[0].startswith("rule     every week on MON, TUE, WED")
    assert match.summary[1].startswith("policy   missed: skip, not older than 365 d")
    assert len(match.summary) == 22
    assert len(match.notes) == 1
    assert match.answers[0].code == "schedule_active"
    acts = [event.text for event in match.events if event.event == "decision"]
    assert acts == ["put by pytest", "changed by pytest: catch_up all → skip"]
    conn.execute("select duebook.cancel_schedule('acct', 'rent', 'moved out', 'ann')")
    assert match_of(database_url, "rent").answers[0].code == "schedule_cancelled"
    texts = [answer.text for answer in match_of(database_url, "acct").answers]
    assert any("schedule rent: cancelled" in text for text in texts)


def test_a_key_without_an_intent_says_why(conn: Conn, database_url: str) -> None:
    add_reminders(conn)
    today = clock(conn).date()
    put(conn, weekdays=EVERY_DAY, wall_time=far_time(conn), ends_on=today + timedelta(days=90))
    run_passes(conn)
    for days, code in ((60, "not_written_yet"), (-60, "before_put"), (120, "no_such_date")):
        key = f"remind:noop:rent:{today + timedelta(days=days)}"
        assert match_of(database_url, key).answers[0].code == code
    with pytest.raises(InputError):
        match_of(database_url, f"remind:noop:tent:{today}")


def test_status_counts_schedules_and_says_what_is_not_written(
    conn: Conn, database_url: str
) -> None:
    add_reminders(conn)
    put(conn, weekdays=EVERY_DAY, wall_time=far_time(conn))
    connect = partial(connect_url, database_url, autocommit=True)
    config = parse_config({"provider_accounts": {}, "kinds": {}}, "duebook.toml")
    document = status(connect, config, None, environment="test").to_json()
    assert document["schedules"]["active"] == 1
    backdate(conn, timedelta(days=3))
    needs = str(status(connect, config, None, environment="test").to_json()["needs"])
    assert "dates of 1 schedule are due and not written, the oldest for 3 d" in needs
    run_passes(conn)
    conn.execute("update duebook.schedule set zone_missing_since = clock_timestamp()")
    needs = str(status(connect, config, None, environment="test").to_json()["needs"])
    assert "1 schedule in a zone that is unknown" in needs
    assert "not written" not in needs


def test_a_schedule_of_unknown_holidays_says_that_it_has_no_dates(
    conn: Conn, database_url: str
) -> None:
    add_reminders(conn)
    put(conn, weekdays=EVERY_DAY, business_shift="next", holiday_calendar="ZZ")
    run_passes(conn)
    (state, *_) = match_of(database_url, "rent").answers
    assert "no date can be computed: ZZ is no calendar of holidays here" in state.text


def test_what_an_unknown_zone_holds_is_not_blamed_on_the_contact(
    conn: Conn, database_url: str
) -> None:
    add_reminders(conn)
    # PostgreSQL knows this one, and the calendar does not.
    put(conn, weekdays=EVERY_DAY, zone="Factory")
    run_passes(conn)
    config = parse_config({"provider_accounts": {}, "kinds": {}}, "duebook.toml")
    connect = partial(connect_url, database_url, autocommit=True)
    needs = str(status(connect, config, None, environment="test").to_json()["needs"])
    assert "notices held (zone_unknown)" in needs
    assert "`duebook doctor` names it" in needs
    assert "import the contact" not in needs
