"""Connections to the database of Duebook, and one clear line when it is away.

The address is `DUEBOOK_DATABASE_URL`, else the embedded server of `DUEBOOK_HOME`. Every connection
gets the same session: UTC, READ COMMITTED, time limits, TCP keepalives, an application name.

Behind PgBouncer in transaction mode the session settings can't be sent at connecting (it refuses
them); such a connection is made without them and without server-side prepared statements, and the
limits are those of the role (`alter role … set statement_timeout = …`). `migrate` and `listen`
want a direct connection.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import psycopg
import psycopg.conninfo
import sqlalchemy
from psycopg.rows import TupleRow
from sqlalchemy.pool import NullPool

from duebook.db.embedded import EmbeddedServer
from duebook.errors import ConfigurationError, UnavailableError
from duebook.settings import Settings

DATABASE = "duebook"

Connect = Callable[[], psycopg.Connection[Any]]
"""Opens one connection; what the services take."""
OLDEST_MAJOR, NEWEST_MAJOR = 15, 18

_HOPELESS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "certificate")
_NOT_A_URL = (
    "DUEBOOK_DATABASE_URL is not a PostgreSQL URL such as postgresql://user:password@host/database "
    "(is the password percent-encoded?)"
)
_POOLER_REFUSAL = "unsupported startup parameter"


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """Time limits of a session, in seconds; 0 is none."""

    statement: int = 900
    lock: int = 60
    idle_in_transaction: int = 300
    connect: int = 10


_DEFAULT_LIMITS = Limits()


def database_url(settings: Settings) -> str:
    """The libpq URL to connect to. It may hold a password: never log it.

    Raises UnavailableError when no URL is set and the embedded server does not run.
    """
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    server = EmbeddedServer(settings.home)
    if not server.status().running:
        raise UnavailableError(
            f"the embedded PostgreSQL of {settings.home} does not run: start it with `duebook up`, "
            "or set DUEBOOK_DATABASE_URL"
        )
    return server.url(DATABASE)


def ensure_database_url(settings: Settings) -> str:
    """Like `database_url`, but starts the embedded server, and makes its database, on demand."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    server = EmbeddedServer(settings.home)
    server.start()
    return server.ensure_database(DATABASE)


def connect(
    settings: Settings,
    *,
    role: str | None = None,
    application_name: str = "duebook",
    autocommit: bool = False,
    limits: Limits = _DEFAULT_LIMITS,
    wait_seconds: float = 0,
) -> psycopg.Connection[TupleRow]:
    """A new connection to the database of `settings`; see `connect_url`."""
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            url = database_url(settings)
            break
        except UnavailableError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.2)
    return connect_url(
        url,
        role=role,
        application_name=application_name,
        autocommit=autocommit,
        limits=limits,
        wait_seconds=max(0.0, deadline - time.monotonic()),
    )


def connect_url(
    url: str,
    *,
    role: str | None = None,
    application_name: str = "duebook",
    autocommit: bool = False,
    limits: Limits = _DEFAULT_LIMITS,
    wait_seconds: float = 0,
) -> psycopg.Connection[TupleRow]:
    """A new connection to `url`, acting as `role` when one is named.

    A database that is away is tried again for `wait_seconds`; a wrong password or name is not.
    Raises UnavailableError (away; one line, no password) and ConfigurationError (not a URL, or a
    server older than 15 or newer than 18).
    """
    deadline = time.monotonic() + wait_seconds
    parameters = _parameters(url, role, application_name, limits)
    for pause in _pauses():
        try:
            connection = psycopg.connect(**parameters, autocommit=autocommit)  # type: ignore[arg-type]
        except psycopg.OperationalError as error:
            if _POOLER_REFUSAL in str(error) and "options" in parameters:
                parameters = _for_pooler(parameters, role)
            else:
                left = deadline - time.monotonic()
                if left <= 0 or _is_hopeless(error):
                    raise _away(parameters, error) from None
                time.sleep(min(pause, left))
        else:
            try:
                require_supported(connection.info.server_version, _place(parameters))
            except ConfigurationError:
                connection.close()
                raise
            return connection
    raise AssertionError("the pauses never end")


async def connect_async(
    settings: Settings,
    *,
    role: str | None = None,
    application_name: str = "duebook",
    autocommit: bool = False,
    limits: Limits = _DEFAULT_LIMITS,
    wait_seconds: float = 0,
) -> psycopg.AsyncConnection[TupleRow]:
    """The asynchronous `connect`: same session, same errors, same waiting."""
    deadline = time.monotonic() + wait_seconds
    url = await asyncio.to_thread(database_url, settings)
    parameters = _parameters(url, role, application_name, limits)
    for pause in _pauses():
        try:
            connection = await psycopg.AsyncConnection.connect(
                **parameters,  # type: ignore[arg-type]
                autocommit=autocommit,
            )
        except psycopg.OperationalError as error:
            if _POOLER_REFUSAL in str(error) and "options" in parameters:
                parameters = _for_pooler(parameters, role)
            else:
                left = deadline - time.monotonic()
                if left <= 0 or _is_hopeless(error):
                    raise _away(parameters, error) from None
                await asyncio.sleep(min(pause, left))
        else:
            try:
                require_supported(connection.info.server_version, _place(parameters))
            except ConfigurationError:
                await connection.close()
                raise
            return connection
    raise AssertionError("the pauses never end")


def session_conninfo(
    url: str, *, role: str, application_name: str, limits: Limits = _DEFAULT_LIMITS
) -> str:
    """What `connect_url` hands to libpq, for a pool that opens its connections itself.

    It may hold a password: never log it. Raises ConfigurationError when `url` is none.
    """
    return psycopg.conninfo.make_conninfo(
        "",
        **_parameters(url, role, application_name, limits),  # type: ignore[arg-type]
    )


