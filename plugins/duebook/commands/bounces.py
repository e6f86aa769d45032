"""What came back: delivery reports and complaints by mail."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from duebook.session import AsJson, open_session

bounces_app = typer.Typer(no_args_is_help=True, help="Mail that came back, and complaints.")


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.add_typer(bounces_app, name="bounces")


@bounces_app.command("read")
def read(
    source: Annotated[
        Path, typer.Argument(exists=True, help="A Maildir, or a file that is one mail.")
    ],
    channel: Annotated[
        str, typer.Option("--channel", help="Channel account whose mails it tells of.")
    ] = "email",
    quarantine: Annotated[
        Path | None,
        typer.Option("--quarantine", help="Where unreadable mails are kept, with their reason."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Record delivery reports and complaints; suppress the addresses that they name dead.

    Reading again changes nothing. Exit code 1: some mails were kept in quarantine.
    """
    from duebook.errors import InputError
    from duebook.services.bounces import read_bounces
    from duebook.services.operate import load_configuration

    session = open_session(as_json)
    if channel not in load_configuration(session.settings).channels:
        raise InputError(f"--channel {channel}: duebook.toml has no [channels.{channel}]")
    folder = quarantine or session.settings.home / "quarantine" / "bounces"
    done = read_bounces(session.connect(), source, channel=channel, quarantine=folder)
    session.show(done.to_json(), _render)
    if done.quarantined:
        raise typer.Exit(1)


def _render(document: dict[str, Any], console: Console) -> None:
    console.print(
        "{read} mails read: {recorded} reports recorded, {known} known before, "
        "{ignored} that tell of no ending, {} in quarantine".format(
            len(document["quarantined"]), **document
        )
    )
    for each in document["quarantined"]:
        console.print(f"  {each['file']}: {each['reason']}", markup=False, highlight=False)
