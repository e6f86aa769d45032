"""The command line as its user meets it: a fresh home, the shipped settings, and bad input."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import psycopg
import psycopg.conninfo
import pytest
from psycopg.rows import TupleRow

from tests.conftest import ROOT, Databases, DuebookCli, Finished

REPORTS = ROOT / ".." / "shared" / "data" / "settlements" / "adyen"
LEDGER = """\
account_id,payment_id,reference,amount,currency,status,expected_at,provider_account
anna,p-1,ORDER-1,81234.57,EUR,captured,2026-03-02T10:00:00Z,paypal
bert,p-2,ORDER-2,82345.68,EUR,captured,2026-03-02T11:00:00Z,paypal
"""
CONTACTS = """\
account_id,channel,address,zone
anna,email,anna@payers.example,Europe/Amsterdam
"""
SETTLEMENT = """\
Transaction ID,Type,Gross,Fee,Net,Currency,Invoice Number,Date,Time,TimeZone,Status
T-1,General Payment,"81,234.57",-1.00,"81,233.57",EUR,ORDER-1,02/03/2026,10:00:05,CET,Completed
T-2,General Payment,"82,345.69",-1.00,"82,344.69",EUR,ORDER-2,02/03/2026,11:00:05,CET,Completed
"""
BAD_ROW = "T-3,General Payment,many,-1.00,1.00,EUR,ORDER-3,02/03/2026,11:00:05,CET,Completed\n"
PASSWORD = "never-to-be-shown"
AWAY = f"postgresql://duebook:{PASSWORD}@127.0.0.1:1/duebook"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The directory that commands run in, with one good file of each sort."""
    (tmp_path / "ledger.csv").write_text(LEDGER)
    (tmp_path / "contacts.csv").write_text(CONTACTS)
    (tmp_path / "settlement.csv").write_text(SETTLEMENT)
    return tmp_path


def answer(ended: Finished, code: int) -> object:
    """The one JSON document on stdout of a command that ended with `code`, and nothing beside."""
    assert "Traceback" not in ended.stderr
    assert ended.code == code, ended.stderr
    assert ended.stdout.endswith("\n")
    assert ended.stdout.count("\n") == 1
    return json.loads(ended.stdout)


