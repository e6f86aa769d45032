"""What is promised, what waits, and what needs a person, as of now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.rows import DictRow, dict_row

from duebook.db.sql import query
from duebook.errors import DuebookError
from duebook.services.story import counted, minute, plain, span
from duebook.services.story_answers import HELD
from duebook.services.story_catch_up import pause_text, target

if TYPE_CHECKING:
    from duebook.config import Config

Connect = Callable[[], psycopg.Connection[Any]]
AirflowProbe = Callable[[], Mapping[str, bool]]

# A nightly run that takes its time is not late; one that was left out is.
STALE_AFTER: Final = timedelta(hours=26)
# A provider that was away for a moment, or a run that held the account, is over by then.
UNREAD_AFTER: Final = timedelta(minutes=30)
# Two sweeps may pass before due work that waits is worth a look.
LATE_AFTER: Final = timedelta(minutes=5)
NEEDED_DAGS: Final = ("nightly_reconciliation", "due_sweep")
BATCH_LIMIT: Final = 20
PAUSE_LIMIT: Final = 10


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that waits for a person: what it is, and what to do."""

    what: str
    do: str

    def to_json(self) -> dict[str, str]:
        """`{what, do}`."""
        return {"what": self.what, "do": self.do}


@dataclass(frozen=True, slots=True)
class DagStates:
    """Whether each DAG is paused. `known` is False when Airflow was not asked or did not answer."""

    known: bool
    paused: Mapping[str, bool]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """All of it. Counts and ages only; no amount, no address."""

    now: datetime
    environment: Mapping[str, Any]
    accounts: Sequence[Mapping[str, Any]]
    intents: Mapping[str, Any]
    backlog: Mapping[str, Any]
    held: Sequence[Mapping[str, Any]]
    in_doubt: Sequence[Mapping[str, Any]]
    batches: Sequence[Mapping[str, Any]]
    channels: Sequence[Mapping[str, Any]]
    failing_contacts: Sequence[Mapping[str, Any]]
    holds: Mapping[str, Any]
    schedules: Mapping[str, Any]
    pauses: Sequence[Mapping[str, Any]]
    incident: Mapping[str, Any] | None
    events: Mapping[str, Any]
    dags: DagStates
    needs: Sequence[Need]

    def to_json(self) -> dict[str, Any]:
        """Every field; `dags` is a mapping of DAG to paused, or null when it is not known."""
        document: dict[str, Any] = plain(
            {
                "now": self.now,
                "environment": self.environment,
                "provider_accounts": self.accounts,
                "intents": self.intents,
                **self.backlog,
                "held": self.held,
                "in_doubt": self.in_doubt,
                "batches": self.batches,
                "channels": self.channels,
                "failing_contacts": self.failing_contacts,
                "holds": self.holds,
                "schedules": self.schedules,
                "pauses": self.pauses,
                "incident": self.incident,
                "events": self.events,
                "dags": self.dags.paused if self.dags.known else None,
                "dags_unknown_because": self.dags.reason,
                "needs": [need.to_json() for need in self.needs],
            }
        )
        return document


def status(
    connect: Connect,
    config: Config | None = None,
    airflow_probe: AirflowProbe | None = None,
    *,
    environment: str | None = None,
) -> Status:
    """How everything stands. `environment` is the name that senders here run under.

    `airflow_probe` asks Airflow which DAGs are paused; without it, or when it fails, that is
    unknown and nothing else changes.
    """
    dags = dag_states(airflow_probe)
    with connect() as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        with connection.transaction():
            facts = _read(connection, environment)
    return Status(
        now=facts.environment["now"],
        environment={k: facts.environment[k] for k in ("environment", "is_test", "refusal")},
        accounts=[_account(row, facts.environment["now"]) for row in facts.accounts],
        intents=facts.places,
        backlog=_backlog(facts),
        held=facts.held,
        in_doubt=facts.in_doubt,
        batches=facts.batches,
        channels=facts.channels,
        failing_contacts=facts.failing,
        holds=facts.holds,
        schedules=facts.schedules,
        pauses=facts.pauses,
        incident=facts.incident,
        events=_events(facts),
        dags=dags,
        needs=tuple(_needs(facts, config, dags)),
    )


