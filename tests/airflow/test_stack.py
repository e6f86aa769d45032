"""The local Airflow: real processes, really started, and really gone afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from duebook.airflow.stack import COMPONENTS, LocalStack
from duebook.errors import InputError, RefusedError, UnavailableError
from tests.conftest import Databases

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]

ROOT = Path(__file__).resolve().parents[2]
DAG = """
from airflow.sdk import Param, dag, task

@dag(params={"count": Param(1, type="integer"), "wait_for": Param(None, type=["null", "string"])})
def probe():
    @task
    def count(params=None):
        import os, time
        while params["wait_for"] and not os.path.exists(params["wait_for"]):
            time.sleep(0.1)
        return {"count": params["count"], "secret": "AIRFLOW_CONN_PROBE" in os.environ}
    count()

probe()
"""


@dataclass
class Site:
    """Where the stack of these tests lives; `metadata_url` changes when its database is dropped."""

    home: Path
    dags: Path
    metadata_url: str

    def stack(self) -> LocalStack:
        return LocalStack(
            self.home,
            metadata_url=self.metadata_url,
            connections={"probe": "http://localhost"},
            dags=self.dags,
        )


@pytest.fixture(scope="module")
def site(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    dags = tmp_path_factory.mktemp("dags")
    (dags / "probe.py").write_text(DAG)
    site = Site(tmp_path_factory.mktemp("stack"), dags, databases.create())
    try:
        yield site
    finally:
        site.stack().stop(drain_s=0)


@pytest.fixture
def stack(site: Site) -> LocalStack:
    """A running stack; each test finds it up, whatever the one before did to it."""
    stack = site.stack()
    stack.start()
    return stack


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.1)


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    left = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                left.append(process)
    return left


def test_it_is_healthy_on_loopback_alone_and_has_its_pools(stack: LocalStack) -> None:
    with stack.api() as api:
        assert set(api.health().values()) == {"healthy"}
        assert set(api.dags()) == {"probe"}
        # Made again at every start, so that a fresh metadata database has them.
        for name in ("duebook_reconcile", "duebook_send"):
            assert api.pool(name)["slots"] >= 1
    listening = {
        connection.laddr.ip
        for process in stack.processes()
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_nobody_gets_in_without_the_generated_password(stack: LocalStack) -> None:
    login = stack.login()
    assert httpx.get(f"{login.url}/api/v2/dags").status_code == 401
    with stack.api() as api:
        api._password = "guessed"
        with pytest.raises(RefusedError, match="refused the login"):
            api.dags()
    assert login.password not in repr(login)
    for name in ("secrets.json", "passwords.json"):
        assert stat.S_IMODE((stack.home / name).stat().st_mode) == 0o600


def test_a_run_id_of_ones_own_makes_a_trigger_safe_to_repeat(stack: LocalStack) -> None:
    with stack.api() as api:
        api.set_paused("probe", paused=False)
        first = api.trigger("probe", conf={"count": 41}, run_id="caller-1")
        again = api.trigger("probe", conf={"count": 42}, run_id="caller-1")
        assert (first.created, again.created) == (True, False)
        assert api.wait_for_run("probe", "caller-1", timeout_s=120) == "success"
        assert api.return_value("probe", "caller-1", "count") == {"count": 41, "secret": True}
        assert any(
            "Dag file parsed" in line["event"] or line["event"]
            for line in api.task_log("probe", "caller-1", "count", 1)
        )
        with pytest.raises(InputError, match="404"):
            api.run_state("probe", "never-triggered")
        with pytest.raises(RefusedError, match="4"):
            api.trigger("probe", conf={"count": "many"})


def test_a_paused_dag_keeps_its_run_until_it_is_unpaused(stack: LocalStack) -> None:
    with stack.api() as api:
        api.set_paused("probe", paused=True)
        assert api.dags() == {"probe": True}
        run = api.trigger("probe")
        with pytest.raises(UnavailableError, match="still queued"):
            api.wait_for_run("probe", run.run_id, timeout_s=3)
        api.set_paused("probe", paused=False)
        assert api.wait_for_run("probe", run.run_id, timeout_s=120) == "success"


def test_a_second_start_leaves_a_running_stack_alone(stack: LocalStack, site: Site) -> None:
    before = {process.pid for process in stack.processes()}
    started = time.monotonic()
    assert site.stack().start() == stack.login()
    assert time.monotonic() - started < 5
    assert {process.pid for process in stack.processes()} >= before


@pytest.mark.prove
def test_stopping_lets_a_running_task_end_and_leaves_no_process(
    stack: LocalStack, site: Site, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    with stack.api() as api:
        api.set_paused("probe", paused=False)
        run = api.trigger("probe", conf={"wait_for": str(go)})
        wait_until(lambda: api.run_state("probe", run.run_id) == "running", "the run started")
        wait_until(
            lambda: api.task_instances("probe", run.run_id)[0]["state"] == "running", "the task"
        )
    everything = stack.processes()
    assert len(everything) > len(COMPONENTS)
    stops = read_log(stack, "scheduler").count("Exiting gracefully")
    stopper = subprocess.Popen(
        [sys.executable, "-c", STOP, str(stack.home.parent)], env=plugins_environment()
    )
    scheduler = next(p for p in everything if "scheduler" in p.cmdline())
    wait_until(
        lambda: read_log(stack, "scheduler").count("Exiting gracefully") > stops, "the stop began"
    )
    assert scheduler.is_running()
    go.touch()
    assert stopper.wait(100) == 0
    assert alive(everything) == []
    again = site.stack()
    again.start()
    with again.api() as api:
        assert api.wait_for_run("probe", run.run_id, timeout_s=60) == "success"
        assert api.task_instances("probe", run.run_id)[0]["try_number"] == 1


def test_a_stack_whose_parents_were_killed_is_found_and_ended(
    stack: LocalStack, tmp_path: Path
) -> None:
    with stack.api() as api:
        api.set_paused("probe", paused=False)
        run = api.trigger("probe", conf={"wait_for": str(tmp_path / "never")})
        wait_until(
            lambda: any(t["state"] == "running" for t in api.task_instances("probe", run.run_id)),
            "the task",
        )
    everything = stack.processes()
    for component in COMPONENTS:
        record = json.loads((stack.home / "run" / f"{component.name}.json").read_text())
        os.kill(record["pid"], signal.SIGKILL)
    # A killed process may still be seen for some milliseconds while the kernel takes it down.
    wait_until(lambda: not stack.is_running(), "the killed components ended")
    # The task's own process has left its parent's process group, and lives on.
    assert alive(everything)
    stack.stop(drain_s=0)
    assert alive(everything) == []
    assert stack.processes() == []


@pytest.mark.prove
def test_the_port_and_the_password_outlive_a_restart(stack: LocalStack, site: Site) -> None:
    login = stack.login()
    stack.stop(drain_s=5)
    assert site.stack().start() == login


@pytest.mark.prove
def test_ctrl_c_while_it_starts_leaves_nothing(site: Site) -> None:
    stack = site.stack()
    stack.stop(drain_s=0)
    starter = subprocess.Popen(
        [sys.executable, "-c", START, str(stack.home.parent), site.metadata_url],
        env=plugins_environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: len(stack.processes()) >= len(COMPONENTS), "the components started")
    starter.send_signal(signal.SIGINT)
    _, said = starter.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
    assert stack.processes() == []


@pytest.mark.prove
def test_a_component_that_ends_at_once_is_named_with_its_log(
    databases: Databases, tmp_path: Path
) -> None:
    stack = LocalStack(
        tmp_path,
        metadata_url=databases.create(),
        environment={"AIRFLOW__CORE__EXECUTOR": "NoSuchExecutor"},
    )
    with pytest.raises(UnavailableError, match=r"scheduler ended while starting; see .*\.log"):
        stack.start(timeout_s=100)
    assert stack.processes() == []


@pytest.mark.prove
def test_a_metadata_database_that_was_dropped_is_made_again(
    stack: LocalStack, site: Site, databases: Databases
) -> None:
    stack.stop(drain_s=0)
    databases.drop(site.metadata_url)
    site.metadata_url = databases.create()
    fresh = site.stack()
    fresh.start()
    with fresh.api() as api:
        assert api.runs("probe") == []
        # Airflow's default for what it has not seen before: duebook's status and doctor say so.
        assert api.dags() == {"probe": True}


def test_a_metadata_database_that_is_away_is_said_in_one_line(tmp_path: Path) -> None:
    stack = LocalStack(tmp_path, metadata_url="postgresql://nobody:secret@127.0.0.1:1/airflow")
    with pytest.raises(UnavailableError, match="metadata database can't be reached") as caught:
        stack.start()
    assert "secret" not in str(caught.value)


STOP = textwrap.dedent("""
    import sys; from pathlib import Path
    from duebook.airflow.stack import LocalStack
    LocalStack(Path(sys.argv[1]), metadata_url="").stop(drain_s=60)
""")
START = textwrap.dedent("""
    import signal, sys; from pathlib import Path
    # A shell that runs the tests in the background would have Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from duebook.airflow.stack import LocalStack
    LocalStack(Path(sys.argv[1]), metadata_url=sys.argv[2]).start()
""")


def plugins_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "plugins")}


def read_log(stack: LocalStack, component: str) -> str:
    return (stack.home / "logs" / f"{component}.log").read_text()
