from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"

# Airflow's loader runs each file below its plugins folder as a module named by the file's stem, so
# a package there would be loaded twice and could stand in for `queue` or `types`.
SCRIPT = """
import json, sys, warnings
warnings.simplefilter("ignore")
from airflow import plugins_manager
plugins, errors = plugins_manager._get_plugins()
folder = sys.argv[1]
ours = {n: m.__file__ for n, m in sys.modules.items()
        if str(getattr(m, "__file__", None) or "").startswith(folder)}
print(json.dumps({
    "plugins": [p.name for p in plugins if str(p.source).startswith("$PLUGINS_FOLDER")],
    "errors": errors,
    "ours": ours,
    "shadowed": sorted(set(ours) & set(sys.stdlib_module_names)),
}))
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(PLUGINS)],
        env={**os.environ, "AIRFLOW__CORE__PLUGINS_FOLDER": str(PLUGINS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_one_plugin_is_loaded_once_and_without_an_error(loaded: dict[str, Any]) -> None:
    assert loaded["errors"] == {}
    assert loaded["plugins"] == ["duebook"]


def test_no_module_of_the_standard_library_is_replaced(loaded: dict[str, Any]) -> None:
    assert loaded["shadowed"] == []


def test_no_file_of_the_package_is_run_under_a_second_name(loaded: dict[str, Any]) -> None:
    names = {name for name in loaded["ours"] if not name.startswith("duebook")}
    assert names <= {"duebook_plugin"}
    assert len(set(loaded["ours"].values())) == len(loaded["ours"])
