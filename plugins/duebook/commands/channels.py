"""What a channel's customers need: the secrets that they verify by."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console

from duebook.session import AsJson, open_session

channel_app = typer.Typer(no_args_is_help=True, help="What a channel's customers need.")

Channel = Annotated[str, typer.Option("--channel", help="Channel, as in duebook.toml.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.add_typer(channel_app, name="channel")


@channel_app.command("secret")
def secret(
    account: Annotated[str, typer.Option("--account", help="Customer account.")],
    channel: Channel = "webhook",
    as_json: AsJson = False,
) -> None:
    """Show the secret by which an account verifies its webhooks; who was shown it is kept."""
    from duebook.services.operate import show_channel_secret

    session = open_session(as_json)
    document = show_channel_secret(
        session.connect(), session.settings, account_id=account, channel=channel
    )
    session.show(document, render_secret)


def render_secret(document: Any, console: Console) -> None:
    """One secret a line, the current one first; nothing else, so that it can be piped."""
    for each in document["secrets"]:
        console.print(each, soft_wrap=True, highlight=False)