def refusal(ended: Finished, code: int) -> str:
    """The one line of a command that was refused, the same on stderr and as JSON."""
    assert ended.code == code, ended.stderr
    assert ended.stderr.startswith("duebook: ")
    assert ended.stderr.count("\n") == 1
    assert PASSWORD not in ended.stderr + ended.stdout
    said = ended.stderr.removeprefix("duebook: ").rstrip("\n")
    if ended.stdout:
        assert json.loads(ended.stdout) == {"error": said}
    return said


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_command_works_at_once_on_a_fresh_home(files: Path, server_home: Path) -> None:
    """The README's commands in its order, on an embedded server that nothing has prepared."""
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("DUEBOOK_", "AIRFLOW_", "PG"))}
    duebook = DuebookCli(
        {**kept, "PYTHONPATH": str(ROOT / "plugins"), "DUEBOOK_HOME": str(server_home)}, files
    )
    looked = answer(duebook.in_process("doctor", "--json"), 3)
    assert looked["exit_code"] == 3, "doctor starts nothing"  # type: ignore[index]
    assert answer(duebook.in_process("ledger", "import", "ledger.csv", "--json"), 0)["new"] == 2  # type: ignore[index]
    assert answer(duebook.in_process("contacts", "import", "contacts.csv", "--json"), 0)["new"] == 1  # type: ignore[index]
    migrated = answer(duebook.in_process("migrate", "--json"), 0)
    assert migrated["before"] == migrated["after"], "the first command migrated"  # type: ignore[index]
    assert answer(duebook.in_process("apply", "--json"), 0)["added"]  # type: ignore[index]
    night = ("reconcile", "--account", "paypal", "--file", "settlement.csv", "--json")
    dry = answer(duebook.in_process(*night, "--dry-run"), 1)
    wet = answer(duebook(*night), 1)
    again = answer(duebook.in_process(*night), 1)
    assert isinstance(dry, dict)
    assert isinstance(wet, dict)
    assert isinstance(again, dict)
    assert (dry["run_id"], dry["entries_new"]) == (None, 2)
    assert (wet["mode"], wet["entries_new"], wet["intents"]) == ("dry_run", 2, 2)
    assert wet["discrepancies"] == {"amount_mismatch": 1}
    assert (again["entries_new"], again["entries_changed"], again["intents"]) == (0, 0, 0)
    assert answer(duebook("sweep", "--json"), 0)["claimed"] == 0  # type: ignore[index]
    status = answer(duebook.in_process("status", "--json"), 0)
    assert status["intents"]["proposed"] == 2  # type: ignore[index]
    for subject in ("anna", "p-1", "ORDER-1", f"run:{wet['run_id']}"):
        assert answer(duebook.in_process("explain", subject, "--json"), 0)["matches"]  # type: ignore[index]
    assert answer(duebook.in_process("check", "--json"), 0)["violations"] == []  # type: ignore[index]
    assert answer(duebook.in_process("restore", "accept", "local", "--json"), 0)
    url = duebook.in_process("db", "url")
    with psycopg.connect(url.stdout.strip()) as conn:
        found = conn.execute("select kind from duebook_reports.discrepancies").fetchall()
    assert found == [("amount_mismatch",)]
    needs = answer(duebook("doctor", "--json"), 1)
    missing = [f["name"] for f in needs["findings"] if not f["ok"]]  # type: ignore[index]
    assert missing, "there are no connections yet"
    assert all(name.startswith(("connection ", "channel ")) for name in missing), missing
    for command in (("status",), ("check",), ("explain", "p-1"), ("doctor",)):
        told = duebook(*command)
        assert told.stdout.strip()
        assert "Traceback" not in told.stderr
    assert answer(duebook.in_process("down", "--json"), 0)["stopped"] is True  # type: ignore[index]
    assert answer(duebook.in_process("down", "--json"), 0)["stopped"] is False  # type: ignore[index]


def test_exit_code_1_says_that_a_row_was_put_aside(duebook_cli: DuebookCli, files: Path) -> None:
    with (files / "settlement.csv").open("a") as lines:
        lines.write(BAD_ROW)
    with (files / "ledger.csv").open("a") as lines:
        lines.write("dora,p-3,ORDER-3,many,EUR,captured,2026-03-02T10:00:00Z,paypal\n")
    booked = answer(duebook_cli.in_process("ledger", "import", "ledger.csv", "--json"), 1)
    assert isinstance(booked, dict)
    assert (booked["new"], booked["quarantined"]) == (2, 1)
    (fault,) = booked["faults"]
    assert (fault["file"], fault["line"], fault["column"], fault["value"]) == (
        "ledger.csv",
        4,
        "amount",
        "many",
    )
    night = ("reconcile", "--account", "paypal", "--file", "settlement.csv", "--json")
    settled = answer(duebook_cli.in_process(*night), 1)
    assert isinstance(settled, dict)
    assert (settled["entries_new"], settled["quarantined"]) == (2, 1)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("absent.csv", None, "No such file"),
        ("folder", "directory", "Is a directory"),
        ("empty.csv", b"", "empty"),
        ("blank.csv", b"\n\n\n", "empty"),
        ("bom.csv", b"\xef\xbb\xbf", "empty"),
        ("codepage.csv", LEDGER.replace("anna", "jürgen").encode("cp1252"), "line 2: not UTF-8"),
        ("utf16.csv", LEDGER.encode("utf-16"), "line 1: not UTF-8"),
        ("zeros.csv", LEDGER.encode() + b"\0\0\0", "not UTF-8"),
        ("binary.csv", bytes(range(256)) * 8, "not UTF-8"),
        ("headless.csv", LEDGER.split("\n", 1)[1].encode(), "is missing"),
        ("other.csv", b"a,b,c\n1,2,3\n", "is missing"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("ledger", "import"),
        ("contacts", "import"),
        ("reconcile", "--account", "adyen", "--file"),
        ("reconcile", "--account", "paypal", "--file"),
    ],
    ids=lambda command: f"{command[0]} {command[-2]}",
)
def test_a_file_that_can_not_be_read_as_a_whole_is_one_line(
    duebook_cli: DuebookCli,
    db: psycopg.Connection[TupleRow],
    command: tuple[str, ...],
    name: str,
    content: bytes | str | None,
    said: str,
) -> None:
    path = duebook_cli.directory / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        path.mkdir()
    line = refusal(duebook_cli.in_process(*command, name, "--json"), 2)
    assert name in line
    assert said in line
    for table in ("settlement_entry", "ledger_payment", "contact", "reconciliation_run"):
        assert db.execute(f"select count(*) from duebook.{table}".encode()).fetchone() == (0,)


