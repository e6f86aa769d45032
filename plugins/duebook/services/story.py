"""The shape of a story: what `explain` tells, for a terminal, for JSON and for a page alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from duebook.domain.money import UnknownCurrencyError, format_money, to_major

# At one instant evidence comes before what follows from it.
_RANK: Final = {
    name: rank
    for rank, name in enumerate(
        (
            "booked",
            "run_started",
            "file",
            "quarantined",
            "entry",
            "ledger_change",
            "discrepancy_opened",
            "discrepancy_closed",
            "intent",
            "proposed",
            "request",
            "attempt",
            "decision",
            "result",
            "delay",
            "held",
            "in_doubt",
            "outcome",
            "run_committed",
            "due",
        )
    )
}


@dataclass(frozen=True, slots=True)
class Event:
    """One fact at one instant. `facts` are its ids and amounts, minor units as `*_minor`."""

    at: datetime
    event: str
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def order(self) -> tuple[datetime, int]:
        """Time order; at one instant, evidence before what it caused."""
        return (self.at, _RANK.get(self.event, len(_RANK)))

    def with_facts(self, facts: Mapping[str, Any]) -> Event:
        """The same with further facts."""
        return Event(self.at, self.event, self.text, {**facts, **self.facts})

    def to_json(self) -> dict[str, Any]:
        """`{at, event, text, …facts}`."""
        facts: dict[str, Any] = plain(self.facts)
        return {**facts, "at": instant(self.at), "event": self.event, "text": self.text}


@dataclass(frozen=True, slots=True)
class Answer:
    """Why something was or was not sent. `code` is one word a program can rely on."""

    code: str
    text: str
    was_sent: bool = False
    payment_id: str | None = None
    operation_key: str | None = None

    def to_json(self) -> dict[str, Any]:
        """`{code, text, was_sent, payment_id, operation_key}`."""
        return {
            "code": self.code,
            "text": self.text,
            "was_sent": self.was_sent,
            "payment_id": self.payment_id,
            "operation_key": self.operation_key,
        }


@dataclass(frozen=True, slots=True)
class Match:
    """One thing that the subject can mean, with its time line.

    `match` is payment, operation_key, account, hold, entry or run. `facts` describe it; `notes` say
    what was left out.
    """

    match: str
    title: str
    account_id: str | None
    payment_ids: tuple[str, ...]
    facts: Mapping[str, Any]
    summary: tuple[str, ...]
    answers: tuple[Answer, ...]
    events: tuple[Event, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Every field; `events` in time order."""
        return {
            "match": self.match,
            "title": self.title,
            "account_id": self.account_id,
            "payment_ids": list(self.payment_ids),
            "facts": plain(self.facts),
            "summary": list(self.summary),
            "answers": [answer.to_json() for answer in self.answers],
            "events": [event.to_json() for event in self.events],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Story:
    """All that a subject can mean. `told_at` is the database's clock."""

    subject: str
    told_at: datetime
    matches: tuple[Match, ...]

    def to_json(self) -> dict[str, Any]:
        """`{subject, told_at, matches: […]}`; instants as UTC text, exact amounts as text."""
        return {
            "subject": self.subject,
            "told_at": instant(self.told_at),
            "matches": [match.to_json() for match in self.matches],
        }


@dataclass(frozen=True, slots=True)
class Money:
    """Amounts for people, with the decimals that the database knows per provider and currency."""

    exponents: Mapping[tuple[str, str], int]

    def digits(self, currency: str, provider: str | None) -> int | None:
        """Decimals of one major unit; None when no rule knows the currency."""
        own = self.exponents.get((provider or "*", currency))
        return self.exponents.get(("*", currency)) if own is None else own

    def text(self, minor: int, currency: str, provider: str | None = None) -> str:
        """`EUR 1,234.50`; what no rule knows stays in minor units and says so."""
        digits = self.digits(currency, provider)
        try:
            if digits is not None:
                return format_money(minor, currency, digits)
        except UnknownCurrencyError:
            pass
        return f"{currency} {minor} (minor units)"

    def major(self, minor: int, currency: str, provider: str | None = None) -> Decimal | None:
        """The exact major amount, or None when the decimals are not known."""
        digits = self.digits(currency, provider)
        return None if digits is None else to_major(minor, digits)


def ordered(events: list[Event]) -> tuple[Event, ...]:
    """The events in time order."""
    return tuple(sorted(events, key=Event.order))


def instant(value: datetime | None) -> str | None:
    """ISO 8601 in UTC with a Z."""
    if value is None:
        return None
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def minute(value: datetime) -> str:
    """`2026-12-07 02:00 UTC`, for a sentence."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def span(value: timedelta) -> str:
    """A duration in at most two units: `6 d 22 h`, `4 min 10 s`."""
    seconds = int(abs(value.total_seconds()))
    units = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
    first = next((i for i, (size, _) in enumerate(units) if seconds >= size), len(units) - 1)
    parts: list[str] = []
    for size, unit in units[first : first + 2]:
        count, seconds = divmod(seconds, size)
        if count or not parts:
            parts.append(f"{count} {unit}")
    return " ".join(parts)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 row`, `2,345 rows`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def plain(value: Any) -> Any:
    """The same with every instant, duration and decimal as text that JSON can carry."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return instant(value) if value.tzinfo else value.isoformat()
    if isinstance(value, timedelta):
        return span(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    return value


def deciding(row: Mapping[str, Any]) -> str:
    """What decided whose an intent is: a cohort, else its provider account."""
    if row["cohort"] is None:
        return str(row["provider_account"])
    return f"cohort {row['cohort']} (version {row['cohort_version']})"
