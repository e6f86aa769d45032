"""Takes in what providers tell unasked: who signed it, and one transaction that stores it.

Receiving never acts. What a receipt says is read again from the provider, by
`duebook.services.provider_events`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import psycopg
import psycopg_pool
from cryptography import x509
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from duebook.config import Config, WebhookConfig
from duebook.connections import ConnectionSpec
from duebook.db.connect import Limits, describe, session_conninfo
from duebook.db.sql import query
from duebook.errors import ConfigurationError, InputError, UnavailableError
from duebook.services.signatures import SCHEMES, SchemeName, require_secret
from duebook.services.signing.base import Event
from duebook.services.unsubscribe import Topic

Verdict = Literal["stored", "duplicate", "differs"]

ROLE: Final = "duebook_receiver"
# Providers wait ten to twenty seconds for an answer; a 503 in time is better than none.
_LIMITS: Final = Limits(statement=8, lock=8, idle_in_transaction=8, connect=3)
_WAIT_S: Final = 3.0
_MOST_CONNECTIONS: Final = 8
_MOST_WAITING: Final = 256


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint with its secrets: the current one, then those being rotated out.

    `roots` are the CAs that its provider's certificate may be of; none: the usual ones.
    """

    name: str
    provider_account: str
    scheme: SchemeName
    secrets: tuple[str, ...] = field(repr=False)
    max_body_bytes: int
    url: str | None = None
    max_per_second: float | None = None
    roots: tuple[x509.Certificate, ...] = ()


def load_endpoints(
    config: Config, connections: Callable[[str], ConnectionSpec | None]
) -> tuple[dict[str, Endpoint], dict[str, ConfigurationError]]:
    """The endpoints of duebook.toml, and by their names why others can't verify anything."""
    ready, broken = {}, {}
    for name, block in config.webhooks.items():
        try:
            ready[name] = make_endpoint(name, block, connections)
        except ConfigurationError as error:
            broken[name] = error
    return ready, broken


def make_endpoint(
    name: str, block: WebhookConfig, connections: Callable[[str], ConnectionSpec | None]
) -> Endpoint:
    """One endpoint with its secrets. Raises ConfigurationError, repeating none of them."""
    variable = f"AIRFLOW_CONN_{block.connection.upper()}"
    connection = connections(block.connection)
    if connection is None or not connection.password:
        raise ConfigurationError(
            f"webhooks.{name}: the connection {block.connection} with the signing secret as its "
            f"password is missing; set {variable}"
        )
    secrets = (connection.password, *_previous(connection.extra.get("previous"), name))
    for secret in secrets:
        try:
            require_secret(block.scheme, secret)
        except ValueError as error:
            raise ConfigurationError(
                f"webhooks.{name}: a secret of the connection {block.connection} {error}"
            ) from None
    if SCHEMES[block.scheme].needs_url and block.url is None:
        raise ConfigurationError(
            f"webhooks.{name}: url is missing: {block.scheme} signs the address of the endpoint"
        )
    return Endpoint(
        name=name,
        provider_account=block.provider_account,
        scheme=block.scheme,
        secrets=secrets,
        max_body_bytes=block.max_body_bytes,
        url=block.url,
        max_per_second=block.max_per_second,
        roots=_roots(connection.extra.get("ca"), name),
    )


def _roots(value: object, name: str) -> tuple[x509.Certificate, ...]:
    if value is None or value == "":
        return ()
    try:
        return tuple(x509.load_pem_x509_certificates(str(value).encode()))
    except ValueError:
        raise ConfigurationError(
            f"webhooks.{name}: `ca` of its connection holds no certificate in PEM"
        ) from None


def _previous(value: object, name: str) -> Sequence[str]:
    if value is None or value == "":
        return ()
    listed: list[object] = value if isinstance(value, list) else [value]
    texts = [secret for secret in listed if isinstance(secret, str)]
    if len(texts) != len(listed):
        raise ConfigurationError(
            f"webhooks.{name}: `previous` is neither a text nor a list of texts"
        )
    return texts


class ReceiptStore:
    """Hands receipts to the database as the role that may do nothing else.

    Opened by its first use, on the event loop that uses it; connections that broke are made anew.
    """

    def __init__(self, url: str, *, wait_s: float = _WAIT_S) -> None:
        # It tells each failed try to connect; whoever asked for a connection tells it once.
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
        self._pool: psycopg_pool.AsyncConnectionPool[psycopg.AsyncConnection[TupleRow]] = (
            psycopg_pool.AsyncConnectionPool(
                session_conninfo(
                    url, role=ROLE, application_name="duebook receiver", limits=_LIMITS
                ),
                kwargs={"autocommit": True},
                min_size=0,
                max_size=_MOST_CONNECTIONS,
                max_waiting=_MOST_WAITING,
                timeout=wait_s,
                # Until it gives up, each try waits twice as long as the last; a new one does not.
                reconnect_timeout=wait_s,
                check=psycopg_pool.AsyncConnectionPool.check_connection,
                name="receiver",
                open=False,
            )
        )
        self._opening = asyncio.Lock()
        self._is_open = False

    async def record(
        self, endpoint: Endpoint, events: Sequence[Event], headers: Mapping[str, str]
    ) -> list[Verdict]:
        """Store the verified events of one request, all or none; on return they are committed.

        Raises UnavailableError when the database is away, busy or not at this version, and
        InputError for what it can't keep.
        """
        values = [
            {
                "endpoint": endpoint.name,
                "event_id": event.event_id,
                "provider_account": endpoint.provider_account,
                "scheme": endpoint.scheme,
                "headers": Jsonb(dict(headers)),
                "body": event.body,
            }
            for event in events
        ]
        try:
            verdicts: list[Verdict] = await self._ask_each("record_receipt", values)
        except psycopg.DataError as error:
            raise InputError(f"the database can't keep this event: {describe(error)}") from None
        return verdicts

    async def unsubscribe(self, topic: Topic, source: str) -> str:
        """Record that a topic was left; `recorded` or `known`. Raises UnavailableError."""
        verdict: str = await self._ask("unsubscribe", {**topic._asdict(), "source": source})
        return verdict

    async def check(self) -> None:
        """Raise UnavailableError unless a receipt could be stored now."""
        if not await self._ask("read_receiver_state", {}):
            raise UnavailableError(f"the database does not let {ROLE} hand in receipts")

    async def close(self) -> None:
        """Give the connections back; nothing is stored after it."""
        if self._is_open:
            await self._pool.close()

    async def _ask(self, name: str, values: Mapping[str, Any]) -> Any:
        """The one value of a statement, after the commit of a transaction of its own."""
        return (await self._ask_each(name, [values]))[0]

    async def _ask_each(self, name: str, each_values: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The one value of a statement with each of the values, after their common commit."""
        await self._open()
        found: list[Any] = []
        try:
            # Begin and commit are sent apart: a process that dies in between stored nothing.
            async with self._pool.connection() as connection, connection.transaction():
                for values in each_values:
                    cursor = await connection.execute(query(name), values or None)
                    row = await cursor.fetchone()
                    found.append(None if row is None else row[0])
        except psycopg_pool.PoolTimeout:
            raise UnavailableError("the database is away, or gave no connection in time") from None
        except psycopg_pool.TooManyRequests:
            raise UnavailableError("too many events wait for the database") from None
        except psycopg.DataError:
            raise
        except psycopg.Error as error:
            raise UnavailableError(f"the database did not store it: {describe(error)}") from None
        return found

    async def _open(self) -> None:
        if not self._is_open:
            async with self._opening:
                if not self._is_open:
                    await self._pool.open()
                    self._is_open = True