def test_a_file_of_another_user_is_one_line(duebook_cli: DuebookCli) -> None:
    """Root may read everything, so the file is one that nobody can: a process's own memory map."""
    line = refusal(duebook_cli.in_process("ledger", "import", "/proc/self/mem", "--json"), 2)
    assert "/proc/self/mem" in line


def test_a_file_with_a_header_alone_is_a_file_without_rows(
    duebook_cli: DuebookCli, files: Path
) -> None:
    (files / "ledger.csv").write_text(LEDGER.splitlines(keepends=True)[0])
    (files / "settlement.csv").write_text(SETTLEMENT.splitlines(keepends=True)[0])
    booked = answer(duebook_cli.in_process("ledger", "import", "ledger.csv", "--json"), 0)
    assert isinstance(booked, dict)
    assert (booked["new"], booked["quarantined"]) == (0, 0)
    night = ("reconcile", "--account", "paypal", "--file", "settlement.csv", "--json")
    settled = answer(duebook_cli.in_process(*night), 0)
    assert isinstance(settled, dict)
    assert settled["entries_new"] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("reconcile", "--account", "nobody"),
        ("reconcile", "--account", ""),
        ("reconcile", "--account", "'; drop schema duebook cascade; --"),
        ("reconcile", "--account", "../../etc"),
        ("reconcile", "--account", "%s%(x)s:name"),
        ("reconcile", "--account", "adyen", "--as-of", "banana"),
        ("reconcile", "--account", "adyen", "--as-of", "-5"),
        ("reconcile", "--account", "adyen", "--as-of", ""),
        ("reconcile", "--account", "adyen", "--as-of", "2026-11-30"),
        ("reconcile", "--account", "adyen", "--as-of", "2026-02-30T02:00:00Z"),
        ("reconcile", "--account", "adyen", "--as-of", "0001-01-01T00:00:00+14:00"),
        ("reconcile", "--account", "adyen", "--as-of", "9999-12-31T23:59:59-14:00"),
        ("reconcile",),
        ("sweep", "--now", "soon"),
        ("explain", ""),
        ("explain", "nothing-of-that-name"),
        ("explain", "run:99999999999999999999999"),
        ("explain", "run:-1"),
        ("explain", "100%"),
        ("explain", "a'b\"c\\d"),
        ("explain", "\x1b[31mred\x07"),
        ("explain", "a\nb"),
        ("explain", "undecodable\udcff"),
        ("explain", "x" * 5_000),
        ("restore", "accept", ""),
        ("restore", "accept", "Two Words"),
        ("apply", "absent.toml"),
        ("apply", "."),
        ("apply", "ledger.csv"),
        ("ledger", "import", "a\nb.csv"),
        ("ledger", "export"),
        ("frobnicate",),
        ("status", "--colour"),
    ],
    ids=lambda arguments: " ".join(arguments)[:40].encode("unicode_escape", "replace").decode(),
)
def test_whatever_is_asked_the_answer_is_one_line(
    duebook_cli: DuebookCli, files: Path, arguments: tuple[str, ...]
) -> None:
    refusal(duebook_cli.in_process(*arguments, "--json"), 2)


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("check",),
        ("sweep",),
        ("migrate",),
        ("apply",),
        ("explain", "anna"),
        ("restore", "accept", "local"),
        ("ledger", "import", "ledger.csv"),
        ("contacts", "import", "contacts.csv"),
        ("reconcile", "--account", "paypal", "--file", "settlement.csv"),
    ],
    ids=" ".join,
)
def test_a_database_that_is_away_is_exit_code_3(
    duebook_cli: DuebookCli, files: Path, command: tuple[str, ...]
) -> None:
    duebook_cli.environment["DUEBOOK_DATABASE_URL"] = AWAY
    line = refusal(duebook_cli.in_process(*command, "--json"), 3)
    assert "127.0.0.1:1/duebook is away" in line


