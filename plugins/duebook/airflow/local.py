"""`duebook up` and `duebook down`: the embedded database and a whole Airflow, on loopback."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console

from duebook.airflow.stack import LocalStack
from duebook.connections import PREFIX
from duebook.db.connect import ensure_database_url
from duebook.db.embedded import EmbeddedServer
from duebook.errors import ConfigurationError
from duebook.settings import Settings

METADATA_DATABASE = "airflow"


def start_local(settings: Settings, console: Console) -> dict[str, Any]:
    """Start everything of this home that does not run yet; returns where and as whom.

    Airflow connections of the caller's environment (`AIRFLOW_CONN_…`) are passed on. Raises
    UnavailableError naming the log when something does not start.
    """
    from duebook.services.operate import migrate_database

    console.print("starting PostgreSQL")
    database_url = ensure_database_url(settings)
    migrate_database(settings)
    stack = local_stack(settings, database_url, progress=console.print)
    login = stack.start()
    return {
        "airflow": login.url,
        "username": login.username,
        "password": login.password,
        "home": str(settings.home),
        "stop": "make down",
    }


def stop_local(settings: Settings) -> dict[str, Any]:
    """End Airflow, then the embedded server; harmless when nothing runs."""
    server = EmbeddedServer(settings.home)
    stack = LocalStack(settings.home, metadata_url="")
    was_running = bool(stack.processes()) or server.status().running
    stack.stop()
    server.stop()
    return {"stopped": was_running, "home": str(settings.home)}


def paused_dags(settings: Settings) -> Callable[[], Mapping[str, bool]] | None:
    """A question to this home's Airflow: which DAGs are paused. None where none runs."""
    stack = LocalStack(settings.home, metadata_url="")
    if not stack.is_running():
        return None

    def ask() -> Mapping[str, bool]:
        with stack.api() as api:
            return api.dags()

    return ask


def local_stack(
    settings: Settings,
    database_url: str,
    *,
    connections: dict[str, str] | None = None,
    progress: Any = lambda _: None,
) -> LocalStack:
    """The Airflow of this home, its metadata beside Duebook's database in the embedded server."""
    if settings.database_url is not None:
        raise ConfigurationError(
            "up keeps Airflow's metadata in the embedded PostgreSQL: unset DUEBOOK_DATABASE_URL, "
            "or deploy with docker-compose.yml"
        )
    given = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in os.environ.items()
        if name.startswith(PREFIX)
    }
    environment = {
        "DUEBOOK_HOME": str(settings.home),
        "DUEBOOK_ENVIRONMENT": settings.environment,
        "DUEBOOK_OPERATOR": settings.operator,
        "DUEBOOK_WITNESS": settings.witness_location or "",
    }
    if settings.config_file is not None:
        environment["DUEBOOK_CONFIG_FILE"] = str(settings.config_file.resolve())
    return LocalStack(
        settings.home,
        metadata_url=EmbeddedServer(settings.home).ensure_database(METADATA_DATABASE),
        connections={"duebook": database_url, **given, **(connections or {})},
        environment=environment,
        progress=progress,
    )
