"""Incidents: freeze, preview, resume, close."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table

from duebook.errors import InputError
from duebook.session import AsJson, Session, open_session

if TYPE_CHECKING:
    from duebook.services.incident import Sample

incident_app = typer.Typer(
    no_args_is_help=True, help="From open, which freezes manual replay, to close with its report."
)

Document = Mapping[str, Any]
Name = Annotated[str | None, typer.Argument(help="The open incident; default: whichever it is.")]

# On a terminal the live table shows so many of the newest samples.
_SHOWN: Final = 15
_REFUSED: Final = 2
_WHY: Final = {
    "not_resumed": "its sweeps are still paused: `duebook incident resume` first",
    "differs": "what was due and its outcomes differ",
    "oldest_due": "the oldest due row is outside the stated band",
}


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.add_typer(incident_app, name="incident")


@incident_app.command("open")
def incident_open(
    name: Annotated[str, typer.Option("--name", help="Said in every refusal.")],
    reason: Annotated[str, typer.Option("--reason", help="What happened; kept with your name.")],
    band: Annotated[
        str,
        typer.Option(
            "--band",
            metavar="PT5M",
            help="It can be closed only while nothing has been due for longer.",
        ),
    ],
    pause_sweep: Annotated[
        bool, typer.Option("--pause-sweep", help="Sweeps claim nothing until it is resumed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Freeze manual replay everywhere, and the sweeps where asked; one is open at a time."""
    from duebook.services import incident

    session = open_session(as_json)
    document = incident.open_incident(
        session.connect(),
        name=name,
        reason=reason,
        band=_duration(band, "--band"),
        pauses_sweep=pause_sweep,
        by=session.settings.operator,
    )
    session.show(document, render_open)


@incident_app.command("preview")
def incident_preview(
    lift: Annotated[
        list[str] | None,
        typer.Option("--lift", help="A pause to be lifted too: all, kind:…, channel:…, account:…"),
    ] = None,
    longest: Annotated[
        str, typer.Option("--longest", metavar="PT45S", help="Give up after so long.")
    ] = "PT45S",
    as_json: AsJson = False,
) -> None:
    """Say what a resume would do now: so many sent, expired, coalesced, deferred, at what rate."""
    from duebook.services.operate import preview_resume

    session = open_session(as_json)
    document = preview_resume(
        session.connect(),
        session.settings,
        lift=lift or (),
        longest=_duration(longest, "--longest"),
    )
    session.show(document, render_preview)


@incident_app.command("resume")
def incident_resume(
    name: Name = None,
    here: Annotated[
        bool, typer.Option("--here", help="Also send from this process, meanwhile.")
    ] = False,
    longest: Annotated[
        str | None, typer.Option("--for", metavar="PT10M", help="Watch no longer than this.")
    ] = None,
    every: Annotated[
        str, typer.Option("--every", metavar="PT2S", help="Look so often, once a second at most.")
    ] = "PT2S",
    as_json: AsJson = False,
) -> None:
    """Let the sweeps go on, and watch the backlog fall until it is clear (or Ctrl-C)."""
    from duebook.services import incident
    from duebook.services.operate import sweep_due
    from duebook.services.resume import follow

    most = None if longest is None else _duration(longest, "--for")
    pause = _duration(every, "--every")
    session = open_session(as_json)
    connect = session.connect()
    document = incident.resume_incident(connect, name, by=session.settings.operator)
    with _showing(session) as show:
        followed = follow(
            connect,
            document["incident_id"],
            every=pause,
            longest=most,
            show=show,
            sweep_once=(lambda stop: sweep_due(connect, session.settings, should_stop=stop))
            if here
            else None,
        )
    session.show({**document, **followed.to_json()}, render_resumed)
    raise typer.Exit(0 if followed.is_clear else 1)


@incident_app.command("close")
def incident_close(name: Name = None, as_json: AsJson = False) -> None:
    """Close it with its report, unless what was due and its outcomes differ."""
    from duebook.services import incident

    session = open_session(as_json)
    document = incident.close_incident(session.connect(), name, by=session.settings.operator)
    session.show(document, render_report)
    raise typer.Exit(_REFUSED if document["refused"] else 0)


@incident_app.command("report")
def incident_report(name: str, as_json: AsJson = False) -> None:
    """Print the report of a closed incident, or what an open one comes to as of now."""
    from duebook.services import incident

    session = open_session(as_json)
    session.show(incident.read_report(session.connect(), name), render_report)


@incident_app.command("list")
def incident_list(as_json: AsJson = False) -> None:
    """Every incident, the newest first."""
    from duebook.services import incident

    session = open_session(as_json)
    session.show(incident.list_incidents(session.connect()), render_list)


