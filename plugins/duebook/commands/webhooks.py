"""What providers tell unasked: the receiver, and the reading of what it received."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from duebook.errors import ConfigurationError
from duebook.session import AsJson, open_session

serve_app = typer.Typer(no_args_is_help=True, help="Servers of Duebook's own.")


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.add_typer(serve_app, name="serve")
    app.command("events")(events)


@serve_app.command("webhooks")
def serve_webhooks(
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = 8088,
    tls_certificate: Annotated[
        Path | None, typer.Option("--tls-certificate", exists=True, help="PEM file; ends TLS here.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", exists=True, help="PEM file of its key.")
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option("--trusted-proxy", help="Address or network that ends TLS; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Receive the webhooks of duebook.toml until stopped: POST /webhooks/<endpoint>."""
    from duebook.db.connect import ensure_database_url
    from duebook.services.operate import from_environment
    from duebook.web.serve import Listener, Server, make_receiver

    session = open_session(as_json)
    settings = session.settings
    own = settings.receiver_database_url
    if own is None and settings.database_url is None:
        session.connect()
    url = own.get_secret_value() if own else ensure_database_url(settings)
    receiver = make_receiver(settings, from_environment, url, tuple(trusted_proxy or ()))
    if receiver.broken:
        raise next(iter(receiver.broken.values()))
    if not receiver.endpoints and not receiver.has_links:
        raise ConfigurationError(
            "duebook.toml has no [webhooks.<endpoint>] and no [unsubscribe]: nothing to receive"
        )

    def tell(address: str) -> None:
        places = [f"{address}/webhooks/{name}" for name in receiver.endpoints]
        if as_json:
            sys.stdout.write(json.dumps({"url": address, "endpoints": places}) + "\n")
            sys.stdout.flush()
        for place in places if not as_json else ():
            session.console.print(f"receiving at {place}", soft_wrap=True)

    listener = Listener(host, port, tls_certificate, tls_key)
    Server(receiver, listener, tell).serve_forever()


def events(
    account: Annotated[
        str | None, typer.Option("--account", help="Provider account; default: all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read again from the provider what received events are about, and compare it."""
    from duebook.services.operate import read_provider_events, require_no_incident

    session = open_session(as_json)
    connect = session.connect()
    require_no_incident(connect, "reading events by hand")
    report = read_provider_events(connect, session.settings, account=account)
    session.show(report.to_json(), _render_events)


def _render_events(document: dict[str, Any], console: Console) -> None:
    said = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in document.items())
    console.print(said, soft_wrap=True)
