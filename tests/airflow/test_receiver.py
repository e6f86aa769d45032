"""The webhook receiver as Airflow's own API server serves it: its middlewares, its mount."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.web.receiving import CONFIGURATION, STRIPE_SECRET, event, stripe_headers

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"

# The application of `airflow api-server`, whole; its metadata database is never asked.
SCRIPT = """
import socket, sys, warnings
warnings.simplefilter("ignore")
import uvicorn
from airflow.api_fastapi.app import create_app
app = create_app(apps="core")
bound = socket.create_server(("127.0.0.1", 0))
print("listening on", bound.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[bound])
"""


@pytest.fixture
def api_server(database_url: str, tmp_path: Path) -> Iterator[str]:
    config = tmp_path / "duebook.toml"
    config.write_text(CONFIGURATION)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("DUEBOOK_", "AIRFLOW_"))}
    environment = {
        **inherited,
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(PLUGINS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql+psycopg://nobody@127.0.0.1:1/nothing",
        "AIRFLOW_CONN_DUEBOOK": database_url,
        "AIRFLOW_CONN_STRIPE_WEBHOOK": json.dumps({"conn_type": "http", "password": STRIPE_SECRET}),
        "DUEBOOK_CONFIG_FILE": str(config),
        "PYTHONPATH": str(PLUGINS),
    }
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            told = next(line for line in process.stdout if line.startswith("listening on"))
            yield f"http://127.0.0.1:{told.split()[-1]}/duebook"
        finally:
            process.kill()


def test_the_api_server_receives_webhooks_below_duebook(
    api_server: str, conn: psycopg.Connection[Any]
) -> None:
    body = event("1")
    with httpx.Client(timeout=100, trust_env=False) as client:

        def post(endpoint: str, headers: dict[str, str]) -> httpx.Response:
            return client.post(f"{api_server}/webhooks/{endpoint}", content=body, headers=headers)

        answers = [post("stripe", stripe_headers(body)) for _ in range(2)]
        assert [answer.json() for answer in answers] == [
            {"status": "stored"},
            {"status": "duplicate"},
        ]
        assert post("stripe", {}).status_code == 401
        assert post("other", {}).status_code == 404
        # Its secret is not defined here: the provider is asked to come back.
        assert post("standard", {}).status_code == 503
        assert client.get(f"{api_server}/health").json()["endpoints"] == ["second", "stripe"]
    assert conn.execute("select endpoint, event_id from duebook.webhook_receipt").fetchall() == [
        ("stripe", "evt_1")
    ]


def test_what_can_not_be_put_together_asks_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    from duebook.airflow.receiver import MountedReceiver

    monkeypatch.delenv("AIRFLOW_CONN_DUEBOOK", raising=False)
    monkeypatch.setenv("DUEBOOK_CONFIG_FILE", "/nowhere/duebook.toml")

    async def ask() -> httpx.Response:
        told = httpx.ASGITransport(MountedReceiver())
        async with httpx.AsyncClient(transport=told, base_url="http://x") as client:
            return await client.post("/webhooks/stripe", content=b"{}")

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