def _duration(text: str, name: str) -> timedelta:
    from duebook.config import parse_duration

    try:
        found = parse_duration(text)
    except ValueError:
        found = None
    if not isinstance(found, timedelta):
        raise InputError(f"{name}: {text!r} is no ISO 8601 duration such as PT5M")
    if found <= timedelta(0):
        raise InputError(f"{name}: {text!r} is no time at all; expected more than nothing, as PT5M")
    return found


# ---- what a person sees ----------------------------------------------------------------------


def render_open(document: Document, console: Console) -> None:
    """What is frozen now, and what goes on."""
    _say(
        console,
        f"incident {document['name']} is open: sweep, reconcile, resend, rebuild and manual DAG "
        "runs are refused until it is closed",
    )
    if document["pauses_sweep"]:
        _say(console, "sweeps claim nothing until `duebook incident resume`")
        if document["batches"]:
            _say(
                console,
                f"{document['batches']:,} batches are with senders, which end their window first",
            )
    else:
        _say(console, "sweeps go on")
    _say(console, f"due now: {document['due']:,}")


def render_preview(document: Document, console: Console) -> None:
    """What would become of what is due, by channel-independent counts, and the policies."""
    console.print(
        f"As of {_clock(document['as_of'])}, if it were resumed now"
        + (f" (lifted: {', '.join(document['lifted'])})" if document["lifted"] else "")
        + ":",
        markup=False,
        highlight=False,
    )
    table = _table("becomes", "reason", right=("intents",))
    for what, reason, count in _preview_rows(document):
        table.add_row(what, reason, f"{count:,}")
    table.add_section()
    table.add_row("due", "", f"{document['due']:,}")
    console.print(table)
    lasts = document["lasts_s"]
    length = "never ends at the rates that are set" if lasts is None else f"lasts {_span(lasts)}"
    _say(console, f"peak {document['peak_per_minute']:,} a minute, {length}")
    _policies(document["policies"], console)


def _preview_rows(document: Document) -> Iterator[tuple[str, str, int]]:
    yield "sent at once", "", document["send"]
    yield "holds that expire", "", document["internal"]
    for reason, count in document["expire"].items():
        yield "expires", reason, count
    for name, what, reason in (
        ("coalesce", "expires", "superseded (coalesced)"),
        ("in_doubt", "in doubt", ""),
        ("in_flight", "with a sender", ""),
        ("proposed", "a proposal", ""),
    ):
        if document[name]:
            yield what, reason, document[name]
    for reason, count in document["defer"].items():
        yield "later", reason, count
    for cause, count in document["hold"].items():
        yield "held", cause, count


def render_resumed(document: Document, console: Console) -> None:
    """How it stands when the watching ended."""
    if not document["resumed"]:
        _say(console, f"incident {document['name']} had been resumed before")
    if document["calendar"]:
        _say(console, f"no occurrence was written: {document['calendar']}")
    last = document["samples"][-1]
    if document["cleared"]:
        _say(console, f"nothing is due any more: {last['ended']:,} have ended")
    else:
        _say(
            console, f"{last['due']:,} are still due, the oldest for {_span(last['oldest_due_s'])}"
        )
    if last["later"]:
        _say(console, f"{last['later']:,} go later, the last at {_clock(last['last_at'])}")
    if last["in_doubt"]:
        _say(console, f"{last['in_doubt']:,} are in doubt: see `duebook doubts`")
    if document["here"] is not None:
        _say(console, f"sent from here: {document['here']['sent']:,}")


def render_report(document: Document, console: Console) -> None:
    """The report: times and people, outcomes, what stands elsewhere, policies, doubts."""
    for why in document.get("refused") or ():
        _say(console, f"not closed: {_WHY[why]}")
    _heading(document, console)
    table = _table("what was due", "reason", right=("intents",))
    for what, reason, count in _report_rows(document):
        table.add_row(what, reason, f"{count:,}")
    table.add_section()
    table.add_row("noted", "", f"{document['due']:,}")
    console.print(table)
    if document["differing_keys"]:
        _say(console, "What differs (the first 20):")
        for row in document["differing_keys"]:
            _say(console, f"  {row['operation_key']}  {row['account_id']}  {row['place']}")
    _say(
        console,
        f"due now: {document['backlog']:,}, the oldest for {_span(document['oldest_due_s'])} "
        f"(band {_span(document['band_s'])})",
    )
    _curve(document["samples"], console)
    _policies(document["policies"], console)
    for pause in document["pauses"]:
        what = pause["scope"] if pause["scope"] == "all" else f"{pause['scope']}:{pause['name']}"
        _say(
            console,
            f"paused: {what} ({pause['mode']}) by {pause['by']} since {_clock(pause['at'])}",
        )
    for change in document["policy_changes"]:
        _say(
            console,
            f"changed meanwhile: {change['subject']} ({change['action']} by {change['by']}, "
            f"{_clock(change['at'])})",
        )
    _doubts(document, console)


