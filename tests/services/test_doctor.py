"""`doctor` finds what is broken and says what to do about it."""

from __future__ import annotations

import re
import socket
import time
import zoneinfo
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.channels.base import ChannelConnection
from duebook.channels.noop import NoopChannel
from duebook.channels.registry import make_channel
from duebook.config import Config, parse_config
from duebook.connections import ConnectionSpec
from duebook.db.connect import connect_url
from duebook.errors import ConfigurationError, UnavailableError
from duebook.services.doctor import Finding, Probes, doctor, report

Connection = psycopg.Connection[Any]
Connect = Callable[[], Connection]

RUNNING = {"nightly_reconciliation": False, "due_sweep": False}


@pytest.fixture(autouse=True)
def pinned_zones() -> Iterator[None]:
    """The pinned tz database, as every process of Duebook reads it."""
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(())
    zoneinfo.ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath(before)
    zoneinfo.ZoneInfo.clear_cache()


@pytest.fixture
def connect(database_url: str) -> Connect:
    return partial(connect_url, database_url, autocommit=True)


def config_of(folder: Path) -> Config:
    """One account with a connection and a folder, one kind, two channels."""
    policy = {
        "enabled": True,
        "channel": "email",
        "notify_after": "PT0S",
        "give_up_after": "P7D",
        "supersedes": True,
        "catch_up": "all",
        "catch_up_window": "P3D",
        "max_occurrences": 10,
        "spread_per_minute": 60,
        "max_tries": 8,
        "max_claims": 5,
    }
    account = {
        "provider": "stripe",
        "mode": "dry_run",
        "settle_within": "P3D",
        "zone": "UTC",
        "connection": "stripe_default",
        "folder": str(folder),
    }
    channel = {"connection": "smtp_default", "sender": "Duebook <d@example.com>"}
    return parse_config(
        {
            "provider_accounts": {"stripe": account},
            "kinds": {"payment_settled": policy},
            "channels": {"email": channel},
        },
        "duebook.toml",
    )


def healthy(**changes: Any) -> Probes:
    values: dict[str, Any] = {
        "environment": "test",
        "connection": lambda name: name,
        "channel": lambda name: NoopChannel(name),
        "airflow": lambda: RUNNING,
    }
    return Probes(**(values | changes))


def examine(connect: Connect, folder: Path, **changes: Any) -> dict[str, Finding]:
    findings = doctor(connect, config_of(folder), healthy(**changes))
    assert all(finding.ok or finding.remedy for finding in findings)
    assert all("\n" not in finding.detail + finding.remedy for finding in findings)
    return {finding.name: finding for finding in findings}


def unwell(found: Mapping[str, Finding]) -> dict[str, str]:
    return {name: finding.detail for name, finding in found.items() if not finding.ok}


def execute(connect: Connect, statement: str) -> None:
    with connect() as conn:
        conn.execute(statement.encode())


def test_a_healthy_installation(connect: Connect, tmp_path: Path) -> None:
    found = examine(connect, tmp_path, home=tmp_path)
    assert unwell(found) == {}
    assert report(list(found.values()))["exit_code"] == 0
    assert {"database", "clock", "migrations", "objects", "roles", "environment", "disk"} <= set(
        found
    )


