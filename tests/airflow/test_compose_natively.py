"""Each command of docker-compose.yml but Redis's and Celery's, run on this machine as it stands.

Only places are changed: hosts and ports, and /opt/airflow is the repository.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest
import yaml

from duebook.airflow.api import AirflowApi
from duebook.airflow.pools import read_pools
from duebook.airflow.stack import free_port
from duebook.db.embedded import EmbeddedServer

pytestmark = [pytest.mark.e2e, pytest.mark.prove, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())[
    "services"
]
COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
START_S = 240


@dataclass
class Host:
    """This machine in the place of the containers."""

    home: Path
    server: EmbeddedServer
    values: dict[str, str]
    ports: dict[str, int]

    def environment(self, service: str) -> dict[str, str]:
        stated = {k: self.filled(v) for k, v in SERVICES[service].get("environment", {}).items()}
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW_")}
        return {
            **inherited,
            **stated,
            "PATH": f"{Path(sys.executable).parent}:{self.binaries}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "plugins"),
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.ports["8080"]),
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT": str(self.ports["8974"]),
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(self.ports["8793"]),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(self.ports["8794"]),
        }

    @property
    def binaries(self) -> Path:
        return self.server.binary("psql").parent

    def filled(self, text: str) -> str:
        """The text as compose would fill it in, with this machine's places in it."""
        text = re.sub(r"\$\{(\w+)[^}]*\}", lambda m: self.values[m[1]], str(text))
        database = urlsplit(self.server.superuser_url())
        text = text.replace("$$", "$").replace("postgres:5432", f"127.0.0.1:{database.port}")
        text = text.replace("api-server:8080", f"127.0.0.1:{self.ports['8080']}")
        for port in ("8080", "8974"):
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{self.ports[port]}")
        text = text.replace("/opt/airflow/private", str(self.home))
        text = text.replace("/opt/airflow/witness", str(self.home / "witness"))
        return text.replace("/opt/airflow", str(ROOT))

    def run(
        self, service: str, command: list[str], **more: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.filled(part) for part in command],
            env={**self.environment(service), **more},
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    # Not below pytest's own directory: it takes away other users' rights there, the server's too.
    with tempfile.TemporaryDirectory(prefix="duebook-test-compose-") as folder:
        options = [part for part in SERVICES["postgres"]["command"] if "=" in part]
        server = EmbeddedServer(
            Path(folder), durable=False, parameters=dict(o.split("=") for o in options)
        )
        example = (ROOT / ".env.example").read_text()
        values = dict(re.findall(r"^(\w+)=(.*)$", example, re.MULTILINE))
        values = {k: v or f"secret{number}" for number, (k, v) in enumerate(values.items())}
        values["AIRFLOW_FERNET_KEY"] = "A" * 43 + "="
        values["DUEBOOK_ENVIRONMENT"] = "test"
        ports = {name: free_port(f"{folder}:{name}") for name in ("8080", "8974", "8793", "8794")}
        home = Path(folder) / "airflow"
        home.mkdir()
        with server:
            # The embedded server's own owner has the name that databases.sh gives.
            with psycopg.connect(server.superuser_url(), autocommit=True) as conn:
                conn.execute("drop role duebook")
            yield Host(home, server, values, ports)


def test_postgres_is_healthy_and_makes_two_databases(host: Host) -> None:
    database = urlsplit(host.server.superuser_url())
    login = {
        "PGHOST": str(database.hostname),
        "PGPORT": str(database.port),
        "PGPASSWORD": str(database.password),
    }
    check = SERVICES["postgres"]["healthcheck"]["test"]
    assert host.run("postgres", check[1:], **login).returncode == 0
    done = host.run("postgres", ["bash", str(ROOT / "deploy/postgres/databases.sh")], **login)
    assert done.returncode == 0, done.stderr
    for name in ("airflow", "duebook"):
        password = host.values[f"{name.upper()}_DATABASE_PASSWORD"]
        with psycopg.connect(
            host=database.hostname,
            port=database.port,
            user=name,
            password=password,
            dbname=name,
        ) as conn:
            assert conn.execute("select current_user").fetchone() == (name,)


def test_init_prepares_both_databases_and_may_run_again(host: Host) -> None:
    for _ in range(2):
        done = host.run("init", SERVICES["init"]["command"])
        assert done.returncode == 0, done.stderr[-2000:]
    for secret in host.values.values():
        if secret.startswith("secret"):
            assert secret not in done.stdout + done.stderr
    assert (host.home / "passwords.json").stat().st_mode & 0o077 == 0


def test_every_component_starts_and_its_health_check_says_so(host: Host) -> None:
    processes = {name: start(host, name) for name in COMPONENTS}
    try:
        deadline = time.monotonic() + START_S
        for name in COMPONENTS:
            check = SERVICES[name]["healthcheck"]["test"][1:]
            while (done := host.run(name, check)).returncode != 0:
                assert processes[name].poll() is None, f"{name} ended"
                assert time.monotonic() < deadline, done.stderr[-500:]
                time.sleep(0.5)
        password = host.values["AIRFLOW_ADMIN_PASSWORD"]
        with AirflowApi(f"http://127.0.0.1:{host.ports['8080']}", "admin", password) as api:
            while set(api.dags()) != {path.stem for path in (ROOT / "dags").glob("*.py")}:
                assert time.monotonic() < deadline
                time.sleep(0.5)
            for name, pool in read_pools().items():
                assert api.pool(name)["slots"] == pool.slots
        processes["triggerer"].terminate()
        processes["triggerer"].wait(60)
        # A check that can't fail would be no check.
        check = SERVICES["triggerer"]["healthcheck"]["test"][1:]
        assert host.run("triggerer", check).returncode != 0
    finally:
        for process in processes.values():
            end(process)


def start(host: Host, name: str) -> subprocess.Popen[bytes]:
    command = SERVICES[name]["command"]
    arguments = [command] if isinstance(command, str) else command
    with (host.home / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            ["airflow", *arguments],
            env=host.environment(name),
            cwd=host.home,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            executable=str(Path(sys.executable).with_name("airflow")),
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """End a component and all that it started: a task leads a group of its own in its session."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(20)
    for each in psutil.pids():
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(each) == process.pid:
                os.kill(each, signal.SIGKILL)
    process.wait(10)
