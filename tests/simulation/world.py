"""One database, its provider, and the processes around it; the history says who moves.

The processes are the product's own: `sweep()` with its senders, chores and every statement of
theirs. Replaced are the clock (which goes when the history says so), the provider at the far end of
a channel, and the network to the database, which a history can cut.
"""

from __future__ import annotations

import itertools
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from duebook.channels.base import Channel
from duebook.db import sql
from duebook.db.sql import query
from duebook.errors import UnavailableError
from duebook.services import deliver
from duebook.services.check import check
from duebook.services.flush import Flush, Flushed, apply_flush
from duebook.services.sweep import SweepRequest, sweep
from tests.due_work import add_due, add_kind
from tests.simulation import actors
from tests.simulation.actors import Actor, current
from tests.simulation.model import Model, Standing, ViolationError
from tests.simulation.provider import Provider, SimulatedChannel
from tests.simulation.wires import LOST, Pool, Wire, opener

LEASE = timedelta(seconds=120)
MAX_AGE = timedelta(minutes=15)
ACCOUNTS = 4
_TOLERANCE = timedelta(seconds=20)
MOST_SWEEPS = 3
CHANNELS = ("noop", "echo")
READS = (
    "pin_plans",
    "read_sweep_permission",
    "read_due_backlog",
    "find_batch_by_token",
    "read_calendar_state",
    "list_missing_zones",
    "read_clock",
)
# A history makes intents without reconciliation, and its clock jumps while a sender thinks.
NOT_LOOKED_AT = ("ledger change", "sum of", "future")


Note = Callable[[psycopg.Cursor[Any]], None]


@dataclass(frozen=True, slots=True)
class Setup:
    """What is the same during one history."""

    batch_size: int
    window: int
    channel: str
    tokens: int | None
    promised: int