def test_doctor_tells_of_a_database_that_is_away_and_looks_at_the_rest(
    duebook_cli: DuebookCli,
) -> None:
    duebook_cli.environment["DUEBOOK_DATABASE_URL"] = AWAY
    ended = duebook_cli.in_process("doctor", "--json")
    looked = answer(ended, 3)
    assert PASSWORD not in ended.stdout + ended.stderr
    names = [finding["name"] for finding in looked["findings"]]  # type: ignore[index]
    assert names[0] == "database"
    assert "Python time zones" in names


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DUEBOOK_DATABASE_URL", f"host=x password={PASSWORD} nonsense"),
        ("DUEBOOK_DATABASE_URL", f"postgresql://u:{PASSWORD}/@host/db"),
        ("DUEBOOK_ENVIRONMENT", "Not A Name"),
        ("DUEBOOK_CONFIG_FILE", "/nowhere/duebook.toml"),
        ("DUEBOOK_HOME", "/dev/null"),
    ],
)
def test_a_setting_that_is_wrong_is_one_line(
    duebook_cli: DuebookCli, variable: str, value: str
) -> None:
    duebook_cli.environment[variable] = value
    refusal(duebook_cli.in_process("status", "--json"), 2)


def test_a_log_level_that_nobody_knows_stops_nothing(duebook_cli: DuebookCli) -> None:
    duebook_cli.environment["DUEBOOK_LOG_LEVEL"] = "shouting"
    answer(duebook_cli.in_process("status", "--json"), 0)


