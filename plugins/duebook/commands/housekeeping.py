"""What keeps the house: partitions and retention."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console

from duebook.session import AsJson, open_session


def register(app: typer.Typer) -> None:
    """Add the command of this area."""
    app.command("housekeeping")(housekeeping)


def housekeeping(
    apply: Annotated[
        bool, typer.Option("--apply/--dry-run", help="Do it, or only say what would go.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the partitions of the months to come, and let go what [retention] no longer keeps."""
    from duebook.services.housekeeping import keep_house
    from duebook.services.operate import load_configuration

    session = open_session(as_json)
    config = load_configuration(session.settings)
    document = keep_house(session.connect(), config.retention, dry_run=not apply)
    session.show(document, render)


def render(document: dict[str, Any], console: Console) -> None:
    """A line each."""
    would = "would be " if document["dry_run"] else ""
    for each in document["partitions"]:
        console.print(f"{each['partition_name']}: {each['done']}")
    for each in document["dropped"]:
        console.print(
            f"{each['partition_name']}: {would}dropped, about {each['versions']:,} versions"
        )
    if document["webhook_bodies"]:
        console.print(f"{document['webhook_bodies']:,} bodies of webhooks {would}deleted")
    if not (document["partitions"] or document["dropped"] or document["webhook_bodies"]):
        console.print("nothing to do")