def dag_states(probe: AirflowProbe | None) -> DagStates:
    """Ask Airflow; an Airflow that does not answer is told, never raised."""
    if probe is None:
        return DagStates(False, {}, "Airflow was not asked")
    try:
        return DagStates(True, dict(probe()))
    except DuebookError as error:
        return DagStates(False, {}, str(error))


@dataclass(frozen=True, slots=True)
class _Facts:
    environment: DictRow
    accounts: list[DictRow]
    places: DictRow
    backlog: DictRow
    last_claim_at: datetime | None
    unrouted: int
    held: list[DictRow]
    in_doubt: list[DictRow]
    batches: list[DictRow]
    channels: list[DictRow]
    failing: list[DictRow]
    holds: DictRow
    schedules: DictRow
    pauses: list[DictRow]
    incident: DictRow | None
    events: DictRow
    months_without_partition: list[str]

    @property
    def now(self) -> datetime:
        return self.environment["now"]  # type: ignore[no-any-return]


def _read(connection: psycopg.Connection[Any], environment: str | None) -> _Facts:
    with connection.cursor(row_factory=dict_row) as cursor:

        def rows(name: str, **values: Any) -> list[DictRow]:
            return cursor.execute(query(name), values or None).fetchall()

        return _Facts(
            environment=rows("read_environment_state", environment=environment)[0],
            accounts=rows("list_account_states"),
            places=rows("count_places")[0],
            backlog=rows("read_backlog")[0],
            last_claim_at=rows("read_last_claim")[0]["last_claim_at"],
            unrouted=rows("count_unrouted_payments")[0]["payment_count"],
            held=rows("list_held_causes"),
            in_doubt=rows("list_doubts"),
            batches=rows("list_live_batches", row_limit=BATCH_LIMIT),
            channels=rows("list_channel_states"),
            failing=rows("list_failing_contacts"),
            holds=rows("read_hold_state")[0],
            schedules=rows("read_calendar_counts")[0],
            pauses=rows("list_pauses"),
            incident=next(iter(rows("find_open_incident")), None),
            events=rows("read_event_state")[0],
            months_without_partition=[row["month_utc"] for row in rows("list_partition_faults")],
        )


def _account(row: DictRow, now: datetime) -> dict[str, Any]:
    fresh = row["last_full_as_of"]
    return {
        **row,
        "freshness_s": None if fresh is None else int((now - fresh).total_seconds()),
        "is_stale": is_stale(row, now),
    }


def is_stale(account: Mapping[str, Any], now: datetime) -> bool:
    """Whether a night was left out: no full run, or none whose as-of is of the last 26 hours."""
    as_of = account["last_full_as_of"]
    return as_of is None or now - as_of > STALE_AFTER


def _backlog(facts: _Facts) -> dict[str, Any]:
    oldest = facts.backlog["oldest_due_at"]
    return {
        "backlog": facts.backlog["backlog"],
        "oldest_due_s": None if oldest is None else int((facts.now - oldest).total_seconds()),
        "next_due_at": facts.backlog["next_due_at"],
        "last_claim_at": facts.last_claim_at,
        "unrouted_payments": facts.unrouted,
    }


def _events(facts: _Facts) -> dict[str, Any]:
    oldest = facts.events["oldest_queued_at"]
    return {
        "pending": facts.events["pending"],
        "oldest_s": None if oldest is None else int((facts.now - oldest).total_seconds()),
        "given_up": facts.events["given_up"],
    }


def _needs(facts: _Facts, config: Config | None, dags: DagStates) -> Iterable[Need]:
    if facts.environment["refusal"]:
        yield Need(
            f"nothing is sent: {facts.environment['refusal']}",
            "if it should send, run `duebook restore accept NAME`",
        )
    yield from _dag_needs(dags)
    yield from _account_needs(facts, config)
    yield from _event_needs(facts)
    yield from _sending_needs(facts)
    yield from _address_needs(facts.failing)
    yield from _calendar_needs(facts)
    if facts.months_without_partition:
        yield Need(
            "no partition of entry versions for "
            f"{', '.join(facts.months_without_partition)}: they go to the default one",
            "run `duebook housekeeping --apply`, which says why one can't be made",
        )


