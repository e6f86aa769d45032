from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import psycopg
import pytest
import sqlalchemy
from pydantic import SecretStr

from duebook.db.connect import (
    Limits,
    connect,
    connect_async,
    connect_url,
    database_url,
    describe,
    engine,
    ensure_database_url,
    is_away,
    require_supported,
)
from duebook.db.embedded import EmbeddedServer
from duebook.errors import ConfigurationError, UnavailableError
from duebook.settings import Settings

SECRET = "pa:ss/word@7391284"
SECRET_IN_URL = "pa%3Ass%2Fword%407391284"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def one(connection: psycopg.Connection, statement: str) -> object:
    row = connection.execute(statement).fetchone()
    assert row is not None
    return row[0]


def test_every_connection_gets_the_same_session(settings: Settings) -> None:
    with connect(settings, application_name="sweep") as connection:
        for name, wanted in {
            "timezone": "UTC",
            "application_name": "sweep",
            "default_transaction_isolation": "read committed",
            "statement_timeout": "15min",
            "lock_timeout": "1min",
            "idle_in_transaction_session_timeout": "5min",
            "client_encoding": "UTF8",
            "intervalstyle": "postgres",
            "search_path": "pg_catalog",
        }.items():
            assert one(connection, f"select current_setting('{name}')") == wanted, name


def test_limits_are_the_callers_to_state(database_url: str) -> None:
    with connect_url(database_url, limits=Limits(statement=1, lock=2)) as connection:
        assert one(connection, "select current_setting('statement_timeout')") == "1s"
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("select pg_sleep(5)")


def test_options_of_the_url_are_kept(database_url: str) -> None:
    with connect_url(f"{database_url}&options=-c%20work_mem%3D7MB") as connection:
        assert one(connection, "select current_setting('work_mem')") == "7MB"
        assert one(connection, "select current_setting('timezone')") == "UTC"


def test_a_connection_may_act_as_a_role(settings: Settings) -> None:
    with connect(settings, role="duebook_analyst") as connection:
        assert one(connection, "select current_user") == "duebook_analyst"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("select address from duebook.contact")


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:{port}/duebook", "127.0.0.1:{port},localhost:{port}/duebook", "no.such.invalid/x"],
)
def test_a_database_that_is_away_is_one_line_without_the_password(address: str) -> None:
    url = f"postgresql://duebook:{SECRET_IN_URL}@{address.format(port=free_port())}"
    started = time.monotonic()
    with pytest.raises(UnavailableError, match=r"the database at .* is away: ") as caught:
        connect_url(url, wait_seconds=0.5)
    assert time.monotonic() - started < 10
    said = str(caught.value)
    assert "\n" not in said
    assert SECRET not in said
    assert SECRET_IN_URL not in said
    assert caught.value.exit_code == 3
    assert caught.value.__suppress_context__


def test_a_wrong_password_is_not_tried_again_and_not_told(database_url: str) -> None:
    stated = psycopg.conninfo.conninfo_to_dict(database_url, password=SECRET)
    started = time.monotonic()
    with pytest.raises(UnavailableError, match="authentication failed") as caught:
        connect_url(psycopg.conninfo.make_conninfo("", **stated), wait_seconds=60)
    assert time.monotonic() - started < 20
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{SECRET}@h:port/x",
        f"postgresql://u:12/{SECRET}@h:5432/x",
        f"postgresql://u:x@{SECRET}@h/x",
        f"host password={SECRET}",
    ],
)
def test_what_is_no_url_is_not_repeated(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        connect_url(url)
    assert "7391284" not in str(caught.value)
    assert "DUEBOOK_DATABASE_URL" in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_database_that_comes_back_is_waited_for(server_home: Path) -> None:
    server = EmbeddedServer(server_home, durable=False)
    try:
        server.start()
        settings = Settings(
            home=server_home, database_url=SecretStr(server.ensure_database("duebook"))
        )
        server.stop()
        with pytest.raises(UnavailableError):
            connect(settings)
        starter = threading.Thread(target=server.start)
        starter.start()
        with connect(settings, wait_seconds=60) as connection:
            assert one(connection, "select 1") == 1
        starter.join()
    finally:
        server.destroy()


def test_the_embedded_server_is_started_on_demand_only(server_home: Path) -> None:
    settings = Settings(home=server_home / "home", database_url=None)
    try:
        with pytest.raises(UnavailableError, match="duebook up"):
            database_url(settings)
        with pytest.raises(UnavailableError, match="does not run"):
            connect(settings)
        url = ensure_database_url(settings)
        assert database_url(settings) == ensure_database_url(settings) == url
        with connect(settings) as connection:
            assert one(connection, "select current_database()") == "duebook"
    finally:
        EmbeddedServer(settings.home).destroy()


def test_the_asynchronous_connection_is_the_same(settings: Settings) -> None:
    async def ask() -> tuple[object, ...] | None:
        async with await connect_async(settings, application_name="trigger") as connection:
            cursor = await connection.execute(
                "select current_setting('timezone'), current_setting('application_name')"
            )
            return await cursor.fetchone()

    assert asyncio.run(ask()) == ("UTC", "trigger")


def test_the_asynchronous_connection_fails_in_the_same_line(tmp_path: Path) -> None:
    url = f"postgresql://duebook:{SECRET_IN_URL}@127.0.0.1:{free_port()}/duebook"
    settings = Settings(home=tmp_path, database_url=SecretStr(url))
    with pytest.raises(UnavailableError, match="is away") as caught:
        asyncio.run(connect_async(settings, wait_seconds=0.3))
    assert SECRET not in str(caught.value)


def test_sqlalchemy_and_pandas_work_on_the_engine(database_url: str) -> None:
    made = engine(database_url)
    with made.connect() as connection:
        assert connection.execute(sqlalchemy.text("select 1")).scalar_one() == 1
    frame = pd.read_sql_query("select is_test, name from duebook.environment", made)
    assert frame.to_dict("records") == [{"is_test": True, "name": "test"}]
    made.dispose()


def test_going_away_in_mid_run_is_told_from_a_bad_statement(
    settings: Settings, conn: psycopg.Connection
) -> None:
    with connect(settings, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as bad:
            connection.execute("select 1/0")
        assert not is_away(bad.value)
        conn.execute("select pg_terminate_backend(%s)", [connection.info.backend_pid])
        with pytest.raises(psycopg.Error) as gone:
            connection.execute("select 1")
        assert is_away(gone.value)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("select '7391284.55'::bigint", "InvalidTextRepresentation (SQLSTATE 22P02)"),
        (
            "insert into pg_temp.t values (7391284, 'jane@shop.example')",
            "table t, constraint t_pkey, SQLSTATE 23505",
        ),
        ("insert into pg_temp.t values (1, 'jane@shop.example')", "constraint no_address"),
        ("select no_such from pg_temp.t", 'column "no_such" does not exist (SQLSTATE 42703)'),
    ],
)
def test_an_error_is_described_without_values(
    conn: psycopg.Connection, statement: str, told: str
) -> None:
    conn.execute(
        "create temp table t (amount bigint primary key,"
        " address text constraint no_address check (address is null))"
    )
    conn.execute("insert into t values (7391284, null)")
    with pytest.raises(psycopg.Error) as caught:
        conn.execute(statement.encode().replace(b"7391284, 'jane@shop.example'", b"7391284, null"))
    said = describe(caught.value)
    assert told in said
    assert "\n" not in said
    assert "7391284" not in said
    assert "jane" not in said


