"""`duebook occurrences`: what a rule will do, before anything is stored."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from duebook.commands.calendar import render_occurrences
from tests.conftest import ROOT, DuebookCli, Finished

RULE = {
    "--zone": "America/New_York",
    "--time": "02:30",
    "--weekday": "SUN",
    "--absent": "omit",
    "--gap": "later",
    "--overlap": "earlier",
    "--from": "2026-03-01",
    "--count": "3",
}


@pytest.fixture
def cli(tmp_path: Path) -> DuebookCli:
    """Commands in a place where no database answers."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DUEBOOK_")},
        "PYTHONPATH": str(ROOT / "plugins"),
        "DUEBOOK_HOME": str(tmp_path / "home"),
        "DUEBOOK_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
        "COLUMNS": "100",
    }
    return DuebookCli(environment, tmp_path)


def options(changed: Mapping[str, str | None]) -> list[str]:
    stated = {**RULE, **changed}
    return [part for name, value in stated.items() if value is not None for part in (name, value)]


def ask(cli: DuebookCli, changed: Mapping[str, str | None], *more: str) -> Finished:
    return cli.in_process("occurrences", *options(changed), *more)


def answer(cli: DuebookCli, changed: Mapping[str, str | None]) -> list[dict[str, Any]]:
    found = ask(cli, changed, "--json")
    assert found.code == 0, found.stderr
    assert found.stderr == ""
    return found.json  # type: ignore[no-any-return]


def test_json_of_a_gap_without_any_database(cli: DuebookCli) -> None:
    found = cli("occurrences", *options({}), "--json")
    assert found.code == 0, found.stderr
    assert found.json[1] == {
        "nominal_local": "2026-03-08T02:30",
        "zone": "America/New_York",
        "due_at": "2026-03-08T07:30:00Z",
        "case": "gap",
        "clock_shows": "2026-03-08T03:30",
        "nominal_on": "2026-03-08",
        "is_absent": False,
        "is_shifted": False,
    }
    assert [one["due_at"] for one in found.json] == [
        "2026-03-01T07:30:00Z",
        "2026-03-08T07:30:00Z",
        "2026-03-15T06:30:00Z",
    ]
    assert not (cli.directory / "home").exists()


def test_a_skipped_gap_and_an_omitted_date_are_left_out(cli: DuebookCli) -> None:
    skipped = answer(cli, {"--gap": "skip"})
    assert [one["nominal_local"] for one in skipped] == [
        "2026-03-01T02:30",
        "2026-03-15T02:30",
        "2026-03-22T02:30",
    ]
    omitted = answer(cli, {"--weekday": None, "--day": "31"})
    assert [one["nominal_on"] for one in omitted] == ["2026-03-31", "2026-05-31", "2026-07-31"]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (
            {"--weekday": "wed,MON", "--every": "2"},
            ["2026-03-09T02:30", "2026-03-11T02:30", "2026-03-23T02:30"],
        ),
        (
            {"--weekday": None, "--day": "-1", "--absent": None},
            ["2026-03-31T02:30", "2026-04-30T02:30", "2026-05-31T02:30"],
        ),
        (
            {"--weekday": "TUE", "--nth": "2"},
            ["2026-03-10T02:30", "2026-04-14T02:30", "2026-05-12T02:30"],
        ),
        (
            {"--weekday": None, "--day": "31", "--absent": "forward"},
            ["2026-03-31T02:30", "2026-05-01T02:30", "2026-05-31T02:30"],
        ),
        ({"--count": None, "--until": "2026-03-08"}, ["2026-03-01T02:30", "2026-03-08T02:30"]),
        (
            {"--business-shift": "next", "--holidays": "US-NY"},
            ["2026-03-02T02:30", "2026-03-09T02:30", "2026-03-16T02:30"],
        ),
        (
            {"--weekday": None, "--rrule": "FREQ=WEEKLY;BYDAY=SU", "--absent": None},
            ["2026-03-01T02:30", "2026-03-08T02:30", "2026-03-15T02:30"],
        ),
        (
            {"--weekday": None, "--rrule": "FREQ=WEEKLY;BYDAY=SU;COUNT=1", "--count": None},
            ["2026-03-01T02:30"],
        ),
    ],
)
def test_rules_as_they_are_typed(
    cli: DuebookCli, changed: Mapping[str, str | None], expected: list[str]
) -> None:
    assert [one["nominal_local"] for one in answer(cli, changed)] == expected


def test_weekdays_may_be_stated_one_by_one(cli: DuebookCli) -> None:
    found = ask(cli, {"--weekday": "WED"}, "--weekday", "MON", "--json").json
    assert [one["nominal_on"] for one in found] == ["2026-03-02", "2026-03-04", "2026-03-09"]


def test_a_rule_without_an_end_is_shown_for_five_years(cli: DuebookCli) -> None:
    found = answer(cli, {"--count": None, "--from": "2026-03-08"})
    assert (found[0]["nominal_on"], found[-1]["nominal_on"]) == ("2026-03-08", "2031-03-02")
    leap = answer(cli, {"--count": None, "--from": "2028-02-29", "--weekday": "MON"})
    assert leap[-1]["nominal_on"] == "2033-02-28"


