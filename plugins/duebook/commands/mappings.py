"""Whether an account's mapping can be right for a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from duebook.errors import InputError, RefusedError
from duebook.session import AsJson, open_session

mapping_app = typer.Typer(no_args_is_help=True, help="Which column of a file is what.")
Document = Mapping[str, Any]


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.add_typer(mapping_app, name="mapping")


@mapping_app.command("check")
def mapping_check(
    file: Annotated[Path, typer.Argument(help="A file as the provider delivers it.")],
    account: Annotated[str, typer.Option("--account", help="Provider account of duebook.toml.")],
    as_json: AsJson = False,
) -> None:
    """Read a file's amounts as the mapping says, and refuse one that may be read in two ways."""
    from duebook.services.mapping import check_mapping
    from duebook.services.operate import load_configuration

    session = open_session(as_json)
    accounts = load_configuration(session.settings).provider_accounts
    if account not in accounts:
        known = ", ".join(accounts) or "none"
        raise InputError(f"unknown provider account {account}; duebook.toml has {known}")
    check = check_mapping(file, accounts[account])
    refusal = check.refusal()
    if refusal is not None:
        raise RefusedError(refusal)
    session.show(check.to_json(), render_check)
    raise typer.Exit(check.exit_code)


def render_check(document: Document, console: Console) -> None:
    """What was read, by what it is settled, and what will be set aside."""
    console.print(f"{document['file']}: {document['format']}", markup=False, highlight=False)
    if not document["is_mapped"]:
        console.print("the mapping is not asked: this format says itself how it is written")
        return
    console.print(f"{document['amounts']:,} amounts in {document['rows']:,} rows")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("line", "column", "written", "read as"):
        table.add_column(name, justify="left" if name == "column" else "right")
    for each in document["examples"]:
        row = (str(each["line"]), each["column"], each["value"], each["is_read_as"])
        table.add_row(*row)
    console.print(table)
    if document["proved_by"]:
        proof = document["proved_by"]
        console.print(f"settled by line {proof['line']}, which can be read in no other way")
    for each in document["unreadable"]:
        console.print(f"will be set aside: line {each['line']}, column {each['column']}")
