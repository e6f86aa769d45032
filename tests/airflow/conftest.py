"""Airflow for tests: its home in a temporary directory, before anything imports it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

if "DUEBOOK_TEST_AIRFLOW_HOME" not in os.environ:
    _home = tempfile.mkdtemp(prefix="duebook-test-airflow-")
    atexit.register(shutil.rmtree, _home, ignore_errors=True)
    os.environ |= {
        "DUEBOOK_TEST_AIRFLOW_HOME": _home,
        "AIRFLOW_HOME": _home,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "false",
        # Nothing here may need a metadata database: this one can't be reached.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql+psycopg://nobody@127.0.0.1:1/nothing",
    }