def test_a_value_that_the_client_can_not_read_is_not_told(conn: psycopg.Connection) -> None:
    with pytest.raises(psycopg.DataError, match="73912") as caught:
        conn.execute("select '73912-01-01'::timestamptz").fetchone()
    assert describe(caught.value) == "DataError"


@pytest.mark.parametrize("version", [150000, 150019, 160004, 170002, 180006])
def test_servers_15_to_18_are_supported(version: int) -> None:
    require_supported(version, "h:5432/x")


@pytest.mark.parametrize("version", [90624, 140020, 190000])
def test_other_servers_are_refused(version: int) -> None:
    with pytest.raises(ConfigurationError, match="Duebook needs 15 to 18"):
        require_supported(version, "h:5432/x")


class FakeServer:
    """Answers the start of a PostgreSQL session, as an old server or a pooler would."""

    def __init__(self, version: str, *, refuses_options: bool) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._version = version
        self._refuses_options = refuses_options
        self.startups: list[dict[str, str]] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        port = self._listener.getsockname()[1]
        return f"postgresql://duebook:{SECRET_IN_URL}@127.0.0.1:{port}/duebook?sslmode=disable&gssencmode=disable"

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(timeout=10)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                self._greet(client)

    def _greet(self, client: socket.socket) -> None:
        (length,) = struct.unpack("!I", client.recv(4, socket.MSG_WAITALL))
        words = client.recv(length - 4, socket.MSG_WAITALL)[4:].decode().split("\0")
        startup = dict(zip(words[::2], words[1::2], strict=False))
        self.startups.append(startup)
        if self._refuses_options and "options" in startup:
            client.sendall(
                self._message(
                    b"E",
                    b"SFATAL\0C08P01\0Munsupported startup parameter in options: jit\0\0",
                )
            )
            return
        client.sendall(
            self._message(b"R", struct.pack("!I", 0))
            + self._message(b"S", f"server_version\0{self._version}\0".encode())
            + self._message(b"S", b"client_encoding\0UTF8\0")
            + self._message(b"K", struct.pack("!II", 1, 1))
            + self._message(b"Z", b"I")
        )
        while client.recv(4096):
            pass

    @staticmethod
    def _message(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack("!I", len(body) + 4) + body


@pytest.fixture
def fake_server() -> Iterator[Callable[..., FakeServer]]:
    made: list[FakeServer] = []

    def make(version: str, *, refuses_options: bool = False) -> FakeServer:
        made.append(FakeServer(version, refuses_options=refuses_options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("version", ["14.19", "19.0"])
def test_a_server_of_another_version_is_refused_in_one_line(
    fake_server: Callable[..., FakeServer], version: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        connect_url(fake_server(version).url)
    said = str(caught.value)
    assert f"is PostgreSQL {version.split('.')[0]}: Duebook needs 15 to 18" in said
    assert "\n" not in said
    assert SECRET not in said


def test_a_pooler_gets_neither_options_nor_prepared_statements(
    fake_server: Callable[..., FakeServer],
) -> None:
    pooler = fake_server("18.6", refuses_options=True)
    with connect_url(pooler.url) as connection:
        assert connection.prepare_threshold is None
    assert ["options" in each for each in pooler.startups] == [True, False]


def test_a_role_behind_a_pooler_is_refused(fake_server: Callable[..., FakeServer]) -> None:
    with pytest.raises(ConfigurationError, match="pooler"):
        connect_url(fake_server("18.6", refuses_options=True).url, role="duebook_app")