def test_a_bug_is_one_line_that_quotes_no_value(
    duebook_cli: DuebookCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("81234.57 of anna@payers.example")

    monkeypatch.setattr("duebook.services.operate.current_status", fail)
    line = refusal(duebook_cli.in_process("status", "--json"), 70)
    assert "unexpected ValueError at test_cli.py:" in line
    assert "81234.57" not in line


def test_a_function_of_another_version_asks_for_a_migration(
    duebook_cli: DuebookCli, conn: psycopg.Connection[TupleRow]
) -> None:
    conn.execute("drop function duebook.cancel_hold")
    line = refusal(duebook_cli.in_process("hold", "cancel", "a", "h", "--json"), 2)
    assert line.endswith("`duebook migrate`")


def test_a_provider_that_is_away_is_exit_code_3(duebook_cli: DuebookCli) -> None:
    duebook_cli.environment["AIRFLOW_CONN_STRIPE_DEFAULT"] = json.dumps(
        {"conn_type": "http", "host": "http://127.0.0.1:1", "password": "sk_test_x"}
    )
    assert (
        "stripe"
        in refusal(duebook_cli("reconcile", "--account", "stripe", "--json"), 3)
        .splitlines()[-1]
        .lower()
    )


@pytest.fixture
def copied(
    duebook_cli: DuebookCli,
    database_url: str,
    databases: Databases,
    request: pytest.FixtureRequest,
) -> Callable[[], str]:
    """Copies the test's database as an operator would: CREATE DATABASE … TEMPLATE."""

    def copy() -> str:
        name = str(psycopg.conninfo.conninfo_to_dict(database_url)["dbname"])
        url = databases.create(name)
        request.addfinalizer(lambda: databases.drop(url))
        return url

    return copy


def test_a_copied_database_sends_nothing_until_it_is_accepted(
    duebook_cli: DuebookCli, copied: Callable[[], str]
) -> None:
    assert answer(duebook_cli.in_process("sweep", "--json"), 0)
    duebook_cli.environment["DUEBOOK_DATABASE_URL"] = copied()
    line = refusal(duebook_cli.in_process("sweep", "--json"), 2)
    assert "copied" in line or "accept" in line
    status = answer(duebook_cli.in_process("status", "--json"), 0)
    assert status["environment"]["refusal"] == line  # type: ignore[index]
    # Not by migrating it either, nor by starting under another name.
    answer(duebook_cli.in_process("migrate", "--json"), 0)
    refusal(duebook_cli.in_process("sweep", "--json"), 2)
    answer(duebook_cli.in_process("restore", "accept", "staging", "--json"), 0)
    refusal(duebook_cli.in_process("sweep", "--json"), 2)
    duebook_cli.environment["DUEBOOK_ENVIRONMENT"] = "staging"
    answer(duebook_cli.in_process("sweep", "--json"), 0)
    with psycopg.connect(duebook_cli.environment["DUEBOOK_DATABASE_URL"]) as conn:
        audited = conn.execute(
            "select actor, subject from duebook.audit_event where action = 'accept_environment'"
            " order by audit_event_id desc limit 1"
        ).fetchone()
    assert audited == ("pytest", "staging")


def test_a_shifted_clock_is_for_test_databases_alone(
    duebook_cli: DuebookCli,
) -> None:
    later = ("sweep", "--now", "2030-01-01T00:00:00Z", "--json")
    answer(duebook_cli.in_process(*later), 0)
    answer(duebook_cli.in_process("restore", "accept", "test", "--json"), 0)
    assert "not marked as test" in refusal(duebook_cli.in_process(*later), 2)
    answer(duebook_cli.in_process("restore", "accept", "test", "--test", "--json"), 0)
    answer(duebook_cli.in_process(*later), 0)


def test_a_pipe_that_closes_early_is_no_error_of_ours(duebook_cli: DuebookCli) -> None:
    with duebook_cli.start("status", "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
        process.wait(60)
    assert "Traceback" not in told


def test_a_file_that_is_no_table_at_all_is_refused(duebook_cli: DuebookCli) -> None:
    sqlite3.connect(duebook_cli.directory / "books.csv").execute("create table t (x)").close()
    refusal(duebook_cli.in_process("ledger", "import", "books.csv", "--json"), 2)


@pytest.mark.skipif(not REPORTS.is_dir(), reason="the shared settlement reports are not here")
def test_a_real_settlement_report_closes_and_changes_nothing_twice(
    duebook_cli: DuebookCli,
) -> None:
    report = REPORTS / "settlement_detail_report_batch_380.csv"
    night = ("reconcile", "--account", "adyen", "--file", report, "--json")
    first = answer(duebook_cli.in_process(*night), 1)
    again = answer(duebook_cli.in_process(*night), 1)
    assert isinstance(first, dict)
    assert isinstance(again, dict)
    assert first["entries_new"] == 228
    assert [batch["difference_minor"] for batch in first["batches"]] == [0]
    assert (again["entries_new"], again["entries_changed"], again["intents"]) == (0, 0, 0)
    assert again["entries_unchanged"] == 228


def test_a_mapping_is_checked_before_anything_is_taken(
    duebook_cli: DuebookCli, files: Path
) -> None:
    head = (files / "settlement.csv").read_text().splitlines()[0]
    row = (files / "settlement.csv").read_text().splitlines()[1]
    check = ("mapping", "check", "settlement.csv", "--account", "paypal", "--json")
    seen = answer(duebook_cli.in_process(*check), 0)
    assert isinstance(seen, dict)
    assert seen["is_mapped"]
    assert seen["proved_by"]["line"] == 2
    assert duebook_cli.in_process(*check[:-1]).stdout.count("\n") > 3
    cells = dict(zip(head.split(","), next(csv.reader([row])), strict=True))
    with (files / "settlement.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(cells))
        writer.writeheader()
        writer.writerow({**cells, "Gross": "10,58", "Fee": "", "Net": ""})
    said = refusal(duebook_cli.in_process(*check), 2)
    assert said.startswith("settlement.csv, line 2, column 'Gross': '10,58' is no number with")
    assert '10.58 EUR with decimal = ","' in said
    unknown = ("mapping", "check", "settlement.csv", "--account", "nobody", "--json")
    assert "duebook.toml has" in refusal(duebook_cli.in_process(*unknown), 2)
