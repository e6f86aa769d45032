"""The witness sees a database that was put back; what it may have sent since is put in doubt."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from duebook.channels.base import Channel, Message, SendResult
from duebook.config import load_config
from duebook.db.connect import connect_url
from duebook.errors import ConfigurationError, RefusedError, UnavailableError
from duebook.services.check import check
from duebook.services.doctor import Finding, Probes, doctor
from duebook.services.restore import RestoreRequest, accept, require_witness
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from duebook.services.witness import Guard, Witness, Witnessed
from tests.calendar_work import add_reminders, backdate, put
from tests.conftest import Databases, DuebookCli
from tests.due_work import ScriptedChannel, add_due, places, value, wait_for

Conn = psycopg.Connection[Any]


@dataclass
class House:
    """One environment: a database that can be put back, its witness, and what it sent for ever."""

    databases: Databases
    url: str
    witness: str
    log: list[str] = field(default_factory=list)
    points: list[str] = field(default_factory=list)

    def connect(self) -> Conn:
        return connect_url(self.url, autocommit=True)

    def sweep(
        self, answer: Callable[[Message, int], SendResult] | None = None, **request: Any
    ) -> SweepReport:
        channel = ScriptedChannel()
        if answer is not None:
            channel.answer = answer
        channel.log = self.log
        request = {"environment": "test", "witness": self.witness, "window_messages": 10, **request}
        return sweep(self.connect, SweepRequest(**request), {"noop": channel})

    def restore_point(self, *, is_test: bool = True) -> str:
        """A copy of the database as it is now; it thinks that it is the original."""
        name = str(psycopg.conninfo.conninfo_to_dict(self.url)["dbname"])
        self.disconnect(name)
        copy = self.databases.create(name)
        self.points.append(copy)
        with connect_url(copy, autocommit=True) as conn:
            conn.execute("select duebook.accept_environment('test', %s, 'pytest')", [is_test])
        return copy

    def put_back(self, point: str) -> None:
        """From now on `point` is the database; who was connected to the other has to come again."""
        name = str(psycopg.conninfo.conninfo_to_dict(self.url)["dbname"])
        self.url = point
        self.disconnect(name)

    def disconnect(self, name: str) -> None:
        """End every session of a database and wait until none is left."""
        with psycopg.connect(self.databases.url_of("postgres"), autocommit=True) as conn:
            wait_for(
                lambda: (
                    not conn.execute(
                        # An autovacuum worker goes by itself, and is not ours to end.
                        "select pg_terminate_backend(pid) from pg_stat_activity"
                        " where datname = %s and backend_type = 'client backend'",
                        [name],
                    ).fetchall()
                ),
                f"nobody is connected to {name}",
            )

    def accept(self, **request: Any) -> dict[str, Any]:
        stated = {"environment": "test", "by": "ann", "witness": self.witness, **request}
        return accept(self.connect, RestoreRequest(**stated))

    def doubles(self) -> list[str]:
        return [key for key, count in Counter(self.log).items() if count > 1]

    def places(self) -> dict[str, int]:
        with self.connect() as conn:
            return places(conn)

    def is_hold_over(self) -> bool:
        with self.connect() as conn:
            return bool(
                value(conn, "select max(expires_at) <= clock_timestamp() from duebook.hold")
            )

    def violations(self) -> list[Any]:
        found: list[Any] = check(self.connect)["violations"]
        return found


@pytest.fixture
def house(databases: Databases, database_url: str, tmp_path: Path) -> Iterator[House]:
    house = House(databases, database_url, str(tmp_path / "witness"))
    yield house
    for point in house.points:
        databases.drop(point)


def test_a_database_put_back_sends_nothing_until_it_is_accepted(house: House) -> None:
    with house.connect() as conn:
        add_due(conn, 40, accounts=4)
    house.sweep(batch_size=20, max_batches=1)
    point = house.restore_point()
    house.sweep()
    assert len(house.log) == 40
    house.put_back(point)
    with pytest.raises(RefusedError, match=r"behind its witness.*restore accept"):
        house.sweep()
    assert len(house.log) == 40

    shown = house.accept(dry_run=True)
    assert shown["behind"]
    assert shown["put_in_doubt"] == {"due": 20, "held": 0, "batches": 0}
    assert house.places() == {"due": 20, "outcome": 20}
    done = house.accept()
    assert done["put_in_doubt"] == shown["put_in_doubt"]
    assert house.places() == {"in_doubt": 20, "outcome": 20}
    assert house.violations() == []
    assert house.accept()["behind"] is False

    with house.connect() as conn:
        add_due(conn, 5, payments_from=41)
    assert house.sweep().counts.sent == 5
    assert house.doubles() == []
    with house.connect() as conn:
        audited = value(
            conn, "select actor from duebook.audit_event where action = 'accept_restore'"
        )
    assert audited == "ann"


def test_what_is_due_later_or_was_proposed_is_not_in_doubt(house: House) -> None:
    with house.connect() as conn:
        add_due(conn, 3)
        add_due(conn, 4, due_in=timedelta(hours=1), payments_from=10)
    point = house.restore_point()
    house.sweep()
    house.put_back(point)
    assert house.accept()["put_in_doubt"]["due"] == 3
    assert house.places() == {"due": 4, "in_doubt": 3}


def test_a_batch_in_the_backup_is_in_doubt_where_it_has_no_result(house: House) -> None:
    with house.connect() as conn:
        add_due(conn, 30)
    points: list[str] = []

    def answer(message: Message, number: int) -> SendResult:
        if len(house.log) == 11:
            # The second window is open.
            points.append(house.restore_point())
        return SendResult("accepted")

    house.sweep(answer)
    house.put_back(points[0])
    with pytest.raises(RefusedError, match="behind"):
        house.sweep()
    assert house.accept()["put_in_doubt"] == {"due": 0, "held": 0, "batches": 20}
    assert house.places() == {"in_doubt": 20, "outcome": 10}
    assert house.violations() == []


def test_a_replica_that_is_not_behind_just_goes_on(house: House) -> None:
    with house.connect() as conn:
        add_due(conn, 20)
    house.sweep(batch_size=10, max_batches=1)
    house.put_back(house.restore_point())
    assert house.sweep().counts.sent == 10
    assert house.doubles() == []


def test_a_sender_that_lived_through_the_restore_tells_what_it_sent(house: House) -> None:
    with house.connect() as conn:
        add_due(conn, 10)
    point = house.restore_point()

    def answer(message: Message, number: int) -> SendResult:
        if house.url != point:
            house.put_back(point)
        return SendResult("accepted")

    with pytest.raises(RefusedError, match="behind"):
        house.sweep(answer)
    # Its batch is not known here, so that its results came late, and ended what was due.
    assert house.places() == {"outcome": 10}
    assert house.accept()["put_in_doubt"] == {"due": 0, "held": 0, "batches": 0}
    assert house.sweep().counts.sent == 0
    assert house.violations() == []


def test_no_window_is_sent_that_the_witness_was_not_told(house: House, tmp_path: Path) -> None:
    with house.connect() as conn:
        add_due(conn, 25)
    Path(house.witness).parent.mkdir(exist_ok=True)
    Path(house.witness).write_text("a file where the folder should be")
    with pytest.raises(UnavailableError, match="witness"):
        house.sweep()
    Path(house.witness).unlink()

    def answer(message: Message, number: int) -> SendResult:
        if len(house.log) == 10:
            folder = Path(house.witness) / "test"
            folder.rename(tmp_path / "moved")
            folder.write_text("in the way")
        return SendResult("accepted")

    with pytest.raises(UnavailableError, match="witness") as error:
        house.sweep(answer)
    assert error.value.exit_code == 3
    assert len(house.log) == 10
    assert house.places() == {"due": 15, "outcome": 10}


def test_the_witness_holds_what_each_sender_sent_last(house: House) -> None:
    with house.connect() as conn:
        add_due(conn, 60)
    for name in ("one", "two", "three"):
        house.sweep(sender=name, batch_size=20, max_batches=1)
    names = sorted(path.name for path in Path(house.witness, "test").glob("*.json"))
    # What a sender knew when it began is implied by what it wrote since.
    assert [name.split(".")[0] for name in names] == ["three"]
    stored = json.loads(Path(house.witness, "test", names[0]).read_text())
    assert set(stored) == {
        "environment", "sender", "batch_id", "token", "flush_no", "newest_intent_id", "runs", "at",
    }  # fmt: skip
    assert (stored["sender"], stored["flush_no"]) == ("three", 2)


def test_the_witness_may_be_an_object_store(house: House) -> None:
    house.witness = "memory://bucket/witness"
    with house.connect() as conn:
        add_due(conn, 20)
    point = house.restore_point()
    assert house.sweep().counts.sent == 20
    assert len(Witness(house.witness, "test").read()) == 1
    house.put_back(point)
    with pytest.raises(RefusedError, match="behind"):
        house.sweep()
    assert house.accept()["put_in_doubt"]["due"] == 20
    assert Witness(house.witness, "test").read() == {}
    assert house.sweep().counts.sent == 0


def test_an_object_that_makes_no_sense_stops_the_sweep(house: House) -> None:
    Path(house.witness, "test").mkdir(parents=True)
    Path(house.witness, "test", "other.json").write_text("{}")
    with pytest.raises(UnavailableError, match="no object of Duebook's"):
        house.sweep()


def test_a_restore_on_another_cluster_is_accepted_by_name_and_put_in_doubt(house: House) -> None:
    with house.connect() as conn:
        add_due(conn, 8)
    point = house.restore_point()
    house.sweep()
    house.put_back(point)
    with house.connect() as conn:
        conn.execute("update duebook.environment set system_identifier = 1")
    with pytest.raises(RefusedError, match="copy of environment test"):
        house.sweep()
    with pytest.raises(RefusedError, match="restore accept test"):
        house.accept()
    done = house.accept(name="test", is_test=True)
    assert (done["environment"], done["put_in_doubt"]["due"]) == ("test", 8)
    assert house.sweep().counts.sent == 0


def test_held_rows_that_may_have_been_released_are_in_doubt_and_holds_are_not(house: House) -> None:
    with house.connect() as conn:
        add_due(conn, 3, prefix="h", with_contact=False)
        add_due(conn, 2)
        conn.execute(
            "select duebook.create_hold('h000000', 'seat',"
            " clock_timestamp() + interval '1 second', p_by => 'ann')"
        )
    house.sweep(max_batches=1)
    assert house.places() == {"held": 3, "outcome": 2, "due": 1}
    point = house.restore_point()
    with house.connect() as conn:
        add_due(conn, 1, payments_from=50)
    house.sweep()
    house.put_back(point)
    wait_for(lambda: house.is_hold_over(), "the hold's end")
    assert house.accept()["put_in_doubt"] == {"due": 0, "held": 3, "batches": 0}
    assert house.places() == {"due": 1, "in_doubt": 3, "outcome": 2}
    assert house.sweep().counts.done == 1


def test_a_run_in_flight_at_the_restore_point_is_seen_as_lost(house: House) -> None:
    """Its intents have lower numbers than one that the backup has; the run's own number tells."""
    with house.connect() as conn:
        add_due(conn, 5)
        add_due(conn, 5, payments_from=10)
        conn.execute("update duebook.intent set run_id = 7, provider_account = 'adyen'")
        for run_id in (7, 8):
            conn.execute(_RUN, [run_id, "adyen" if run_id == 7 else "stripe"])
        conn.execute(
            "update duebook.intent set run_id = 8, provider_account = 'stripe' where intent_id > 5"
        )
    house.sweep()
    with house.connect() as conn:
        # What a backup from before the commit of run 7 looks like.
        for table in ("outcome", "attempt_result", "attempt", "batch_ended"):
            conn.execute(f"delete from duebook.{table}")
        conn.execute("delete from duebook.intent where run_id = 7")
        conn.execute("delete from duebook.reconciliation_run where run_id = 7")
        # Its number is given again, to a run that starts after the restore.
        conn.execute(_RUN, [7, "adyen"])
    done = house.accept()
    assert done["lost_provider_accounts"] == ["adyen"]
    assert done["intents_were_lost"]


