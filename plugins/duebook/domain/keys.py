"""Operation keys: the idempotency key of a promise, made from the business action alone.

Six forms, parts joined by ":" (published with vectors in docs/operation-keys.json, so that
another system, or a SQL statement, makes the same text):

    <kind>:<channel>:<provider_account>:<payment>:<entry>:v<version>
    missing:<channel>:<provider_account>:<payment>:<expected date>:<n>
    cleared:<channel>:<provider_account>:<payment>:<expected date>:<n>
    remind:<channel>:<schedule>:<nominal date>
    expire:hold:<hold>:<expires_at>
    resend:<n>:<any of the others>

Names given by others (provider account, payment, entry, schedule, hold) are escaped and not
refused, since real references hold colons ("14-08-2020-09:53:00"): "%" becomes "%25", then ":"
becomes "%3A"; nothing else changes, no case folding and no Unicode normalisation. In SQL:
replace(replace(part, '%', '%25'), ':', '%3A'). Refused are an empty part, one longer than 200
characters, and control characters (U+0000 to U+001F, U+007F). Dates are YYYY-MM-DD; `expires_at`
is UTC, YYYY-MM-DDTHH:MM:SSZ with .ffffff only when the microseconds are not zero, and as the last
part keeps its colons. Counts are decimal from 1, without leading zeros.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from duebook.errors import InputError

RESERVED_KINDS: Final = frozenset({"missing", "cleared", "remind", "expire", "resend"})
LONGEST_PART: Final = 200

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_COUNT = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{6})?Z", re.ASCII
)


class KeyPartError(InputError):
    """A part can't stand in an operation key."""


class KeyFormatError(InputError):
    """The text is not an operation key."""


@dataclass(frozen=True, slots=True)
class EvidenceKey:
    """A notice about a change of balance or status; names the evidence that changed it."""

    kind: str
    channel: str
    provider_account: str
    payment: str
    entry: str
    version: int

    def __str__(self) -> str:
        if self.kind in RESERVED_KINDS:
            raise KeyPartError(f"kind: {self.kind} is reserved for another form of key")
        return ":".join(
            (
                _name("kind", self.kind),
                _name("channel", self.channel),
                escape("provider_account", self.provider_account),
                escape("payment", self.payment),
                escape("entry", self.entry),
                f"v{_count('version', self.version)}",
            )
        )


@dataclass(frozen=True, slots=True)
class TransitionKey:
    """A payment became missing, or its settlement came after all (`transition` says which)."""

    transition: str
    channel: str
    provider_account: str
    payment: str
    expected_on: date
    count: int

    def __str__(self) -> str:
        if self.transition not in ("missing", "cleared"):
            raise KeyPartError("transition: expected missing or cleared")
        return ":".join(
            (
                self.transition,
                _name("channel", self.channel),
                escape("provider_account", self.provider_account),
                escape("payment", self.payment),
                _date("expected date", self.expected_on),
                _count("n", self.count),
            )
        )


@dataclass(frozen=True, slots=True)
class ReminderKey:
    """One occurrence of a schedule, by its nominal local date."""

    channel: str
    schedule: str
    nominal_on: date

    def __str__(self) -> str:
        return ":".join(
            (
                "remind",
                _name("channel", self.channel),
                escape("schedule", self.schedule),
                _date("nominal date", self.nominal_on),
            )
        )


@dataclass(frozen=True, slots=True)
class HoldExpiryKey:
    """The expiry of a hold at the instant fixed when it was created."""

    hold: str
    expires_at: datetime

    def __str__(self) -> str:
        return ":".join(("expire", "hold", escape("hold", self.hold), _instant(self.expires_at)))


@dataclass(frozen=True, slots=True)
class ResendKey:
    """The n-th deliberate repeat of a promise that has ended; `original` is never a repeat."""

    count: int
    original: EvidenceKey | TransitionKey | ReminderKey | HoldExpiryKey

    def __str__(self) -> str:
        return f"resend:{_count('n', self.count)}:{self.original}"


OperationKey = EvidenceKey | TransitionKey | ReminderKey | HoldExpiryKey | ResendKey


