"""From Airflow connections to what the services take: psycopg connections, logins, keys.

Imported inside tasks and triggers only: the provider behind PostgresHook takes its time to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from airflow.providers.postgres.hooks.postgres import PostgresHook
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from psycopg.conninfo import make_conninfo

from duebook.db.connect import Limits, connect_url
from duebook.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from duebook.db.connect import Connect

# A look is one index probe, and a trigger has time to ask again.
TRIGGER_LIMITS = Limits(statement=10, lock=5, idle_in_transaction=10)


class DuebookPostgresHook(PostgresHook):
    """PostgresHook whose connections have Duebook's session, errors and version check.

    What Airflow knows about a connection (extras, IAM tokens) is resolved by PostgresHook; only
    the last step, opening it, is Duebook's own.
    """

    def _create_connection(self, conn_args: dict[str, Any]) -> psycopg.Connection[Any]:
        stated = {name: value for name, value in conn_args.items() if value is not None}
        stated.pop("row_factory", None)
        return connect_url(make_conninfo("", **stated), autocommit=True)


def get_connection(connection_id: str) -> Connection:
    """The Airflow connection of this id, from the environment, a secrets backend or the UI.

    Raises ConfigurationError naming the connection when there is none.
    """
    try:
        return BaseHook.get_connection(connection_id)
    except AirflowNotFoundException:
        raise _missing(connection_id) from None


def connect_from_hook(connection_id: str = "duebook") -> Connect:
    """How the services open connections inside Airflow: psycopg 3 through PostgresHook.

    The connection is looked up now, so that a missing one is said before any work. Each call of
    what is returned opens one (autocommit), and raises UnavailableError when the database is away.
    """
    get_connection(connection_id)

    def connect() -> psycopg.Connection[Any]:
        conn: Any = DuebookPostgresHook(postgres_conn_id=connection_id).get_conn()
        return conn  # type: ignore[no-any-return]

    return connect


async def connect_async_from_connection(connection_id: str) -> psycopg.AsyncConnection[Any]:
    """The same database for a trigger's event loop (autocommit).

    Raises ConfigurationError when the connection is missing, psycopg.OperationalError when the
    database is away.
    """
    try:
        found = await BaseHook.aget_connection(connection_id)
    except AirflowNotFoundException:
        raise _missing(connection_id) from None
    extra = found.extra_dejson
    return await psycopg.AsyncConnection.connect(
        host=found.host,
        port=found.port,
        user=found.login,
        password=found.password,
        dbname=found.schema,
        autocommit=True,
        connect_timeout=TRIGGER_LIMITS.connect,
        application_name="duebook trigger",
        **{name: extra[name] for name in ("sslmode", "sslrootcert") if name in extra},
    )


def _missing(connection_id: str) -> ConfigurationError:
    return ConfigurationError(
        f"the Airflow connection {connection_id} is missing: set "
        f"AIRFLOW_CONN_{connection_id.upper()}, or add it under Admin, Connections"
    )
