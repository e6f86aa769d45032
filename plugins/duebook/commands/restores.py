"""After a database was copied or restored."""

from __future__ import annotations

from typing import Annotated

import typer

from duebook.session import AsJson, open_session

restore_app = typer.Typer(no_args_is_help=True, help="After a database was copied or restored.")


def register(app: typer.Typer) -> None:
    """Add the commands of this area."""
    app.add_typer(restore_app, name="restore")


@restore_app.command("accept")
def restore_accept(
    name: Annotated[str, typer.Argument(help="Environment this database is from now on.")],
    test: Annotated[
        bool, typer.Option("--test", help="A test database: sweep --now is allowed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Accept a copied or restored database under its new name; until then nothing is sent."""
    from duebook.services.operate import accept_environment

    session = open_session(as_json)
    document = accept_environment(session.connect(), name, test, session.settings.operator)
    session.show(document, "accept")
