"""What a command works with: its settings, its database, and where it prints."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import psycopg
import typer
from rich.console import Console

from duebook.errors import RefusedError
from duebook.settings import Settings, load_settings

Render = Callable[[Any, Console], None]

OverConnection = Annotated[
    str | None, typer.Option("--connection", help="Airflow connection of a database elsewhere.")
]
RowsOfQuery = Annotated[
    Path | None, typer.Option("--query", help="File with a query whose columns are the file's.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


@dataclass(frozen=True, slots=True)
class Session:
    """What one command works with: its settings and where it prints."""

    settings: Settings
    as_json: bool
    console: Console

    def connect(self) -> Callable[[], psycopg.Connection[Any]]:
        """A factory of connections.

        Without DUEBOOK_DATABASE_URL the embedded server is started and brought to this version;
        a database of your own is migrated by `duebook migrate` only.
        """
        from duebook.db.connect import ensure_database_url
        from duebook.services.operate import is_migrated, migrate_database

        ensure_database_url(self.settings)
        factory = self.connection_factory()
        if not is_migrated(factory):
            if self.settings.database_url is not None:
                raise RefusedError("the database is not at this version: run `duebook migrate`")
            migrate_database(self.settings)
        return factory

    def connection_factory(self) -> Callable[[], psycopg.Connection[Any]]:
        """Connections to whatever is there; nothing is started or changed."""
        from duebook.db.connect import connect

        return functools.partial(connect, self.settings, autocommit=True)

    def show(self, document: Any, render: str | Render) -> None:
        """Print the document as JSON, or by a renderer: one of `duebook.terminal`, by its name."""
        if self.as_json:
            sys.stdout.write(json.dumps(document, default=str, ensure_ascii=False) + "\n")
            return
        if callable(render):
            render(document, self.console)
            return
        from duebook import terminal

        getattr(terminal, f"render_{render}")(document, self.console)


def open_session(as_json: bool) -> Session:
    """Settings from the environment; prose goes to stdout, or to stderr beside JSON."""
    # Keys hold `:email:`, which is no emoji here.
    return Session(load_settings(), as_json, Console(stderr=as_json, soft_wrap=False, emoji=False))
