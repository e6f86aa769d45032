"""No amount and no address leaves Duebook's database but in the mails themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from psycopg import sql

from duebook.db.connect import connect_url
from duebook.db.embedded import EmbeddedServer
from tests.e2e.conftest import TroubledNight
from tests.e2e.house import House
from tests.e2e.leaks import Secrets

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]


def test_the_search_finds_what_it_is_to_find(house: House, first_night: object) -> None:
    secrets = house.secrets
    assert len(secrets.amounts) > 300
    for shown in (
        "8123457",
        "81234.57",
        "81,234.57",
        "81.234,57",
        "81 234,57",
        "8,123,457",
        "81'234.57",
    ):
        assert secrets.found_in(f"amount={shown} EUR") == {shown}
        assert secrets.found_in(f"EUR{shown}.") or shown == "8123457"
    assert secrets.found_in('{"text": "81\\u202f234,57"}')
    assert secrets.found_in("to <Anna.Private@payers.example>")
    assert secrets.found_in("/to/anna.private%40payers.example")
    assert not secrets.found_in("2026-11-30T23:22:53.8123457Z took 1.812345 s, a8123457")
    # The mails hold both: the very texts that went out are recognised.
    for message in house.messages():
        found = secrets.found_in(f"{message['text']} {message['rcpt_to']}")
        assert len(found) >= 2, "an amount and an address"


def test_no_log_holds_an_amount_or_an_address(
    house: House, troubled_night: TroubledNight, embedded_server: EmbeddedServer | None
) -> None:
    directories = [house.home / "airflow", house.server.log_directory]
    if embedded_server is not None:
        directories.append(embedded_server.log_directory)
    files = [path for each in directories for path in each.rglob("*") if path.is_file()]
    names = {str(path.relative_to(house.home)) for path in files if house.home in path.parents}
    for component in ("api-server", "scheduler", "dag-processor", "triggerer"):
        assert f"airflow/logs/{component}.log" in names
    assert any("dag_id=nightly_reconciliation/run_id=troubled" in name for name in names)
    assert any("dag_id=due_sweep" in name for name in names)
    assert any(name.startswith("postgres/log/") for name in names)
    assert leaks(house.secrets, read(files)) == {}
    assert leaks(house.secrets, {"command line": "\n".join(house.said)}.items()) == {}


def test_no_table_of_airflow_holds_an_amount_or_an_address(
    house: House, troubled_night: TroubledNight
) -> None:
    texts = dict(metadata(house.metadata_url))
    for table in ("xcom", "asset_event", "dag_run", "task_instance", "trigger", "log"):
        assert texts[table], f"{table} is empty: nothing was searched"
    assert leaks(house.secrets, texts.items()) == {}


def read(files: list[Path]) -> Iterator[tuple[str, str]]:
    for path in files:
        yield str(path), path.read_text(encoding="utf-8", errors="replace")


def metadata(url: str) -> Iterator[tuple[str, str]]:
    """Every table of Airflow's database as text: XCom, notes, conf, events, rendered fields, …"""
    with connect_url(url, autocommit=True) as conn:
        tables = conn.execute(
            "select table_name from information_schema.tables"
            " where table_schema = 'public' and table_type = 'BASE TABLE'"
        ).fetchall()
        for (table,) in tables:
            rows = conn.execute(
                sql.SQL("select t::text from public.{} as t").format(sql.Identifier(table))
            )
            yield table, "\n".join(row[0] for row in rows)


def leaks(secrets: Secrets, texts: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Where something was found, and what."""
    return {name: found for name, text in texts if (found := secrets.found_in(text))}
