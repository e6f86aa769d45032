"""What every test may ask for.

| fixture | what |
|---|---|
| `database_url` | a database of this test's own: migrated, accepted as the environment `test` |
| `empty_database_url` | the same, with nothing in it |
| `conn` (also `db`) | a psycopg connection to `database_url`, autocommit |
| `settings` | `Settings` for `database_url`, with a home in the test's temporary directory |
| `server_home` | a home for an `EmbeddedServer` of the test's own |
| `duebook_cli` | runs `duebook …` for `settings`: `duebook_cli("status", "--json")` |

The server is an embedded one in a temporary home (made in half a second, no crash safety), or the
one at `DUEBOOK_TEST_DATABASE_URL`, whose login must be allowed to create databases. Nothing stays:
an interrupted session cleans up, and what a killed one left is cleared by the next.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT / "plugins") not in sys.path:
    sys.path.insert(0, str(ROOT / "plugins"))

import psutil  # noqa: E402
import psycopg  # noqa: E402
import psycopg.conninfo  # noqa: E402
import pytest  # noqa: E402
import structlog  # noqa: E402
from psycopg import sql  # noqa: E402
from psycopg.rows import TupleRow  # noqa: E402
from pydantic import SecretStr  # noqa: E402

from duebook.db.connect import connect_url  # noqa: E402
from duebook.db.embedded import EmbeddedServer  # noqa: E402
from duebook.settings import Settings  # noqa: E402

_HOME_PREFIX = "duebook-test-"
ENVIRONMENT = "test"


def pytest_configure(config: pytest.Config) -> None:
    """Let a polite kill end the session like Ctrl-C does, so that the server is stopped."""
    del config
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell's background job: the commands that tests interrupt would not feel it either.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for kind in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(kind) is signal.SIG_DFL:
            signal.signal(kind, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt


def _clear_leftovers() -> None:
    """Remove the homes of test sessions that were killed."""
    for home in Path(tempfile.gettempdir()).glob(f"{_HOME_PREFIX}*-*"):
        pid = home.name.removeprefix(_HOME_PREFIX).split("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)) and home.owner() == _me():
            with contextlib.suppress(Exception):
                EmbeddedServer(home).stop()
            shutil.rmtree(home, ignore_errors=True)


def _me() -> str:
    return psutil.Process().username()


class Databases:
    """Makes and drops databases on the server of the session."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._prefix = f"duebook_test_{os.getpid()}"
        self._numbers = itertools.count(1)
        self._made: list[str] = []

    def create(self, template: str | None = None) -> str:
        """A new database, copied from the database `template` (a name) if one is given; its URL."""
        name = f"{self._prefix}_{next(self._numbers)}"
        statement = sql.SQL("create database {}").format(sql.Identifier(name))
        if template is not None:
            # File copy: without fsync it takes two thirds of the time of WAL logging.
            statement += sql.SQL(" template {} strategy file_copy").format(sql.Identifier(template))
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(statement)
        self._made.append(name)
        return self.url_of(name)

    def drop(self, url: str) -> None:
        """Drop the database at `url`, whoever is still connected."""
        name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
        statement = sql.SQL("drop database if exists {}").format(sql.Identifier(name))
        with psycopg.connect(self._url, autocommit=True) as connection:
            try:
                connection.execute(statement + sql.SQL(" with (force)"))
            except psycopg.errors.InsufficientPrivilege:
                # An autovacuum worker is there, which only a superuser may force; a plain drop
                # asks it to leave.
                connection.execute(statement)
        self._made.remove(name)

    def drop_all(self) -> None:
        """Drop what tests left."""
        for name in list(self._made):
            self.drop(self.url_of(name))

    def url_of(self, name: str) -> str:
        """The URL of the database `name`, with the login of the session."""
        stated = psycopg.conninfo.conninfo_to_dict(self._url)
        host, port = stated.get("host") or "localhost", stated.get("port") or 5432
        login = quote(str(stated.get("user") or ""), safe="")
        password = quote(str(stated.get("password") or ""), safe="")
        return f"postgresql://{login}:{password}@/{name}?host={quote(str(host))}&port={port}"


@pytest.fixture(scope="session")
def embedded_server() -> Iterator[EmbeddedServer | None]:
    """The session's own server; None when `DUEBOOK_TEST_DATABASE_URL` names another."""
    if os.environ.get("DUEBOOK_TEST_DATABASE_URL"):
        yield None
        return
    _clear_leftovers()
    home = Path(tempfile.mkdtemp(prefix=f"{_HOME_PREFIX}{os.getpid()}-"))
    server = EmbeddedServer(home, durable=False)
    try:
        server.start()
        yield server
    finally:
        server.destroy()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def databases(embedded_server: EmbeddedServer | None) -> Iterator[Databases]:
    """Databases of the session's server, all dropped at its end."""
    if embedded_server is None:
        made = Databases(os.environ["DUEBOOK_TEST_DATABASE_URL"])
    else:
        made = Databases(embedded_server.url("postgres"))
    yield made
    if embedded_server is None:
        made.drop_all()


