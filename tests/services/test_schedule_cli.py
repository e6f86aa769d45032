"""`duebook schedule put|cancel|list`: what has to be stated, and what is answered."""

from __future__ import annotations

from typing import Any, Final

import psycopg
import pytest

from tests.calendar_work import add_reminders, run_passes, written
from tests.conftest import DuebookCli
from tests.due_work import value

Conn = psycopg.Connection[Any]

STATED: Final = {
    "--kind": "reminder",
    "--weekday": "MON,TUE,WED,THU,FRI,SAT,SUN",
    "--zone": "Europe/Berlin",
    "--time": "09:00",
    "--gap": "later",
    "--overlap": "earlier",
    "--from": "2026-01-01",
    "--catch-up": "latest",
    "--catch-up-window": "P1D",
    "--max-occurrences": "1",
    "--spread-per-minute": "300",
}


@pytest.fixture(autouse=True)
def _kind(conn: Conn) -> None:
    add_reminders(conn, channel="email")


def arguments(changes: dict[str, str | None], *more: str) -> list[str]:
    stated = {**STATED, **changes}
    options = [part for name, text in stated.items() if text is not None for part in (name, text)]
    return ["schedule", "put", "acct", "rent", *options, *more, "--json"]


def test_a_schedule_is_put_listed_edited_and_cancelled(duebook_cli: DuebookCli, conn: Conn) -> None:
    done = duebook_cli.in_process(*arguments({"--message": "title=Rent is due"}))
    assert (done.code, done.stderr) == (0, "")
    assert done.json["done"] == "put"
    assert done.json["next_local"].endswith("T09:00")
    again = duebook_cli.in_process(*arguments({"--message": "title=Rent is due"}))
    assert again.json["done"] == "unchanged"
    other = duebook_cli.in_process(*arguments({"--time": "10:00"}))
    assert other.code == 2
    assert "other content: message, wall_time; state --replace" in other.stderr
    edited = duebook_cli.in_process(*arguments({"--time": "10:00"}, "--replace"))
    assert edited.json["done"] == "edited"
    run_passes(conn)
    assert len(written(conn)) == 7
    listed = duebook_cli.in_process("schedule", "list", "acct", "--json").json
    assert [(one["schedule"], one["waiting"], one["wall_time"]) for one in listed] == [
        ("rent", 7, "10:00")
    ]
    shown = duebook_cli.in_process("schedule", "list").stdout
    assert "every week on MON, TUE" in " ".join(shown.split())
    ended = duebook_cli.in_process(
        "schedule", "cancel", "acct", "rent", "--reason", "over", "--json"
    )
    assert ended.json["ended"] == 7
    gone = duebook_cli.in_process("schedule", "cancel", "acct", "tent", "--reason", "over")
    assert (gone.code, len(gone.stderr.splitlines())) == (2, 1)


def test_what_is_not_stated_or_not_known_is_refused_by_name(
    duebook_cli: DuebookCli, conn: Conn
) -> None:
    for option, text, said in [
        ("--kind", None, "--kind: is missing"),
        ("--gap", None, "--gap: is missing"),
        ("--overlap", None, "--overlap: is missing"),
        ("--catch-up", None, "--catch-up: is missing"),
        ("--catch-up-window", None, "--catch-up-window: is missing"),
        ("--max-occurrences", None, "--max-occurrences: is missing"),
        ("--spread-per-minute", None, "--spread-per-minute: is missing"),
        ("--kind", "nonsense", "kind: expected an enabled kind"),
        ("--channel", "fax", "channel: expected a channel that carries an enabled kind"),
        ("--zone", "Mars/Olympus", "--zone: 'Mars/Olympus' is not in the tz database"),
        ("--time", "25:00", "--time"),
        ("--catch-up", "some", "--catch-up: expected all, latest or skip"),
        ("--catch-up-window", "PT1M", "--catch-up-window: shorter than two sweeps"),
        ("--catch-up-window", "a day", "--catch-up-window: 'a day'"),
        ("--max-occurrences", "-1", "--max-occurrences: '-1' is no whole number"),
        ("--message", "title", "--message: 'title': expected NAME=TEXT"),
        ("--message", "amount_minor=1", "message: "),
        ("--message", "zone=x", "message: "),
    ]:
        done = duebook_cli.in_process(*arguments({option: text}))
        assert done.code == 2, option
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert value(conn, "select count(*) from duebook.schedule") == 0


def test_a_rrule_is_a_rule(duebook_cli: DuebookCli, conn: Conn) -> None:
    text = "RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD"
    done = duebook_cli.in_process(*arguments({"--weekday": None, "--rrule": text}))
    assert (done.code, done.stderr) == (0, "")
    row = conn.execute("select frequency, month_day, absent from duebook.schedule").fetchone()
    assert row == ("monthly", 31, "backward")
