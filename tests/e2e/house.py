"""One whole Duebook for tests: two PostgreSQL servers, a real Airflow, providers and a mail server.

Duebook's database has a server of its own, so that it can be taken away while Airflow's stays.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import psycopg

from duebook.airflow.api import FINISHED_STATES, AirflowApi
from duebook.airflow.stack import COMPONENTS, LocalStack, _is_free
from duebook.db.connect import connect_url
from duebook.db.embedded import EmbeddedServer
from duebook.demo.books import Books
from duebook.demo.servers import Servers
from duebook.errors import UnavailableError
from tests.conftest import ENVIRONMENT, ROOT, Finished
from tests.e2e.leaks import Secrets
from tests.stripe_stub.server import StripeStub

NIGHT, SWEEP = "nightly_reconciliation", "due_sweep"
RUN_TIMEOUT_S = 180.0


@dataclass(frozen=True, slots=True)
class SendingTask:
    """A task of a sweep that holds a batch, under this name."""

    name: str
    run_id: str
    process: psutil.Process


@dataclass
class House:
    """Where everything is; `metadata_url` changes when Airflow's database is made again."""

    home: Path
    server: EmbeddedServer
    database_url: str
    metadata_url: str
    config_file: Path
    connections: Mapping[str, str]
    servers: Servers
    troubled: Mapping[str, StripeStub]
    books: Books
    shop: Path
    garbled: Path
    secrets: Secrets
    said: list[str] = field(default_factory=list)

    def stack(self) -> LocalStack:
        """The Airflow of this home, running or not."""
        return LocalStack(
            self.home,
            metadata_url=self.metadata_url,
            connections={"duebook": self.database_url, **self.connections},
            environment={
                "DUEBOOK_HOME": str(self.home),
                "DUEBOOK_ENVIRONMENT": ENVIRONMENT,
                "DUEBOOK_CONFIG_FILE": str(self.config_file),
            },
        )

    # ---- Duebook -----------------------------------------------------------------------------

    def connect(self) -> psycopg.Connection[Any]:
        return connect_url(self.database_url, autocommit=True, application_name="pytest e2e")

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.connect() as conn:
            return conn.execute(statement.encode(), values or None).fetchall()

    def value(self, statement: str, *values: Any) -> Any:
        """The first column of the first row, or None."""
        found = self.rows(statement, *values)
        return found[0][0] if found else None

    def cli(self, *arguments: str | Path) -> Finished:
        """`duebook …` beside the running stack, its debug lines kept to be searched for leaks."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DUEBOOK_", "AIRFLOW_", "PG"))
        }
        environment |= {f"AIRFLOW_CONN_{k.upper()}": v for k, v in self.connections.items()}
        environment |= {
            "PYTHONPATH": str(ROOT / "plugins"),
            "PYTHONTZPATH": "",
            "DUEBOOK_HOME": str(self.home),
            "DUEBOOK_ENVIRONMENT": ENVIRONMENT,
            "DUEBOOK_CONFIG_FILE": str(self.config_file),
            "DUEBOOK_DATABASE_URL": self.database_url,
            "DUEBOOK_LOG_LEVEL": "DEBUG",
            "COLUMNS": "200",
        }
        ended = subprocess.run(
            [sys.executable, "-m", "duebook.cli", *map(str, arguments)],
            env=environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.said.append(ended.stderr)
        return Finished(ended.returncode, ended.stdout, ended.stderr)

    def story(self, subject: str) -> dict[str, Any]:
        """What `explain` tells, without the clock of the look itself."""
        told: dict[str, Any] = self.cli("explain", subject, "--json").json
        del told["told_at"]
        return told

    def reconfigure(self, changes: Mapping[str, str]) -> None:
        """Change lines of duebook.toml; a task reads it when it starts."""
        text = self.config_file.read_text(encoding="utf-8")
        for old, new in changes.items():
            assert text.count(f"\n{old}\n") == 1, old
            text = text.replace(f"\n{old}\n", f"\n{new}\n")
        self.config_file.write_text(text, encoding="utf-8")

    # ---- mail --------------------------------------------------------------------------------

    def mails(self) -> int:
        """Messages that the mail server took, by its own count."""
        return self.servers.mails_received()

    def messages(self) -> list[dict[str, Any]]:
        lines = self.servers.mailbox.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    @contextmanager
    def slow_mail(self, seconds: float) -> Iterator[None]:
        """The mail server takes so long for each message, one after another."""
        pace_file(self.home).write_text(str(seconds), encoding="utf-8")
        try:
            yield
        finally:
            pace_file(self.home).unlink()

    @contextmanager
    def no_mail(self) -> Iterator[None]:
        """Nothing is sent meanwhile, nor by the sweeps that take what it left due."""
        self.settle()
        before = self.mails()
        yield
        self.settle()
        assert self.mails() == before, "somebody was told again"

    def settle(self) -> None:
        """Wait until nothing is due and no sender holds a batch."""
        wait_until(lambda: self.open_work() == 0, "the sweeps end what is due", RUN_TIMEOUT_S)

    def open_work(self) -> int:
        return int(
            self.value(
                "select (select count(*) from duebook.due where due_at <= clock_timestamp())"
                " + (select count(*) from duebook.batch)"
            )
        )

    # ---- Airflow -----------------------------------------------------------------------------

    def kill(self, name: str) -> None:
        """SIGKILL to a component with all that it runs; of the scheduler, whose tasks are apart,
        to itself alone: they go on, with nobody to tell.
        """
        stack = self.stack()
        leader = stack._live_leader(name)
        assert leader is not None, f"{name} runs"
        others = [] if name == "scheduler" else leader.children(recursive=True)
        port = stack._port()
        signal_all([leader, *others])
        if name == "api-server":
            # The last of its threads may keep the port for a moment.
            wait_until(lambda: _is_free(port), "its port is free")

    def revive(self, name: str) -> None:
        """Start a component that was killed, as a supervisor would; wait until it is healthy."""
        stack = self.stack()
        (component,) = (each for each in COMPONENTS if each.name == name)
        stack._spawn(component, stack.environment())
        leader = stack._live_leader(name)
        assert leader is not None
        started = datetime.fromtimestamp(leader.create_time(), UTC)

        def healthy() -> bool:
            with stack.api() as api:
                try:
                    return api.health(since=started).get(component.health_name) == "healthy"
                except UnavailableError:
                    return False

        wait_until(healthy, f"{name} is back", RUN_TIMEOUT_S)

    def senders(self) -> list[SendingTask]:
        """The tasks that hold a batch."""
        holding = {name for (name,) in self.rows("select distinct sender from duebook.batch")}
        found = []
        with connect_url(self.metadata_url, autocommit=True) as conn:
            tasks = conn.execute(
                "select run_id, map_index, pid from public.task_instance"
                " where dag_id = %s and state = 'running' and pid is not null",
                [SWEEP],
            ).fetchall()
        for run_id, map_index, pid in tasks:
            name = f"airflow:{run_id}" + (f":{map_index + 1}" if map_index >= 0 else "")
            if name in holding and psutil.pid_exists(pid):
                found.append(SendingTask(name, run_id, psutil.Process(pid)))
        return found

    def night(self, run_id: str, account: str, **conf: Any) -> dict[str, dict[str, Any]]:
        """One triggered night that ends well; the counts by provider account."""
        with self.stack().api() as api:
            api.trigger(NIGHT, conf={"account": account, **conf}, run_id=run_id)
            assert api.wait_for_run(NIGHT, run_id, timeout_s=RUN_TIMEOUT_S) == "success"
            return counts_of(api, run_id)


def signal_all(processes: Iterable[psutil.Process]) -> None:
    """SIGKILL, and wait until none of them is there any more."""
    ended = list(processes)
    for process in ended:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(map(is_alive, ended)), "the killed are dead")


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pace_file(home: Path) -> Path:
    """What the house's mail server looks at to know how slow it is."""
    return home / "mail-pace"


