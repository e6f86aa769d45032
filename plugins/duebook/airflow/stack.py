"""A whole Airflow on this machine: the real processes, on loopback, under one home.

Api-server, scheduler (with the LocalExecutor), dag-processor and triggerer run as separate
processes, each the leader of its own session. What they need (ports, secrets, pid files, logs) is
kept under `<home>/airflow`, so two homes run side by side, and a stack that crashed is found and
ended by the next `stop()`.

Sessions, not process groups, tell which processes belong to a stack: Airflow's task supervisor
moves each task into a group of its own (`os.setpgid`), and a task process is undumpable, so its
environment can't be read by an ordinary user; its session id can.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import importlib.metadata
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from duebook.airflow.api import AirflowApi
from duebook.airflow.pools import read_pools
from duebook.errors import RefusedError, UnavailableError
from duebook.settings import REPOSITORY_ROOT

LOOPBACK = "127.0.0.1"
USERNAME = "admin"
HOME_MARKER = "DUEBOOK_STACK_HOME"
FIRST_PORT, PORT_COUNT = 20000, 8000
POLL_S = 0.2
SERVER_STOP_S = 10.0
QUIET_S = 3.0
KILL_S = 15.0

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Component:
    """One Airflow process: its name here, its `airflow` subcommand, its name in the health report.

    `ends_last` marks the one that running tasks report to while the others stop.
    """

    name: str
    arguments: tuple[str, ...]
    health_name: str
    ends_last: bool = False


# Log servers are left out: the API server reads the log files of its own machine.
COMPONENTS = (
    Component("api-server", ("api-server",), "metadatabase", ends_last=True),
    Component("scheduler", ("scheduler", "--skip-serve-logs"), "scheduler"),
    Component("dag-processor", ("dag-processor",), "dag_processor"),
    Component("triggerer", ("triggerer", "--skip-serve-logs"), "triggerer"),
)


@dataclass(frozen=True, slots=True)
class Login:
    """Where the UI and the REST API are, and as whom."""

    url: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Leader:
    """A started component; `created` (seconds since the epoch) tells it from a reused pid."""

    pid: int
    created: float


class LocalStack:
    """The Airflow of one home.

    `metadata_url`: a PostgreSQL URL of Airflow's own database, which must exist; it may be empty.
    `connections`: Airflow connections by id, as URI or JSON (`{"duebook": "postgresql://…"}`).
    `environment`: further variables of every process, such as DUEBOOK_CONFIG_FILE.
    `dags` and `plugins` default to the repository's.

    As a context manager it is started on entry and stopped on exit, also after Ctrl-C.
    """

    def __init__(
        self,
        home: Path,
        *,
        metadata_url: str,
        connections: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        dags: Path = REPOSITORY_ROOT / "dags",
        plugins: Path = REPOSITORY_ROOT / "plugins",
        progress: Progress = lambda _: None,
    ) -> None:
        self.home = home.resolve() / "airflow"
        self._metadata_url = metadata_url
        self._connections = dict(connections or {})
        self._extra_environment = dict(environment or {})
        self._dags = dags
        self._plugins = plugins
        self._progress = progress

    def __enter__(self) -> LocalStack:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, *, timeout_s: float = 180.0) -> Login:
        """Start what is not running and wait until all is healthy and every DAG file is parsed.

        A complete running stack is left as it is. Whatever interrupts the start, Ctrl-C included,
        ends every process that it started. Raises UnavailableError with the log to look into when
        a component ends or is not healthy in time.
        """
        deadline = time.monotonic() + timeout_s
        with self._lock():
            if not self.is_running():
                self._end_all(drain_s=0.0)
                try:
                    self._launch()
                    self._wait_until_healthy(deadline)
                except BaseException:
                    self._end_all(drain_s=0.0)
                    raise
        return self.login()

    def stop(self, *, drain_s: float = 30.0) -> None:
        """End every process of this home's stack, also of one that crashed.

        Running tasks get `drain_s` seconds to end by themselves; then everything still there is
        killed. What a killed sender had in hand is in doubt, so a short drain has its price.
        """
        with self._lock():
            self._end_all(drain_s=drain_s)

    def is_running(self) -> bool:
        """Whether all four components live."""
        return all(self._live_leader(component.name) for component in COMPONENTS)

    def login(self) -> Login:
        return Login(f"http://{LOOPBACK}:{self._port()}", USERNAME, self._secrets()["password"])

    def api(self) -> AirflowApi:
        """A logged-in session with this stack's REST API; close it, or use it in a `with`."""
        login = self.login()
        return AirflowApi(login.url, login.username, login.password)

    def processes(self) -> list[psutil.Process]:
        """Every live process of this stack: components, executor workers, running tasks."""
        leaders = [leader for c in COMPONENTS if (leader := self._recorded_leader(c.name))]
        found = {p.pid: p for leader in leaders for p in _session_members(leader)}
        found.update({p.pid: p for p in _marked_processes(str(self.home))})
        return list(found.values())

    def prepare_database(self) -> None:
        """Bring Airflow's metadata database to the installed version; quick when it is there."""
        stamp = self.home / "migrated.json"
        revision = self._metadata_revision()
        wanted = {"airflow": importlib.metadata.version("apache-airflow"), "revision": revision}
        if revision is not None and _read_json(stamp) == wanted:
            return
        self._progress("making Airflow's metadata database")
        self._run_airflow("db", "migrate")
        _write_private(stamp, json.dumps({**wanted, "revision": self._metadata_revision()}))

    def environment(self) -> dict[str, str]:
        """The environment of every process of the stack.

        Airflow variables of the caller's shell are left out, so that another Airflow of the user
        is neither read nor touched.
        """
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW_")}
        inherited.pop("PYTHONPATH", None)
        connections = {f"AIRFLOW_CONN_{k.upper()}": v for k, v in self._connections.items()}
        return {
            **inherited,
            **connections,
            **self._airflow_settings(),
            **self._extra_environment,
            HOME_MARKER: str(self.home),
            "AIRFLOW_HOME": str(self.home),
            "PYTHONTZPATH": "",
        }

    def _airflow_settings(self) -> dict[str, str]:
        kept = self._secrets()
        url = f"http://{LOOPBACK}:{self._port()}"
        settings = {
            "core": {
                "dags_folder": str(self._dags),
                "plugins_folder": str(self._plugins),
                "load_examples": "false",
                "executor": "LocalExecutor",
                "parallelism": "4",
                "auth_manager": "airflow.api_fastapi.auth.managers.simple"
                ".simple_auth_manager.SimpleAuthManager",
                "simple_auth_manager_users": f"{USERNAME}:admin",
                "simple_auth_manager_passwords_file": str(self._passwords_file()),
                "execution_api_server_url": f"{url}/execution/",
                "hostname_callable": "socket.gethostname",
                "fernet_key": kept["fernet_key"],
                "min_serialized_dag_update_interval": "5",
            },
            "api": {
                "host": LOOPBACK,
                "port": str(self._port()),
                "base_url": url,
                "workers": "1",
                "secret_key": kept["secret_key"],
            },
            "api_auth": {"jwt_secret": kept["jwt_secret"]},
            "database": {"sql_alchemy_conn": _sqlalchemy_url(self._metadata_url)},
            "dag_processor": {
                "refresh_interval": "10",
                "min_file_process_interval": "10",
                "parsing_processes": "1",
            },
            "scheduler": {
                "catchup_by_default": "false",
                "enable_health_check": "false",
                # A run of a sweep whose worker died keeps one of two places until then.
                "task_instance_heartbeat_timeout": "60",
            },
            "triggerer": {"capacity": "50"},
            "logging": {"colored_console_log": "false"},
        }
        return {
            f"AIRFLOW__{section.upper()}__{key.upper()}": value
            for section, options in settings.items()
            for key, value in options.items()
        }

    def _launch(self) -> None:
        self._write_passwords_file()
        self.prepare_database()
        self._progress("starting Airflow: " + ", ".join(c.name for c in COMPONENTS))
        environment = self.environment()
        for component in COMPONENTS:
            self._spawn(component, environment)

    def _spawn(self, component: Component, environment: Mapping[str, str]) -> None:
        with self._log_file(component.name).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "airflow", *component.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=self.home,
                start_new_session=True,
            )
        # It outlives this object, and is found again by its pid file: Python has no child to await.
        process.returncode = 0
        created = psutil.Process(process.pid).create_time()
        record = {"pid": process.pid, "created": created}
        _write_private(self._pid_file(component.name), json.dumps(record))

    def _wait_until_healthy(self, deadline: float) -> None:
        with self.api() as api:
            waiting_for = self._not_healthy(api)
            while waiting_for:
                for component in COMPONENTS:
                    if not self._live_leader(component.name):
                        raise UnavailableError(
                            f"Airflow's {component.name} ended while starting; "
                            f"see {self._log_file(component.name)}"
                        )
                if time.monotonic() >= deadline:
                    raise UnavailableError(
                        f"Airflow is not healthy in time: waiting for {', '.join(waiting_for)}; "
                        f"see {self.home / 'logs'}"
                    )
                time.sleep(POLL_S)
                waiting_for = self._not_healthy(api)
            for name, pool in read_pools().items():
                api.put_pool(name, pool.slots, pool.description)

    def _not_healthy(self, api: AirflowApi) -> list[str]:
        try:
            health = api.health(since=self._started_at())
            waiting = [c.name for c in COMPONENTS if health.get(c.health_name) != "healthy"]
            expected = {path.stem for path in self._dags.glob("*.py")}
            if waiting or expected <= set(api.dags()):
                return waiting
            errors = api.import_errors()
        except UnavailableError:
            return ["api-server"]
        if errors:
            name, reason = next(iter(errors.items()))
            raise RefusedError(f"{name} can't be parsed: {reason.strip().splitlines()[-1]}")
        return ["the DAG files"]

    def _started_at(self) -> datetime:
        leaders = [leader for c in COMPONENTS if (leader := self._recorded_leader(c.name))]
        return datetime.fromtimestamp(min(leader.created for leader in leaders), UTC)

    def _end_all(self, *, drain_s: float) -> None:
        """Ask, wait, then kill, until no process of this stack is left."""
        if not self.processes():
            self._forget_leaders()
            return
        self._progress("stopping Airflow")
        for is_last in (False, True):
            leaders = [
                leader
                for c in COMPONENTS
                if c.ends_last is is_last and (leader := self._live_leader(c.name))
            ]
            self._drain(leaders, SERVER_STOP_S if is_last else drain_s)
        deadline = time.monotonic() + KILL_S
        while left := self.processes():
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=1.0)
            if time.monotonic() >= deadline:
                pids = ", ".join(str(process.pid) for process in left)
                raise UnavailableError(f"Airflow processes can't be ended: {pids}")
        self._forget_leaders()

    def _drain(self, leaders: list[psutil.Process], drain_s: float) -> None:
        """Tell components to stop, and give the tasks they run until `drain_s` to end.

        A task that takes long is told too: a sender then ends with the window that it has begun.
        A scheduler whose tasks have ended may still wait for an executor worker that never took
        its last message (seen on Airflow 3.3.2), so then it is told again, which it obeys at once.
        """
        started = time.monotonic()
        _terminate(leaders)
        told_tasks, quiet_since = False, None
        while leaders and time.monotonic() < started + drain_s:
            _, leaders = psutil.wait_procs(leaders, timeout=POLL_S)
            tasks = [task for leader in leaders for task in _tasks_of(leader)]
            if tasks:
                quiet_since = None
                if not told_tasks and time.monotonic() > started + drain_s / 3:
                    _terminate(tasks)
                    told_tasks = True
            elif quiet_since is None:
                quiet_since = time.monotonic()
            elif time.monotonic() > quiet_since + QUIET_S:
                _terminate(leaders)
                psutil.wait_procs(leaders, timeout=QUIET_S)
                return

    def _forget_leaders(self) -> None:
        for component in COMPONENTS:
            leader = self._recorded_leader(component.name)
            if leader is not None:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(leader.pid, os.WNOHANG)
            self._pid_file(component.name).unlink(missing_ok=True)

    def _recorded_leader(self, name: str) -> _Leader | None:
        record = _read_json(self._pid_file(name))
        return None if record is None else _Leader(int(record["pid"]), float(record["created"]))

    def _live_leader(self, name: str) -> psutil.Process | None:
        leader = self._recorded_leader(name)
        return None if leader is None else _same_process(leader)

    def _run_airflow(self, *arguments: str) -> None:
        log = self._log_file("-".join(arguments))
        with log.open("ab") as output:
            code = subprocess.run(
                [sys.executable, "-m", "airflow", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment(),
                cwd=self.home,
                check=False,
            ).returncode
        if code:
            raise UnavailableError(f"airflow {' '.join(arguments)} failed; see {log}")

    def _metadata_revision(self) -> str | None:
        import psycopg

        from duebook.db.sql import query

        try:
            with psycopg.connect(self._metadata_url, connect_timeout=10) as conn:
                row = conn.execute(query("read_metadata_revision")).fetchone()
        except psycopg.errors.UndefinedTable:
            return None
        except psycopg.OperationalError as error:
            raise UnavailableError("Airflow's metadata database can't be reached") from error
        return None if row is None else str(row[0])

    def _secrets(self) -> dict[str, str]:
        path = self.home / "secrets.json"
        kept = _read_json(path)
        if kept is None:
            kept = {
                "password": secrets.token_urlsafe(12),
                "jwt_secret": secrets.token_urlsafe(48),
                "secret_key": secrets.token_urlsafe(32),
                "fernet_key": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            }
            _write_private(path, json.dumps(kept))
        return {key: str(value) for key, value in kept.items()}

    def _passwords_file(self) -> Path:
        return self.home / "passwords.json"

    def _write_passwords_file(self) -> None:
        _write_private(self._passwords_file(), json.dumps({USERNAME: self._secrets()["password"]}))

    def _port(self) -> int:
        """The API server's port: the same at every start of this home while it can be had."""
        path = self.home / "ports.json"
        kept = _read_json(path)
        if kept is not None and (self._live_leader("api-server") or _is_free(kept["api"])):
            return int(kept["api"])
        port = free_port(str(self.home))
        _write_private(path, json.dumps({"api": port}))
        return port

    def _pid_file(self, name: str) -> Path:
        return self.home / "run" / f"{name}.json"

    def _log_file(self, name: str) -> Path:
        path = self.home / "logs" / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """One start or stop of a home at a time."""
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.home / "stack.lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def _sqlalchemy_url(url: str) -> str:
    """The same database through psycopg 3, the driver that serves sync and async sessions."""
    _, _, rest = url.partition("://")
    return f"postgresql+psycopg://{rest}"


def _same_process(leader: _Leader) -> psutil.Process | None:
    try:
        process = psutil.Process(leader.pid)
        reused = abs(process.create_time() - leader.created) > 1.0
        if reused or process.status() == psutil.STATUS_ZOMBIE:
            return None
    except psutil.NoSuchProcess:
        return None
    return process


def _session_members(leader: _Leader) -> Iterator[psutil.Process]:
    """Live processes of the session that a leader opened, whether or not the leader lives."""
    if psutil.pid_exists(leader.pid) and not _same_or_zombie(leader):
        return
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError, PermissionError):
            if os.getsid(process.pid) != leader.pid:
                continue
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if process.create_time() >= leader.created - 1.0:
                yield process


