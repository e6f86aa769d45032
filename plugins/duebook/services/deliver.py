"""One sender: claims a batch, sends it window by window, flushes, and claims the next.

The database is spoken to synchronously, between windows; only a window's sends run in an event
loop. Nothing here reads the wall clock: what is due and how long a lease lasts is the database's,
and the deadline of a window is on a clock that counts suspension, taken before the transaction
that grants the lease. So a sender that was stopped for longer than its lease sends nothing more.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar, cast, runtime_checkable
from uuid import UUID, uuid4

import psycopg
import structlog

from duebook.channels.base import Channel, Message, SendResult
from duebook.channels.render import Form, RenderError
from duebook.db.connect import Connect, describe, is_away, unavailable
from duebook.db.sql import query
from duebook.domain.backoff import retry_delay
from duebook.errors import (
    ConfigurationError,
    RefusedError,
    UnavailableError,
    WitnessAwayError,
)
from duebook.services.flush import (
    Claimed,
    Ending,
    Flush,
    Flushed,
    Pause,
    Rules,
    Window,
    apply_flush,
    read_message_facts,
)
from duebook.services.internal import INTERNAL, InternalBatch
from duebook.services.judge import (
    Policies,
    Retries,
    ending_of,
    hold,
    is_about_channel,
    judge_rows,
    suppression_of,
)
from duebook.services.manners import Parcel, completing, parcels_of
from duebook.services.pace import Pace
from duebook.services.witness import Guard
from duebook.services.writing import Links, Said, Writer

_log = structlog.get_logger(__name__)

_BOOTTIME: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_MARGIN: Final = timedelta(seconds=0.5)
_SMALLEST_WINDOW: Final = 10
_LEAD: Final = 0.05
_REPEATS: Final = 5
# psycopg's classes of SQLSTATE 40… are not subclasses of the class's own.
_REPEATABLE: Final = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
_LONGEST_PAUSE: Final = timedelta(hours=24)
_TOOK_A_TOKEN: Final = frozenset({"sent", "unknown", "failed"})

T = TypeVar("T")


def boottime() -> float:
    """Seconds on a clock that goes on while the process or the machine is stopped."""
    return time.clock_gettime(_BOOTTIME)


@runtime_checkable
class BulkChannel(Protocol):
    """A channel that takes a whole window in one call and needs no rendering."""

    async def send_keys(self, operation_keys: Sequence[str]) -> Sequence[SendResult]:
        """The answer to each key, in order."""
        ...


@runtime_checkable
class FactsChannel(Protocol):
    """A channel that speaks to programs: it is given facts, and no template is asked for a text."""

    @property
    def takes_facts(self) -> bool:
        """Always true."""
        ...


@runtime_checkable
class PatientChannel(Protocol):
    """A channel whose failed messages are tried again at times of its own, and not for ever."""

    @property
    def retry_waits(self) -> tuple[timedelta, ...]:
        """Waits after the first, second, … burnt try; the last one for all others."""
        ...

    @property
    def disable_after(self) -> timedelta:
        """After so long without any success an address is given up."""
        ...


@dataclass(frozen=True, slots=True)
class SenderOptions:
    """How one sender works. `window_seconds` bounds a window beside its number of messages."""

    name: str
    environment: str
    batch_size: int
    lease: timedelta
    max_age: timedelta
    window_messages: Mapping[str, int]
    default_window: int
    window_time: timedelta
    due_offset: timedelta
    reconnect_for: timedelta
    mail_senders: Mapping[str, str | None]
    links: Links | None = None


@dataclass(slots=True)
class Counts:
    """What a sender did, in attempts."""

    claimed: int = 0
    sent: int = 0
    done: int = 0
    deferred: int = 0
    expired: int = 0
    unknown: int = 0
    held: int = 0
    skipped: int = 0
    released: int = 0
    late: int = 0
    stale_starts: int = 0
    set_aside: int = 0
    batches: int = 0
    windows: int = 0
    internal_batches: int = 0

    def add(self, endings: Sequence[Ending]) -> None:
        """Count results that were flushed."""
        for ending in endings:
            name = "deferred" if ending.result == "failed" else ending.result
            setattr(self, name, getattr(self, name) + 1)


@dataclass(slots=True)
class _Batch:
    batch_id: int
    token: UUID
    channel: str
    size: int
    follows: int = 0
    position: int = 0
    endings: list[Ending] = field(default_factory=list)
    suppressed: list[tuple[str, str]] = field(default_factory=list)
    opted_out: list[str] = field(default_factory=list)
    has_contact_caps: bool = False
    pause: Pause | None = None
    unsent: int = 0
    has_tokens: bool = True
    had_pauses: bool = False
    is_probe: bool = False
    is_answered: bool = False
    pace: Pace | None = None

    def note(self, rules: Rules) -> None:
        """What the rules of its window say about how it is closed."""
        self.has_tokens, self.had_pauses = rules.has_tokens, rules.consecutive_pauses > 0
        self.is_probe = self.is_probe or rules.is_probe
        self.has_contact_caps = rules.has_contact_caps


@dataclass(slots=True)
class _Plan:
    """What a window is to send, a message a parcel (none for bulk), and what else ends in it."""

    parcels: list[Parcel]
    messages: list[Message]
    endings: list[Ending]


@dataclass(slots=True)
class _Sent:
    """What a window's sends came to: one answer per started message, in order."""

    answers: list[tuple[SendResult, float]]
    is_stale: bool


