from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from duebook.airflow import tasks
from duebook.airflow.failures import TaskRefused
from tests.conftest import ENVIRONMENT

pytestmark = pytest.mark.filterwarnings("default")  # Airflow's own, on import

CONFIG = """
[provider_accounts.one]
provider = "adyen"
mode = "dry_run"
settle_within = "P3D"
zone = "UTC"

[provider_accounts.two]
provider = "stripe"
mode = "dry_run"
settle_within = "P3D"
zone = "UTC"
connection = "stripe_two"

[kinds.payment_settled]
enabled = true
channel = "noop"
notify_after = "PT0S"
give_up_after = "P7D"
supersedes = true
catch_up = "all"
catch_up_window = "P3D"
max_occurrences = 100
spread_per_minute = 600
max_tries = 8
max_claims = 20

[channels.noop]

[sweep]
batch_size = 100
senders = 3
"""
PARAMS = {"account": "one", "as_of": None, "dry_run": False}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / "duebook.toml"
    config.write_text(CONFIG)
    monkeypatch.setenv("DUEBOOK_CONFIG_FILE", str(config))
    monkeypatch.setenv("DUEBOOK_ENVIRONMENT", ENVIRONMENT)
    for name in ("DUEBOOK", "STRIPE_TWO"):
        monkeypatch.delenv(f"AIRFLOW_CONN_{name}", raising=False)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]


def test_all_accounts_are_those_of_duebook_toml() -> None:
    assert tasks.choose_accounts({"account": "all"}) == ["one", "two"]
    assert tasks.choose_accounts({"account": " two "}) == ["two"]


def test_an_unknown_account_is_refused_with_those_that_are_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(TaskRefused):
        tasks.choose_accounts({"account": "three"})
    assert errors(caplog) == ["unknown provider account three; duebook.toml has one, two"]


@pytest.mark.parametrize("as_of", ["last tuesday", "2026-11-30", "2026-11-30T02:00:00"])
def test_an_as_of_that_is_no_instant_is_refused_before_any_work(
    caplog: pytest.LogCaptureFixture, as_of: str
) -> None:
    with pytest.raises(TaskRefused):
        tasks.reconcile_account("one", {**PARAMS, "as_of": as_of}, "run")
    (message,) = errors(caplog)
    assert "as_of" in message


def test_a_missing_connection_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    with pytest.raises(TaskRefused):
        tasks.reconcile_account("one", PARAMS, "run")
    monkeypatch.setenv("AIRFLOW_CONN_DUEBOOK", database_url)
    apply(database_url)
    with pytest.raises(TaskRefused):
        tasks.reconcile_account("two", {**PARAMS, "account": "two"}, "run")
    first, second = errors(caplog)
    assert "AIRFLOW_CONN_DUEBOOK" in first
    assert "stripe_two" in second


def apply(url: str) -> None:
    import functools
    import os

    from duebook.config import load_config
    from duebook.db.connect import connect_url
    from duebook.services.apply import apply_config

    connect = functools.partial(connect_url, url, autocommit=True)
    apply_config(connect, load_config(Path(os.environ["DUEBOOK_CONFIG_FILE"])), by="pytest")


def test_a_sweep_with_nothing_due_needs_no_further_sender(
    monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DUEBOOK", database_url)
    apply(database_url)
    counts, senders = tasks.sweep_first("run")
    assert (counts["claimed"], counts["backlog"], senders) == (0, 0, [])


@dataclass(frozen=True, slots=True)
class Report:
    """Stands for the sweep's report at the edge of the services."""

    claimed: int
    backlog: int

    def to_json(self) -> dict[str, Any]:
        return {"claimed": self.claimed, "backlog": self.backlog}


@pytest.mark.parametrize(
    ("claimed", "backlog", "senders"),
    [
        (100, 0, []),
        (100, 1, [1]),
        (100, 101, [1, 2]),
        (100, 100_000, [1, 2, 3]),  # as many as the setting allows
        (0, 5_000, []),  # a paused channel: more senders would find the same
    ],
)
def test_further_senders_are_what_the_backlog_is_worth(
    monkeypatch: pytest.MonkeyPatch, claimed: int, backlog: int, senders: list[int]
) -> None:
    from duebook.services import operate

    monkeypatch.setenv("AIRFLOW_CONN_DUEBOOK", "postgresql://nobody@127.0.0.1:1/nothing")
    asked: dict[str, Any] = {}

    def sweep_due(*_: Any, **request: Any) -> Report:
        asked.update(request)
        return Report(claimed, backlog)

    monkeypatch.setattr(operate, "sweep_due", sweep_due)
    counts, further = tasks.sweep_first("run-7")
    assert further == senders
    assert counts == {"claimed": claimed, "backlog": backlog}
    assert asked["max_batches"] == 1
    assert asked["sender"] == "airflow:run-7"
    tasks.sweep_more(2, "run-7")
    assert (asked["max_batches"], asked["sender"]) == (None, "airflow:run-7:2")


def test_what_leaves_a_reconciliation_is_counts_and_no_word_of_a_file() -> None:
    document = {
        "account": "one",
        "entries_new": 3,
        "discrepancies": {"amount_mismatch": 1},
        "batches": [
            {"batch_ref": "B-7", "currency": "EUR", "sum_minor": 7654321, "status": "closed"},
            {"batch_ref": "B-8", "currency": "EUR", "sum_minor": 7654321, "status": "closed"},
            {"batch_ref": "B-9", "currency": "EUR", "sum_minor": 9, "status": "not_closed"},
        ],
        "unknown_types": {"ada@example.org": 2},
    }
    counts = tasks.count_reconciliation(document)
    assert counts["batches"] == {"closed": 2, "not_closed": 1}
    assert counts["unknown_types"] == 2
    assert counts["discrepancies"] == {"amount_mismatch": 1}
    assert "7654321" not in str(counts)
    assert "@" not in str(counts)


def test_reading_events_returns_counts_and_knows_the_accounts(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DUEBOOK", database_url)
    counts = tasks.read_events({"account": "all"}, "manual__1")
    assert set(counts.values()) == {0}
    assert {"claimed", "read", "ignored", "given_up", "pending"} <= set(counts)
    with pytest.raises(TaskRefused):
        tasks.read_events({"account": "three"}, "manual__1")
    assert errors(caplog) == ["unknown provider account three; duebook.toml has one, two"]
