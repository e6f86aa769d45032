"""What operators do about channels: secrets for customers, and accounts that are told nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.channels.endpoints import Reach, parse_endpoint
from duebook.channels.webhook_secrets import endpoint_secret
from tests.conftest import ROOT, DuebookCli
from tests.due_work import add_due

Conn = psycopg.Connection[Any]
MASTER = "a master key of at least 32 bytes, of a test"
OLDER = "the master key before it, of a test as well"
URL = "https://customer.example/hooks?shop=1"


@pytest.fixture
def cli(conn: Conn, duebook_cli: DuebookCli, tmp_path: Path) -> DuebookCli:
    config = (ROOT / "duebook.toml").read_text()
    (tmp_path / "own.toml").write_text(
        config.replace(
            "[channels.email]", '[channels.webhook]\nconnection = "hooks"\n\n[channels.email]'
        )
    )
    add_due(conn, 1, prefix="w", channel="webhook")
    conn.execute("update duebook.contact set address = %s", [URL])
    duebook_cli.environment |= {
        "DUEBOOK_CONFIG_FILE": str(tmp_path / "own.toml"),
        "AIRFLOW_CONN_HOOKS": f'{{"conn_type": "http", "password": "{MASTER}",'
        f' "extra": {{"previous": "{OLDER}"}}}}',
    }
    return duebook_cli


def audit(conn: Conn) -> list[tuple[Any, ...]]:
    return conn.execute(
        "select actor, action, account_id, subject from duebook.audit_event"
        " where account_id is not null order by audit_event_id"
    ).fetchall()


def test_a_customers_secret_is_shown_and_that_it_was_is_kept(cli: DuebookCli, conn: Conn) -> None:
    shown = cli.in_process("channel", "secret", "--account", "w000000", "--channel", "webhook")
    identity = parse_endpoint(URL, Reach()).identity
    assert shown.code == 0, shown.stderr
    assert shown.stdout.split() == [
        endpoint_secret(key, "w000000", identity) for key in (MASTER, OLDER)
    ]
    assert "customer.example" not in shown.stdout + shown.stderr
    assert audit(conn) == [("pytest", "show_channel_secret", "w000000", "channel:webhook")]


@pytest.mark.parametrize(
    ("account", "channel", "said"),
    [
        ("nobody", "webhook", "no contact of channel webhook"),
        ("w000000", "pigeon", "no channel pigeon"),
        ("w000000", "email", "AIRFLOW_CONN_SMTP_DEFAULT"),
    ],
)
def test_where_there_is_no_secret_the_reason_is_said(
    cli: DuebookCli, conn: Conn, account: str, channel: str, said: str
) -> None:
    shown = cli.in_process("channel", "secret", "--account", account, "--channel", channel)
    assert shown.code == 2
    assert said in shown.stderr
    assert shown.stdout == ""
    assert audit(conn) == []


def test_an_account_is_told_nothing_until_that_is_lifted(cli: DuebookCli, conn: Conn) -> None:
    rule = ("suppress", "w000000", "webhook", "--reason", "asked by phone")
    assert cli.in_process(*rule, "--json").json["done"] == "suppressed"
    assert cli.in_process(*rule, "--json").json["done"] == "known"
    found = conn.execute("select account_id, channel, reason, source from duebook.suppression")
    assert found.fetchall() == [("w000000", "webhook", "asked by phone", "operator")]
    lift = (*rule[:-1], "asked back", "--lift", "--json")
    assert cli.in_process(*lift).json["done"] == "lifted"
    assert cli.in_process(*lift).json["done"] == "known"
    assert cli.in_process("suppress", "nobody", *rule[2:]).code == 2
    assert [row[1] for row in audit(conn)] == ["suppress", "lift_suppression"]
