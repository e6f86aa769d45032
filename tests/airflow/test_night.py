"""Nights on the real scheduler: told once, whatever is repeated, cleared, backfilled or dropped.

The tests share one Airflow, one database and one mail server, and run in their order; each counts
what the mail server took since the one before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.airflow.stack import LocalStack
from duebook.config import load_config
from duebook.db.connect import connect_url
from duebook.db.embedded import EmbeddedServer
from duebook.services.apply import apply_config
from duebook.services.explain import explain
from duebook.services.imports import import_contacts, import_ledger
from tests.conftest import ENVIRONMENT, Databases
from tests.smtp_sink import SmtpSink

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]

CONFIG = """
[provider_accounts.shop]
provider = "csv"
mode = "live"
notify_from = "2024-03-01T00:00:00Z"
settle_within = "P3D"
zone = "UTC"
folder = "{inbox}"

[provider_accounts.shop.columns]
entry_id = "id"
type = "type"
amount = "gross"
currency = "currency"
payment_ref = "order"
occurred_at = "at"

[provider_accounts.shop.types]
charge = "charge"
refund = "refund"

[provider_accounts.elsewhere]
provider = "stripe"
mode = "dry_run"
settle_within = "P3D"
zone = "UTC"
connection = "stripe_elsewhere"

[kinds.payment_settled]
enabled = true
channel = "email"
notify_after = "PT0S"
give_up_after = "P7D"
supersedes = true
catch_up = "all"
catch_up_window = "P3D"
max_occurrences = 100
spread_per_minute = 600
max_tries = 8
max_claims = 20

[kinds.payment_refunded]
enabled = true
channel = "email"
notify_after = "P7D"
give_up_after = "P7D"
supersedes = false
catch_up = "all"
catch_up_window = "P3D"
max_occurrences = 100
spread_per_minute = 600
max_tries = 8
max_claims = 20

