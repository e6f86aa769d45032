"""Registers Duebook with Airflow; everything it registers lives in the package beside it."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class DuebookPlugin(AirflowPlugin):
    """What Airflow loads, once a process; it opens nothing and reads nothing."""

    name = "duebook"
