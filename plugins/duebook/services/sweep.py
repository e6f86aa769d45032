"""The sweep: rescue, test what is held, then claim and send until nothing is due or time is up.

`sweep()` is one sender. Any number of them, in any number of processes, may run at once: what one
claims no other sees, and what one leaves behind the next one's rescue finds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import FrameType
from typing import Any, Final, Protocol, cast

import psycopg
import structlog

from duebook.channels.base import Channel
from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.errors import RefusedError
from duebook.services.deliver import Counts, Sender, SenderOptions, boottime
from duebook.services.promise import CalendarReport, keep_calendar
from duebook.services.witness import Guard, Witness
from duebook.services.writing import Links
from duebook.services.zones import compare_at_start

_log = structlog.get_logger(__name__)

_RESCUED_AT_ONCE: Final = 10
_HELD_AT_ONCE: Final = 1000
_EXPIRED_AT_ONCE: Final = 5000
_OCCURRENCES_AT_ONCE: Final = 10_000
_CALENDAR_SECONDS: Final = 5.0
_RETEST_SECONDS: Final = 3.0
_CHORES_EVERY: Final = 10.0


class ChannelSettings(Protocol):
    """What the sweep needs of a block [channels.<name>] of duebook.toml."""

    @property
    def sender(self) -> str | None: ...
    @property
    def window_messages(self) -> int: ...


class SweepConfig(Protocol):
    """What the sweep needs of duebook.toml."""

    @property
    def channels(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """One sender's sweep.

    `environment` is the name the process runs under; a database accepted under another name, or a
    copy, is refused. `due_offset` shifts only the due comparison, on a test database. `max_batches`
    ends the sweep early. `window_messages` overrides the channels' own sizes. `witness` is the
    folder or URL that each window is written to before its I/O. Occurrences of schedules are
    written as far ahead as `horizon`. `links` are where recipients leave a topic.
    """

    environment: str
    sender: str = ""
    batch_size: int = 500
    lease: timedelta = timedelta(seconds=120)
    max_age: timedelta = timedelta(minutes=15)
    time_budget: timedelta = timedelta(minutes=5)
    window_messages: int | None = None
    window_time: timedelta = timedelta(seconds=2)
    max_batches: int | None = None
    due_offset: timedelta = timedelta(0)
    witness: str | None = None
    horizon: timedelta = timedelta(days=7)
    links: Links | None = None
    reconnect_for: timedelta = timedelta(minutes=2)
    should_stop: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did. `counts` are in attempts; `expired` includes those that needed none.

    `paused` is the open incident that kept it from claiming. `calendar` says why no occurrence was
    computed; `server_zones` are those that the server's time zone data has otherwise.
    """

    counts: Counts
    expired_unclaimed: int
    rescued: int
    released_held: int
    backlog: int
    oldest_due_s: float
    paused: str | None = None
    occurrences: int = 0
    calendar: str | None = None
    server_zones: tuple[str, ...] = ()

    exit_code: int = 0

    def to_json(self) -> dict[str, Any]:
        """The document of `duebook sweep --json`."""
        counts = self.counts
        return {
            "claimed": counts.claimed,
            "sent": counts.sent,
            "done": counts.done,
            "deferred": counts.deferred,
            "expired": counts.expired + self.expired_unclaimed,
            "unknown": counts.unknown,
            "late": counts.late,
            "stale_starts": counts.stale_starts,
            "backlog": self.backlog,
            "oldest_due_s": round(self.oldest_due_s, 3),
            "held": counts.held,
            "skipped": counts.skipped,
            "released": counts.released,
            "set_aside": counts.set_aside,
            "rescued": self.rescued,
            "batches": counts.batches + counts.internal_batches,
            "paused": self.paused,
            "occurrences": self.occurrences,
            "calendar": self.calendar,
            "server_zones": list(self.server_zones),
        }


@dataclass(slots=True)
class Chores:
    """What the passes beside the claims did; `done_at` is when they were done last."""

    rescued: int = 0
    expired: int = 0
    released_held: int = 0
    are_held_left: bool = False
    calendar: CalendarReport = field(default_factory=CalendarReport)
    done_at: float = float("-inf")

    @property
    def is_left(self) -> bool:
        """Whether another round of passes may find more: occurrences, or held intents."""
        return self.calendar.is_left or self.are_held_left


