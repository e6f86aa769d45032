"""Reads again what received events are about, and sends it through the same comparison.

An event is believed in one thing: that its payment or payout is worth asking about. The provider is
asked for it by id, and one scoped reconciliation run a provider account compares the answers. The
effect of an event is written in that run's transaction, once for its provider account, whatever
endpoints it came by and however often. An event whose read fails is claimed again at growing
distances, and in the end given up, audited: the next full run reads its payment all the same.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import psycopg
import structlog
from psycopg.rows import dict_row

from duebook.config import Config
from duebook.db.connect import Connect, describe, is_away, unavailable
from duebook.db.sql import query
from duebook.domain.backoff import retry_delay
from duebook.errors import ConfigurationError, DuebookError, UnavailableError
from duebook.services.reconcile import ReconcileRequest, SourceFactory, reconcile
from duebook.services.signing.base import BodyRefused, read_document
from duebook.settlements import stripe_events
from duebook.settlements.base import NothingToRead

log = structlog.get_logger(__name__)

FIRST_RETRY: Final = timedelta(seconds=30)
LONGEST_RETRY: Final = timedelta(hours=1)
MOST_PAYMENTS: Final = 1000
"""Payments that one Standard Webhooks event may name."""
_LONGEST_REASON: Final = 500


@dataclass(frozen=True, slots=True)
class EventsRequest:
    """How much to read. `account` None: the events of every provider account.

    A claim of `batch_size` events lasts for `lease`; no new one is begun after `time_budget`. The
    `max_tries`-th failed read of an event is its last.
    """

    account: str | None = None
    batch_size: int = 200
    lease: timedelta = timedelta(minutes=10)
    time_budget: timedelta = timedelta(minutes=2)
    max_tries: int = 12
    triggered_by: str = "operator"


@dataclass(frozen=True, slots=True)
class EventsReport:
    """What became of the events: counts only. `pending` wait for another turn."""

    claimed: int = 0
    read: int = 0
    ignored: int = 0
    failed: int = 0
    given_up: int = 0
    runs: int = 0
    entries_new: int = 0
    entries_changed: int = 0
    ledger_changes: int = 0
    intents: int = 0
    pending: int = 0

    def to_json(self) -> dict[str, int]:
        """The document of `duebook events --json`."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def read_events(
    connect: Connect, request: EventsRequest, config: Config, source_factory: SourceFactory
) -> EventsReport:
    """Read what waits and is due, batch after batch, until nothing is or the time is up.

    Several may do so at once: each claims its own events. Raises UnavailableError when the database
    is away; a provider that is away only postpones its events.
    """
    try:
        with connect() as connection:
            return _Pass(connection, connect, request, config, source_factory).execute()
    except psycopg.Error as error:
        if is_away(error):
            raise unavailable(error) from error
        raise


@dataclass(frozen=True, slots=True)
class _Event:
    provider_account: str
    event_id: str
    endpoint: str
    tries: int
    scheme: str | None
    body: bytes | None


