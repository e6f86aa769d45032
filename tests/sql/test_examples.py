"""The examples for analysts run, and print what is committed beside them.

`make examples` writes the outputs again: DUEBOOK_WRITE_EXAMPLES=1.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psycopg
import psycopg.conninfo
import pytest
from pydantic import SecretStr

from duebook.db.embedded import EmbeddedServer
from duebook.db.migrate import migrate
from duebook.settings import Settings
from tests.conftest import Databases, DuebookCli
from tests.debian_server import serving_15

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "sql/examples").glob("*.sql"))
_PSQL_OPTIONS = ("--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--pset", "null=∅")
BOOKS = Path(__file__).parent / "examples"


def _run_night(duebook: DuebookCli, name: str, as_of: str) -> None:
    night = duebook.in_process(
        *("reconcile", "--account", "shop", "--file", BOOKS / f"{name}.csv", "--as-of", as_of)
    )
    assert night.code in {0, 1}, night.stderr


def _fill(duebook: DuebookCli) -> None:
    """Four nights of one small shop, through the commands that everybody uses."""
    assert duebook.in_process("apply", BOOKS / "duebook.toml").code == 0
    for command in ("ledger", "contacts"):
        imported = duebook.in_process(command, "import", BOOKS / f"{command}.csv")
        assert imported.code == 0, imported.stderr
    _run_night(duebook, "monday", "2024-03-05T02:00:00Z")
    _run_night(duebook, "tuesday", "2024-03-06T02:00:00Z")
    _run_night(duebook, "wednesday", "2024-03-10T02:00:00Z")
    _run_night(duebook, "next_tuesday", "2024-03-12T02:00:00Z")
    swept = duebook.in_process("sweep")
    assert swept.code == 0, swept.stderr


@pytest.fixture
def shop(duebook_cli: DuebookCli) -> DuebookCli:
    """`duebook` for the books of one small shop."""
    duebook_cli.environment["DUEBOOK_CONFIG_FILE"] = str(BOOKS / "duebook.toml")
    return duebook_cli


def _psql(server: EmbeddedServer | None, url: SecretStr, script: Path) -> str:
    stated = psycopg.conninfo.conninfo_to_dict(url.get_secret_value())
    password = str(stated.pop("password", ""))
    program = "psql" if server is None else str(server.binary("psql"))
    target = psycopg.conninfo.make_conninfo("", **stated)
    return subprocess.run(
        [program, *_PSQL_OPTIONS, "--file", str(script), "--dbname", target],
        env={"PATH": os.environ["PATH"], "PGPASSWORD": password, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout


def test_examples_print_what_is_committed(
    shop: DuebookCli, embedded_server: EmbeddedServer | None, settings: Settings
) -> None:
    assert EXAMPLES
    assert settings.database_url is not None
    _fill(shop)
    keep = _write if os.environ.get("DUEBOOK_WRITE_EXAMPLES") else _compare
    for script in EXAMPLES:
        keep(script.with_suffix(".out"), _psql(embedded_server, settings.database_url, script))


def test_they_print_the_same_on_the_oldest_server_that_is_supported(
    shop: DuebookCli, embedded_server: EmbeddedServer | None
) -> None:
    with serving_15() as address:
        url = Databases(address).create()
        migrate(url)
        with psycopg.connect(url, autocommit=True) as connection:
            assert connection.info.server_version // 10_000 == 15
            connection.execute("select duebook.accept_environment('test', true, 'pytest')")
        shop.environment["DUEBOOK_DATABASE_URL"] = url
        _fill(shop)
        for script in EXAMPLES:
            _compare(script.with_suffix(".out"), _psql(embedded_server, SecretStr(url), script))


def _write(path: Path, printed: str) -> None:
    path.write_text(printed, encoding="utf-8")


def _compare(path: Path, printed: str) -> None:
    assert printed == path.read_text(encoding="utf-8"), "run `make examples` and read the change"


def test_every_example_is_told_of_in_the_guide() -> None:
    guide = (ROOT / "docs/analyst-guide.md").read_text()
    assert [path.name for path in EXAMPLES if f"sql/examples/{path.name}" not in guide] == []