class Sender:
    """Works batches of the given channels over one connection, until told to stop.

    `should_stop` is asked between messages and batches: what is in flight is finished and flushed,
    the rest of the batch is given back. Use as a context manager.
    """

    def __init__(
        self,
        connect: Connect,
        options: SenderOptions,
        channels: Mapping[str, Channel],
        should_stop: Callable[[], bool],
        witness: Guard | None = None,
    ) -> None:
        for channel in channels.values():
            if options.lease <= channel.io_timeout + options.window_time + _MARGIN:
                raise ConfigurationError(
                    f"the lease must be longer than the time-out of channel {channel.name} "
                    f"plus {options.window_time.total_seconds():g} s"
                )
        self.counts = Counts()
        self._connect = connect
        self._options = options
        self._channels = channels
        self._should_stop = should_stop
        self._witness = witness
        self._conn: psycopg.Connection[Any] | None = None
        self._runner = asyncio.Runner()
        self._opened: list[Channel] = []
        self._windows: dict[str, int] = {}

    def __enter__(self) -> Self:
        try:
            for channel in self._channels.values():
                self._runner.run(channel.open())
                self._opened.append(channel)
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        for channel in self._opened:
            try:
                self._runner.run(channel.close())
            except Exception as error:
                _log.warning(
                    "channel_close_failed", channel=channel.name, error=type(error).__name__
                )
        self._opened.clear()
        self._runner.close()
        if self._conn is not None:
            self._conn.close()
            self._conn = None

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels that this sender serves."""
        return tuple(self._channels)

    def window_of(self, channel: str) -> int:
        """The most messages that a window of `channel` may hold."""
        return self._options.window_messages.get(channel, self._options.default_window)

    @property
    def due_offset(self) -> timedelta:
        """How far the clock that decides what is due is shifted."""
        return self._options.due_offset

    def transact(
        self,
        work: Callable[[psycopg.Connection[Any]], T],
        *,
        reconnect_for: timedelta | None = None,
    ) -> T:
        """Run `work`, which is safe to repeat, over a connection that is made again when lost.

        Raises UnavailableError when the database stays away for `reconnect_for`, by default the
        options'.
        """
        patience = self._options.reconnect_for if reconnect_for is None else reconnect_for
        deadline = boottime() + patience.total_seconds()
        pause, repeats = 0.05, 0
        while True:
            try:
                if self._conn is None:
                    self._conn = self._connect()
                    # Estimates of a moment must not choose the plan of the next.
                    self._conn.execute(query("pin_plans"))
                return work(self._conn)
            except _REPEATABLE:
                repeats += 1
                if repeats >= _REPEATS:
                    raise
            except psycopg.Error as error:
                if not is_away(error):
                    raise
                self._drop_connection()
                if boottime() >= deadline:
                    raise unavailable(error) from None
                _log.warning("database_lost", sender=self._options.name, error=describe(error))
            except UnavailableError as error:
                self._drop_connection()
                if isinstance(error, WitnessAwayError) or boottime() >= deadline:
                    raise
            time.sleep(pause)
            pause = min(pause * 2, 1.0)

    def _drop_connection(self) -> None:
        if self._conn is not None:
            self._conn.close()
            self._conn = None

    def claim_and_send(self, channel: str, *, alone: bool = False) -> int:
        """One batch of `channel`, from claim to last flush. Returns how many rows left due."""
        batch, moved = self._claim(channel, alone=alone)
        if batch is not None:
            self.counts.batches += 1
            self.counts.claimed += batch.size
            self._work(batch)
        return moved

    def do_internal(self) -> int:
        """One batch of internal acts, claimed and done. Returns how many rows left due."""
        batch, moved = self._claim(INTERNAL, alone=False)
        if batch is not None:
            counts = self.counts
            counts.internal_batches += 1
            counts.claimed += batch.size
            work = InternalBatch(batch.batch_id, batch.token, self.due_offset)
            finished = self.transact(work.finish)
            counts.done += finished.done
            counts.expired += finished.expired
            counts.skipped += finished.skipped
            counts.held += finished.held
        return moved

    def _claim(self, channel: str, *, alone: bool) -> tuple[_Batch | None, int]:
        options, token = self._options, uuid4()
        is_internal = channel == INTERNAL
        safe_retry_for = None if is_internal else self._channels[channel].safe_retry_for
        # What stays in the house needs no witness outside it.
        witness = None if is_internal else self._witness
        is_repeat = False

        def claim(conn: psycopg.Connection[Any]) -> tuple[int | None, int, int]:
            nonlocal is_repeat
            if witness is not None:
                witness.check_again(conn)
            if is_repeat:
                found = conn.execute(query("find_batch_by_token"), {"token": token}).fetchone()
                if found is not None:
                    return found[0], found[1], 0
            is_repeat = True
            row = conn.execute(
                query("claim_batch"),
                {
                    "token": token,
                    "sender": options.name,
                    "channel": channel,
                    "batch_size": options.batch_size,
                    "lease": options.lease,
                    "max_age": options.max_age,
                    "safe_retry_for": safe_retry_for,
                    "due_offset": self.due_offset,
                    "alone": alone,
                },
                prepare=True,
            ).fetchone()
            assert row is not None
            return cast("tuple[int | None, int, int]", row)

        batch_id, size, set_aside = self.transact(claim)
        self.counts.set_aside += set_aside
        if batch_id is None:
            return None, set_aside
        if witness is not None:
            note = partial(witness.note_batch, batch_id=batch_id)
            self.transact(note)
        return _Batch(batch_id, token, channel, size), size + set_aside

    def _work(self, batch: _Batch) -> None:
        while self._may_work_on(batch):
            self._await_slot(batch)
            start = batch.position
            mark = min(start + self._window_size(batch.channel), batch.size)
            started_at = boottime()
            flushed = self._flush_and_open(batch, start, mark)
            window = flushed.window
            if window is None:
                return
            if not self._run_window(batch, window, start, mark, started_at):
                break
        self._close(batch)

    def _may_work_on(self, batch: _Batch) -> bool:
        if batch.position >= batch.size or batch.pause is not None or self._should_stop():
            return False
        return batch.pace is None or not batch.pace.is_used_up(boottime())

    def _await_slot(self, batch: _Batch) -> None:
        """Wait for the batch's next slot, with nothing open and everything flushed."""
        if batch.pace is None:
            return
        until = batch.pace.next_at(boottime()) - _LEAD
        if batch.endings and until > boottime():
            self._flush(batch, replace(self._flush_of(batch), renews=True))
        while boottime() < until and not self._should_stop():
            time.sleep(min(0.1, max(0.0, until - boottime())))

    def _safety(self, channel: str) -> timedelta:
        """How long after its opening the I/O of a window may still end."""
        return self._channels[channel].io_timeout + self._options.window_time

    def _window_size(self, channel: str) -> int:
        return self._windows.get(channel) or self.window_of(channel)

    def _flush_and_open(self, batch: _Batch, start: int, mark: int) -> Flushed:
        flush = replace(
            self._flush_of(batch),
            action="open",
            start=start,
            mark=mark,
            renews=bool(batch.endings),
            complete=completing(
                self._safety(batch.channel), batch.channel, is_last=mark >= batch.size
            ),
        )
        try:
            return self._flush(batch, flush)
        except psycopg.Error:
            # The next window can't be opened; what was sent is known, and must not be in doubt.
            self._flush(batch, replace(flush, action="keep"))
            raise

    def _flush_of(self, batch: _Batch) -> Flush:
        return Flush(
            batch_id=batch.batch_id,
            token=batch.token,
            follows=batch.follows,
            channel=batch.channel,
            environment=self._options.environment,
            lease=self._options.lease,
            endings=batch.endings,
            action="keep",
            pause=batch.pause,
            resets_pauses=batch.had_pauses and batch.is_answered,
            is_probe=batch.is_probe,
            suppressed=batch.suppressed,
            opted_out=batch.opted_out,
            has_contact_caps=batch.has_contact_caps,
            disable_after=_disable_after(self._channels[batch.channel]),
        )

    def _flush(self, batch: _Batch, flush: Flush) -> Flushed:
        flushed = self.transact(lambda conn: apply_flush(conn, flush))
        self.counts.late += flushed.late + flushed.not_counted
        if not flushed.late:
            self.counts.add(flush.endings)
        self.counts.released += flushed.released
        if flushed.late:
            _log.warning(
                "late_flush", batch_id=batch.batch_id, sender=self._options.name, late=flushed.late
            )
        batch.follows += 1
        batch.unsent += sum(1 for each in flush.endings if each.result not in _TOOK_A_TOKEN)
        batch.endings = []
        batch.suppressed = []
        batch.opted_out = []
        return flushed

    def _close(self, batch: _Batch) -> None:
        release_from = batch.position if batch.position < batch.size else None
        unsent = sum(1 for each in batch.endings if each.result not in _TOOK_A_TOKEN)
        flush = replace(
            self._flush_of(batch),
            action="close",
            release_from=release_from,
            unsent=batch.unsent + unsent,
            returns_tokens=batch.has_tokens,
        )
        self._flush(batch, flush)

    def _run_window(
        self, batch: _Batch, window: Window, start: int, mark: int, started_at: float
    ) -> bool:
        """Gate and send one window. False: the batch is not to be worked on."""
        channel = self._channels[batch.channel]
        self.counts.windows += 1
        rules = window.rules
        batch.note(rules)
        if rules.environment_refusal is not None:
            self._close(batch)
            raise RefusedError(rules.environment_refusal)
        if rules.sweep_paused_by is not None:
            return False
        if rules.paused_until is not None and rules.paused_until > window.now:
            return False
        opened_at = boottime()
        if batch.pace is None and window.slot_in_s is not None and window.slot_spacing_s:
            batch.pace = Pace(opened_at + window.slot_in_s, window.slot_spacing_s, batch.size)
        lease_end = started_at + window.lease_left.total_seconds()
        deadline = lease_end - (channel.io_timeout + _MARGIN).total_seconds()
        safety = self._safety(batch.channel)
        policies = Policies(rules)
        mark = mark if window.cut_at is None else window.cut_at
        plan = self._plan(window, mark, policies, batch.channel)
        parcels, endings = plan.parcels, plan.endings
        window_end = min(deadline, opened_at + self._options.window_time.total_seconds())
        self._tell_witness(batch, parcels, window.now)
        sent = self._runner.run(
            self._send(channel, parcels, plan.messages, deadline, window_end, batch.pace)
        )
        next_position = mark
        if len(sent.answers) < len(parcels):
            next_position = parcels[len(sent.answers)].rows[0].position
            endings = [ending for ending in endings if ending.row.position < next_position]
        if sent.is_stale:
            self.counts.stale_starts += mark - next_position
        clock = _Clock(window.now, opened_at)
        look_up_from = clock.at(lease_end) + channel.io_timeout
        self._judge_answers(batch, parcels, sent, policies, clock, look_up_from)
        batch.endings += endings
        batch.position = next_position
        self._adapt(batch.channel, next_position - start, mark - start, boottime() - opened_at)
        return not sent.is_stale and window.age_left > channel.io_timeout + safety + _MARGIN

    def _tell_witness(self, batch: _Batch, parcels: Sequence[Parcel], now: datetime) -> None:
        """Write the window down outside the database; without that there is no I/O."""
        if self._witness is None or not parcels:
            return
        try:
            self._witness.tell(
                batch_id=batch.batch_id,
                token=str(batch.token),
                flush_no=batch.follows,
                newest_intent_id=max(row.intent_id for parcel in parcels for row in parcel.rows),
                at=now,
            )
        except WitnessAwayError:
            # Nothing of the window was tried: all of it goes back.
            self._close(batch)
            raise

    def _plan(self, window: Window, mark: int, policies: Policies, name: str) -> _Plan:
        """What is sent of the window's rows before `mark`, and what ends or waits unsent."""
        rows = [row for row in window.rows if row.position < mark]
        channel, safety = self._channels[name], self._safety(name)
        to_send, endings = judge_rows(rows, policies, window.now, safety)
        if isinstance(channel, BulkChannel):
            return _Plan(parcels_of(to_send, window.digest_keys), [], endings)
        writer = self._writer(name)
        rendered, unrendered = self._render(to_send, window.now, writer)
        told = [row for row in to_send if row.position in rendered]
        plan = _Plan([], [], endings + unrendered)
        for parcel in parcels_of(told, window.digest_keys):
            texts = [rendered[row.position] for row in parcel.rows]
            try:
                plan.messages.append(writer.write(parcel, texts))
            except RenderError as error:
                held = [hold(row, window.now, "template", error.field) for row in parcel.rows]
                plan.endings += held
            else:
                plan.parcels.append(parcel)
        return plan

    def _writer(self, name: str) -> Writer:
        options, channel = self._options, self._channels[name]
        form: Form = "sms" if name.partition("_")[0] == "sms" else "mail"
        return Writer(
            name,
            sender=options.mail_senders.get(name),
            links=options.links,
            form=None if isinstance(channel, FactsChannel) else form,
        )

    def _render(
        self, rows: Sequence[Claimed], now: datetime, writer: Writer
    ) -> tuple[dict[int, Said], list[Ending]]:
        """What each of the rows says, by position, and those that can't be said."""
        if not rows:
            return {}, []
        facts = self.transact(lambda conn: read_message_facts(conn, rows))
        rendered: dict[int, Said] = {}
        failed: list[Ending] = []
        for row in rows:
            try:
                rendered[row.position] = writer.render(row, facts[row.account_id, row.intent_id])
            except RenderError as error:
                failed.append(hold(row, now, "template", error.field))
            except Exception as error:  # one bad row never stops a window
                failed.append(hold(row, now, "template", type(error).__name__))
        return rendered, failed

    async def _send(
        self,
        channel: Channel,
        parcels: Sequence[Parcel],
        messages: Sequence[Message],
        deadline: float,
        window_end: float,
        pace: Pace | None,
    ) -> _Sent:
        if not parcels:
            return _Sent([], is_stale=False)
        if isinstance(channel, BulkChannel):
            if boottime() >= deadline or self._should_stop():
                return _Sent([], is_stale=boottime() >= deadline)
            answers = await channel.send_keys(
                [parcel.digest_key or parcel.rows[0].operation_key or "" for parcel in parcels]
            )
            finished = boottime()
            return _Sent([(answer, finished) for answer in answers], is_stale=False)
        window = _WindowOfSends(channel, messages, window_end, self._should_stop, pace)
        sent = await window.run()
        return _Sent(sent, is_stale=len(sent) < len(parcels) and boottime() >= deadline)

    def _judge_answers(
        self,
        batch: _Batch,
        parcels: Sequence[Parcel],
        sent: _Sent,
        policies: Policies,
        clock: _Clock,
        look_up_from: datetime,
    ) -> None:
        pauses: list[SendResult] = []
        retries = _retries_of(self._channels[batch.channel])
        for parcel, (answer, finished) in zip(parcels, sent.answers, strict=False):
            batch.is_answered = batch.is_answered or _is_answer(answer)
            # One message took one token, however many it told.
            batch.unsent += len(parcel.rows) - 1
            at = clock.at(finished)
            for row in parcel.rows:
                ending = _ending(row, answer, at, policies, look_up_from, retries)
                batch.endings.append(ending)
            self._judge_address(batch, parcel.rows[0].account_id, answer)
            if is_about_channel(answer):
                pauses.append(answer)
        if pauses:
            batch.pause = _pause(pauses, policies.rules.consecutive_pauses + 1)

    def _judge_address(self, batch: _Batch, account_id: str, answer: SendResult) -> None:
        reason = suppression_of(answer)
        if reason is not None:
            batch.suppressed.append((account_id, reason))
        if answer.opts_out:
            batch.opted_out.append(account_id)

    def _adapt(self, channel: str, started: int, offered: int, seconds: float) -> None:
        """A window holds what can be started in its time: so a death leaves little in doubt."""
        if started < offered:
            self._windows[channel] = max(_SMALLEST_WINDOW, started)
        elif seconds < self._options.window_time.total_seconds() / 2:
            self._windows[channel] = min(self.window_of(channel), 2 * self._window_size(channel))