[channels.email]
connection = "smtp_default"
sender = "notices@example.com"
"""
# Seven distinctive digits, so that an amount is found wherever it leaks to.
LEDGER = """\
account_id,payment_id,reference,amount,currency,status,expected_at,provider_account
anna,p-1,O-1,81234.57,EUR,captured,2024-03-04T10:00:00Z,shop
bert,p-2,O-2,82345.68,EUR,captured,2024-03-04T11:00:00Z,shop
cleo,p-3,O-3,83456.79,EUR,captured,2024-03-04T12:00:00Z,shop
"""
CONTACTS = """\
account_id,channel,address,zone,locale,region
anna,email,anna.private@example.com,UTC,en,NL
bert,email,bert.private@example.com,UTC,en,NL
cleo,email,cleo.private@example.com,UTC,en,NL
"""
FIRST_FILE = """\
id,type,order,gross,currency,at
e-1,charge,O-1,81234.57,EUR,2024-03-04T10:00:05
e-2,charge,O-2,82345.68,EUR,2024-03-04T11:00:05
e-3,charge,O-3,83456.79,EUR,2024-03-04T12:00:05
"""
SECOND_FILE = """\
id,type,order,gross,currency,at
e-4,refund,O-1,-81234.57,EUR,2024-03-05T10:00:05
"""
LEAKS = ("8123457", "81234.57", "81,234.57", "8234568", "82345.68", "8345679", ".private@")


@dataclass
class House:
    """Everything of these tests: where it is, and how many mails were counted so far."""

    home: Path
    inbox: Path
    config: Path
    database_url: str
    metadata_url: str
    sink: SmtpSink
    counted: int = field(default=0)

    def stack(self) -> LocalStack:
        return LocalStack(
            self.home,
            metadata_url=self.metadata_url,
            connections={
                "duebook": self.database_url,
                "smtp_default": f"smtp://127.0.0.1:{self.sink.port}/?security=plain",
            },
            environment={
                "DUEBOOK_ENVIRONMENT": ENVIRONMENT,
                "DUEBOOK_CONFIG_FILE": str(self.config),
            },
        )

    def connect(self) -> psycopg.Connection[Any]:
        return connect_url(self.database_url, autocommit=True)

    def value(self, statement: str) -> Any:
        with self.connect() as conn:
            row = conn.execute(statement).fetchone()
        return row[0] if row else None

    def open_work(self) -> int:
        return int(
            self.value(
                "select (select count(*) from duebook.due where due_at <= clock_timestamp())"
                " + (select count(*) from duebook.batch)"
            )
        )

    def new_mails(self) -> int:
        """Mails since the last look, once nothing that is due is left."""
        wait_until(lambda: self.open_work() == 0, "the sweeps end what is due", 150)
        taken = len(self.sink.messages)
        new, self.counted = taken - self.counted, taken
        return new


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def house(
    databases: Databases, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    files = tmp_path_factory.mktemp("files")
    inbox = files / "inbox"
    inbox.mkdir()
    config = files / "duebook.toml"
    config.write_text(CONFIG.replace("{inbox}", str(inbox)))
    (files / "ledger.csv").write_text(LEDGER)
    (files / "contacts.csv").write_text(CONTACTS)
    (inbox / "first.csv").write_text(FIRST_FILE)
    url = databases.create(template_database)
    with SmtpSink() as sink:
        house = House(
            home=tmp_path_factory.mktemp("night"),
            inbox=inbox,
            config=config,
            database_url=url,
            metadata_url=databases.create(),
            sink=sink,
        )
        with house.connect() as conn:
            conn.execute("select duebook.accept_environment(%s, true, 'pytest')", [ENVIRONMENT])
        apply_config(house.connect, load_config(config), by="pytest")
        import_ledger(house.connect, files / "ledger.csv")
        import_contacts(house.connect, files / "contacts.csv")
        try:
            house.stack().start()
            yield house
        finally:
            house.stack().stop(drain_s=5)


def run_night(house: House, run_id: str, **conf: Any) -> dict[str, Any]:
    """One triggered night over the account `shop`; its counts."""
    with house.stack().api() as api:
        api.trigger("nightly_reconciliation", conf={"account": "shop", **conf}, run_id=run_id)
        assert api.wait_for_run("nightly_reconciliation", run_id, timeout_s=150) == "success"
        (instance,) = (
            each
            for each in api.task_instances("nightly_reconciliation", run_id)
            if each["task_id"] == "reconcile"
        )
        assert instance["rendered_map_index"] == "shop"
        found: dict[str, Any] = api.return_value("nightly_reconciliation", run_id, "reconcile", 0)
        return found


def test_a_fresh_airflow_sweeps_by_itself_and_waits_with_the_night(house: House) -> None:
    with house.stack().api() as api:
        assert api.dags() == {"due_sweep": False, "nightly_reconciliation": True}
        assert api.import_errors() == {}


def test_a_dry_run_counts_and_writes_nothing(house: House) -> None:
    with house.stack().api() as api:
        api.set_paused("nightly_reconciliation", paused=False)
    counts = run_night(house, "dry", dry_run=True)
    assert counts["entries_new"] == 3
    assert counts["run_id"] is None
    assert house.value("select count(*) from duebook.settlement_entry") == 0
    assert house.new_mails() == 0


def test_a_night_triggered_twice_at_once_is_told_once(house: House) -> None:
    with house.stack().api() as api:
        for run_id in ("twin-1", "twin-2"):
            api.trigger("nightly_reconciliation", conf={"account": "shop"}, run_id=run_id)
        for run_id in ("twin-1", "twin-2"):
            assert api.wait_for_run("nightly_reconciliation", run_id, timeout_s=150) == "success"
        counts = [
            api.return_value("nightly_reconciliation", run_id, "reconcile", 0)
            for run_id in ("twin-1", "twin-2")
        ]
    assert sorted(each["entries_new"] for each in counts) == [0, 3]
    assert sum(each["ledger_changes"] for each in counts) == 3
    assert sum(each["intents"] for each in counts) == 3
    assert house.new_mails() == 3
    assert len({json.dumps(message["to"]) for message in house.sink.messages}) == 3


def test_the_sweep_was_woken_by_the_asset_of_the_night(house: House) -> None:
    with house.stack().api() as api:
        kinds = {run["run_type"] for run in api.runs("due_sweep")}
        events = api._call("GET", "/api/v2/assets/events", params={"limit": 100}).json()
    assert "asset_triggered" in kinds
    by_task = [e for e in events["asset_events"] if e["source_task_id"] == "reconcile"]
    assert by_task
    assert by_task[-1]["extra"]["provider_account"] == "shop"
    assert {"entries_new", "ledger_changes", "intents"} <= set(by_task[-1]["extra"])


def test_a_second_night_changes_nothing_and_tells_nobody(house: House) -> None:
    counts = run_night(house, "again")
    assert (counts["entries_new"], counts["entries_changed"]) == (0, 0)
    assert (counts["ledger_changes"], counts["intents"]) == (0, 0)
    assert house.new_mails() == 0


def test_cleared_runs_run_again_and_tell_nobody(house: House) -> None:
    with house.stack().api() as api:
        sweep = next(run for run in api.runs("due_sweep") if run["state"] == "success")
        for dag_id, run_id in (
            ("due_sweep", sweep["dag_run_id"]),
            ("nightly_reconciliation", "again"),
        ):
            before = tries(api.task_instances(dag_id, run_id))
            api.clear(dag_id, run_id)
            assert api.wait_for_run(dag_id, run_id, timeout_s=150) == "success"
            assert tries(api.task_instances(dag_id, run_id)) > before
    assert house.new_mails() == 0


def story(house: House) -> dict[str, Any]:
    told = explain(house.connect, "p-1").to_json()
    del told["told_at"]  # the clock of the look itself
    return told


def tries(instances: list[dict[str, Any]]) -> int:
    return sum(instance["try_number"] for instance in instances)


def test_a_backfill_runs_and_tells_nobody(house: House) -> None:
    with house.stack().api() as api:
        made = api._call(
            "POST",
            "/api/v2/backfills",
            json={
                "dag_id": "nightly_reconciliation",
                "from_date": "2026-01-01T00:00:00Z",
                "to_date": "2026-01-02T23:00:00Z",
                "dag_run_conf": {"account": "shop"},
                "max_active_runs": 1,
            },
        ).json()

        def backfilled() -> list[str]:
            runs = api.runs("nightly_reconciliation")
            return [run["state"] for run in runs if run["run_type"] == "backfill"]

        assert made["dag_id"] == "nightly_reconciliation"
        wait_until(lambda: backfilled() == ["success", "success"], "two backfilled runs", 150)
    assert house.new_mails() == 0


def test_what_is_wrong_is_the_first_line_of_the_failed_tasks_log(house: House) -> None:
    with house.stack().api() as api:
        api.trigger("nightly_reconciliation", conf={"account": "elsewhere"}, run_id="unconnected")
        state = api.wait_for_run("nightly_reconciliation", "unconnected", timeout_s=150)
        assert state == "failed"
        log = api.task_log("nightly_reconciliation", "unconnected", "reconcile", 1, 0)
    errors = [line for line in log if line.get("level") == "error"]
    assert "stripe_elsewhere" in errors[0]["event"]
    assert "\n" not in errors[0]["event"]
    assert not any(line.get("error_detail") for line in log)
    assert "Traceback" not in json.dumps(log)


def test_airflows_database_can_be_dropped_and_nobody_notices(
    house: House, databases: Databases
) -> None:
    (house.inbox / "second.csv").write_text(SECOND_FILE)
    run_night(house, "with-a-refund")
    # A backfill moves Airflow to start the newest missed night too: either run may have told it.
    refunds = "select count(*) from duebook.intent where kind = 'payment_refunded'"
    assert house.value(refunds) == 1
    assert house.new_mails() == 0  # told in seven days
    before = story(house)

    assert_nothing_leaked_into_airflow(house)
    house.stack().stop(drain_s=10)
    databases.drop(house.metadata_url)
    house.metadata_url = databases.create()
    house.stack().start()
    with house.stack().api() as api:
        wait_until(
            lambda: any(run["state"] == "success" for run in api.runs("due_sweep")), "a sweep", 90
        )
    assert house.new_mails() == 0
    assert story(house) == before

    # Seven days pass for the waiting notice: nobody triggers anything.
    with house.connect() as conn:
        conn.execute("update duebook.due set due_at = clock_timestamp() + interval '2 seconds'")
    wait_until(lambda: len(house.sink.messages) > house.counted, "the waiting notice", 70)
    assert house.new_mails() == 1


def test_no_log_of_anybody_holds_an_amount_or_an_address(
    house: House, embedded_server: EmbeddedServer | None
) -> None:
    assert_nothing_leaked_into_airflow(house)
    logs = [path for path in house.home.rglob("*") if path.is_file() and "logs" in path.parts]
    assert len(logs) > 10
    if embedded_server is not None:
        logs += list(embedded_server.log_directory.iterdir())
    for path in logs:
        text = path.read_text(errors="replace")
        for leak in LEAKS:
            assert leak not in text, f"{leak} in {path}"


def assert_nothing_leaked_into_airflow(house: House) -> None:
    """No amount and no address among what tasks handed over."""
    with connect_url(house.metadata_url) as conn:
        rows = conn.execute("select value::text from public.xcom").fetchall()
        rows += conn.execute("select extra::text from public.asset_event").fetchall()
        rows += conn.execute("select content from public.dag_run_note").fetchall()
    assert rows
    assert not [row for row in rows for leak in LEAKS if leak in str(row[0])]