_RUN = """
insert into duebook.reconciliation_run (
    run_id, provider_account, scope, mode, as_of, started_at, triggered_by, entries_new,
    entries_changed, entries_unchanged, entries_stale, quarantined, matched, pending, discrepancies,
    ledger_changes, intents
) overriding system value
values (%s, %s, 'full', 'live', now(), now(), 'pytest', 0, 0, 0, 0, 0, 0, 0, '{}', 0, 0)
"""


def test_occurrences_that_were_lost_are_in_doubt_when_they_are_written_again(
    house: House,
) -> None:
    with house.connect() as conn:
        add_reminders(conn)
        put(conn, weekdays=[1, 2, 3, 4, 5, 6, 7], wall_time=time(0))
        backdate(conn, timedelta(days=4))
    point = house.restore_point()
    sent = house.sweep().counts.sent
    assert sent >= 4
    house.put_back(point)
    house.accept()
    # The passes write the same occurrences; those of the past may have been sent.
    assert house.sweep().counts.sent == 0
    assert house.places()["in_doubt"] == sent
    assert house.doubles() == []
    assert house.violations() == []


def test_without_a_witness_a_person_says_that_it_was_put_back(house: House) -> None:
    with house.connect() as conn:
        add_due(conn, 4)
    with pytest.raises(RefusedError, match="--without-witness"):
        house.accept(witness=None)
    done = house.accept(witness=None, is_unwitnessed=True)
    assert (done["behind"], done["put_in_doubt"]["due"]) == (False, 4)
    assert house.places() == {"in_doubt": 4}