class _Clock:
    """The database's clock, carried on by CLOCK_BOOTTIME since it was read."""

    def __init__(self, now: datetime, read_at: float) -> None:
        self._now = now
        self._read_at = read_at
        self._last: tuple[float, datetime] | None = None

    def at(self, instant: float) -> datetime:
        if self._last is None or self._last[0] != instant:
            self._last = (instant, self._now + timedelta(seconds=instant - self._read_at))
        return self._last[1]


class _WindowOfSends:
    """Starts messages in order, some at a time, until the window ends or the channel says later."""

    def __init__(
        self,
        channel: Channel,
        messages: Sequence[Message],
        window_end: float,
        should_stop: Callable[[], bool],
        pace: Pace | None = None,
    ) -> None:
        self._channel = channel
        self._pace = pace
        self._turn = asyncio.Lock()
        self._messages = messages
        self._window_end = window_end
        self._should_stop = should_stop
        self._next = 0
        self._is_paused = False
        self._answers: dict[int, tuple[SendResult, float]] = {}

    async def run(self) -> list[tuple[SendResult, float]]:
        workers = min(self._channel.max_concurrency, len(self._messages))
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work())
        return [self._answers[number] for number in range(self._next)]

    def _may_start(self) -> bool:
        return (
            self._next < len(self._messages)
            and not self._is_paused
            and boottime() < self._window_end
            and not self._should_stop()
        )

    async def _take(self) -> int | None:
        """The next message's number, once its slot is there; None when no more may start."""
        if self._pace is not None:
            async with self._turn:
                if not self._may_start() or not await self._pace.take(self._window_end, boottime):
                    return None
                return self._count_on()
        return self._count_on()

    def _count_on(self) -> int | None:
        if not self._may_start():
            return None
        self._next += 1
        return self._next - 1

    async def _work(self) -> None:
        while (number := await self._take()) is not None:
            answer = await self._send(self._messages[number])
            if is_about_channel(answer):
                self._is_paused = True
            self._answers[number] = (answer, boottime())

    async def _send(self, message: Message) -> SendResult:
        try:
            return await self._channel.send(message)
        except Exception as error:
            # A channel never raises; one that does may have sent.
            name = type(error).__name__
            _log.error("channel_failed", channel=self._channel.name, error=name)
            return SendResult("unknown", code=name, detail="the channel failed")


def _disable_after(channel: Channel) -> timedelta | None:
    return channel.disable_after if isinstance(channel, PatientChannel) else None


def _retries_of(channel: Channel) -> Retries:
    waits = channel.retry_waits if isinstance(channel, PatientChannel) else ()
    return Retries(waits, are_safe=channel.idempotent)


def _ending(
    row: Claimed,
    answer: SendResult,
    at: datetime,
    policies: Policies,
    look_up_from: datetime,
    retries: Retries,
) -> Ending:
    if answer.status == "accepted":
        return Ending(row, "sent", None, at, answer.code, answer.provider_message_id)
    return ending_of(row, answer, at, policies, look_up_from=look_up_from, retries=retries)


def _is_answer(answer: SendResult) -> bool:
    """Whether the provider is there and takes messages, whatever became of this one."""
    return answer.status in ("accepted", "refused") or answer.scope == "message"


def _pause(answers: Sequence[SendResult], n: int) -> Pause:
    wait = retry_delay(n, jitter=random.random())
    asked = max((answer.retry_after or timedelta(0) for answer in answers), default=timedelta(0))
    return Pause(min(max(wait, asked), _LONGEST_PAUSE), answers[0].code or "later")
