"""From Airflow connections to what the services take: psycopg connections, logins, keys.

Imported inside tasks and triggers only: the provider behind PostgresHook takes its time to load.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import psycopg
from airflow.providers.postgres.hooks.postgres import PostgresHook
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr

from duebook.connections import ConnectionSpec
from duebook.db.connect import Limits, connect_async, connect_url
from duebook.errors import ConfigurationError
from duebook.settings import Settings

if TYPE_CHECKING:
    from duebook.db.connect import Connect

# A look is one index probe, and a trigger has time to ask again.
TRIGGER_LIMITS = Limits(statement=10, lock=5, idle_in_transaction=10)


class DuebookPostgresHook(PostgresHook):
    """PostgresHook whose connections have Duebook's session, errors and version check.

    What Airflow knows about a connection (extras, IAM tokens) is resolved by PostgresHook; only
    the last step, opening it, is Duebook's own.
    """

    def _create_connection(self, conn_args: dict[str, Any]) -> psycopg.Connection[Any]:
        stated = {k: v for k, v in conn_args.items() if k != "row_factory"}
        return connect_url(_conninfo(stated), autocommit=True)


def find_connection(connection_id: str) -> ConnectionSpec | None:
    """The connection in the form that the services take, or None when there is none."""
    try:
        found = BaseHook.get_connection(connection_id)
    except AirflowNotFoundException:
        return None
    return ConnectionSpec(
        conn_id=connection_id,
        conn_type=found.conn_type or "",
        host=found.host or "",
        port=found.port,
        login=found.login or None,
        password=found.password or None,
        schema=found.schema or None,
        extra=found.extra_dejson,
    )


def connect_from_hook(connection_id: str = "duebook") -> Connect:
    """How the services open connections inside Airflow: psycopg 3 through PostgresHook.

    The connection is looked up now, so that a missing one is said before any work. Each call of
    what is returned opens one (autocommit), and raises UnavailableError when the database is away.
    """
    if find_connection(connection_id) is None:
        raise _missing(connection_id)

    def connect() -> psycopg.Connection[Any]:
        conn: Any = DuebookPostgresHook(postgres_conn_id=connection_id).get_conn()
        return conn  # type: ignore[no-any-return]

    return connect


async def connect_async_from_connection(connection_id: str) -> psycopg.AsyncConnection[Any]:
    """The same database for a trigger's event loop (autocommit).

    Raises ConfigurationError when the connection is missing, UnavailableError when the database is
    away.
    """
    try:
        found = await BaseHook.aget_connection(connection_id)
    except AirflowNotFoundException:
        raise _missing(connection_id) from None
    return await connect_async(
        Settings(database_url=SecretStr(_conninfo(_stated(found)))),
        application_name="duebook trigger",
        autocommit=True,
        limits=TRIGGER_LIMITS,
    )


def database_url_from_connection(connection_id: str) -> str:
    """What libpq needs for this connection. It may hold a password: never log it.

    Raises ConfigurationError when the connection is missing.
    """
    try:
        return _conninfo(_stated(BaseHook.get_connection(connection_id)))
    except AirflowNotFoundException:
        raise _missing(connection_id) from None


def _stated(found: Any) -> dict[str, Any]:
    ignored = PostgresHook.ignored_extra_options
    return {
        "host": found.host,
        "port": found.port,
        "user": found.login,
        "password": found.password,
        "dbname": found.schema,
        **{name: value for name, value in found.extra_dejson.items() if name not in ignored},
    }


def _conninfo(stated: Mapping[str, Any]) -> str:
    return make_conninfo("", **{k: v for k, v in stated.items() if v is not None})


def _missing(connection_id: str) -> ConfigurationError:
    return ConfigurationError(
        f"the Airflow connection {connection_id} is missing: set "
        f"AIRFLOW_CONN_{connection_id.upper()}, or add it under Admin, Connections"
    )
