"""Schedules and the preview of their occurrences."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Any, Final

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from duebook.session import AsJson, open_session

# The options of a rule, the same wherever one is stated; `services.occurrences` reads them.
Zone = Annotated[str | None, typer.Option("--zone", help="IANA time zone of the wall time.")]
Time = Annotated[str | None, typer.Option("--time", metavar="HH:MM", help="Local time of day.")]
Weekdays = Annotated[
    list[str] | None,
    typer.Option("--weekday", metavar="MON,WED", help="Each week, or with --nth; repeatable."),
]
MonthDay = Annotated[
    str | None, typer.Option("--day", metavar="1..31|-1", help="Day of the month; -1: the last.")
]
Nth = Annotated[
    str | None,
    typer.Option("--nth", metavar="1..5|-1", help="Which --weekday of a month; -1: the last."),
]
Every = Annotated[
    str | None, typer.Option("--every", metavar="N", help="Every n weeks or months from --from.")
]
BusinessShift = Annotated[
    str | None,
    typer.Option("--business-shift", metavar="next|previous", help="Off weekends and holidays."),
]
Holidays = Annotated[
    str | None, typer.Option("--holidays", metavar="DE|US-NY|ECB", help="Whose holidays count.")
]
Absent = Annotated[
    str | None,
    typer.Option(
        "--absent", metavar="omit|backward|forward", help="A day that the month does not have."
    ),
]
Gap = Annotated[
    str | None,
    typer.Option("--gap", metavar="skip|earlier|later", help="A time that the clock skips."),
]
Overlap = Annotated[
    str | None, typer.Option("--overlap", metavar="earlier|later", help="A time that comes twice.")
]
From = Annotated[
    str | None, typer.Option("--from", metavar="DATE", help="First date; anchors --every.")
]
Until = Annotated[str | None, typer.Option("--until", metavar="DATE", help="Last date.")]
Count = Annotated[
    str | None, typer.Option("--count", metavar="N", help="At most so many occurrences.")
]
Rrule = Annotated[
    str | None, typer.Option("--rrule", metavar="TEXT", help="An iCalendar RRULE says the dates.")
]

_PIPE_WIDTH: Final = 200
_STYLES: Final = {"gap": "yellow", "overlap": "yellow", "absent": "cyan"}


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    from duebook.commands import schedules

    app.command("occurrences")(preview_occurrences)
    schedules.register(app)


def preview_occurrences(
    zone: Zone = None,
    wall_time: Time = None,
    weekdays: Weekdays = None,
    month_day: MonthDay = None,
    nth: Nth = None,
    every: Every = None,
    business_shift: BusinessShift = None,
    holiday_calendar: Holidays = None,
    absent: Absent = None,
    gap: Gap = None,
    overlap: Overlap = None,
    starts_on: From = None,
    ends_on: Until = None,
    count: Count = None,
    rrule: Rrule = None,
    as_json: AsJson = False,
) -> None:
    """Preview when a rule falls due: to its end, or for five years. Needs no database."""
    from duebook.services.occurrences import (
        RuleText,
        describe_rrule,
        occurrence_document,
        preview,
        read_rule,
    )

    session = open_session(as_json)
    rule = read_rule(
        RuleText(
            zone=zone,
            wall_time=wall_time,
            starts_on=starts_on,
            weekdays=weekdays,
            month_day=month_day,
            nth=nth,
            every=every,
            business_shift=business_shift,
            holiday_calendar=holiday_calendar,
            absent=absent,
            gap=gap,
            overlap=overlap,
            ends_on=ends_on,
            count=count,
            rrule=rrule,
        )
    )
    documents = [occurrence_document(one) for one in preview(rule)]

    def render(found: Sequence[Mapping[str, Any]], console: Console) -> None:
        render_occurrences(found, console)
        console.print(describe_rrule(rule), style="dim", soft_wrap=True, highlight=False)

    session.show(documents, render)


def render_occurrences(found: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Local time beside UTC; what the clock or the calendar did to a row is marked."""
    zone = found[0]["zone"] if found else ""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in (zone, "UTC", "case", ""):
        table.add_column(title, no_wrap=True)
    for one in found:
        local = datetime.fromisoformat(one["nominal_local"])
        due = datetime.fromisoformat(one["due_at"])
        case = str(one["case"])
        note = _note(one)
        table.add_row(
            f"{local:%a %Y-%m-%d %H:%M}",
            f"{due:%Y-%m-%d %H:%M}",
            "" if case == "exact" else case,
            note,
            style=_STYLES.get(case, "magenta" if note else ""),
        )
    # A pipe has no width to keep to.
    console.print(table, highlight=False, width=None if console.is_terminal else _PIPE_WIDTH)
    console.print(_summary(found), highlight=False, soft_wrap=True)


def _note(one: Mapping[str, Any]) -> str:
    notes = []
    if one["clock_shows"] != one["nominal_local"]:
        notes.append(f"clock shows {datetime.fromisoformat(one['clock_shows']):%a %H:%M}")
    if one["is_absent"] and one["case"] != "absent":
        notes.append("absent date")
    if one["is_shifted"]:
        notes.append(f"from {date.fromisoformat(one['nominal_on']):%a %Y-%m-%d}")
    return ", ".join(notes)


def _summary(found: Iterable[Mapping[str, Any]]) -> str:
    """`60 occurrences, 2 absent, 12 shifted`."""
    first, second = itertools.tee(found)
    cases = Counter(one["case"] for one in first)
    cases["shifted"] = sum(1 for one in second if one["is_shifted"])
    total = sum(cases.values()) - cases["shifted"]
    parts = [f"{total:,} {'occurrence' if total == 1 else 'occurrences'}"]
    marked = ("gap", "overlap", "absent", "shifted")
    return ", ".join(parts + [f"{cases[case]:,} {case}" for case in marked if cases[case]])
