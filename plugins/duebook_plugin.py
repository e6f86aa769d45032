"""Registers Duebook with Airflow; everything it registers lives in the package beside it."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from duebook.airflow.receiver import MountedReceiver


class DuebookPlugin(AirflowPlugin):
    """What Airflow loads, once a process; it opens nothing and reads nothing."""

    name = "duebook"
    fastapi_apps: list[Any] = [  # noqa: RUF012 (as Airflow declares it)
        {"app": MountedReceiver(), "url_prefix": "/duebook", "name": "Duebook webhooks"}
    ]
