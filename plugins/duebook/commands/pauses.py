"""Pause and resume, by kind, channel, account or all."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console

from duebook.session import AsJson, open_session

Target = Annotated[
    str, typer.Argument(help="all, kind:<kind>, channel:<channel> or account:<account>.")
]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept with your name.")]


class Mode(StrEnum):
    """What becomes of intents that come due while they are paused."""

    hold = "hold"
    drop = "drop"


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.command("pause")(pause)
    app.command("resume")(resume)


def pause(
    target: Target,
    mode: Annotated[
        Mode,
        typer.Option(
            "--mode",
            help="hold: judged by their catch-up policy on resume. drop: they end unsent.",
        ),
    ],
    reason: Reason,
    as_json: AsJson = False,
) -> None:
    """Send nothing of a kind, a channel, an account or at all; holds expire all the same."""
    from duebook.services.pause import pause as stop

    session = open_session(as_json)
    operator = session.settings.operator
    document = stop(session.connect(), target, mode=mode.value, reason=reason, by=operator)
    session.show(document, render_pause)


def resume(target: Target, reason: Reason, as_json: AsJson = False) -> None:
    """End a pause; what it held goes back by the next sweeps, each judged by its policy."""
    from duebook.services.pause import resume as go_on

    session = open_session(as_json)
    operator = session.settings.operator
    document = go_on(session.connect(), target, reason=reason, by=operator)
    session.show(document, render_resume)


def render_pause(document: Any, console: Console) -> None:
    """One line: what is paused, and what that means."""
    meaning = {
        "hold": "what comes due is held until `duebook resume`",
        "drop": "what comes due ends unsent (dropped)",
    }[document["mode"]]
    again = {"paused": "", "changed": ", in place of the pause before", "unchanged": " already"}
    console.print(
        f"{document['target']} is paused{again[document['done']]}: {meaning}",
        markup=False,
        highlight=False,
    )


def render_resume(document: Any, console: Console) -> None:
    """One line: what was resumed, and how many intents go back."""
    if document["done"] == "not_paused":
        text = f"{document['target']} was not paused"
    else:
        text = (
            f"{document['target']} is resumed: {document['released']:,} held go back by the next "
            "sweeps, each judged by its catch-up policy"
        )
    console.print(text, markup=False, highlight=False)
