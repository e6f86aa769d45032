from __future__ import annotations

import asyncio
import json

import psycopg.conninfo
import pytest

from duebook.errors import ConfigurationError, UnavailableError

pytestmark = pytest.mark.filterwarnings("default")  # Airflow's own, on import


def airflow_connection(url: str, **changed: object) -> str:
    """A connection as its AIRFLOW_CONN_ variable holds it."""
    stated = psycopg.conninfo.conninfo_to_dict(url)
    return json.dumps(
        {
            "conn_type": "postgres",
            "host": stated.get("host"),
            "port": int(str(stated["port"])),
            "login": stated["user"],
            "password": stated["password"],
            "schema": stated["dbname"],
            **changed,
        }
    )


def test_a_connection_has_duebooks_session_whatever_the_server_says(
    monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    from duebook.airflow.hooks import connect_from_hook

    extra = {"application_name": "mine", "cursor": "dictcursor"}
    monkeypatch.setenv("AIRFLOW_CONN_DUEBOOK", airflow_connection(database_url, extra=extra))
    with connect_from_hook("duebook")() as conn:
        assert conn.autocommit
        shown = conn.execute("select current_setting('timezone'), current_database()").fetchone()
    assert shown == ("UTC", psycopg.conninfo.conninfo_to_dict(database_url)["dbname"])


def test_a_url_serves_as_well(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    from duebook.airflow.hooks import connect_from_hook

    monkeypatch.setenv("AIRFLOW_CONN_DUEBOOK", database_url)
    with connect_from_hook("duebook")() as conn:
        assert conn.execute("select 1").fetchone() == (1,)


def test_the_extras_of_a_connection_reach_the_server(
    monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    from duebook.airflow.hooks import connect_from_hook

    extra = {"options": "-c work_mem=5MB"}
    monkeypatch.setenv("AIRFLOW_CONN_DUEBOOK", airflow_connection(database_url, extra=extra))
    with connect_from_hook("duebook")() as conn:
        assert conn.execute("select current_setting('work_mem')").fetchone() == ("5MB",)


def test_a_missing_connection_is_named_with_the_variable_that_makes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from duebook.airflow.hooks import connect_from_hook, find_connection

    monkeypatch.delenv("AIRFLOW_CONN_DUEBOOK", raising=False)
    with pytest.raises(ConfigurationError, match="AIRFLOW_CONN_DUEBOOK"):
        connect_from_hook("duebook")
    assert find_connection("stripe_default") is None


def test_a_connection_is_the_same_inside_airflow_and_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from duebook.airflow.hooks import find_connection
    from duebook.connections import connection_from_environment

    for value in (
        "smtp://user:p%40ss@mail.example.org:587/?security=starttls",
        '{"conn_type": "generic", "host": "http://127.0.0.1", "port": 8420, "password": "sk_1"}',
    ):
        monkeypatch.setenv("AIRFLOW_CONN_OURS", value)
        outside = connection_from_environment("ours", {"AIRFLOW_CONN_OURS": value})
        assert find_connection("ours") == outside


def test_a_database_that_is_away_is_said_in_one_line_without_its_password(
    monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    from duebook.airflow.hooks import connect_async_from_connection, connect_from_hook

    away = airflow_connection(database_url, host="127.0.0.1", port=1, password="do-not-tell")
    monkeypatch.setenv("AIRFLOW_CONN_DUEBOOK", away)
    connect = connect_from_hook("duebook")
    with pytest.raises(UnavailableError) as first:
        connect()
    with pytest.raises(UnavailableError) as second:
        asyncio.run(connect_async_from_connection("duebook"))
    for caught in (first, second):
        message = str(caught.value)
        assert "127.0.0.1:1" in message
        assert "\n" not in message
        assert "do-not-tell" not in message
