"""The witness sees a database that was put back; what it may have sent since is put in doubt."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.channels.base import Message, SendResult
from duebook.db.connect import connect_url
from duebook.errors import RefusedError, UnavailableError
from duebook.services.check import check
from duebook.services.restore import RestoreRequest, accept
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from duebook.services.witness import Witness
from tests.conftest import Databases
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

    def restore_point(self) -> str:
        """A copy of the database as it is now; it thinks that it is the original."""
        name = str(psycopg.conninfo.conninfo_to_dict(self.url)["dbname"])
        self.disconnect(name)
        copy = self.databases.create(name)
        self.points.append(copy)
        with connect_url(copy, autocommit=True) as conn:
            conn.execute("select duebook.accept_environment('test', true, 'pytest')")
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
                        "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s",
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