def test_nothing_goes_live_without_a_witness_but_in_a_test_database(house: House) -> None:
    config = load_config()
    accounts = dict(config.provider_accounts)
    accounts["adyen"] = accounts["adyen"].model_copy(update={"mode": "live"})
    live = config.model_copy(update={"provider_accounts": accounts})
    require_witness(house.connect, live, None)
    with house.connect() as conn:
        conn.execute("update duebook.environment set is_test = false")
    with pytest.raises(RefusedError, match="adyen can't be live without a witness"):
        require_witness(house.connect, live, None)
    with pytest.raises(RefusedError, match="DUEBOOK_WITNESS"):
        require_witness(house.connect, live, None, account="adyen")
    require_witness(house.connect, live, None, account="paypal")
    require_witness(house.connect, config, None)
    require_witness(house.connect, live, house.witness)


def test_the_doctor_looks_at_the_witness(house: House) -> None:
    def finding(witness: str | None) -> Finding:
        probes = Probes("test", lambda name: None, make_no_channel, witness=witness)
        return next(
            each for each in doctor(house.connect, load_config(), probes) if each.name == "witness"
        )

    none = finding(None)
    assert none.ok
    assert "can't be seen" in none.detail
    with house.connect() as conn:
        add_due(conn, 2)
        conn.execute("update duebook.environment set is_test = false")
        conn.execute(
            "insert into duebook.provider_account (provider_account, provider, mode, notify_from)"
            " values ('adyen', 'adyen', 'live', now())"
        )
    assert not finding(None).ok
    point = house.restore_point(is_test=False)
    house.sweep()
    assert finding(house.witness).ok
    house.put_back(point)
    behind = finding(house.witness)
    assert (behind.ok, "behind its witness" in behind.detail) == (False, True)
    assert "restore accept" in behind.remedy
    Path(house.witness, "test", "x.json").write_text("?")
    assert not finding(house.witness).ok


