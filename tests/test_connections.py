"""Connections in the environment mean what they mean to Airflow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from duebook.connections import ConnectionSpec, connection_from_environment
from duebook.errors import ConfigurationError


def read(value: str) -> ConnectionSpec:
    found = connection_from_environment("smtp_default", {"AIRFLOW_CONN_SMTP_DEFAULT": value})
    assert found is not None
    return found


VALUES = [
    "smtp://user%40shop:p%2Fw%3A%40@smtp.example:587/?disable_ssl=true&timeout=30",
    "smtp://smtp.example",
    "smtp://127.0.0.1:1025",
    "smtp://:secret@smtp.example:25",
    "smtp://user@Smtp.Example:25/sch%2Fema",
    "google-cloud-platform://?key_path=%2Fkeys%2Fkey.json&scope=a&empty=",
    "http://https://api.example:443/v1?x=1",
    "postgresql://u:p@db:5432/duebook?__extra__=%7B%22sslmode%22%3A+%22require%22%2C+%22n%22%3A+3%7D",
    "postgres://u:p@%2Fvar%2Frun%2FPostgres/duebook",
    "smtp://[::1]:1025",
    json.dumps(
        {
            "conn_type": "smtp",
            "host": "smtp.example",
            "port": "587",
            "login": "user",
            "password": "p:w@/",
            "schema": "s",
            "extra": {"disable_tls": False, "max_connections": 3},
        }
    ),
    json.dumps({"conn_type": "smtp", "host": "h", "port": 25, "extra": '{"a": 1}'}),
    json.dumps({"conn_type": "google-cloud-platform"}),
]


@pytest.mark.parametrize("value", VALUES)
def test_it_reads_what_airflow_reads(value: str) -> None:
    from airflow.sdk import Connection

    theirs: Any = (
        Connection.from_json(value, conn_id="smtp_default")
        if value.startswith("{")
        else Connection.from_uri(value, conn_id="smtp_default")
    )
    ours = read(value)
    assert ours.conn_type == theirs.conn_type.replace("-", "_")
    assert ours.host == (theirs.host or "")
    assert (ours.port, ours.login or None) == (theirs.port, theirs.login or None)
    assert (ours.password or None) == (theirs.password or None)
    assert ours.schema == (theirs.schema or None)
    assert ours.extra == theirs.extra_dejson


def test_what_is_not_defined_is_none() -> None:
    assert connection_from_environment("smtp_default", {}) is None
    assert connection_from_environment("smtp_default", {"AIRFLOW_CONN_SMTP_DEFAULT": " "}) is None


@pytest.mark.parametrize(
    "value",
    [
        "smtp.example:25",
        "smtp://user:hunter2@smtp.example:port",
        "smtp://user:hunter2@[::1",
        "{hunter2",
        '{"host": 5, "password": "hunter2"}',
        '{"port": "hunter2"}',
        '{"extra": "hunter2"}',
        '{"extra": [1]}',
        "smtp://h?__extra__=hunter2",
    ],
)
def test_a_value_that_can_not_be_read_is_named_and_not_shown(value: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        read(value)
    assert "AIRFLOW_CONN_SMTP_DEFAULT" in str(error.value)
    assert "hunter2" not in str(error.value)


def test_a_password_is_not_shown() -> None:
    assert "hunter2" not in repr(read("smtp://u:hunter2@h?token=hunter2"))
