"""The drill: an outage and the way back, with an expected result for every key."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from duebook.session import AsJson, open_session


def register(app: typer.Typer) -> None:
    """Add the command of this area."""
    app.command("drill")(drill)


def drill(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave its database and files there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Rehearse an outage in a database of its own, and compare every key with what is expected."""
    from duebook.drill.run import run_drill

    session = open_session(as_json)
    document = run_drill(session.settings, session.console, keep=keep)
    session.show(document, render_drill)
    raise typer.Exit(0 if document["ok"] else 1)


def render_drill(document: dict[str, Any], console: Console) -> None:
    """The table, what is wrong, and the incident report."""
    from duebook.commands.incidents import render_report

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("keys", justify="right")
    for name in ("group", "expected", "got", "ok"):
        table.add_column(name)
    for line in document["table"]:
        cells = (str(line["keys"]), line["group"], line["expected"], line["got"])
        table.add_row(*cells, "yes" if line["ok"] else "[red]no[/red]")
    console.print(table)
    for each in document["wrong"]:
        _say(
            console,
            f"[red]wrong[/red]: {each['operation_key']} ({each['account_id']}): expected "
            f"{each['expected']}; got {each['got']}",
        )
    for violation in document["violations"]:
        _say(console, f"[red]violated[/red]: {violation['invariant']}")
    for key in document["untold"]:
        _say(console, f"[red]not explained[/red]: {key}")
    render_report(document["report"], console)
    _say(
        console,
        f"{document['lost']} lost, {document['doubled']} doubled, {document['in_doubt']} in doubt; "
        f"{document['explained']} of {document['keys']} keys explained; {document['seconds']} s",
    )


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, highlight=False)
