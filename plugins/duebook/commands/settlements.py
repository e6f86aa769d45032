"""Settlement files that were taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from duebook.session import AsJson, open_session

settlement_app = typer.Typer(no_args_is_help=True, help="Settlement files that were taken.")
Document = Mapping[str, Any]
Account = Annotated[str, typer.Option("--account", help="Provider account.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.add_typer(settlement_app, name="settlement")


@settlement_app.command("list")
def settlement_list(
    account: Account,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most.")] = 100,
    as_json: AsJson = False,
) -> None:
    """The files of a provider account, newest first."""
    from duebook.services.withdraw import list_files

    session = open_session(as_json)
    session.show(list_files(session.connect(), account, limit=limit), render_files)


@settlement_app.command("withdraw")
def settlement_withdraw(
    account: Account,
    file: Annotated[str, typer.Argument(help="Its name, or how its checksum begins.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; kept with your name.")],
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it; without, only what it would do is shown.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take a wrong file back. Nobody is told; its notices that still wait end."""
    from duebook.services.operate import load_configuration
    from duebook.services.withdraw import withdraw

    session = open_session(as_json)
    document = withdraw(
        session.connect(),
        load_configuration(session.settings),
        account,
        file,
        by=session.settings.operator,
        reason=reason,
        dry_run=not yes,
    )
    session.show(document, render_withdrawal)


def render_files(document: Document, console: Console) -> None:
    """A line each."""
    if not document["files"]:
        console.print("no file was taken yet")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("taken", "file", "checksum", "rows", "quarantined", ""):
        table.add_column(name, justify="right" if name in ("rows", "quarantined") else "left")
    for row in document["files"]:
        table.add_row(
            f"{row['received_at']:%Y-%m-%d %H:%M}",
            row["name"],
            row["sha256"][:12],
            f"{row['row_count']:,}",
            f"{row['quarantined_count']:,}",
            "" if row["withdrawn_at"] is None else f"withdrawn by {row['withdrawn_by']}",
        )
    console.print(table)


def render_withdrawal(document: Document, console: Console) -> None:
    """What it does, or would do."""
    would = "would " if document["dry_run"] else ""
    console.print(f"{document['file']} {'would be' if document['dry_run'] else 'is'} withdrawn:")
    console.print(f"  {document['entries']:,} entries {would}go back to what was said before")
    console.print(f"  {document['ledger_changes']:,} changes of payments, told to nobody")
    console.print(f"  {document['notices_ended']:,} notices that wait {would}end as superseded")
    if document["notices_asked_for"]:
        console.print(f"  {document['notices_asked_for']:,} notices are in a sender's hands")
    console.print(f"  {document['notices_sent']:,} notices have left already")
    for key in document["sent_keys"]:
        console.print(f"    {key}")
    if document["dry_run"]:
        console.print("nothing was changed; `--yes` does it")