def test_a_shifted_row_keeps_its_nominal_date(cli: DuebookCli) -> None:
    (found,) = answer(cli, {"--count": "1", "--business-shift": "previous", "--holidays": "DE"})
    assert found["is_shifted"] is True
    assert found["nominal_on"] == "2026-03-01"
    assert found["nominal_local"] == "2026-02-27T02:30"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"--zone": None}, "--zone: is missing"),
        ({"--zone": "Mars/Olympus"}, "--zone: 'Mars/Olympus' is not in the tz database"),
        ({"--zone": "america/new_york"}, "--zone: 'america/new_york'"),
        ({"--time": None}, "--time: is missing"),
        ({"--time": "25:00"}, "--time: '25:00'"),
        ({"--time": "9:00"}, "--time: '9:00'"),
        ({"--from": None}, "--from: is missing"),
        ({"--from": "2026-02-30"}, "--from: 2026-02-30 is not in the calendar"),
        ({"--from": "1. 3. 2026"}, "--from: '1. 3. 2026' is no date"),
        ({"--weekday": None}, "--day: state --weekday, --day"),
        ({"--weekday": None, "--nth": "2"}, "--weekday: state"),
        ({"--weekday": "SUN,MONDAY"}, "--weekday: 'MONDAY' is none of MON"),
        ({"--weekday": "SUN,SUN"}, "--weekday: SUN, SUN names a day twice"),
        ({"--day": "5"}, "--day: a monthly rule has a day or an n-th weekday"),
        ({"--weekday": None, "--day": "0"}, "--day: 0 is not 1 to 31"),
        ({"--weekday": None, "--day": "32"}, "--day: 32 is not 1 to 31"),
        ({"--weekday": None, "--day": "five"}, "--day: 'five' is no whole number"),
        ({"--nth": "6"}, "--nth: 6 is not 1 to 5"),
        ({"--every": "0"}, "--every: 0 is not"),
        ({"--count": "0"}, "--count: 0 is not"),
        ({"--until": "2026-02-28"}, "--until: 2026-02-28 is before the start"),
        ({"--gap": None}, "--gap: is missing; state what a time that the clock skips does"),
        ({"--overlap": None}, "--overlap: is missing"),
        ({"--gap": "both"}, "--gap: 'both' is none of skip, earlier, later"),
        ({"--weekday": None, "--day": "29", "--absent": None}, "--absent: state what"),
        ({"--nth": "5", "--absent": None}, "--absent: state what"),
        ({"--absent": "snap"}, "--absent: 'snap' is none of omit, backward, forward"),
        ({"--business-shift": "next"}, "--holidays: a business shift needs one"),
        ({"--business-shift": "next", "--holidays": "XX"}, "--holidays: 'XX' is no calendar"),
        ({"--holidays": "DE"}, "--holidays: is used by a business shift only"),
        ({"--rrule": "FREQ=WEEKLY"}, "--weekday: is said by --rrule"),
        ({"--weekday": None, "--rrule": "FREQ=HOURLY"}, "--rrule: FREQ HOURLY is not"),
        ({"--weekday": None, "--rrule": "FREQ=WEEKLY;BYSETPOS=1"}, "--rrule: BYSETPOS can't"),
        ({"--weekday": None, "--rrule": "FREQ=WEEKLY;COUNT=2"}, "--count: --rrule has its own"),
        (
            {"--weekday": None, "--rrule": "FREQ=MONTHLY", "--absent": "forward"},
            "--absent: forward contradicts --rrule",
        ),
        (
            {"--weekday": None, "--day": "31", "--every": "12", "--from": "2026-02-01"},
            "--day: no month that it meets, every 12 from 2026-02",
        ),
    ],
)
def test_a_bad_rule_is_one_line_that_names_the_option(
    cli: DuebookCli, changed: Mapping[str, str | None], said: str
) -> None:
    found = ask(cli, changed, "--json")
    assert found.code == 2
    assert said in found.stderr
    assert found.stderr.count("\n") == 1
    assert said in json.loads(found.stdout)["error"]


def test_the_table_marks_what_the_clock_and_the_calendar_did(cli: DuebookCli) -> None:
    shown = ask(cli, {"--count": None, "--until": "2026-11-30", "--time": "01:30"}).stdout
    assert "Sun 2026-11-01 01:30   2026-11-01 05:30   overlap" in shown
    assert "40 occurrences, 1 overlap" in shown
    assert "\n1 occurrence\n" in ask(cli, {"--count": "1"}).stdout
    assert "no RRULE: it has no form for gap" in shown
    absent = {"--weekday": None, "--day": "31", "--absent": "forward", "--gap": "skip"}
    shown = ask(cli, {**absent, "--count": "2", "--from": "2026-01-31"}).stdout
    assert "Sun 2026-03-01 02:30   2026-03-01 07:30   absent" in shown
    assert "RRULE:RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;SKIP=FORWARD;COUNT=2" in shown
    shifted = {"--business-shift": "next", "--holidays": "US-NY", "--count": "1"}
    shown = ask(cli, shifted).stdout
    assert "Mon 2026-03-02 02:30   2026-03-02 07:30          from Sun 2026-03-01" in shown


def test_a_rule_that_ends_before_its_first_shown_date_shows_an_empty_table() -> None:
    shown = io.StringIO()
    render_occurrences([], Console(file=shown, width=80))
    assert "0 occurrences" in shown.getvalue()


def documented() -> list[tuple[str, str]]:
    text = (ROOT / "docs" / "calendar.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n\$ duebook (occurrences .*?)^```", text, re.M | re.S)
    return [(command, shown) for command, _, shown in (each.partition("\n") for each in blocks)]


@pytest.mark.parametrize(("command", "expected"), documented())
def test_the_documented_output_is_real(cli: DuebookCli, command: str, expected: str) -> None:
    found = cli.in_process(*shlex.split(command))
    lines = [line.rstrip() for line in (found.stdout + found.stderr).splitlines()]
    assert "\n".join(lines).strip("\n") == expected.strip("\n")


def test_the_documents_show_the_command() -> None:
    assert len(documented()) >= 3