class World:
    """Everything there is, made once for many histories."""

    def __init__(self, url: str) -> None:
        self.pool = Pool(opener(url))
        self.pool.on_execute = self._on_execute
        self.pool.lose_commit = self._lose_claim
        self.pool.reads = frozenset(query(name) for name in READS)
        self.conn = self.pool.connect(None)
        self.conn.execute((Path(__file__).parent / "world.sql").read_text())
        self.names: dict[Any, str] = {text: name for name, text in sql._queries().items()}
        self.crashes: Counter[str] = Counter()
        self.begin(Setup(4, 2, "noop", None, 1))

    def close(self) -> None:
        """End all that is left."""
        self.end()
        self.pool.close()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put the world's clock and flush watch into the product, and take them out again."""
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        with pytest.MonkeyPatch.context() as patch:
            clock = SimpleNamespace(clock_gettime=self._app_clock, sleep=self._sleep)
            patch.setattr(deliver, "time", clock)
            patch.setattr(deliver, "apply_flush", self._watch_flush)
            yield
        for number, handler in handlers.items():
            signal.signal(number, handler)

    # ---- begin and end of a history -------------------------------------------------------

    def begin(self, setup: Setup) -> None:
        """An empty database, and nobody about."""
        self.setup = setup
        self.clock = 0.0
        self.numbers = itertools.count(1)
        self.payments = 0
        self.schedules = 0
        self.away = 0
        self.doubles_next_flush = False
        self.actors: list[Actor] = []
        self.model = Model()
        self.providers = {
            "noop": Provider(self.model, lambda: self.clock),
            "echo": Provider(self.model, lambda: self.clock, remembers=timedelta(hours=3)),
        }
        self.conn.execute("select sim.clear()")
        for channel in CHANNELS:
            add_kind(self.conn, _kind(channel), channel, max_claims=4)
        for kind in ("reminder", "hold_refund"):
            add_kind(self.conn, kind, setup.channel, max_claims=4)
        if setup.tokens is not None:
            self.conn.execute(
                "insert into duebook.budget (channel, tokens, capacity, refill_per_minute)"
                " values ('noop', %(n)s, %(n)s, 60), ('echo', %(n)s, %(n)s, 60)",
                {"n": setup.tokens},
            )
        self.conn.execute("select duebook.set_hold_resource('room', 2)")
        random.seed(0)

    def end(self) -> None:
        """Whoever is left is ended, whatever it holds."""
        for actor in self.actors:
            self.crash(actor)
        self._bury()

    def look(self) -> None:
        """Settle what waited, and hold the committed state against the model."""
        self._settle()
        self._answer_people()
        # What was promised before an answer was given was promised before it.
        self.model.see(self._standing())
        self._bury()
        for action in self.conn.execute("select action from sim.alarm").fetchall():
            self.model.fail(f"the product was surprised: {action[0]}")
        if self.model.faults:
            raise ViolationError("; ".join(self.model.faults))

    def rest(self) -> None:
        """No more trouble: sweeps in peace until nothing changes; then everything must be well."""
        for provider in self.providers.values():
            provider.script.clear()
        self.away, self.doubles_next_flush = 0, False
        self.end_everybody()
        self.look()
        self.give_contacts()
        self.set_currency("EUR", None)
        self.resume_all()
        for number, minutes in enumerate((20, 70, 70, 400, 400, 400)):
            before = self.model.standing
            self.pass_time(timedelta(minutes=minutes))
            self._sweep_in_peace()
            self.look()
            if not self._is_work_left() or (number > 1 and self.model.standing == before):
                break
        self.model.rest()
        self._check()
        self.look()

    def end_everybody(self) -> None:
        """Every process goes on to its end."""
        for _ in range(20):
            living = [actor for actor in self.actors if actor.state != "done"]
            if not living:
                return
            for actor in living:
                self.move(actor, actors.never)
        raise ViolationError("some processes wait for each other, and never end")

    def _sweep_in_peace(self) -> None:
        self.start_sweep()
        self.end_everybody()
        self._bury()

    def _is_work_left(self) -> bool:
        return any(
            place in ("batch", "held") or (place == "due" and at.is_overdue)
            for at in self.model.standing.values()
            for place in at.places
        )

    def _check(self) -> None:
        wire = self.pool.connect(None)
        report = check(lambda: wire)
        self.pool.give_back(wire)
        for each in report["violations"]:
            if self.model.pardoned and "sent twice" in each["invariant"]:
                continue
            if not any(words in each["invariant"] for words in NOT_LOOKED_AT):
                self.model.fail(f"check: {each['invariant']}: {each['keys']}")

    # ---- processes --------------------------------------------------------------------------

    def start(self, name: str, work: Callable[[Actor], Any], offset: float = 0.0) -> Actor:
        """A new process that has not moved yet."""
        actor = Actor(f"{name}-{next(self.numbers)}", work, offset=offset)
        self.actors.append(actor)
        return actor

    def start_sweep(self, offset: float = 0.0) -> Actor:
        """A sweep, its clock `offset` seconds off; not yet moved."""
        return self.start("sweep", self._sweep, offset)

    def _sweep(self, actor: Actor) -> Any:
        request = SweepRequest(
            environment="test",
            sender=actor.name,
            batch_size=self.setup.batch_size,
            lease=LEASE,
            max_age=MAX_AGE,
            window_messages=self.setup.window,
            window_time=timedelta(seconds=2),
            time_budget=timedelta(hours=100),
            should_stop=lambda: actor.wants_stop,
        )
        channels: dict[str, Channel] = {
            name: SimulatedChannel(provider, partial(self._before_send, actor), name)
            for name, provider in self.providers.items()
        }
        return sweep(partial(self._connect, actor), request, channels)

    def _connect(self, actor: Actor) -> Wire:
        if self.away > 0:
            self.away -= 1
            raise UnavailableError("the database is away")
        return self.pool.connect(actor)

    def ask(self, name: str, work: Callable[[Wire], Any], then: Callable[[Any], None]) -> None:
        """A person's act: one statement, `then` with its answer once it is certain."""

        def act(actor: Actor) -> Any:
            wire = self._connect(actor)
            try:
                return work(wire)
            finally:
                wire.close()

        actor = self.start(name, act)
        actor.seen["then"] = then
        self.move(actor, actors.never)

    def move(self, actor: Actor, stop: actors.Stop) -> None:
        """Let one process go on, and settle whom that lets go on."""
        if actor.state == "ready":
            actor.move(stop)
        self._settle()

    def crash(self, actor: Actor) -> None:
        """End one process where it stands."""
        if actor.state != "done":
            self.crashes[self.point_of(actor)] += 1
            actor.crash()
            for wire in list(actor.wires):
                wire.close()

    def point_of(self, actor: Actor) -> str:
        """Where a process stands: at the provider, or at which statement of the product's."""
        if actor.is_waiting_for_io:
            return "after the provider" if actor.seen.get("is_answered") else "before the provider"
        name = self.names.get(actor.statement, "other")
        return f"{name}, {'before its commit' if not actor.is_idle else 'and nothing open'}"

    def move_to_statement(self, actor: Actor, name: str) -> None:
        """Let a process go on until it is about to execute one of the product's statements."""
        actor.statement = None
        self.move(actor, lambda each: each.statement == query(name))

    def _settle(self) -> None:
        blocked = [actor for actor in self.actors if actor.state == "blocked"]
        for actor in blocked:
            wire = next(wire for wire in actor.wires if wire.is_in_transaction)
            while True:
                if wire.has_answer():
                    actor.state = "ready"
                    break
                if self.pool.is_blocked(wire) and not wire.has_answer():
                    break

    def _answer_people(self) -> None:
        """Who had to wait for a lock goes on by itself; only sweeps are moved by the history."""
        for actor in list(self.actors):
            if not actor.name.startswith("sweep"):
                self.move(actor, actors.never)

    def _bury(self) -> None:
        for actor in [each for each in self.actors if each.state == "done"]:
            self.actors.remove(actor)
            for wire in list(actor.wires):
                wire.close()
            error = actor.error
            if actor.is_endless:
                self.model.fail(f"{actor.name} goes round and round, and never ends")
            if error is None:
                if "then" in actor.seen and not actor.is_crashed:
                    actor.seen["then"](actor.result)
            elif not _is_expected(error):
                self.model.fail(f"{actor.name} ended with {type(error).__name__}: {error}")

    # ---- what the product is watched by -----------------------------------------------------

    def _app_clock(self, which: int = 0) -> float:
        actor = current()
        return self.clock + (0.0 if actor is None else actor.offset)

    def _sleep(self, seconds: float) -> None:
        actor = current()
        assert actor is not None
        actor.offset += seconds
        actor.step()

    def _before_send(self, actor: Actor, key: str) -> None:
        self.model.start_send(key, actor.seen.get("window"))
        if actor.seen.get("lease_ends", 0.0) <= self.clock:
            self.model.fail(f"{key}: sent after the lease had ended")

    def _on_execute(self, wire: Wire, statement: Any, params: Any) -> Note | None:
        actor = wire.actor
        assert actor is not None
        actor.seen["claims"] = statement == query("claim_batch")
        if actor.seen["claims"]:
            return partial(self._see_claim, wire, params, actor.blocks)
        if statement == query("lock_batch"):
            # The first that a window's transaction reads; what it reads next may know more.
            actor.seen["window"] = self.model.open_window()
        return None

    def _see_claim(self, wire: Wire, params: Any, blocks: int, cursor: psycopg.Cursor[Any]) -> None:
        """A claim takes what is due and nobody holds, up to its limit, and no more."""
        row = cursor.fetchone()
        cursor.scroll(0, mode="absolute")
        if wire.actor is not None and row is not None and row[0] is not None:
            wire.actor.seen["has_claimed"] = True
            wire.actor.seen["lease_ends"] = self.clock + LEASE.total_seconds()
        if row is None or self.setup.tokens is not None or params["alone"]:
            return
        # The claim is not committed yet, so what it took is locked; so is what others hold.
        left = self.conn.execute(
            """
            select d.intent_id
            from duebook.due as d
            inner join pg_stat_activity as s on s.pid = %(pid)s
            where d.channel = %(channel)s and d.due_at <= s.xact_start and d.suspicions < 2
            and not exists (
                select from duebook.budget as b
                where
                    b.channel = d.channel
                    -- After a pause one message is tried alone.
                    and (b.paused_until > s.xact_start or b.consecutive_pauses > 0)
            )
            for update of d skip locked
            """,
            {"pid": wire.pgconn.backend_pid, "channel": params["channel"]},
        ).fetchall()
        moved, limit = row[1] + row[2], params["batch_size"]
        # While it waited (for the first cursor of a channel) others may have let go of some.
        has_waited = wire.actor is not None and wire.actor.blocks > blocks
        if moved > limit or (left and moved < limit and not (has_waited and moved)):
            self.model.fail(f"a claim of {limit} took {moved} and left {len(left)} that were due")

    def _watch_flush(self, conn: Wire, flush: Flush) -> Flushed:
        actor = conn.actor
        assert actor is not None
        # A flush whose answer was lost is asked for again, when some of the lease may be over.
        began = actor.seen.setdefault(f"flush {flush.token} {flush.follows}", self.clock)
        flushed = apply_flush(conn, flush)
        if self.doubles_next_flush:
            self.doubles_next_flush = False
            again = apply_flush(conn, flush)
            if flushed.window is not None:
                flushed = again
        self._see_flush(actor, flush, flushed, is_at_once=self.clock == began)
        return flushed

    def _see_flush(self, actor: Actor, flush: Flush, flushed: Flushed, *, is_at_once: bool) -> None:
        lease_ends = actor.seen.get("lease_ends", 0.0)
        if flushed.window is not None:
            lease_left = flushed.window.lease_left
            actor.seen["lease_ends"] = self.clock + lease_left.total_seconds()
            if (
                is_at_once
                and flush.renews
                and lease_left < min(LEASE, flushed.window.age_left) - _TOLERANCE
            ):
                self.model.fail(f"a lease was renewed to {lease_left}")
        keys = {"id": flush.batch_id, "token": flush.token}
        row = self.conn.execute(
            "select flush_no, 'live' from duebook.batch"
            " where batch_id = %(id)s and token = %(token)s"
            " union all select flush_no, how from duebook.batch_ended"
            " where batch_id = %(id)s and token = %(token)s",
            keys,
        ).fetchone()
        how = "lost" if row is None else row[1]
        if row is not None and how in ("live", "finished") and row[0] != flush.follows + 1:
            self.model.fail(f"flush {flush.follows + 1} was counted as {row[0]}")
        if how not in ("live", "finished", "lost") and lease_ends > self.clock:
            self.model.fail(f"a batch was {how} within its lease")
        if flushed.is_gone and how != "finished":
            answered = {
                ending.row.operation_key for ending in flush.endings if ending.result == "sent"
            }
            self.model.see_late({key for key in answered if key}, self._standing())

    def _lose_claim(self, wire: Wire) -> bool:
        """The server fails over to a replica that lacks the claim which is being committed."""
        actor = wire.actor
        if actor is None or not actor.seen.get("claims") or not wire.is_in_transaction:
            return False
        wire.pgconn.exec_(b"rollback")
        self.conn.execute(
            "select setval('duebook.batch_batch_id_seq', last_value, false)"
            " from duebook.batch_batch_id_seq"
        )
        wire.is_lost = True
        return True

    # ---- what a history may do --------------------------------------------------------------

    def promise(self, count: int, *, due_in: float = -1.0, give_up_in: float = 7 * 86400) -> None:
        """New intents."""
        add_due(
            self.conn,
            count,
            accounts=ACCOUNTS,
            channel=self.setup.channel,
            kind=_kind(self.setup.channel),
            due_in=timedelta(seconds=due_in),
            give_up_in=timedelta(seconds=give_up_in),
            payments_from=self.payments + 1,
        )
        self.payments += count
        self.model.see(self._standing())

    def key(self, which: int) -> tuple[str, str]:
        """A promised key and its account."""
        keys = [each for each in self.model.account_of.items() if not each[0].startswith("hold:")]
        return keys[which * 7 % len(keys)]

    def miscount(self, which: int) -> None:
        """A due row that was claimed before forgets its last claim, unless somebody holds it."""
        self.conn.execute(
            """
            with claimed as materialized (
                select d.ctid, row_number() over (order by d.intent_id) - 1 as n
                from duebook.due as d
                where d.claims > 0
            )
            update duebook.due as d set claims = d.claims - 1
            where d.ctid in (
                select x.ctid
                from duebook.due as x
                inner join claimed as c on x.ctid = c.ctid
                where c.n = %s %% (select greatest(count(*), 1) from claimed)
                for update of x skip locked
            )
            """,
            [which],
        )

    def move_to_claim(self, actor: Actor) -> bool:
        """Let a process go on until it has claimed, and is about to commit that."""
        actor.seen["has_claimed"] = False
        self.move(actor, lambda each: bool(each.seen.get("has_claimed")))
        return actor.state == "ready" and bool(actor.seen.get("has_claimed"))

    def fail_over_at_claim(self, actor: Actor) -> None:
        """Let a process go on until it commits a claim, and lose that."""
        if self.move_to_claim(actor):
            actor.fault = "fail_over"
            self.move(actor, actors.after(1))
            actor.fault = None

    @property
    def kind(self) -> str:
        """The kind of most intents."""
        return _kind(self.setup.channel)

    def pass_time(self, by: timedelta) -> None:
        """Time goes by, for the database and for every process alike."""
        for _ in range(20):
            busy = [each for each in self.actors if each.state != "done" and not each.is_idle]
            if not busy:
                break
            for actor in busy:
                self.move(actor, actors.when_idle)
        else:
            raise ViolationError("some processes wait for each other for ever")
        self.conn.execute("select sim.pass(%s)", [by])
        self.clock += by.total_seconds()

    def set_currency(self, currency: str, key: str | None) -> None:
        """What the payment of a key (None: each) is said to be in; a notice needs a known one."""
        self.conn.execute(
            "update duebook.ledger_change as c set currency = %(currency)s"
            " where %(key)s::text is null or c.change_id = ("
            " select i.change_id from duebook.intent as i where i.operation_key = %(key)s)",
            {"currency": currency, "key": key},
        )

    def resume_all(self) -> None:
        """Nothing is paused any more."""
        self.conn.execute(
            "select duebook.resume_intents(scope, name, 'model', 'model') from duebook.pause"
        )
        self.model.pauses.clear()

    def give_contacts(self) -> None:
        """Every account can be reached again."""
        self.conn.execute(
            """
            insert into duebook.contact (account_id, channel, address, zone)
            select distinct i.account_id, i.channel, 'x@example.test', 'UTC'
            from duebook.intent as i
            on conflict do nothing
            """
        )

    def _standing(self) -> dict[str, Standing]:
        rows = self.conn.execute("select * from sim.standing order by intent_id").fetchall()
        return {
            row[0]: Standing(row[1], tuple(row[3]), row[4], row[5], row[6], row[7], row[8], row[9])
            for row in rows
        }


def _kind(channel: str) -> str:
    return "payment_settled" if channel == "noop" else "payment_refunded"


def _is_expected(error: BaseException) -> bool:
    """A process that could not reach the database may say so, and end."""
    if isinstance(error, UnavailableError):
        return True
    return isinstance(error, psycopg.OperationalError) and LOST in str(error)