def _terminate(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()


def _tasks_of(leader: psutil.Process) -> list[psutil.Process]:
    """Tasks that run below a scheduler: each leads a process group of its own."""
    tasks = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError, PermissionError):
            leads_group = os.getpgid(process.pid) == process.pid
            is_below = process.pid != leader.pid and os.getsid(process.pid) == leader.pid
            if leads_group and is_below and process.status() != psutil.STATUS_ZOMBIE:
                tasks.append(process)
    return tasks


def _same_or_zombie(leader: _Leader) -> bool:
    try:
        return abs(psutil.Process(leader.pid).create_time() - leader.created) <= 1.0
    except psutil.NoSuchProcess:
        return False


def _marked_processes(home: str) -> Iterator[psutil.Process]:
    """Processes that carry the home in their environment: a start that left no pid file."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                continue
            if process.environ().get(HOME_MARKER) == home:
                yield process


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port(home: str) -> int:
    """A free port below the ephemeral range, where no outgoing connection can take it later."""
    start = zlib.crc32(home.encode())
    for step in range(PORT_COUNT):
        port = FIRST_PORT + (start + step) % PORT_COUNT
        if _is_free(port):
            return port
    raise UnavailableError(f"no free port in {FIRST_PORT} to {FIRST_PORT + PORT_COUNT - 1}")


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(f"{path.suffix}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as handle:
        handle.write(text)
    draft.replace(path)