def _event_needs(facts: _Facts) -> Iterable[Need]:
    oldest = facts.events["oldest_queued_at"]
    if oldest is not None and facts.now - oldest > UNREAD_AFTER:
        yield Need(
            f"{counted(facts.events['pending'], 'received event')} not read again yet, the oldest "
            f"for {span(facts.now - oldest)}",
            "see that the DAG provider_events runs, or run `duebook events`",
        )
    if facts.events["given_up"]:
        yield Need(
            f"{counted(facts.events['given_up'], 'received event')} given up since the last full "
            "run: what they are about is known only after the next",
            "read duebook.event_effect where effect = 'given_up', or run `duebook reconcile`",
        )


def _dag_needs(dags: DagStates) -> Iterable[Need]:
    if not dags.known:
        return
    for name in NEEDED_DAGS:
        if name not in dags.paused:
            yield Need(
                f"Airflow does not know the DAG {name}",
                "look at its import errors, and that its DAGs folder is dags/",
            )
    for name, is_paused in sorted(dags.paused.items()):
        if is_paused:
            yield Need(
                f"the DAG {name} is paused, so it never runs",
                f"run `airflow dags unpause {name}`, or switch it on in the UI",
            )


def _account_needs(facts: _Facts, config: Config | None) -> Iterable[Need]:
    known = {row["provider_account"] for row in facts.accounts}
    missing = [] if config is None else sorted(set(config.provider_accounts) - known)
    if missing:
        yield Need(f"not applied yet: provider account {', '.join(missing)}", "run `duebook apply`")
    for row in facts.accounts:
        name = row["provider_account"]
        if row["last_full_as_of"] is None:
            yield Need(f"{name} was never reconciled", f"run `duebook reconcile --account {name}`")
        elif is_stale(row, facts.now):
            age = span(facts.now - row["last_full_as_of"])
            yield Need(
                f"{name} was reconciled {age} ago: a night was left out",
                "look at the last runs of nightly_reconciliation in Airflow",
            )
        if row["is_late"]:
            by = row["expected_by"].astimezone(UTC)
            yield Need(
                f"{name}: what was expected by {by:%Y-%m-%d %H:%M} UTC did not come",
                "ask the provider for the file; nothing is judged missing without a run",
            )
        if row["last_run_quarantined"]:
            yield Need(
                f"{name}: run {row['last_run_id']} put "
                f"{counted(row['last_run_quarantined'], 'row')} into quarantine",
                f"run `duebook explain run:{row['last_run_id']}`, then have the file corrected",
            )
        if row["batches_not_closed"]:
            yield Need(
                f"{name}: {counted(row['batches_not_closed'], 'payout batch', 'payout batches')} "
                "not closed",
                "read duebook_reports.settlement_batches where status = 'not_closed'",
            )
        if row["discrepancy_count"]:
            yield Need(
                f"{name}: {counted(row['discrepancy_count'], 'open difference')} "
                f"({', '.join(f'{k} {n}' for k, n in row['discrepancies'].items())})",
                f"read duebook_reports.discrepancies where provider_account = '{name}'",
            )
    if facts.unrouted:
        yield Need(
            f"{counted(facts.unrouted, 'booked payment')} without a provider account: nobody "
            "waits for them",
            "name one in the ledger, or a route in [routing] of duebook.toml",
        )


def _calendar_needs(facts: _Facts) -> Iterable[Need]:
    schedules, incident = facts.schedules, facts.incident
    is_paused = incident is not None and incident["is_sweep_paused"]
    unwritten = timedelta(seconds=schedules["oldest_unwritten_s"])
    if schedules["unwritten"] and unwritten > LATE_AFTER and not is_paused:
        yield Need(
            f"dates of {counted(schedules['unwritten'], 'schedule')} are due and not written, the "
            f"oldest for {span(unwritten)}",
            "see that the DAG due_sweep runs, and what `duebook doctor` says about the calendar",
        )
    if schedules["zone_unknown"]:
        yield Need(
            f"{counted(schedules['zone_unknown'], 'schedule')} in a zone that is unknown: their "
            "reminders are held",
            "run `duebook doctor`, which names the zones",
        )