@pytest.fixture(scope="session")
def template_database(databases: Databases) -> str:
    """The name of the migrated database that each test's own is copied from."""
    from duebook.db.migrate import migrate

    url = databases.create()
    migrate(url)
    return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


@pytest.fixture
def make_database(databases: Databases, template_database: str) -> Iterator[Callable[[], str]]:
    """Makes further migrated and accepted databases: `make_database()` returns a URL."""
    made: list[str] = []

    def make() -> str:
        url = databases.create(template_database)
        made.append(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "select duebook.accept_environment(%s, true, 'pytest')", [ENVIRONMENT]
            )
        return url

    yield make
    for url in made:
        databases.drop(url)


@pytest.fixture
def database_url(make_database: Callable[[], str]) -> str:
    """A migrated database of this test's own, accepted as a test environment."""
    return make_database()


@pytest.fixture
def empty_database_url(databases: Databases) -> Iterator[str]:
    """An empty database of this test's own."""
    url = databases.create()
    yield url
    databases.drop(url)


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection[TupleRow]]:
    """An autocommit connection to `database_url`."""
    with connect_url(database_url, autocommit=True, application_name="pytest") as connection:
        yield connection


@pytest.fixture
def db(conn: psycopg.Connection[TupleRow]) -> psycopg.Connection[TupleRow]:
    """The same as `conn`."""
    return conn


@pytest.fixture
def server_home() -> Iterator[Path]:
    """A home for a server of a test's own, stopped and removed after it.

    Not below `tmp_path`: as root, each new pytest session closes its parent to other users again.
    """
    home = Path(tempfile.mkdtemp(prefix=f"{_HOME_PREFIX}{os.getpid()}-"))
    yield home
    EmbeddedServer(home).destroy()
    shutil.rmtree(home)


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Settings for `database_url`, with a home of this test's own."""
    return Settings(
        home=tmp_path / "home",
        database_url=SecretStr(database_url),
        environment=ENVIRONMENT,
        operator="pytest",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """Standard output, read as JSON."""
        return json.loads(self.stdout)


class DuebookCli:
    """Runs `duebook` as a process of its own; `in_process` runs it here, for speed."""

    def __init__(self, environment: Mapping[str, str], directory: Path) -> None:
        self.environment = dict(environment)
        self.directory = directory

    def __call__(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        timeout: float = 120,
    ) -> Finished:
        with self.start(*arguments, env=env) as process:
            try:
                stdout, stderr = process.communicate(stdin, timeout=timeout)
            except BaseException:
                process.kill()
                raise
        return Finished(process.returncode, stdout, stderr)

    def start(
        self, *arguments: str | Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start the command and return at once (for tests that kill it)."""
        return subprocess.Popen(
            [sys.executable, "-m", "duebook.cli", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.directory,
            env={**self.environment, **(env or {})},
        )

    def in_process(self, *arguments: str | Path) -> Finished:
        """Run the command in this process, its environment and arguments in place meanwhile."""
        from duebook import cli

        stdout, stderr, code = io.StringIO(), io.StringIO(), 0
        # The command's log lines go where its stderr goes; the tests after it have their own.
        logs = structlog.get_config()
        with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as after:
            after.callback(structlog.configure, **logs)
            for name in [each for each in os.environ if each.startswith("DUEBOOK_")]:
                patch.delenv(name)
            for name, value in self.environment.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["duebook", *map(str, arguments)])
            patch.chdir(self.directory)
            with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
                try:
                    cli.main()
                except SystemExit as end:
                    code = end.code if isinstance(end.code, int) else int(end.code is not None)
        return Finished(code, stdout.getvalue(), stderr.getvalue())


@pytest.fixture
def duebook_cli(settings: Settings, tmp_path: Path) -> DuebookCli:
    """`duebook` for the database and home of `settings`, run in the test's temporary directory."""
    assert settings.database_url is not None
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("DUEBOOK_", "PG"))
    }
    environment = {
        **kept,
        "PYTHONPATH": str(ROOT / "plugins"),
        "DUEBOOK_HOME": str(settings.home),
        "DUEBOOK_DATABASE_URL": settings.database_url.get_secret_value(),
        "DUEBOOK_ENVIRONMENT": settings.environment,
        "DUEBOOK_OPERATOR": settings.operator,
        "NO_COLOR": "1",
        "COLUMNS": "200",
    }
    return DuebookCli(environment, tmp_path)
