"""What recipients decided, whom a channel must not reach, and who is to be forgotten."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console

from duebook.instants import parse_instant
from duebook.session import AsJson, open_session

Account = Annotated[str, typer.Argument(help="Customer account.")]
Channel = Annotated[str, typer.Argument(help="Channel.")]


class Decision(StrEnum):
    """What an account decided."""

    grant = "grant"
    refuse = "refuse"


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.command("consent")(consent)
    app.command("suppress")(suppress)
    app.command("erase")(erase)


def consent(
    account: Account,
    kind: Annotated[str, typer.Argument(help="Kind of notice, or '*' for all.")],
    channel: Annotated[str, typer.Argument(help="Channel, or '*' for all.")],
    decision: Annotated[Decision, typer.Argument(help="What was decided.")],
    source: Annotated[str, typer.Option("--source", help="Where it was said, e.g. a form.")],
    at: Annotated[
        str | None, typer.Option("--at", help="When, ISO 8601 with offset; default: now.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Record what an account decided about a kind of notice; the newest decision counts."""
    from duebook.services.consent import record_consent

    session = open_session(as_json)
    document = record_consent(
        session.connect(),
        account_id=account,
        kind=kind,
        channel=channel,
        granted=decision is Decision.grant,
        source=source,
        decided_at=parse_instant(at, "--at"),
    )
    session.show(document, _render)


def suppress(
    account: Account,
    channel: Channel,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept with your name.")],
    lift: Annotated[bool, typer.Option("--lift", help="Let the channel reach it again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Stop a channel for an account until it is lifted."""
    from duebook.services.consent import lift_suppression, put_suppression

    session = open_session(as_json)
    act = lift_suppression if lift else put_suppression
    document = act(
        session.connect(),
        account_id=account,
        channel=channel,
        reason=reason,
        by=session.settings.operator,
    )
    session.show(document, _render)


def erase(
    account: Account,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept with your name.")],
    as_json: AsJson = False,
) -> None:
    """Take out what says who an account is; outcomes stay, under its id."""
    from duebook.services.consent import erase_person

    session = open_session(as_json)
    document = erase_person(
        session.connect(), account_id=account, reason=reason, by=session.settings.operator
    )
    session.show(document, _render_erased)


def _render_erased(document: Any, console: Console) -> None:
    told = ", ".join(f"{n} {what.replace('_', ' ')}" for what, n in document["erased"].items())
    console.print(f"erased of account {document['account_id']}: {told}", soft_wrap=True)


def _render(document: Any, console: Console) -> None:
    console.print(f"{document['done']}: account {document['account_id']}", soft_wrap=True)
