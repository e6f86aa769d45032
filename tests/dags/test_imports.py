from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

DAGS = Path(__file__).resolve().parents[2] / "dags"
MOST_SECONDS = 0.5

# Runs alone in a new interpreter, where any connection, to whatever, is an error. It measures
# processor time: how busy the machine is otherwise is no matter of the DAG files.
SCRIPT = """
import importlib.util, json, socket, sys, time, warnings
warnings.simplefilter("ignore")
started = time.process_time()
import airflow.sdk
bare = time.process_time() - started

def refuse(*_):
    raise AssertionError("a DAG file opened a connection on import")

socket.socket.connect = refuse
socket.getaddrinfo = refuse
before = set(sys.modules)
started = time.process_time()
for path in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location("dag_under_test", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
print(json.dumps({
    "bare": bare,
    "added": time.process_time() - started,
    "modules": sorted({name.partition(".")[0] for name in set(sys.modules) - before}),
}))
"""


def test_the_dag_files_add_little_to_importing_airflow_and_connect_to_nothing() -> None:
    measured = min((_measure() for _ in range(3)), key=lambda found: found["added"])
    assert measured["added"] <= MOST_SECONDS, measured
    heavy = {"psycopg", "pandas", "stripe", "pyarrow", "numpy"} & set(measured["modules"])
    assert not heavy


def _measure() -> dict[str, Any]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW_CONN_")}
    environment["PYTHONPATH"] = str(DAGS.parent / "plugins")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, sorted(DAGS.glob("*.py")))],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
