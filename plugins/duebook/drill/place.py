"""Where a drill happens: a database, a configuration and processes of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg
import psycopg.conninfo
from psycopg.rows import dict_row
from pydantic import SecretStr

from duebook.config import Config, load_config
from duebook.connections import ConnectionSpec, connection_from_environment
from duebook.db.connect import connect_url
from duebook.db.embedded import EmbeddedServer
from duebook.db.migrate import migrate
from duebook.db.sql import query
from duebook.drill import provider, relay
from duebook.errors import DuebookError, UnavailableError
from duebook.services.apply import apply_config
from duebook.settings import Settings

ENVIRONMENT: Final = "drill"
OPERATOR: Final = "drill"
WEBHOOK_SECRET: Final = "whsec_drill"  # noqa: S105  of a receiver that lives for a minute
ENDPOINT: Final = "shop"
_PREFIX: Final = "drill-"
_KEPT: Final = "kept"
PROCESS_LOG: Final = "processes.log"
_TEMPLATE: Final = Path(__file__).with_name("duebook.toml")
_PACKAGES: Final = Path(__file__).resolve().parents[2]
_OURS: Final = ("DUEBOOK_", "AIRFLOW_CONN_", "PYTHONPATH")
_MOST_CONNECTIONS: Final = 4


class DrillError(DuebookError):
    """The drill did not come to its end."""

    exit_code = 1


@dataclass(slots=True)
class Place:
    """A database that is only for this drill, and what its processes are told."""

    settings: Settings
    config: Config
    environment: Mapping[str, str]
    folder: Path
    _started: list[subprocess.Popen[str]] = field(default_factory=list)

    def connect(self) -> psycopg.Connection[Any]:
        """A connection in autocommit mode."""
        assert self.settings.database_url is not None
        return connect_url(self.settings.database_url.get_secret_value(), autocommit=True)

    def rows(self, name: str, /, **values: Any) -> list[dict[str, Any]]:
        """The rows of a named query."""
        with self.connect() as conn, conn.cursor(row_factory=dict_row) as cursor:
            cursor.execute(query(name), values)
            return cursor.fetchall() if cursor.description else []

    def connection(self, conn_id: str) -> ConnectionSpec | None:
        """An Airflow connection as the drill's processes know it."""
        return connection_from_environment(conn_id, self.environment)

    @property
    def database(self) -> str:
        """The name of the database."""
        with self.connect() as conn:
            return conn.info.dbname

    @property
    def zones(self) -> Path:
        """Where the zone of the drill stands."""
        return self.folder / "zones"

    @property
    def relay_log(self) -> Path:
        """What the receiving side logs."""
        return self.folder / "mail.log"

    def start(
        self, module: str, *arguments: str, stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[str]:
        """Run a module as a process of its own."""
        process = start_process(self.folder, self.environment, module, *arguments, stdin=stdin)
        self._started.append(process)
        return process

    def end(self) -> None:
        """End whatever was started here and still runs."""
        for process in self._started:
            end_process(process)


def start_process(
    folder: Path,
    environment: Mapping[str, str],
    module: str,
    *arguments: str,
    stdin: int = subprocess.DEVNULL,
) -> subprocess.Popen[str]:
    """`python -m module …`, its stdout to be read line by line; what it logs goes to a file."""
    with (folder / PROCESS_LOG).open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env=dict(environment),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )


def end_process(process: subprocess.Popen[str]) -> None:
    """End one, politely first."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def first_line(process: subprocess.Popen[str], what: str) -> str:
    """What a server says once it listens. Raises UnavailableError when it ends before."""
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise UnavailableError(f"{what} did not start")
    return line


@contextlib.contextmanager
def prepared(
    settings: Settings, provider_address: str, put_off: Sequence[str], *, keep: bool
) -> Iterator[Place]:
    """A place with everything in it; removed at the end, but with `keep`.

    The database is made beside that of DUEBOOK_DATABASE_URL; without one, or where that login may
    make none, on an embedded server of its own.
    """
    home = settings.home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    _clear_leftovers(home)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=home))
    if keep:
        (folder / _KEPT).touch()
    base = _bare_environment(folder)
    log = folder / "mail.log"
    mail = start_process(folder, base, "duebook.drill.relay", str(log), *put_off)
    try:
        with _database(settings, folder, keep=keep) as url:
            migrate(url)
            port = first_line(mail, "the SMTP server")
            place = _make_place(settings, folder, url, base, provider_address, int(port))
            try:
                yield place
            finally:
                place.end()
    finally:
        end_process(mail)
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _clear_leftovers(home: Path) -> None:
    """Remove what killed drills have left, with what still runs of them; not what was kept."""
    for folder in home.glob(f"{_PREFIX}*-*"):
        pid = folder.name.removeprefix(_PREFIX).split("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)) and not (folder / _KEPT).exists():
            for process in psutil.process_iter(["environ"]):
                if (process.info["environ"] or {}).get("DUEBOOK_HOME") == str(folder):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        process.kill()
            EmbeddedServer(folder).destroy()
            shutil.rmtree(folder, ignore_errors=True)


def _bare_environment(folder: Path) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith(_OURS)}
    return {
        **kept,
        "PYTHONPATH": str(_PACKAGES),
        "PYTHONTZPATH": "",
        "PYTHONUNBUFFERED": "1",
        "DUEBOOK_HOME": str(folder),
        "DUEBOOK_LOG_LEVEL": "WARNING",
    }


@contextlib.contextmanager
def _database(settings: Settings, folder: Path, *, keep: bool) -> Iterator[str]:
    made = None if settings.database_url is None else _create_beside(settings.database_url)
    if made is None:
        server = EmbeddedServer(folder)
        try:
            server.start()
            yield server.ensure_database("duebook")
        finally:
            if not keep:
                server.destroy()
        return
    url, name = made
    try:
        yield psycopg.conninfo.make_conninfo(url, dbname=name)
    finally:
        if not keep:
            with connect_url(url, autocommit=True) as conn:
                for (statement,) in conn.execute(query("build_drill_drop"), {"name": name}):
                    conn.execute(statement)


def _create_beside(url: SecretStr) -> tuple[str, str] | None:
    """Make a database on the server of `url`; returns that and its name, None where it may not."""
    with connect_url(url.get_secret_value(), autocommit=True) as conn:
        name, statement = conn.execute(query("build_drill_database")).fetchall()[0]
        try:
            conn.execute(statement)
        except psycopg.errors.InsufficientPrivilege:
            return None
    return url.get_secret_value(), name


def _make_place(
    settings: Settings,
    folder: Path,
    url: str,
    base: Mapping[str, str],
    provider_address: str,
    mail_port: int,
) -> Place:
    own = Settings(
        home=folder,
        database_url=SecretStr(url),
        environment=ENVIRONMENT,
        config_file=folder / "duebook.toml",
        witness=str(folder / "witness"),
        operator=OPERATOR,
    )
    log = folder / "mail.log"
    text = _TEMPLATE.read_text(encoding="utf-8").replace("{relay_log}", str(log))
    (folder / "duebook.toml").write_text(text, encoding="utf-8")
    config = load_config(own.config_file)
    place = Place(
        own,
        config,
        {
            **base,
            "DUEBOOK_DATABASE_URL": url,
            "DUEBOOK_ENVIRONMENT": ENVIRONMENT,
            "DUEBOOK_CONFIG_FILE": str(own.config_file),
            "DUEBOOK_WITNESS": str(own.witness),
            "DUEBOOK_OPERATOR": OPERATOR,
            "DUEBOOK_DRILL_ZONES": str(folder / "zones"),
            **_connections(provider_address, mail_port),
        },
        folder,
    )
    place.rows("accept_new_environment", name=ENVIRONMENT, is_test=True, accepted_by=OPERATOR)
    apply_config(place.connect, config, by=OPERATOR)
    return place


def _connections(provider_address: str, mail_port: int) -> dict[str, str]:
    mail = {
        "conn_type": "smtp",
        "host": relay.HOST,
        "port": mail_port,
        "extra": {"max_connections": _MOST_CONNECTIONS, "local_hostname": "sender.invalid"},
    }
    shop = {"conn_type": "http", "host": provider_address, "password": provider.KEY}
    webhook = {"conn_type": "http", "password": WEBHOOK_SECRET}
    return {
        f"AIRFLOW_CONN_DRILL_{name}": json.dumps(stated)
        for name, stated in (("SMTP", mail), ("SHOP", shop), ("WEBHOOK", webhook))
    }