def parse_key(text: str) -> OperationKey:
    """The parts of an operation key; the inverse of str() on what it returns.

    Only the one canonical spelling is accepted, so that two texts never mean one key. Raises
    KeyFormatError, saying which part is wrong.
    """
    form = text.partition(":")[0]
    try:
        key: OperationKey
        if form == "resend":
            key = _parse_resend(text)
        elif form == "expire":
            key = _parse_expiry(text)
        elif form == "remind":
            key = _parse_reminder(text)
        elif form in ("missing", "cleared"):
            key = _parse_transition(text)
        else:
            key = _parse_evidence(text)
        canonical = str(key)
    except KeyPartError as error:
        raise KeyFormatError(f"operation key: {error}") from None
    if canonical != text:
        raise KeyFormatError("operation key: not in its canonical spelling")
    return key


def escape(name: str, part: str) -> str:
    """One part as it stands in a key. Raises KeyPartError naming the part, not its value."""
    if not part:
        raise KeyPartError(f"{name}: empty")
    if len(part) > LONGEST_PART:
        raise KeyPartError(f"{name}: longer than {LONGEST_PART} characters")
    if _CONTROL.search(part):
        raise KeyPartError(f"{name}: holds a control character")
    return part.replace("%", "%25").replace(":", "%3A")


def unescape(part: str) -> str:
    """The inverse of escape()."""
    return part.replace("%3A", ":").replace("%25", "%")


def _parse_resend(text: str) -> ResendKey:
    _, _, rest = text.partition(":")
    count, _, original = rest.partition(":")
    key = parse_key(original)
    if isinstance(key, ResendKey):
        raise KeyFormatError("operation key: a repeat names the first key, not another repeat")
    return ResendKey(_parse_count("n", count), key)


def _parse_evidence(text: str) -> OperationKey:
    kind, channel, account, payment, entry, version = _split(text, 6)
    if not version.startswith("v"):
        raise KeyFormatError("operation key: the version is written v1, v2, ...")
    return EvidenceKey(
        kind,
        channel,
        unescape(account),
        unescape(payment),
        unescape(entry),
        _parse_count("version", version[1:]),
    )


def _parse_transition(text: str) -> OperationKey:
    transition, channel, account, payment, expected, count = _split(text, 6)
    return TransitionKey(
        transition,
        channel,
        unescape(account),
        unescape(payment),
        _parse_date("expected date", expected),
        _parse_count("n", count),
    )


def _parse_reminder(text: str) -> OperationKey:
    _, channel, schedule, nominal = _split(text, 4)
    return ReminderKey(channel, unescape(schedule), _parse_date("nominal date", nominal))


def _parse_expiry(text: str) -> OperationKey:
    parts = text.split(":", 3)
    if len(parts) != 4 or parts[1] != "hold":
        raise KeyFormatError("operation key: expected expire:hold:<hold>:<expires_at>")
    if not _INSTANT.fullmatch(parts[3]):
        raise KeyFormatError("operation key: expires_at is written YYYY-MM-DDTHH:MM:SSZ")
    try:
        expires_at = datetime.fromisoformat(parts[3])
    except ValueError:
        raise KeyFormatError("operation key: expires_at is not a date and time") from None
    return HoldExpiryKey(unescape(parts[2]), expires_at)


def _split(text: str, count: int) -> list[str]:
    parts = text.split(":")
    if len(parts) != count:
        raise KeyFormatError(f"operation key: expected {count} parts, found {len(parts)}")
    return parts


def _name(name: str, value: str) -> str:
    if not _NAME.fullmatch(value):
        raise KeyPartError(f"{name}: expected lower-case letters, digits and _, at most 63")
    return value


def _count(name: str, value: int) -> str:
    if isinstance(value, bool) or not 1 <= value < 10**18:
        raise KeyPartError(f"{name}: expected a whole number from 1")
    return str(value)


def _date(name: str, value: date) -> str:
    if isinstance(value, datetime):
        raise KeyPartError(f"{name}: expected a date without a time")
    return value.isoformat()


def _instant(value: datetime) -> str:
    if value.tzinfo is None:
        raise KeyPartError("expires_at: expected an instant with its zone")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _parse_count(name: str, text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise KeyFormatError(f"operation key: {name} is not a whole number from 1")
    return int(text)


def _parse_date(name: str, text: str) -> date:
    if not _DATE.fullmatch(text):
        raise KeyFormatError(f"operation key: {name} is written YYYY-MM-DD")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise KeyFormatError(f"operation key: {name} is not a date") from None