def make_no_channel(name: str) -> Channel:
    raise ConfigurationError("no channel here")


def test_the_command_shows_and_does_it(conn: Conn, duebook_cli: DuebookCli, tmp_path: Path) -> None:
    add_due(conn, 3)
    at = datetime(2026, 12, 1, tzinfo=UTC)
    lost = Witnessed("test", "gone:1", 999, str(uuid4()), 3, 50, {"adyen": 9}, at)
    Witness(str(tmp_path / "w"), "test").write("gone-1.json", lost)
    duebook_cli.environment["DUEBOOK_WITNESS"] = str(tmp_path / "w")
    refused = duebook_cli.in_process("sweep")
    assert refused.code == 2
    assert "behind its witness" in refused.stderr
    shown = duebook_cli.in_process("restore", "accept", "--dry-run")
    assert shown.code == 0, shown.stderr
    assert "would be put in doubt: 3 due" in shown.stdout
    assert "gone:1" in shown.stdout
    done = duebook_cli.in_process("restore", "accept", "--json")
    assert done.json["put_in_doubt"] == {"due": 3, "held": 0, "batches": 0}
    assert done.json["lost"][0]["sender"] == "gone:1"
    assert (tmp_path / "w" / "test" / "accepted" / "gone-1.json").exists()
    assert duebook_cli.in_process("sweep", "--json").code == 0


def test_a_sender_that_has_sent_nothing_yet_looks_again(house: House) -> None:
    with house.connect() as conn:
        add_due(conn, 5)
    point = house.restore_point()
    clock = [0.0]
    guard = Guard(Witness(house.witness, "test"), "waiting:1", lambda: clock[0])
    with house.connect() as conn:
        guard.check(conn)
    house.sweep()
    house.put_back(point)
    clock[0] += 11
    with house.connect() as conn, pytest.raises(RefusedError, match="behind"):
        guard.check_again(conn)
    # At once where the server was started anew: a restore in place never goes without.
    other = Guard(Witness(house.witness, "test"), "waiting:2", lambda: clock[0], _checked_at=11.0)
    with house.connect() as conn, pytest.raises(RefusedError, match="behind"):
        other.check_again(conn)


def test_senders_at_once_share_the_witness(house: House) -> None:
    with house.connect() as conn:
        add_due(conn, 400, accounts=20)
    reports: list[SweepReport] = []

    def work(number: int) -> None:
        reports.append(house.sweep(sender=f"sender-{number}", batch_size=20))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sum(report.counts.sent for report in reports) == 400
    assert house.doubles() == []
    left = Witness(house.witness, "test").read()
    assert 1 <= len(left) <= 4
    assert list(Path(house.witness, "test").glob("*.unfinished")) == []
    # What is left tells any earlier state apart.
    with house.connect() as conn:
        newest = max(left.values(), key=lambda each: each.batch_id)
        conn.execute("delete from duebook.batch_ended where batch_id = %s", [newest.batch_id])
    with pytest.raises(RefusedError, match="behind"):
        house.sweep()
