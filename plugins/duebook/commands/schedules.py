"""Schedules: put, cancel, list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from duebook.commands.calendar import (
    Absent,
    BusinessShift,
    Count,
    Every,
    From,
    Gap,
    Holidays,
    MonthDay,
    Nth,
    Overlap,
    Rrule,
    Time,
    Until,
    Weekdays,
    Zone,
)
from duebook.session import AsJson, open_session

if TYPE_CHECKING:
    from duebook.domain.catch_up import CatchUpPolicy

schedule_app = typer.Typer(no_args_is_help=True, help="Weekly and monthly rules.")

Account = Annotated[str, typer.Argument(help="Customer account.")]
Name = Annotated[str, typer.Argument(help="Name of the schedule, unique for the account.")]
Kind = Annotated[str | None, typer.Option("--kind", help="Kind of notice, as in duebook.toml.")]
CatchUp = Annotated[
    str | None,
    typer.Option("--catch-up", metavar="all|latest|skip", help="What happens to missed ones."),
]
CatchUpWindow = Annotated[
    str | None,
    typer.Option("--catch-up-window", metavar="P1D", help="How old a missed one may be."),
]
MaxOccurrences = Annotated[
    str | None,
    typer.Option("--max-occurrences", metavar="N", help="At most so many missed ones are sent."),
]
SpreadPerMinute = Annotated[
    str | None, typer.Option("--spread-per-minute", metavar="N", help="Rate while catching up.")
]
Messages = Annotated[
    list[str] | None,
    typer.Option("--message", metavar="NAME=TEXT", help="A text for the template; repeat it."),
]
Channel = Annotated[
    str | None, typer.Option("--channel", help="Carried by this one; default: its kind's.")
]
Replace = Annotated[
    bool, typer.Option("--replace", help="It may be there with other content, or cancelled.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.add_typer(schedule_app, name="schedule")


@schedule_app.command("put")
def schedule_put(
    account: Account,
    name: Name,
    kind: Kind = None,
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
    catch_up: CatchUp = None,
    catch_up_window: CatchUpWindow = None,
    max_occurrences: MaxOccurrences = None,
    spread_per_minute: SpreadPerMinute = None,
    message: Messages = None,
    channel: Channel = None,
    replace: Replace = False,
    as_json: AsJson = False,
) -> None:
    """Put a schedule: its rule and its policy, each of which has to be stated."""
    from duebook.services.occurrences import RuleText, read_rule
    from duebook.services.schedule import ScheduleRequest, put_schedule

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
    request = ScheduleRequest(
        account_id=account,
        schedule=name,
        kind=_stated("--kind", kind, "a kind of duebook.toml, such as reminder"),
        rule=rule,
        catch_up=_policy(catch_up, catch_up_window, max_occurrences, spread_per_minute),
        message=_texts(message or ()),
        channel=channel,
        replace=replace,
    )
    session = open_session(as_json)
    document = put_schedule(session.connect(), request, by=session.settings.operator)
    session.show(document, _render_put)


@schedule_app.command("cancel")
def schedule_cancel(
    account: Account,
    name: Name,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the audit trail.")],
    as_json: AsJson = False,
) -> None:
    """Cancel a schedule: what waits ends, and nothing more is written."""
    from duebook.services.schedule import cancel_schedule

    session = open_session(as_json)
    document = cancel_schedule(
        session.connect(), account, name, reason=reason, by=session.settings.operator
    )
    session.show(document, _render_cancelled)


@schedule_app.command("list")
def schedule_list(
    account: Annotated[
        str | None, typer.Argument(help="Customer account; default: the first 1,000 of all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List schedules, with their rules and what is due next."""
    from duebook.services.schedule import list_schedules

    session = open_session(as_json)
    session.show(list_schedules(session.connect(), account), _render_list)


def _policy(
    mode: str | None, window: str | None, most: str | None, spread: str | None
) -> CatchUpPolicy:
    from duebook.config import parse_duration
    from duebook.domain.catch_up import CatchUpPolicy
    from duebook.errors import ConfigurationError, InputError

    stated = _stated("--catch-up", mode, "what happens to missed ones: all, latest or skip")
    text = _stated("--catch-up-window", window, "how old a missed one may be: PT1H, P1D")
    try:
        span = parse_duration(text)
    except (ValueError, OverflowError) as error:
        raise InputError(f"--catch-up-window: {text!r}: {error}") from None
    try:
        return CatchUpPolicy(
            stated,  # type: ignore[arg-type]
            span,
            _whole("--max-occurrences", most, "at most how many missed ones are sent"),
            _whole("--spread-per-minute", spread, "how many a minute while catching up"),
        )
    except ConfigurationError as error:
        raise InputError(f"--{str(error).replace('_', '-')}") from None


def _stated(option: str, value: str | None, what: str) -> str:
    from duebook.errors import InputError

    if value is None or not value.strip():
        raise InputError(f"{option}: is missing; state {what}")
    return value


def _whole(option: str, value: str | None, what: str) -> int:
    from duebook.errors import InputError

    text = _stated(option, value, what)
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InputError(f"{option}: {text!r} is no whole number from 1")
    return int(text)


def _texts(pairs: Sequence[str]) -> dict[str, str]:
    from duebook.errors import InputError

    texts: dict[str, str] = {}
    for pair in pairs:
        name, found, text = pair.partition("=")
        if not found or not name or name in texts:
            raise InputError(f"--message: {pair!r}: expected NAME=TEXT, each name once")
        texts[name] = text
    return texts


def _render_put(document: Mapping[str, Any], console: Console) -> None:
    name = f"schedule {document['schedule']} of account {document['account_id']}"
    console.print(f"{document['done']}: {name}", highlight=False, markup=False)
    console.print(f"  {document['rule']}", highlight=False, markup=False, soft_wrap=True)
    following = "no date is left"
    if document["next_on"] is not None:
        following = f"next {document['next_local'].replace('T', ' ')} {document['zone']}"
        following += f" ({document['next_due_at']})"
    console.print(f"  {following}", highlight=False, markup=False)


def _render_cancelled(document: Mapping[str, Any], console: Console) -> None:
    name = f"schedule {document['schedule']} of account {document['account_id']}"
    if not document["cancelled"]:
        console.print(f"{name} was cancelled before", highlight=False, markup=False)
        return
    counts = f"{document['ended']} ended"
    if document["requested"]:
        counts += f", {document['requested']} with a sender are asked not to be sent"
    console.print(f"cancelled {name}: {counts}", highlight=False, markup=False)


def _render_list(found: Sequence[Mapping[str, Any]], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("account", "schedule", "state", "waiting", "next, UTC", "rule"):
        table.add_column(title, overflow="fold")
    for one in found:
        due = one["next_due_at"]
        table.add_row(
            one["account_id"],
            one["schedule"],
            one["state"],
            str(one["waiting"]),
            "" if due is None else due[:16].replace("T", " "),
            one["rule"],
        )
    console.print(table)
