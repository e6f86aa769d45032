"""One whole Duebook for tests: two PostgreSQL servers, a real Airflow, providers and a mail server.

Duebook's database has a server of its own, so that it can be taken away while Airflow's stays.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from duebook.airflow.api import FINISHED_STATES, AirflowApi
from duebook.airflow.stack import LocalStack
from duebook.db.connect import connect_url
from duebook.db.embedded import EmbeddedServer
from duebook.demo.books import Books
from duebook.demo.servers import Servers
from tests.conftest import ENVIRONMENT, ROOT, Finished
from tests.e2e.leaks import Secrets
from tests.stripe_stub.server import StripeStub

NIGHT, SWEEP = "nightly_reconciliation", "due_sweep"
RUN_TIMEOUT_S = 180.0


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

    # ---- mail --------------------------------------------------------------------------------

    def mails(self) -> int:
        """Messages that the mail server took, by its own count."""
        return self.servers.mails_received()

    def messages(self) -> list[dict[str, Any]]:
        lines = self.servers.mailbox.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

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

    def night(self, run_id: str, account: str, **conf: Any) -> dict[str, dict[str, Any]]:
        """One triggered night that ends well; the counts by provider account."""
        with self.stack().api() as api:
            api.trigger(NIGHT, conf={"account": account, **conf}, run_id=run_id)
            assert api.wait_for_run(NIGHT, run_id, timeout_s=RUN_TIMEOUT_S) == "success"
            return counts_of(api, run_id)


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
