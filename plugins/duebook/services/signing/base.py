"""What every scheme of signing webhooks is: a request in, the events that it proves out."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

TOLERANCE_S: Final = 300
"""How far a signed time may be from now, both ways."""

EVENT_ID: Final = re.compile(r"[!-~]{1,255}", re.ASCII)
_SECONDS: Final = re.compile(r"[0-9]{1,12}", re.ASCII)


class SignatureRefused(Exception):
    """Not signed by who it should be from, or not now. Its text holds nothing of the request."""


class BodyRefused(Exception):
    """Signed, but not something that this scheme can mean. Its text holds nothing of the body."""


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """What was received. `headers` are those that came exactly once, named in lower case.

    `url` is the endpoint's as its provider knows it, for schemes that sign it; `public_key` the key
    of the certificate that the request names, where the scheme has one.
    """

    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    url: str | None = None
    public_key: RSAPublicKey | None = None


class Event(NamedTuple):
    """One event: the provider's id of it, or one made of what was signed, and what it says."""

    event_id: str
    body: bytes


class Scheme(Protocol):
    """How one kind of provider signs."""

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers that a signature needs, in lower case."""
        ...

    @property
    def needs_url(self) -> bool:
        """Whether the endpoint's own address is signed too."""
        ...

    def require_secret(self, secret: str) -> None:
        """Raise ValueError for a secret that can't be one; its text does not repeat it."""
        ...

    def verify(
        self, secrets: Sequence[str], request: SignedRequest, now_s: float
    ) -> Sequence[Event]:
        """The events of a request that any of the secrets proves; `now_s` is epoch seconds.

        Raises SignatureRefused, whatever a library raises, and BodyRefused.
        """
        ...


def require_any(secrets: Sequence[str], is_signed: Callable[[str], object]) -> None:
    """Refuse unless one of the secrets proves it: `is_signed` says so by any true answer."""
    for secret in secrets:
        try:
            if is_signed(secret):
                return
        except Exception:  # noqa: S112 (libraries raise nearly anything for hostile input)
            continue
    raise SignatureRefused("no secret of the endpoint made this signature")


def require_recent(seconds: str, now_s: float) -> None:
    """Refuse a signed time, in whole epoch seconds, that is not now."""
    if not _SECONDS.fullmatch(seconds):
        raise SignatureRefused("the signed time is not in whole seconds")
    if abs(int(seconds) - now_s) > TOLERANCE_S:
        raise SignatureRefused("the signed time is not now")


def read_document(body: bytes) -> dict[str, Any]:
    """A body as the JSON object that it should be. Raises BodyRefused."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise BodyRefused("the body is not JSON") from None
    if not isinstance(document, dict):
        raise BodyRefused("the body is not a JSON object")
    return document


def event_of(body: bytes, event_id: object) -> Event:
    """The one event of a body by its own id. Raises BodyRefused for what can't be one."""
    if not isinstance(event_id, str) or not EVENT_ID.fullmatch(event_id):
        raise BodyRefused("the event has no id")
    return Event(event_id, body)


def event_by_content(body: bytes) -> Event:
    """An event whose id is not signed is known by what is: its bytes."""
    return Event(f"sha256:{hashlib.sha256(body).hexdigest()}", body)


def require_text(secret: str) -> None:
    """Raise ValueError for an empty secret."""
    if not secret.strip():
        raise ValueError("is empty")