class _Pass:
    """One pass; `_connection` claims and ends events, each run has a connection of its own."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        connect: Connect,
        request: EventsRequest,
        config: Config,
        source_factory: SourceFactory,
    ) -> None:
        self._connection = connection
        self._connect = connect
        self._request = request
        self._config = config
        self._source_factory = source_factory
        self._report = EventsReport()

    def execute(self) -> EventsReport:
        deadline = time.monotonic() + self._request.time_budget.total_seconds()
        self._connection.execute(query("drop_known_events"))
        while events := self._claim():
            self._count(claimed=len(events))
            for account, group in itertools.groupby(events, lambda e: e.provider_account):
                self._take(account, list(group))
            if time.monotonic() >= deadline:
                break
        scope = {"provider_account": self._request.account}
        row = self._connection.execute(query("count_pending_events"), scope).fetchone()
        self._count(pending=row[0] if row else 0)
        log.info("provider events read", **self._report.to_json())
        return self._report

    def _claim(self) -> list[_Event]:
        values = {
            "provider_account": self._request.account,
            "most": self._request.batch_size,
            "lease": self._request.lease,
        }
        with self._connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(query("claim_events"), values).fetchall()
        return [_Event(**row) for row in rows]

    def _take(self, account: str, events: Sequence[_Event]) -> None:
        """Sort one account's events into what is read, what is not, and what never ended."""
        ignored: list[tuple[str, str]] = []
        worn_out: list[tuple[str, str]] = []
        subjects: dict[_Event, tuple[str, ...]] = {}
        for event in events:
            try:
                subjects[event] = self._subjects_of(event)
            except NothingToRead as nothing:
                ignored.append((event.event_id, str(nothing)))
                continue
            if event.tries > self._request.max_tries:
                del subjects[event]
                worn_out.append((event.event_id, "its reads never came to an end"))
        self._end(account, "ignored", ignored)
        self._end(account, "given_up", worn_out)
        if subjects:
            self._read(account, subjects)

    def _subjects_of(self, event: _Event) -> tuple[str, ...]:
        """The provider's ids that an event is about. Raises NothingToRead."""
        block = self._config.provider_accounts.get(event.provider_account)
        if block is None:
            raise NothingToRead("its provider account is not in duebook.toml")
        if block.provider != "stripe":
            raise NothingToRead(
                f"{block.provider} is read from files: there is nothing to ask again"
            )
        if event.body is None:
            raise NothingToRead("its body is not kept any more")
        try:
            document = read_document(event.body)
        except BodyRefused as refused:
            raise NothingToRead(str(refused)) from None
        if event.scheme == "stripe":
            return (stripe_events.subject_of(document),)
        return _named_payments(document)

    def _read(self, account: str, subjects: dict[_Event, tuple[str, ...]]) -> None:
        """One run for all of them; when it can't take them together, one for each."""
        try:
            self._run(account, subjects)
        except (UnavailableError, ConfigurationError) as error:
            self._fail(account, list(subjects), str(error))
        except (DuebookError, psycopg.Error) as error:
            if is_away(error):
                raise
            if len(subjects) > 1:
                for event, named in subjects.items():
                    self._read(account, {event: named})
                return
            said = describe(error) if isinstance(error, psycopg.Error) else str(error)
            self._fail(account, list(subjects), said)

    def _run(self, account: str, subjects: dict[_Event, tuple[str, ...]]) -> None:
        named = dict.fromkeys(itertools.chain.from_iterable(subjects.values()))
        request = ReconcileRequest(
            account=account,
            scope="payments",
            triggered_by=self._request.triggered_by,
            subjects=tuple(named),
            events=tuple(event.event_id for event in subjects),
        )
        run = reconcile(self._connect, request, self._config, self._source_factory)
        self._count(
            read=len(subjects),
            runs=1,
            entries_new=run.entries_new,
            entries_changed=run.entries_changed,
            ledger_changes=run.ledger_changes,
            intents=run.intents,
        )

    def _fail(self, account: str, events: Sequence[_Event], said: str) -> None:
        reason = said[:_LONGEST_REASON]
        last = [event for event in events if event.tries >= self._request.max_tries]
        again = [event for event in events if event.tries < self._request.max_tries]
        self._end(account, "given_up", [(event.event_id, reason) for event in last])
        if not again:
            return
        log.warning("events are read later", account=account, events=len(again), reason=reason)
        self._connection.execute(
            query("postpone_events"),
            {
                "provider_account": account,
                "event_ids": [event.event_id for event in again],
                "waits": [_wait(event.tries) for event in again],
                "error": reason,
            },
        )
        self._count(failed=len(again))

    def _end(self, account: str, effect: str, events: Sequence[tuple[str, str]]) -> None:
        if not events:
            return
        self._connection.execute(
            query("write_event_effects"),
            {
                "provider_account": account,
                "event_ids": [event_id for event_id, _ in events],
                "reasons": [reason for _, reason in events],
                "effect": effect,
                "run_id": None,
            },
        )
        if effect == "given_up":
            log.error("events were given up", account=account, events=len(events))
        self._count(**{effect: len(events)})

    def _count(self, **counts: int) -> None:
        summed = {name: getattr(self._report, name) + more for name, more in counts.items()}
        self._report = replace(self._report, **summed)


def _named_payments(document: dict[str, Any]) -> tuple[str, ...]:
    """The provider's ids in `{"type": …, "data": {"payment_ids": […]}}`."""
    data = document.get("data")
    named = data.get("payment_ids") if isinstance(data, dict) else None
    if not isinstance(named, list) or not named:
        raise NothingToRead("the event names no payment_ids")
    if len(named) > MOST_PAYMENTS:
        raise NothingToRead(f"the event names over {MOST_PAYMENTS} payments")
    readable = [name for name in named if isinstance(name, str) and stripe_events.is_readable(name)]
    if not readable:
        raise NothingToRead("none of its payment_ids can be read by its id")
    return tuple(dict.fromkeys(readable))


def _wait(tries: int) -> timedelta:
    return retry_delay(tries, jitter=random.random(), first=FIRST_RETRY, longest=LONGEST_RETRY)