def default_sender() -> str:
    """Host and process: who a batch belongs to, for a person; the token is what counts."""
    return f"{socket.gethostname()}:{os.getpid()}"


def sweep(
    connect: Connect,
    request: SweepRequest,
    channels: Mapping[str, Channel],
    config: SweepConfig | None = None,
) -> SweepReport:
    """Run one sender until nothing is due for `channels`, or its time or batches are used up.

    Raises RefusedError (not this database's environment; behind its witness; a shifted clock
    outside a test database), UnavailableError (the database or the witness stays away),
    ConfigurationError (a lease too short).
    """
    with _stop_signals(request.should_stop) as should_stop:
        options = sender_options(request, channels, config)
        guard = make_guard(request, options.name)
        with Sender(connect, options, channels, should_stop, guard) as sender:
            # With nothing in hand there is nothing to wait for: the next sweep is the retry.
            paused = sender.transact(
                lambda conn: _require_permission(conn, request), reconnect_for=timedelta(0)
            )
            if guard is not None:
                sender.transact(guard.check)
            server_zones = sender.transact(lambda conn: compare_at_start(conn, options.name))
            chores = Chores()
            if paused is None:
                send_all(sender, request, chores, should_stop)
                paused = sender.transact(lambda conn: _read_permission(conn, request)[2])
            backlog, oldest_due_s = sender.transact(lambda conn: _backlog(conn, request))
    return SweepReport(
        counts=sender.counts,
        expired_unclaimed=chores.expired,
        rescued=chores.rescued,
        released_held=chores.released_held,
        backlog=backlog,
        oldest_due_s=oldest_due_s,
        paused=paused,
        occurrences=chores.calendar.written,
        calendar=chores.calendar.refusal,
        server_zones=server_zones,
    )


def make_guard(request: SweepRequest, sender: str) -> Guard | None:
    """The sender's use of the witness, when the request names one."""
    if request.witness is None:
        return None
    return Guard(Witness(request.witness, request.environment), sender, boottime)


def sender_options(
    request: SweepRequest, channels: Mapping[str, Channel], config: SweepConfig | None
) -> SenderOptions:
    """How a sender of this request works."""
    blocks = config.channels if config is not None else {}
    windows = {
        name: request.window_messages or blocks[name].window_messages
        for name in channels
        if request.window_messages or name in blocks
    }
    return SenderOptions(
        name=request.sender or default_sender(),
        environment=request.environment,
        batch_size=request.batch_size,
        lease=request.lease,
        max_age=request.max_age,
        window_messages=windows,
        default_window=50,
        window_time=request.window_time,
        due_offset=request.due_offset,
        reconnect_for=request.reconnect_for,
        links=request.links,
        mail_senders={name: blocks[name].sender for name in channels if name in blocks},
    )


def _require_permission(conn: psycopg.Connection[Any], request: SweepRequest) -> str | None:
    """The incident that pauses the sweeps, if one does; raises RefusedError."""
    refusal, is_test, paused = _read_permission(conn, request)
    if refusal is not None:
        raise RefusedError(refusal)
    if request.due_offset and not is_test:
        raise RefusedError("a shifted clock is refused: this database is not marked as test")
    return paused


def _read_permission(
    conn: psycopg.Connection[Any], request: SweepRequest
) -> tuple[str | None, bool, str | None]:
    row = conn.execute(
        query("read_sweep_permission"), {"environment": request.environment}
    ).fetchone()
    assert row is not None
    return cast("tuple[str | None, bool, str | None]", row)


def send_all(
    sender: Sender, request: SweepRequest, chores: Chores, should_stop: Callable[[], bool]
) -> None:
    """The passes and the claims, in turn, until nothing moves or the request's limits are met."""
    ends_at = boottime() + request.time_budget.total_seconds()
    _do_chores(sender, request, chores)
    most = _most_claims(sender, request)
    waiting = list(sender.channels)

    def may_go_on() -> bool:
        return (
            not should_stop()
            and boottime() < ends_at
            and (request.max_batches is None or sender.counts.batches < request.max_batches)
            and (most is None or sender.counts.claimed < most)
        )

    is_internal_left = True
    while may_go_on() and (waiting or is_internal_left or chores.is_left):
        if not waiting and chores.is_left:
            _do_chores(sender, request, chores)
            waiting = list(sender.channels)
        # First, whatever the channels do: a hold's end waits for no message.
        is_internal_left = sender.do_internal() > 0
        for channel in list(waiting):
            if not may_go_on():
                return
            moved = sender.claim_and_send(channel)
            if moved == 0 or sender.counts.batches % _ALONE_EVERY == 0:
                # A suspicious row travels alone, so that it can't take others along.
                moved += sender.claim_and_send(channel, alone=True)
            if moved == 0:
                waiting.remove(channel)
        if boottime() - chores.done_at > _CHORES_EVERY:
            _do_chores(sender, request, chores)