def test_a_database_that_is_away_is_exit_3_and_the_rest_is_still_examined(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"postgresql://duebook:secret-word@127.0.0.1:{port}/duebook"
    found = examine(partial(connect_url, url), tmp_path)
    document = report(list(found.values()))
    assert document["exit_code"] == 3
    assert "secret-word" not in str(document)
    assert found["channel email"].ok
    assert "migrations" not in found


def test_a_database_without_tables(empty_database_url: str, tmp_path: Path) -> None:
    found = examine(partial(connect_url, empty_database_url, autocommit=True), tmp_path)
    assert found["migrations"].remedy == "run `duebook migrate`"
    assert report(list(found.values()))["exit_code"] == 1


@pytest.mark.parametrize(
    ("statement", "name", "says"),
    [
        (
            "update duebook.alembic_version set version_num = '0001'",
            "migrations",
            "this version needs",
        ),
        (
            "insert into duebook.provider_account (provider_account, provider, mode, notify_from)"
            " values ('shop', 'csv', 'live', now())",
            "quiet hours",
            "not stated, and shop may send at night",
        ),
        (
            "drop function duebook.accept_environment",
            "objects",
            "accept_environment.sql is missing",
        ),
        (
            "update duebook.applied_object set sha256 = 'x' where path like 'functions/%'",
            "objects",
            "is old",
        ),
        (
            "grant usage on schema duebook to duebook_analyst;"
            "grant select on duebook.contact to duebook_analyst",
            "roles",
            "duebook_analyst can read duebook.contact",
        ),
        (
            "grant usage on schema duebook to duebook_analyst;"
            "grant select (body) on duebook.settlement_entry_version to duebook_analyst",
            "roles",
            "duebook_analyst can read duebook.settlement_entry_version",
        ),
        (
            "grant execute on function duebook.accept_environment to public",
            "roles",
            "duebook_receiver can execute",
        ),
        (
            "grant insert on duebook.due to duebook_receiver",
            "roles",
            "duebook_receiver can use duebook.due",
        ),
        (
            "create view duebook_reports.leak as select address from duebook.contact;"
            "grant select on duebook_reports.leak to duebook_analyst",
            "roles",
            "duebook_reports.leak shows the column address",
        ),
        ("delete from duebook.environment", "environment", "never accepted"),
        (
            "update duebook.environment set system_identifier = 1",
            "environment",
            "copy of environment test",
        ),
    ],
)
def test_what_is_wrong_in_the_database(
    connect: Connect, tmp_path: Path, statement: str, name: str, says: str
) -> None:
    execute(connect, statement)
    assert says in unwell(examine(connect, tmp_path))[name]


def test_a_login_without_rights_is_told(connect: Connect, tmp_path: Path) -> None:
    def as_analyst() -> Connection:
        conn = connect()
        conn.execute("grant usage on schema duebook to duebook_analyst")
        conn.execute("set role duebook_analyst")
        return conn

    found = examine(as_analyst, tmp_path)
    assert unwell(found)
    assert report(list(found.values()))["exit_code"] == 1


def test_a_sender_of_another_environment_is_told(connect: Connect, tmp_path: Path) -> None:
    found = examine(connect, tmp_path, environment="production")
    assert found["environment"].remedy.endswith("`duebook restore accept production`")


def test_clocks_that_differ(connect: Connect, tmp_path: Path) -> None:
    hour = timedelta(hours=1)
    found = examine(
        connect, tmp_path, clock=lambda: datetime.fromtimestamp(time.time(), UTC) + hour
    )
    said = re.search(r"differ by ([0-9.]+) s", unwell(found)["clock"])
    assert said is not None
    # The two clocks are read one after the other.
    assert 3500 < float(said[1]) < 3700


def test_a_python_that_reads_the_systems_zones(connect: Connect, tmp_path: Path) -> None:
    zoneinfo.reset_tzpath(("/usr/share/zoneinfo",))
    found = examine(connect, tmp_path)
    assert "/usr/share/zoneinfo" in unwell(found)["Python time zones"]
    assert "PYTHONTZPATH=" in found["Python time zones"].remedy


def test_an_old_tz_database_of_postgresql_matters_where_days_are_counted(
    connect: Connect, tmp_path: Path
) -> None:
    execute(
        connect,
        "insert into duebook.provider_account (provider_account, provider, zone)"
        " values ('x', 'csv', 'Nowhere/Land')",
    )
    found = examine(connect, tmp_path)
    assert "does not know Nowhere/Land" in unwell(found)["PostgreSQL time zones"]


def test_a_missing_connection_is_named_with_its_variable(connect: Connect, tmp_path: Path) -> None:
    found = examine(connect, tmp_path, connection=lambda name: None)
    assert "provider account stripe needs it" in unwell(found)["connection stripe_default"]
    assert "AIRFLOW_CONN_SMTP_DEFAULT" in found["connection smtp_default"].remedy


def test_a_connection_that_can_not_be_read(connect: Connect, tmp_path: Path) -> None:
    def broken(name: str) -> object:
        raise ConfigurationError(f"AIRFLOW_CONN_{name.upper()}: not valid JSON")

    found = examine(connect, tmp_path, connection=broken)
    assert unwell(found)["connection stripe_default"].endswith("not valid JSON")


def test_a_webhook_endpoint_is_not_used_or_can_verify_what_it_receives(
    connect: Connect, tmp_path: Path
) -> None:
    block = {"provider_account": "stripe", "scheme": "stripe", "connection": "stripe_webhook"}
    document = config_of(tmp_path).model_dump(by_alias=True)
    config = parse_config({**document, "webhooks": {"shop": block}}, "duebook.toml")

    def look(connection: Callable[[str], ConnectionSpec | None]) -> Finding:
        found = doctor(connect, config, healthy(connection=connection))
        return next(each for each in found if each.name == "webhook endpoint shop")

    unused = look(lambda name: None)
    assert (unused.ok, unused.detail) == (
        True,
        "not used: its connection stripe_webhook is not defined",
    )
    assert look(lambda name: ConnectionSpec(name, "http", password="whsec_x")).ok
    wrong = look(lambda name: ConnectionSpec(name, "http"))
    assert not wrong.ok
    assert "the signing secret as its password is missing" in wrong.detail


def test_an_smtp_server_that_is_away(connect: Connect, tmp_path: Path) -> None:
    config = config_of(tmp_path).channels["email"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = examine(
        connect,
        tmp_path,
        channel=lambda name: make_channel(name, config, ChannelConnection("127.0.0.1", port)),
    )
    assert "can't be reached" in unwell(found)["channel email"]


@pytest.mark.parametrize(
    ("dags", "says"),
    [
        ({"due_sweep": True, "nightly_reconciliation": False}, "never run: due_sweep"),
        ({"due_sweep": False}, "unknown to Airflow: nightly_reconciliation"),
    ],
)
def test_dags_that_never_run(
    connect: Connect, tmp_path: Path, dags: dict[str, bool], says: str
) -> None:
    assert says in unwell(examine(connect, tmp_path, airflow=lambda: dags))["DAGs"]


def test_an_airflow_that_is_away(connect: Connect, tmp_path: Path) -> None:
    def away() -> Mapping[str, bool]:
        raise UnavailableError("Airflow can't be reached")

    assert unwell(examine(connect, tmp_path, airflow=away)) == {
        "Airflow": "Airflow can't be reached"
    }
    assert examine(connect, tmp_path, airflow=None)["Airflow"].ok


def test_a_folder_that_is_not_there(connect: Connect, tmp_path: Path) -> None:
    found = examine(connect, tmp_path / "gone")
    assert "is not there" in unwell(found)["folder of stripe"]


def test_a_relay_log_that_can_tell_nothing_is_named(connect: Connect, tmp_path: Path) -> None:
    config = config_of(tmp_path)
    log = tmp_path / "mail.log"
    block = config.channels["email"].model_copy(update={"relay_log": log})
    config = config.model_copy(update={"channels": {"email": block}})

    def look_up() -> Finding:
        found = doctor(connect, config, healthy())
        return next(finding for finding in found if finding.name == "look-up email")

    assert (look_up().ok, look_up().detail) == (False, f"{log}: No such file or directory")
    assert "[channels.email]" in look_up().remedy
    log.write_text(
        "2026-12-01T03:00:00+00:00 mx postfix/cleanup[1]: A: message-id=<a@b>\n"
        "2026-12-01T04:00:00+00:00 mx postfix/qmgr[2]: A: removed\n"
    )
    assert look_up().ok
    assert look_up().detail == f"{log} tells of 2026-12-01 03:00Z to 2026-12-01 04:00Z"