def _pause_needs(pauses: Sequence[DictRow]) -> Iterable[Need]:
    for row in pauses[:PAUSE_LIMIT]:
        held = f"; {row['held_count']:,} held" if row["mode"] == "hold" else ""
        yield Need(
            f"{pause_text(row)}{held}",
            f"when it may go on, run `duebook resume {target(row)} --reason WHY`",
        )
    if len(pauses) > PAUSE_LIMIT:
        more = counted(len(pauses) - PAUSE_LIMIT, "more pause")
        yield Need(more, "`duebook status --json` lists them all")


def _address_needs(failing: Sequence[DictRow]) -> Iterable[Need]:
    for row in failing:
        if row["given_up"]:
            yield Need(
                f"{counted(row['given_up'], 'account')} given up on {row['channel']} after days of "
                "failures",
                "tell them; another address lifts it, or `duebook suppress ACCOUNT --lift`",
            )


def _sending_needs(facts: _Facts) -> Iterable[Need]:
    incident = facts.incident
    is_paused = incident is not None and incident["is_sweep_paused"]
    if incident is not None:
        rests = ", sweeps rest" if is_paused else ""
        yield Need(
            f"incident {incident['name']} is open for {span(facts.now - incident['opened_at'])}: "
            f"manual replay is frozen{rests}",
            "see `duebook incident preview`, then `duebook incident resume`"
            if is_paused
            else f"when it is over, run `duebook incident close {incident['name']}`",
        )
    yield from _pause_needs(facts.pauses)
    oldest = facts.backlog["oldest_due_at"]
    if oldest is not None and facts.now - oldest > LATE_AFTER and not is_paused:
        last = f"{span(facts.now - facts.last_claim_at)} ago" if facts.last_claim_at else "never"
        yield Need(
            f"{counted(facts.backlog['backlog'], 'notice')} due, the oldest for "
            f"{span(facts.now - oldest)}; a sender last claimed {last}",
            "see that the DAG due_sweep runs, or run `duebook sweep`",
        )
    unswept = timedelta(seconds=facts.holds["oldest_unswept_s"])
    if unswept > LATE_AFTER and not is_paused:
        yield Need(
            f"{counted(facts.holds['unswept'], 'hold')} expired and not recorded, the oldest for "
            f"{span(unswept)}",
            "see that the DAG due_sweep runs, or run `duebook sweep`",
        )
    lapsed = [row for row in facts.batches if row["is_lapsed"]]
    if lapsed and facts.now - lapsed[0]["lease_until"] > LATE_AFTER:
        yield Need(
            f"batch {lapsed[0]['batch_id']} of {lapsed[0]['sender']} lapsed "
            f"{span(facts.now - lapsed[0]['lease_until'])} ago and no sweep rescued it",
            "see that the DAG due_sweep runs, or run `duebook sweep`",
        )
    for row in facts.in_doubt:
        yield Need(
            f"{counted(row['intent_count'], 'notice')} in doubt ({row['cause']}), the oldest "
            f"since {minute(row['oldest_since'])}",
            f"see at the provider whether it was sent: `duebook explain {row['oldest_key']}`",
        )
    for row in facts.held:
        cause = str(row["cause"])
        why = HELD.get(cause, cause)
        yield Need(
            f"{counted(row['intent_count'], 'notice')} held ({row['cause']}), the first too late "
            f"{minute(row['nearest_give_up_at'])}",
            why.partition(": ")[2] or why,
        )
    for row in facts.channels:
        if not row["is_enabled"]:
            reason = f" ({row['reason']})" if row["reason"] else ""
            yield Need(
                f"the channel {row['channel']} is switched off{reason}: its notices end unsent",
                "switch it on again when it may send",
            )
        else:
            code = f" after {row['pause_reason']}" if row["pause_reason"] else ""
            yield Need(
                f"the channel {row['channel']} rests until {minute(row['paused_until'])}{code}",
                "nothing, unless it lasts: then look at the provider",
            )
