"""Time zone data changes: what waits is computed again, what is older computes nothing.

Another version is a copy of the `tzdata` package with another number, in a process of its own.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import time, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from duebook.channels.noop import NoopChannel
from duebook.config import parse_config
from duebook.db.connect import connect_url
from duebook.services.doctor import Finding, Probes, doctor
from duebook.services.zones import compare_tzdb
from tests.calendar_work import add_address, add_reminders, backdate, put, run_passes
from tests.due_work import places, value

Conn = psycopg.Connection[Any]
Sweep = Callable[..., str]

TZDATA: Final = importlib.import_module("tzdata")
ROOT: Final = Path(__file__).resolve().parents[2]
EVERY_DAY: Final = [1, 2, 3, 4, 5, 6, 7]
_PASS: Final = """
import sys
from datetime import timedelta
from duebook.db.connect import connect_url
from duebook.services.promise import pass_calendar
most = int(sys.argv[2])
with connect_url(sys.argv[1], autocommit=True) as conn:
    while True:
        report = pass_calendar(conn, horizon=timedelta(days=7), most=most, sender="another")
        print(report.written, report.recomputed, report.held, report.cancelled, report.refusal)
        if not report.is_left:
            break
"""


class OtherData:
    """A copy of the tzdata package: another version, zones replaced by others or taken away."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self.package = folder / "tzdata"
        ours = Path(str(TZDATA.__file__)).parent
        shutil.copytree(
            ours,
            self.package,
            copy_function=os.link
            if ours.stat().st_dev == folder.parent.stat().st_dev
            else shutil.copy2,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        text = (ours / "__init__.py").read_text()
        self._write("__init__.py", text.replace(TZDATA.IANA_VERSION, version).encode())

    def _write(self, name: str, content: bytes) -> None:
        """A file of its own: the others are the package's, by a second name."""
        (self.package / name).unlink()
        (self.package / name).write_bytes(content)

    def replace(self, zone: str, other: str) -> None:
        """`zone` has the rules of `other` from now on."""
        self._write(f"zoneinfo/{zone}", (self.package / "zoneinfo" / other).read_bytes())

    def remove(self, zone: str) -> None:
        """`zone` is known no more."""
        (self.package / "zoneinfo" / zone).unlink()
        names = (self.package / "zones").read_text().splitlines()
        self._write("zones", "\n".join(name for name in names if name != zone).encode())

    def sweep(self, url: str, most: int = 1000) -> list[str]:
        """The calendar's passes of a process that has this data; a line each."""
        done = subprocess.run(
            [sys.executable, "-c", _PASS, url, str(most)],
            env={**os.environ, "PYTHONPATH": f"{self.folder}:{ROOT / 'plugins'}"},
            capture_output=True,
            text=True,
            timeout=90,
            check=True,
        )
        return done.stdout.splitlines()


@pytest.fixture
def newer(tmp_path: Path) -> OtherData:
    return OtherData(tmp_path / "newer", "2099a")


@pytest.fixture(autouse=True)
def _kind(conn: Conn) -> None:
    add_reminders(conn)


def test_only_what_waits_is_computed_again_and_only_once(
    conn: Conn, database_url: str, newer: OtherData
) -> None:
    put(conn, "moves", zone="Asia/Tokyo", weekdays=EVERY_DAY)
    put(conn, "stays", zone="Asia/Seoul", weekdays=EVERY_DAY)
    backdate(conn, timedelta(days=3), "moves")
    run_passes(conn)
    claimed = conn.execute(
        "delete from duebook.due where intent_id = (select min(intent_id) from duebook.due)"
        " returning account_id, intent_id"
    ).fetchone()
    before = dict(conn.execute("select intent_id, due_at from duebook.occurrence").fetchall())
    newer.replace("Asia/Tokyo", "Asia/Karachi")
    lines = newer.sweep(database_url, most=4)
    moved = {
        row[0]
        for row in conn.execute(
            "select intent_id from duebook.intent_change where reason = 'tzdb'"
            " and tzdb_version = '2099a'"
        )
    }
    after = dict(conn.execute("select intent_id, due_at from duebook.occurrence").fetchall())
    assert claimed is not None
    assert claimed[1] not in moved
    assert after[claimed[1]] == before[claimed[1]]
    assert len(moved) == value(
        conn, "select count(*) - 1 from duebook.occurrence where schedule = 'moves'"
    )
    assert {after[each] - before[each] for each in moved} == {timedelta(hours=4)}
    assert all(after[each] == before[each] for each in after if each not in moved)
    assert (
        value(
            conn,
            "select count(*) from duebook.due join duebook.occurrence"
            " using (account_id, intent_id, due_at)",
        )
        == len(after) - 1
    )
    assert value(conn, "select count(*) from duebook.occurrence where tzdb_version <> '2099a'") == 1
    assert sum(int(line.split()[1]) for line in lines) == len(moved)
    assert len(lines) > 2
    assert newer.sweep(database_url) == ["0 0 0 0 None"]
    assert value(conn, "select count(*) from duebook.intent_change") == len(moved)


def test_a_process_with_older_data_computes_nothing_and_says_so(
    conn: Conn, database_url: str, newer: OtherData
) -> None:
    put(conn, "one", zone="Asia/Tokyo", weekdays=EVERY_DAY)
    newer.replace("Asia/Tokyo", "Asia/Karachi")
    assert newer.sweep(database_url)[0].startswith("7 ")
    due = conn.execute("select account_id, intent_id, due_at from duebook.due").fetchall()
    put(conn, "two", weekdays=EVERY_DAY)
    (report,) = run_passes(conn)
    assert report.refusal is not None
    assert "older than 2099a" in report.refusal
    assert due == conn.execute("select account_id, intent_id, due_at from duebook.due").fetchall()
    assert value(conn, "select tzdb_version from duebook.calendar_state") == "2099a"
    put(conn, "one", zone="Asia/Tokyo", weekdays=EVERY_DAY, wall_time=time(23, 59), replace=True)
    run_passes(conn)
    assert places(conn) == {"held": 7}
    found = compare_tzdb(conn, "pytest")
    assert found == report.refusal


def test_a_zone_that_went_away_holds_its_rows_until_it_is_back(
    conn: Conn, database_url: str, tmp_path: Path, newer: OtherData
) -> None:
    put(conn, zone="Asia/Tokyo", weekdays=EVERY_DAY)
    run_passes(conn)
    before = dict(conn.execute("select intent_id, due_at from duebook.due").fetchall())
    newer.remove("Asia/Tokyo")
    newer.sweep(database_url)
    assert places(conn) == {"held": 7}
    assert set(conn.execute("select distinct cause, detail from duebook.held")) == {
        ("zone_unknown", "Asia/Tokyo")
    }
    assert value(conn, "select state from duebook_reports.schedules") == "zone_unknown"
    # An import of the recipient's zone is not what they wait for.
    conn.execute("update duebook.held set retest_at = clock_timestamp() - interval '1 second'")
    conn.execute("update duebook.contact set imported_at = clock_timestamp()")
    conn.execute("select * from duebook.retest_held(100, 'test')")
    assert places(conn) == {"held": 7}
    later = OtherData(tmp_path / "later", "2099b")
    later.sweep(database_url)
    assert dict(conn.execute("select intent_id, due_at from duebook.due").fetchall()) == before
    assert value(conn, "select state from duebook_reports.schedules") == "active"


def test_dates_of_a_zone_that_nobody_knows_are_written_and_held(
    conn: Conn, database_url: str, tmp_path: Path, newer: OtherData
) -> None:
    put(conn, zone="Asia/Tokyo", weekdays=EVERY_DAY, wall_time=time(12))
    newer.remove("Asia/Tokyo")
    newer.sweep(database_url)
    held = value(conn, "select count(*) from duebook.held where cause = 'zone_unknown'")
    assert held in (6, 7)
    assert places(conn) == {"held": held}
    assert value(conn, "select count(*) from duebook.occurrence where due_at is null") == held
    OtherData(tmp_path / "later", "2099b").sweep(database_url)
    assert value(conn, "select count(*) from duebook.held") == 0
    wrong = value(
        conn,
        "select count(*) from duebook.due join duebook.occurrence using (account_id, intent_id)"
        " where due.due_at <> intended_local at time zone 'Asia/Tokyo'",
    )
    assert wrong == 0
    assert value(conn, "select count(distinct intent_id) from duebook.intent_change") == held


def test_a_time_that_the_clock_now_skips_ends(
    conn: Conn, database_url: str, newer: OtherData
) -> None:
    put(conn, zone="Asia/Tokyo", weekdays=EVERY_DAY, gap="skip", wall_time=time(2, 30))
    backdate(conn, timedelta(days=400))
    run_passes(conn)
    total = value(conn, "select count(*) from duebook.occurrence")
    newer.replace("Asia/Tokyo", "America/New_York")
    newer.sweep(database_url)
    ended = conn.execute(
        "select nominal_on, reason from duebook_reports.occurrences where result = 'expired'"
    ).fetchall()
    assert ("2026-03-08", "cancelled") in {(str(day), reason) for day, reason in ended}
    assert len(ended) in (1, 2)
    assert places(conn) == {"due": total - len(ended), "outcome": len(ended)}
    why = value(
        conn,
        "select min(detail ->> 'reason') from duebook.audit_event"
        " where action = 'cancel_occurrence'",
    )
    assert why == "the clock skips this time by time zone data 2099a"


def test_doctor_names_what_is_not_known_before_anything_is_due(
    conn: Conn, database_url: str
) -> None:
    put(conn, zone="Asia/Tokyo")
    put(conn, "shifted", business_shift="next", holiday_calendar="NOWHERE")
    add_address(conn, "other")
    conn.execute("update duebook.contact set zone = 'Europe/Atlantis' where account_id = 'other'")
    found = doctor_of(database_url)
    assert found["calendar"].ok
    assert found["zones of schedules"].ok
    assert found["zones of contacts"].detail == "unknown: Europe/Atlantis (1)"
    assert found["holidays of schedules"].detail == "unknown: NOWHERE (1)"
    conn.execute("update duebook.schedule set zone = 'Asia/Atlantis' where schedule = 'rent'")
    conn.execute(
        "insert into duebook.calendar_state (tzdb_version, recorded_by) values ('2099a', 'another')"
    )
    found = doctor_of(database_url)
    assert found["zones of schedules"].detail == "unknown: Asia/Atlantis (1)"
    assert not found["calendar"].ok
    assert "older than 2099a" in found["calendar"].detail
    assert found["calendar"].remedy == "install the tzdata that another has"


def doctor_of(url: str) -> dict[str, Finding]:
    """What doctor finds of the database."""
    config = parse_config({"provider_accounts": {}, "kinds": {}}, "duebook.toml")
    probes = Probes(
        environment="test", connection=lambda name: None, channel=lambda name: NoopChannel()
    )
    connect = partial(connect_url, url, autocommit=True)
    return {finding.name: finding for finding in doctor(connect, config, probes)}