_ALONE_EVERY: Final = 10
_SLOTS_AT_ONCE: Final = 10_000


def _most_claims(sender: Sender, request: SweepRequest) -> int | None:
    """With a shifted clock what is put back is due again at once: each row is claimed but once."""
    if not request.due_offset:
        return None
    return sender.transact(lambda conn: _backlog(conn, request))[0]


def _do_chores(sender: Sender, request: SweepRequest, chores: Chores) -> None:
    largest = max((sender.window_of(channel) for channel in sender.channels), default=1)
    rescued = sender.transact(
        lambda conn: conn.execute(
            query("rescue_batches"), {"most": _RESCUED_AT_ONCE, "window_size": largest}
        ).fetchall()
    )
    for batch_id, how, back_in_due, in_doubt, held in rescued:
        _log.warning(
            "batch_rescued",
            batch_id=batch_id,
            how=how,
            back_in_due=back_in_due,
            in_doubt=in_doubt,
            held=held,
        )
    chores.rescued += len(rescued)
    _keep_calendar(sender, request, chores)
    _retest_held(sender, request, chores)
    sender.transact(lambda conn: conn.execute(query("settle_delivery_reports")).fetchone())
    most = {"most": _SLOTS_AT_ONCE}
    sender.transact(lambda conn: conn.execute(query("drop_contact_slots"), most))
    row = sender.transact(
        lambda conn: conn.execute(query("expire_due"), {"most": _EXPIRED_AT_ONCE}).fetchone()
    )
    chores.expired += row[0] if row is not None else 0
    chores.done_at = boottime()


def _retest_held(sender: Sender, request: SweepRequest, chores: Chores) -> None:
    """All whose turn it is, pass by pass for some seconds; the rest after some claims."""
    ends_at = boottime() + _RETEST_SECONDS
    values = {"most": _HELD_AT_ONCE, "environment": request.environment}
    chores.are_held_left = True
    while chores.are_held_left:
        row = sender.transact(lambda conn: conn.execute(query("retest_held"), values).fetchone())
        assert row is not None
        back_in_due, expired, tested = row
        chores.released_held += back_in_due
        chores.expired += expired
        chores.are_held_left = tested == _HELD_AT_ONCE
        if boottime() >= ends_at:
            return


def _keep_calendar(sender: Sender, request: SweepRequest, chores: Chores) -> None:
    """What is missing of the calendar, for some seconds; the rest after some claims."""
    ends_at = boottime() + _CALENDAR_SECONDS
    report = keep_calendar(
        sender.transact,
        horizon=request.horizon,
        most=_OCCURRENCES_AT_ONCE,
        sender=request.sender or default_sender(),
        offset=request.due_offset,
        may_go_on=lambda: boottime() < ends_at,
    )
    chores.calendar.add(report)
    if report.refusal is not None:
        _log.error("calendar_refused", reason=report.refusal)


def _backlog(conn: psycopg.Connection[Any], request: SweepRequest) -> tuple[int, float]:
    row = conn.execute(query("read_due_backlog"), {"due_offset": request.due_offset}).fetchone()
    assert row is not None
    return row[0], row[1]


@contextlib.contextmanager
def _stop_signals(asked: Callable[[], bool] | None) -> Iterator[Callable[[], bool]]:
    """A test of whether to stop: `asked`, or SIGTERM and SIGINT while this runs.

    Signals can be caught in the main thread only; elsewhere the caller asks.
    """
    stopped = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        del number, frame
        stopped.set()

    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, note)
    try:
        yield lambda: stopped.is_set() or (asked is not None and asked())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