def counts_of(api: AirflowApi, run_id: str) -> dict[str, dict[str, Any]]:
    """What each mapped task of a night returned, by provider account."""
    return {
        account: api.return_value(NIGHT, run_id, "reconcile", task["map_index"])
        for account, task in reconciliations(api, run_id).items()
        if task["state"] == "success"
    }


def end_stray_nights(api: AirflowApi, *own: str) -> None:
    """End nights that a tick of the schedule started meanwhile: one runs at a time, and one that
    waits for a retry would keep the test's own from starting.
    """
    for run in api.runs(NIGHT):
        if run["state"] not in FINISHED_STATES and run["dag_run_id"] not in own:
            path = f"/api/v2/dags/{NIGHT}/dagRuns/{run['dag_run_id']}"
            api._call("PATCH", path, json={"state": "failed"})


def reconciliations(api: AirflowApi, run_id: str) -> dict[str, dict[str, Any]]:
    """The mapped task instances of a night by provider account, once they are there."""
    tasks = api.task_instances(NIGHT, run_id)
    found = {t["map_index"]: t for t in tasks if t["task_id"] == "reconcile"}
    if -1 in found or not found:
        return {}
    # Its label is written when a task has ended for good, so the accounts tell which is which.
    accounts = api.return_value(NIGHT, run_id, "accounts")
    return {accounts[number]: task for number, task in found.items()}


def own_lines(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What of a task's log Duebook said, or Airflow about how the task ended."""
    return [
        line
        for line in log
        if line.get("logger", "").startswith("duebook") or line.get("level") == "error"
    ]


def the_one_clear_line(log: list[dict[str, Any]]) -> str:
    """The line that a failed task's log begins with; there is no traceback anywhere in it."""
    text = json.dumps(log)
    assert "Traceback" not in text
    assert not any(line.get("error_detail") or line.get("exc_info") for line in log)
    first = own_lines(log)[0]
    assert first["level"] == "error", first
    assert first["logger"] == "duebook.airflow", first
    said = str(first["event"])
    assert "\n" not in said
    assert not re.search(r"\.py:\d+", said), "an error that was not foreseen"
    return said


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = 60.0) -> None:
    """Wait for a condition; fails the test with `what` when it does not come about in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.2)