def _heading(document: Document, console: Console) -> None:
    _say(console, f"incident {document['name']}: {document['reason']}")
    for done in ("opened", "resumed", "closed"):
        at = document[f"{done}_at"]
        if at is not None:
            _say(console, f"  {done:<8} {_clock(at)} by {document[f'{done}_by']}")
    _say(console, f"  lasted   {_span(document['lasted_s'])}")


def _report_rows(document: Document) -> Iterator[tuple[str, str, int]]:
    outcomes, elsewhere = document["outcomes"], document["elsewhere"]
    yield "sent", "", outcomes["sent"]
    if outcomes["done"]:
        yield "done (holds expired)", "", outcomes["done"]
    for reason, count in outcomes["expired"].items():
        yield "expired", reason, count
    for cause, count in elsewhere["held"].items():
        yield "held", cause, count
    for reason, count in elsewhere["later"].items():
        yield "later", reason, count
    for name, what in (
        ("due_again", "due again, within the band"),
        ("in_doubt", "in doubt"),
        ("proposed", "a proposal"),
    ):
        if elsewhere[name]:
            yield what, "", elsewhere[name]
    for place, count in document["differs"].items():
        yield "DIFFERS", place, count


def _curve(samples: Sequence[Document], console: Console) -> None:
    if not samples:
        return
    step = -(-len(samples) // 10)
    table = _samples_table()
    for sample in [*samples[:-1:step], samples[-1]]:
        _add_sample(table, sample)
    console.print(table)


def _policies(policies: Sequence[Document], console: Console) -> None:
    if not policies:
        return
    table = _table(
        "kind", "catch-up", right=("window", "at most", "a minute", "schedules", "intents")
    )
    for policy in policies:
        window = policy["catch_up_window_s"]
        table.add_row(
            policy["kind"],
            policy["catch_up"],
            "" if window is None else _span(window),
            _number(policy["max_occurrences"]),
            _number(policy["spread_per_minute"]),
            _number(policy["schedules"] or None),
            f"{policy['intents']:,}",
        )
    console.print(table)


def _doubts(document: Document, console: Console) -> None:
    _say(console, f"in doubt: {document['in_doubt'] or 'nothing'}")
    for row in document["in_doubt_keys"][:20]:
        _say(
            console,
            f"  {row['operation_key']}  {row['account_id']}  {row['cause']} "
            f"since {_clock(row['since'])}",
        )


def render_list(document: Sequence[Document], console: Console) -> None:
    """One line an incident."""
    if not document:
        _say(console, "there was none")
        return
    table = _table("incident", "state", "opened", "by", "reason")
    for row in document:
        table.add_row(
            row["name"], row["state"], _clock(row["opened_at"]), row["opened_by"], row["reason"]
        )
    console.print(table)


@contextlib.contextmanager
def _showing(session: Session) -> Iterator[Callable[[Sample], None]]:
    """How samples are shown: a live table on a terminal, a line each elsewhere, nothing in JSON."""
    console = session.console
    if session.as_json:
        yield lambda sample: None
        return
    if not console.is_terminal:
        yield lambda sample: _say(console, _line(sample.to_json()))
        return
    newest: list[Document] = []
    with Live(_samples_table(), console=console, auto_refresh=False) as live:

        def show(sample: Sample) -> None:
            newest.append(sample.to_json())
            table = _samples_table()
            for each in newest[-_SHOWN:]:
                _add_sample(table, each)
            live.update(table, refresh=True)

        yield show


def _samples_table() -> Table:
    return _table("time", right=("due", "oldest due", "in doubt", "sent", "ended", "later"))


def _add_sample(table: Table, sample: Document) -> None:
    table.add_row(
        _clock(sample["at"]),
        f"{sample['due']:,}",
        _span(sample["oldest_due_s"]),
        f"{sample['in_doubt']:,}",
        f"{sample['sent']:,}",
        f"{sample['ended']:,}",
        f"{sample['later']:,}",
    )


def _line(sample: Document) -> str:
    return (
        f"{_clock(sample['at'])}  due {sample['due']:,}, the oldest for "
        f"{_span(sample['oldest_due_s'])}; in doubt {sample['in_doubt']:,}; "
        f"sent {sample['sent']:,}; ended {sample['ended']:,}; later {sample['later']:,}"
    )


def _table(*left: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    return table


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _clock(text: str) -> str:
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _span(seconds: float) -> str:
    from duebook.services.story import span

    return span(timedelta(seconds=int(seconds)))
