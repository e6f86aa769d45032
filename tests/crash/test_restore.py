"""The data directory is put back to an earlier copy: the receiving side's log shows no double."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest

from duebook.channels.base import Message, SendResult, message_id_for
from duebook.channels.email import EmailChannel, EmailOptions
from duebook.db.connect import connect_url
from duebook.db.embedded import EmbeddedServer
from duebook.db.migrate import migrate
from duebook.db.sql import query
from duebook.errors import RefusedError
from duebook.services.check import check
from duebook.services.restore import RestoreRequest, accept
from duebook.services.sweep import SweepReport, SweepRequest, sweep
from tests.due_work import places, value
from tests.settlement_files import World, booked, make_world, settled
from tests.smtp_sink import SmtpSink

pytestmark = [pytest.mark.crash, pytest.mark.slow]

SENDER = "notices@example.test"
BUSY = SendResult("later", code="452 4.2.2", scope="message", retry_after=timedelta(seconds=1))


class HesitantChannel(EmailChannel):
    """Real SMTP; says at first "later" to some."""

    hesitates: Callable[[Message], bool] = staticmethod(lambda message: False)

    async def send(self, message: Message) -> SendResult:
        return BUSY if self.hesitates(message) else await super().send(message)


@dataclass
class Town:
    """A cluster whose data directory can be put back, its books, its witness and its mail."""

    server: EmbeddedServer
    world: World
    sink: SmtpSink
    folder: Path

    def sweep(
        self, hesitates: Callable[[Message], bool] = lambda message: False, **request: Any
    ) -> SweepReport:
        options = EmailOptions(
            host="127.0.0.1",
            port=self.sink.port,
            security="plain",
            sender=SENDER,
            io_timeout=timedelta(seconds=30),
        )
        channel = HesitantChannel(options)
        channel.hesitates = hesitates
        stated = SweepRequest("test", witness=self.witness, lease=timedelta(minutes=5))
        return sweep(
            self.world.connect, replace(stated, **request), {"email": channel}, self.world.config
        )

    @property
    def witness(self) -> str:
        return str(self.folder / "witness")

    def settle(self, first: int, count: int, **when: str) -> None:
        """A night: the provider settled these payments."""
        rows = (settled(number, "10.00", **when) for number in range(first, first + count))
        self.world.reconcile(self.world.adyen(*rows))

    def book(self, first: int, count: int) -> None:
        rows = (booked(n, 1000, expected_at="2099-01-01") for n in range(first, first + count))
        self.world.book(*rows)

    def copy_data(self) -> Path:
        """A base copy, with the server stopped."""
        copy = self.folder / "backup"
        self.server.stop()
        subprocess.run(["cp", "-a", str(self.server.data_directory), str(copy)], check=True)
        self.server.start()
        return copy

    def put_back(self, copy: Path) -> None:
        """The same cluster, in place, as it was; what happened since is gone."""
        self.server.stop()
        shutil.rmtree(self.server.data_directory)
        subprocess.run(["cp", "-a", str(copy), str(self.server.data_directory)], check=True)
        self.server.start()

    def received(self) -> Counter[str]:
        return Counter(str(message["message_id"]) for message in self.sink.messages)

    def accept(self, **request: Any) -> dict[str, Any]:
        stated = RestoreRequest("test", by="ann", witness=self.witness)
        return accept(self.world.connect, replace(stated, **request))

    def answer_doubts(self) -> tuple[int, int]:
        """Look each doubt up in the receiving side's log; how many were sent, and how many not."""
        sender = self.world.config.channels["email"].sender
        received, counts = self.received(), Counter[bool]()
        with self.world.connect() as conn:
            doubts = conn.execute(
                "select account_id, intent_id, i.operation_key from duebook.in_doubt"
                " join duebook.intent as i using (account_id, intent_id)"
            ).fetchall()
            for account_id, intent_id, key in doubts:
                was_sent = message_id_for(account_id, key, sender) in received
                counts[was_sent] += 1
                conn.execute(
                    query("resolve_in_doubt"),
                    {
                        "account_ids": [account_id],
                        "intent_ids": [intent_id],
                        "accepted": was_sent,
                        "not_before": None,
                        "how": "person",
                        "why": "the receiving side's log",
                        "resolved_by": "ann",
                    },
                )
        return counts[True], counts[False]


def is_fourth(message: Message) -> bool:
    """Of every fourth payment."""
    return int(message.operation_key.split(":")[3].removeprefix("pay")) % 4 == 0


@pytest.fixture
def town(server_home: Path, tmp_path: Path) -> Iterator[Town]:
    with EmbeddedServer(server_home) as server, SmtpSink() as sink:
        url = server.ensure_database("duebook")
        migrate(url)
        with connect_url(url, autocommit=True) as conn:
            conn.execute("select duebook.accept_environment('test', true, 'pytest')")
            conn.execute(
                "insert into duebook.contact (account_id, channel, address, zone)"
                " values ('acme', 'email', 'acme@example.test', 'UTC')"
            )
        town = Town(server, make_world(url, tmp_path), sink, server_home)
        town.world.go_live()
        yield town


def test_a_restore_in_place_doubles_nothing(town: Town) -> None:
    town.book(1, 260)
    town.settle(1, 120)
    # Some of forty are sent, the others deferred, and due again when the copy is made.
    town.sweep(is_fourth, batch_size=40, max_batches=1)
    with town.world.connect() as conn:
        conn.execute("update duebook.due set due_at = clock_timestamp() where claims > 0")
    kept = len(town.sink.messages)
    assert 20 < kept < 40
    copy = town.copy_data()

    # What the restore takes back: a night, and sends of old intents, of deferred and of new ones.
    town.settle(121, 100)
    town.sweep(batch_size=60, max_batches=3)
    assert len(town.sink.messages) == kept + 180
    assert set(town.received().values()) == {1}

    town.put_back(copy)
    with pytest.raises(RefusedError, match="behind its witness"):
        town.sweep()
    shown = town.accept(dry_run=True)
    assert shown["lost_provider_accounts"] == ["adyen"]
    done = town.accept()
    assert done["put_in_doubt"] == shown["put_in_doubt"]
    assert done["put_in_doubt"]["due"] == 120 - kept
    before = len(town.sink.messages)
    assert town.sweep().counts.sent == 0

    # The night that was lost runs again, and promises again what was sent already.
    town.settle(121, 100)
    assert town.sweep().counts.sent == 0
    with town.world.connect() as conn:
        assert places(conn)["in_doubt"] == 120 - kept + 100
        now = value(conn, "select clock_timestamp()")
    assert len(town.sink.messages) == before

    # What happened since is told as ever: the lost night has run.
    when = now.astimezone(UTC) + timedelta(minutes=1)
    town.settle(221, 40, created=f"{when:%Y-%m-%d %H:%M:%S}", zone="GMT")
    assert town.sweep().counts.sent == 40

    assert town.answer_doubts() == (180, 120 - kept + 100 - 180)
    town.sweep()
    with town.world.connect() as conn:
        assert places(conn) == {"outcome": 260}
    assert len(town.received()) == 260
    assert set(town.received().values()) == {1}
    assert check(town.world.connect)["violations"] == []