def engine(url: str, *, limits: Limits = _DEFAULT_LIMITS) -> sqlalchemy.Engine:
    """A SQLAlchemy engine (psycopg 3, no pool) for Alembic and pandas, over the same `connect_url`.

    It takes every URL that libpq takes, `postgres://` and several hosts too.
    """
    return sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=lambda: connect_url(url, limits=limits),
        poolclass=NullPool,
    )


def require_supported(server_version: int, place: str) -> None:
    """Raise ConfigurationError unless `server_version` (as libpq gives it, 180006) is 15 to 18."""
    major = server_version // 10000
    if not OLDEST_MAJOR <= major <= NEWEST_MAJOR:
        raise ConfigurationError(
            f"the database at {place} is PostgreSQL {major}: "
            f"Duebook needs {OLDEST_MAJOR} to {NEWEST_MAJOR}"
        )


def unavailable(error: psycopg.Error) -> UnavailableError:
    """What to raise when a connection breaks in mid-run: one line that quotes no row."""
    return UnavailableError(f"the database went away: {describe(error)}")


def is_away(error: BaseException) -> bool:
    """Whether `error` means that the server or the connection is gone (and not: a bad statement).

    Connection failures (class 08), shutdown and crash (57P01 to 57P03), and a connection that broke
    without an answer.
    """
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    state = error.sqlstate
    return state is None or state.startswith("08") or state in ("57P01", "57P02", "57P03")


def describe(error: psycopg.Error) -> str:
    """One line about `error` that is safe in a log: it never quotes a value of a row.

    The server's own sentence is kept but for data exceptions (class 22), which quote the value;
    DETAIL, which prints whole rows, never is.
    """
    diagnostic = error.diag
    state = error.sqlstate
    if state is None:
        # Raised by the client: about the connection, or about a value that it quotes.
        is_of_connection = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return _first_line(str(error)) if is_of_connection else type(error).__name__
    objects = [
        f"{label} {value}"
        for label, value in (
            ("table", diagnostic.table_name),
            ("column", diagnostic.column_name),
            ("constraint", diagnostic.constraint_name),
        )
        if value
    ]
    sentence = type(error).__name__
    if not state.startswith("22") and diagnostic.message_primary:
        sentence = _first_line(diagnostic.message_primary)
    return f"{sentence} ({', '.join([*objects, f'SQLSTATE {state}'])})"


def _parameters(
    url: str, role: str | None, application_name: str, limits: Limits
) -> dict[str, object]:
    stated = _parse(url)
    session = {
        # Nothing is found by luck: PostgreSQL's default would let the login `duebook`, and no
        # other, see the schema of its name. Temporary tables are found all the same.
        "search_path": "pg_catalog",
        "timezone": "UTC",
        "datestyle": "ISO",
        "intervalstyle": "postgres",
        "default_transaction_isolation": r"read\ committed",
        "statement_timeout": f"{limits.statement}s",
        "lock_timeout": f"{limits.lock}s",
        "idle_in_transaction_session_timeout": f"{limits.idle_in_transaction}s",
        "jit": "off",
        **({"role": role} if role else {}),
    }
    options = " ".join(f"-c {name}={value}" for name, value in session.items())
    defaults: dict[str, object] = {
        "connect_timeout": limits.connect,
        "keepalives": 1,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 60000,
        "client_encoding": "utf8",
    }
    merged = {**defaults, **stated, "application_name": application_name}
    merged["options"] = f"{options} {stated.get('options') or ''}".strip()
    return merged


def _parse(url: str) -> dict[str, object]:
    """The parts of `url`. Raises ConfigurationError, repeating none of them, when it is none."""
    try:
        stated = dict(psycopg.conninfo.conninfo_to_dict(url))
    except psycopg.ProgrammingError:
        # libpq's message repeats the text, and with it the password.
        raise ConfigurationError(_NOT_A_URL) from None
    # A password with a bare `/` or `@` is read as part of these, and would be shown as a place.
    ports = str(stated.get("port") or "0").split(",")
    places = f"{stated.get('host') or ''}{stated.get('dbname') or ''}"
    if not all(port.isdigit() or not port for port in ports) or ("://" in url and "@" in places):
        raise ConfigurationError(_NOT_A_URL)
    return dict(stated)


def _for_pooler(parameters: dict[str, object], role: str | None) -> dict[str, object]:
    if role is not None:
        raise ConfigurationError(
            f"a pooler is in the way of `set role {role}`: give it a login of that role instead"
        )
    return {
        **{name: value for name, value in parameters.items() if name != "options"},
        "prepare_threshold": None,
    }


def _pauses() -> Iterator[float]:
    pause = 0.1
    while True:
        yield pause * random.uniform(0.5, 1.0)
        pause = min(pause * 2, 2.0)


def _is_hopeless(error: psycopg.OperationalError) -> bool:
    text = str(error)
    return any(sign in text for sign in _HOPELESS)


def _away(parameters: dict[str, object], error: psycopg.OperationalError) -> UnavailableError:
    text = _first_line(str(error))
    _, _, reason = text.rpartition(" failed: ") if " failed: " in text else ("", "", text)
    for secret in (str(parameters.get("password") or ""), str(parameters.get("sslpassword") or "")):
        if secret:
            reason = reason.replace(secret, "***").replace(quote(secret), "***")
    return UnavailableError(f"the database at {_place(parameters)} is away: {reason}")


def _place(parameters: dict[str, object]) -> str:
    host = parameters.get("host") or parameters.get("hostaddr") or "localhost"
    port = parameters.get("port") or 5432
    return f"{host}:{port}/{parameters.get('dbname') or ''}"


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0].strip() if lines else "no message"
