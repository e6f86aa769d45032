"""What every channel is: one Protocol, one message, one answer.

A channel says what it knows and nothing more. `accepted`: the provider took it. `later`: certainly
not taken, to be tried again. `refused`: certainly not taken, and
trying again is no use. `unknown`: the provider may have taken it, never resend blindly.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol

SendScope = Literal["channel", "message"]
SendStatus = Literal["accepted", "later", "refused", "unknown"]
Known = Literal["accepted", "not_known", "cannot_tell"]

# json.dumps() makes an encoder a call.
_as_json: Final = json.JSONEncoder(ensure_ascii=False).encode
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_NO_FACTS: Final[Mapping[str, object]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Message:
    """One rendered message to one recipient; `message_id` comes from message_id_for().

    `facts` are what it says as checked values, for channels that speak to programs: instants and
    dates in ISO 8601, money in minor units. The recipient and the contents are personal data and
    stay out of the repr.
    """

    operation_key: str
    message_id: str
    recipient: str = field(repr=False)
    subject: str = field(repr=False)
    text: str = field(repr=False)
    html: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS, repr=False)
    account_id: str = ""
    kind: str = ""
    facts: Mapping[str, object] = field(default_factory=lambda: _NO_FACTS, repr=False)


@dataclass(frozen=True, slots=True)
class SendResult:
    """How one send ended.

    `code` is the provider's ("550 5.1.1") or one word of ours; `detail` is a fixed phrase. Neither
    ever holds an address, an amount or text that the provider chose. `scope` of a `later`: the
    whole channel should rest (it burns no try), or only this message (one full mailbox must not
    stop all others; there it burns a try unless `burns_try` is False, as where a provider only
    keeps the recipient's quiet hours). `suppress`, of a `refused`: why nothing is ever to be sent
    to this address again. `opts_out`, of a `refused`: the recipient told the provider to stop.
    """

    status: SendStatus
    provider_message_id: str | None = None
    code: str | None = None
    detail: str | None = None
    retry_after: timedelta | None = None
    scope: SendScope = "channel"
    burns_try: bool = True
    suppress: str | None = None
    opts_out: bool = False


@dataclass(frozen=True, slots=True)
class ChannelConnection:
    """Where a channel account is and how to log in, from an Airflow connection."""

    host: str
    port: int | None = None
    login: str | None = None
    password: str | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)


class ConnectionLike(Protocol):
    """What make_channel() needs of a connection."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int | None: ...
    @property
    def login(self) -> str | None: ...
    @property
    def password(self) -> str | None: ...
    @property
    def extra(self) -> Mapping[str, Any]: ...


class ChannelConfig(Protocol):
    """What make_channel() needs of a block [channels.<name>] of duebook.toml."""

    @property
    def sender(self) -> str | None: ...
    @property
    def io_timeout_seconds(self) -> float: ...
    @property
    def safe_retry_for(self) -> timedelta | None: ...
    @property
    def retry_waits(self) -> Sequence[timedelta] | None: ...
    @property
    def max_segments(self) -> int: ...
    @property
    def disable_after(self) -> timedelta | None: ...


class LookUpConfig(Protocol):
    """What make_look_up() needs of a block [channels.<name>] of duebook.toml."""

    @property
    def relay_log(self) -> Path | None: ...


class Channel(Protocol):
    """One account of one provider. Used by one event loop, between open() and close().

    `idempotent`: a repeat with the same message_id is recognised for `safe_retry_for`.
    `io_timeout` bounds the whole of send(), connecting and logging in included. More than
    `max_concurrency` sends at a time wait for each other, inside that bound.
    """

    @property
    def name(self) -> str: ...
    @property
    def idempotent(self) -> bool: ...
    @property
    def safe_retry_for(self) -> timedelta | None: ...
    @property
    def io_timeout(self) -> timedelta: ...
    @property
    def max_concurrency(self) -> int: ...

    async def open(self) -> None:
        """Make ready to send; reaches no server. Raises ConfigurationError."""
        ...

    async def send(self, message: Message) -> SendResult:
        """Try once. Never raises for what a provider does or a message holds."""
        ...

    async def close(self) -> None:
        """Leave politely; may be called twice."""
        ...

    async def verify(self) -> str:
        """Connect and log in, send nothing; returns one line that says what worked.

        Raises UnavailableError or ConfigurationError with one line that says what did not.
        """
        ...


@dataclass(frozen=True, slots=True)
class Tried:
    """A message that was tried, if at all, between two instants."""

    message_id: str
    tried_from: datetime
    tried_until: datetime


class LookUp(Protocol):
    """Who can be asked later what became of a message: a provider's API, a relay's log.

    `known_within`: how long after accepting a message the provider may take to know it.
    """

    @property
    def known_within(self) -> timedelta: ...

    def verify(self) -> str:
        """One line that says of which time it can tell. Raises ConfigurationError if of none."""
        ...

    async def look_up(self, tried: Sequence[Tried]) -> Sequence[Known]:
        """What is known of each message, in order.

        `accepted` is certain. `not_known` is said only where the provider would know of a message
        that was tried between its two instants. Anything else is `cannot_tell`; never raises for
        what a provider does.
        """
        ...


def message_id_for(account_id: str, operation_key: str, sender: str | None) -> str:
    """The Message-ID of a promise, "<hash@domain>": the same for every try of the same key.

    `sender` gives the domain. Only a hash is used: no id of a customer leaves in a header.
    """
    identity = _as_json([account_id, operation_key]).encode()
    domain = (sender or "").rstrip("> ").rpartition("@")[2] or "duebook.invalid"
    try:
        domain.encode("ascii")
    except UnicodeEncodeError:
        domain = "duebook.invalid"
    return f"<{hashlib.sha256(identity).hexdigest()[:40]}@{domain}>"
