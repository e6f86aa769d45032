"""What a resume would do: the real passes, claims, gate and flushes, rolled back.

Nothing here judges a row. A sender like any other works everything that is due, in one transaction,
over channels that reach nobody; then it is counted where each intent came to stand, and the
transaction is rolled back. So a preview can't differ from what it previews but by time: what falls
due, or is answered, later. (docs/adr/0010-the-preview-is-the-claim-rolled-back.md)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import uuid4

import psycopg
import structlog
from psycopg import errors
from psycopg.rows import dict_row

from duebook.channels.base import Channel, Message, SendResult
from duebook.db.connect import Connect, describe
from duebook.db.sql import query
from duebook.errors import UnavailableError
from duebook.services.deliver import BulkChannel, Sender, SenderOptions, T, boottime
from duebook.services.promise import CalendarReport, keep_calendar
from duebook.services.sweep import (
    Chores,
    SweepConfig,
    SweepRequest,
    make_guard,
    send_all,
    sender_options,
)

# Sweeps pass over the rows that a preview has in hand, and wait for the paces and budgets that it
# took: for 60 s at most (db.connect.Limits), so it ends before.
LONGEST: Final = timedelta(seconds=45)
_LONGEST_WAIT_MS: Final = 5_000
# A process that was stopped gives up its locks.
_IDLE_MS: Final = "30000"
_BATCH, _WINDOW = 5_000, 1_000
_LEASE: Final = timedelta(hours=1)
_OCCURRENCES_AT_ONCE: Final = 10_000
_ACCEPTED: Final = SendResult("accepted", code="preview")
# What somebody else's work at the same moment may do to a preview.
_PASSING: Final = (
    errors.IdleInTransactionSessionTimeout,
    errors.QueryCanceled,
    errors.LockNotAvailable,
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.InFailedSqlTransaction,
)


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """One preview. `lift` are further pauses, (scope, name), to be lifted with the incident's.

    `witness` as in SweepRequest: a database that is behind it would send nothing.
    """

    environment: str
    lift: Sequence[tuple[str, str]] = ()
    longest: timedelta = LONGEST
    witness: str | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """What becomes of what is due. Every count but `peak_per_minute` is in intents.

    They add up to `due`. `send`: at once. `expire`: ended by reason, `coalesce` those for a newer
    one. `defer`: later, by reason; `budget` are those that wait for the rate of their channel,
    `not_served` those whose channel no sender here serves. `hold`: by cause. `internal`: holds that
    expire. `in_flight`: another sender has them. `peak_per_minute`: messages in the fullest minute,
    as far as the policies decide it; senders may be slower. `lasts_s`: until the last of them may
    go; None: never at the rates that are set. `lifted`: what was taken as lifted.
    """

    as_of: datetime
    due: int
    send: int
    expire: Mapping[str, int]
    coalesce: int
    defer: Mapping[str, int]
    hold: Mapping[str, int]
    internal: int
    in_doubt: int
    in_flight: int
    proposed: int
    peak_per_minute: int
    lasts_s: int | None
    policies: Sequence[Mapping[str, Any]]
    channels: Mapping[str, Mapping[str, int]]
    lifted: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        """The document of `duebook incident preview --json`."""
        return {
            "as_of": self.as_of.isoformat(),
            "due": self.due,
            "send": self.send,
            "expire": dict(self.expire),
            "coalesce": self.coalesce,
            "defer": dict(self.defer),
            "hold": dict(self.hold),
            "internal": self.internal,
            "in_doubt": self.in_doubt,
            "in_flight": self.in_flight,
            "proposed": self.proposed,
            "peak_per_minute": self.peak_per_minute,
            "lasts_s": self.lasts_s,
            "policies": list(self.policies),
            "channels": {name: dict(counts) for name, counts in self.channels.items()},
            "lifted": list(self.lifted),
        }


@dataclass(frozen=True, slots=True)
class Fate:
    """Intents of one channel that came to stand in one place, for one reason, in one minute."""

    channel: str
    place: str
    reason: str
    minute: int | None
    intents: int
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class ChannelRate:
    """What a channel may send after the rehearsal; no tokens: it has no rate."""

    tokens: int | None
    refill_per_minute: int | None
    capacity: int | None
    paused_s: float


def preview(
    connect: Connect,
    request: PreviewRequest,
    channels: Mapping[str, Channel],
    config: SweepConfig | None = None,
) -> Preview:
    """Rehearse a resume as of now. `channels` are asked for their limits, and never used.

    Raises UnavailableError when it takes longer than `request.longest` or meets work that holds
    what it needs, RefusedError when senders here may not send; nothing is changed then either.
    """
    # What it does is undone: a log line about it must not be taken for the real thing.
    with connect() as conn, structlog.contextvars.bound_contextvars(preview=True):
        try:
            with conn.transaction(force_rollback=True):
                return _rehearse(conn, request, channels, config)
        except _PASSING as error:
            raise UnavailableError(
                f"the preview met other work and gave up ({describe(error)}); nothing was "
                "changed: try again"
            ) from None


def _rehearse(
    conn: psycopg.Connection[Any],
    request: PreviewRequest,
    channels: Mapping[str, Channel],
    config: SweepConfig | None,
) -> Preview:
    ends_at = boottime() + request.longest.total_seconds()
    statement_ms = str(int(request.longest.total_seconds() * 1000))
    conn.execute(
        query("limit_preview"),
        {"statement_ms": statement_ms, "lock_ms": str(_LONGEST_WAIT_MS), "idle_ms": _IDLE_MS},
    )
    lifted = _lift(conn, request)
    write_due_occurrences(lambda work: work(conn), sender="preview")
    row = conn.execute(query("record_preview")).fetchone()
    assert row is not None
    as_of, due = row
    policies = _policies(conn)
    sweep_request = SweepRequest(
        environment=request.environment,
        sender=f"preview:{uuid4()}",
        batch_size=_BATCH,
        lease=_LEASE,
        max_age=_LEASE,
        window_messages=_WINDOW,
        time_budget=request.longest,
        horizon=timedelta(0),
        witness=request.witness,
    )
    guard = make_guard(sweep_request, sweep_request.sender)
    if guard is not None:
        guard.check(conn)
    stand_ins = {name: _stand_in(channel) for name, channel in channels.items()}
    options = sender_options(sweep_request, stand_ins, config)

    def is_over() -> bool:
        return boottime() >= ends_at

    with _Rehearsal(conn, as_of, options, stand_ins, is_over) as sender:
        _until_nothing_moves(sender, sweep_request, is_over)
    if is_over():
        raise UnavailableError(
            f"the preview did not end within {request.longest.total_seconds():g} s; nothing was "
            "changed"
        )
    return _summary(conn, as_of, due, policies, lifted)


def write_due_occurrences(
    transact: Callable[[Callable[[psycopg.Connection[Any]], CalendarReport]], CalendarReport],
    *,
    sender: str,
) -> CalendarReport:
    """Write every occurrence of a schedule that is due by now and not written yet."""
    return keep_calendar(
        transact,
        horizon=timedelta(0),
        most=_OCCURRENCES_AT_ONCE,
        sender=sender,
        offset=timedelta(0),
        may_go_on=lambda: True,
    )


def _lift(conn: psycopg.Connection[Any], request: PreviewRequest) -> list[str]:
    found = conn.execute(query("lift_incident_pause")).fetchone()
    lifted = [] if found is None else [f"incident:{found[0]}"]
    for scope, name in request.lift:
        conn.execute(
            query("resume_intents"),
            {"scope": scope, "name": name, "reason": "preview", "by": "preview"},
        )
        lifted.append(scope if scope == "all" else f"{scope}:{name}")
    return lifted


def _policies(conn: psycopg.Connection[Any]) -> list[dict[str, Any]]:
    row = conn.execute(query("read_preview_policies")).fetchone()
    assert row is not None
    policies: list[dict[str, Any]] = row[0]
    return policies


class _Rehearsal(Sender):
    """A sender inside a transaction that is not its own: it neither commits nor reconnects.

    What is due is decided as of its making, however long it takes: what it puts off into its own
    next seconds it must not meet again.
    """

    def __init__(
        self,
        conn: psycopg.Connection[Any],
        as_of: datetime,
        options: SenderOptions,
        channels: Mapping[str, Channel],
        should_stop: Callable[[], bool],
    ) -> None:
        super().__init__(lambda: conn, options, channels, should_stop)
        self._given = conn
        self._as_of = as_of
        self._made_at = boottime()
        conn.execute(query("pin_plans"))

    @property
    def due_offset(self) -> timedelta:
        """Back to when it was made."""
        return timedelta(seconds=self._made_at - boottime())

    def claim_and_send(self, channel: str, *, alone: bool = False) -> int:
        """As every sender; what its passes released counts as due."""
        self._given.execute(
            query("bring_back_released"), {"channel": channel, "as_of": self._as_of}
        )
        return super().claim_and_send(channel, alone=alone)

    def transact(
        self,
        work: Callable[[psycopg.Connection[Any]], T],
        *,
        reconnect_for: timedelta | None = None,
    ) -> T:
        """Run `work` in the given transaction."""
        del reconnect_for
        return work(self._given)


def _until_nothing_moves(
    sender: Sender, request: SweepRequest, is_over: Callable[[], bool]
) -> None:
    chores = Chores()
    while not is_over():
        before = (sender.counts.claimed, sender.counts.set_aside, _moved(chores))
        send_all(sender, request, chores, is_over)
        if before == (sender.counts.claimed, sender.counts.set_aside, _moved(chores)):
            return


def _moved(chores: Chores) -> Chores:
    return replace(chores, done_at=0.0)


class _Accepting:
    """Stands for a channel, with its limits: accepts every message and reaches nobody."""

    def __init__(self, channel: Channel) -> None:
        self.name = channel.name
        self.idempotent = channel.idempotent
        self.safe_retry_for = channel.safe_retry_for
        self.io_timeout = channel.io_timeout
        self.max_concurrency = channel.max_concurrency

    async def open(self) -> None:
        """Nothing to open."""

    async def send(self, message: Message) -> SendResult:
        """Accepted; it was rendered, so a template that fails was found."""
        del message
        return _ACCEPTED

    async def close(self) -> None:
        """Nothing to close."""

    async def verify(self) -> str:
        """Never asked."""
        return f"{self.name}: a stand-in"


class _AcceptingBulk(_Accepting):
    async def send_keys(self, operation_keys: Sequence[str]) -> Sequence[SendResult]:
        """As BulkChannel: a whole window at once."""
        return [_ACCEPTED] * len(operation_keys)


def _stand_in(channel: Channel) -> Channel:
    return (_AcceptingBulk if isinstance(channel, BulkChannel) else _Accepting)(channel)


def _summary(
    conn: psycopg.Connection[Any],
    as_of: datetime,
    due: int,
    policies: Sequence[Mapping[str, Any]],
    lifted: Sequence[str],
) -> Preview:
    fates = [Fate(*row) for row in conn.execute(query("count_preview_fates"), {"as_of": as_of})]
    with conn.cursor(row_factory=dict_row) as cursor:
        rates = {
            row.pop("channel"): ChannelRate(**row)
            for row in cursor.execute(query("list_preview_budgets"), {"as_of": as_of})
        }
    peak, lasts_s = flow(fates, rates, as_of)
    outward = [fate for fate in fates if fate.channel != "internal"]
    expired = _by_reason(fates, "expired")
    return Preview(
        as_of=as_of,
        due=due,
        send=_total(outward, "sent"),
        expire={reason: n for reason, n in expired.items() if reason != "superseded"},
        coalesce=expired.get("superseded", 0),
        defer=_by_reason(fates, "later", "due"),
        hold=_by_reason(fates, "held"),
        internal=_total(fates, "done"),
        in_doubt=_total(fates, "in_doubt"),
        in_flight=_total(fates, "batch"),
        proposed=_total(fates, "proposed"),
        peak_per_minute=peak,
        lasts_s=lasts_s,
        policies=policies,
        channels=_by_channel(outward),
        lifted=lifted,
    )


def _total(fates: Iterable[Fate], place: str) -> int:
    return sum(fate.intents for fate in fates if fate.place == place)


def _by_reason(fates: Iterable[Fate], *places: str) -> dict[str, int]:
    found: Counter[str] = Counter()
    for fate in fates:
        if fate.place in places:
            found[fate.reason] += fate.intents
    return dict(sorted(found.items()))


def _by_channel(fates: Iterable[Fate]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for fate in fates:
        found.setdefault(fate.channel, Counter())[fate.place] += fate.intents
    return {name: dict(sorted(counts.items())) for name, counts in sorted(found.items())}


def flow(
    fates: Iterable[Fate], rates: Mapping[str, ChannelRate], as_of: datetime
) -> tuple[int, int | None]:
    """Messages in the fullest minute from `as_of` on, and seconds until the last one may go.

    A minute holds what is sent at once (the first), what was put off into it, and, where the
    channel has a rate, no more than its tokens. None seconds: at that rate the last never goes.
    """
    per_minute: Counter[int] = Counter()
    lasts_s: float | None = 0.0
    by_channel: dict[str, list[Fate]] = {}
    for fate in fates:
        if fate.channel != "internal" and fate.place in ("sent", "later", "due"):
            by_channel.setdefault(fate.channel, []).append(fate)
    for channel, of_channel in sorted(by_channel.items()):
        minutes, last_s = _flow_of_channel(of_channel, rates.get(channel), as_of)
        per_minute.update(minutes)
        lasts_s = None if lasts_s is None or last_s is None else max(lasts_s, last_s)
    return max(per_minute.values(), default=0), None if lasts_s is None else round(lasts_s)


def _flow_of_channel(
    fates: Sequence[Fate], rate: ChannelRate | None, as_of: datetime
) -> tuple[Counter[int], float | None]:
    at_once = _total(fates, "sent")
    wanted: Counter[int] = Counter()
    for fate in fates:
        if fate.minute is not None:
            wanted[max(fate.minute, 0)] += fate.intents
    waiting = sum(fate.intents for fate in fates if fate.reason == "budget")
    pause_m = 0 if rate is None else int(rate.paused_s // 60)
    if waiting:
        wanted[pause_m] += waiting
    last_s = max(
        ((fate.last_at - as_of).total_seconds() for fate in fates if fate.last_at is not None),
        default=0.0,
    )
    if rate is None or rate.tokens is None or rate.refill_per_minute is None:
        last_s = max(last_s, rate.paused_s if rate is not None and waiting else 0.0)
        wanted[0] += at_once
        return wanted, last_s
    return _through_budget(wanted, at_once, rate, last_s)


def _through_budget(
    wanted: Counter[int], at_once: int, rate: ChannelRate, last_s: float
) -> tuple[Counter[int], float | None]:
    tokens, refill = rate.tokens or 0, rate.refill_per_minute or 0
    sent: Counter[int] = Counter({0: at_once})
    queue, minute, left, newest = 0, 0, sum(wanted.values()), max(wanted, default=0)
    is_delayed = False
    while left and (minute <= newest or refill):
        queue += wanted.get(minute, 0)
        tokens = min(rate.capacity or 0, tokens + refill)
        goes = min(queue, tokens)
        sent[minute] += goes
        queue, tokens, left = queue - goes, tokens - goes, left - goes
        is_delayed |= queue > 0
        minute += 1
    if left:
        return sent, None
    return sent, max(last_s, 60.0 * minute if is_delayed else 0.0)
