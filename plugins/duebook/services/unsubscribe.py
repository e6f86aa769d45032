"""Sealed links by which a recipient leaves a topic: they tell nothing and can't be guessed.

A link holds account, kind and channel under AES-SIV (RFC 5297): deterministic, so that a message
that is written again says the same, and authenticated, so that only we can make one. The rules of
one-click are RFC 8058: a POST acts, a GET never does.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from duebook.config import Config
from duebook.connections import ConnectionSpec
from duebook.errors import ConfigurationError, InputError

ONE_CLICK: Final = "List-Unsubscribe=One-Click"
_PURPOSE: Final = b"duebook unsubscribe v1"
_LEAST_SECRET: Final = 32
_LONGEST_TOKEN: Final = 2048


class Topic(NamedTuple):
    """What a link leaves: one kind of notice to one account on one channel."""

    account_id: str
    kind: str
    channel: str


class UnsubscribeLinks:
    """Makes links below `url` and reads them again; the first of `secrets` seals new ones."""

    def __init__(self, url: str, secrets: Sequence[str], kinds: frozenset[str]) -> None:
        """`kinds` are those whose topic can be left. Raises ValueError for a short secret."""
        if not secrets or any(len(secret) < _LEAST_SECRET for secret in secrets):
            raise ValueError(f"expected {_LEAST_SECRET} characters or more")
        self._url = url.rstrip("/")
        self._ciphers = [AESSIV(_key(secret)) for secret in secrets]
        self._kinds = kinds

    def url_for(self, topic: Topic) -> str:
        """Where this topic is left; the same for the same topic."""
        sealed = self._ciphers[0].encrypt(json.dumps(topic).encode(), [_PURPOSE])
        token = base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()
        return f"{self._url}/unsubscribe/{token}"

    def headers_for(self, account_id: str, kind: str, channel: str) -> Mapping[str, str]:
        """The headers that say so (RFC 2369, RFC 8058); none where the topic can't be left."""
        if kind not in self._kinds:
            return {}
        return {
            "List-Unsubscribe": f"<{self.url_for(Topic(account_id, kind, channel))}>",
            "List-Unsubscribe-Post": ONE_CLICK,
        }

    def read(self, token: str) -> Topic:
        """The topic of a link. Raises InputError for one that we did not make."""
        if len(token) <= _LONGEST_TOKEN and token.isascii():
            for cipher in self._ciphers:
                topic = _opened(cipher, token)
                if topic is not None:
                    return topic
        raise InputError("no such link")


def make_links(
    config: Config, connections: Callable[[str], ConnectionSpec | None]
) -> UnsubscribeLinks | None:
    """The links of [unsubscribe], or None where it is not stated.

    Raises ConfigurationError when its connection is missing or its secret too short.
    """
    block = config.unsubscribe
    if block is None:
        return None
    connection = connections(block.connection)
    if connection is None or not connection.password:
        raise ConfigurationError(
            f"unsubscribe: the connection {block.connection} with the secret as its password is "
            f"missing; set AIRFLOW_CONN_{block.connection.upper()}"
        )
    kinds = frozenset(name for name, kind in config.kinds.items() if kind.may_unsubscribe)
    secrets = (connection.password, *_previous(connection.extra.get("previous")))
    try:
        return UnsubscribeLinks(block.url, secrets, kinds)
    except ValueError as error:
        raise ConfigurationError(
            f"unsubscribe: a secret of the connection {block.connection}: {error}"
        ) from None


def _previous(value: object) -> Sequence[str]:
    listed: Sequence[object] = value if isinstance(value, list) else [value] if value else ()
    return [str(secret) for secret in listed]


def _key(secret: str) -> bytes:
    return HKDF(SHA512(), length=64, salt=None, info=_PURPOSE).derive(secret.encode())


def _opened(cipher: AESSIV, token: str) -> Topic | None:
    try:
        sealed = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        return Topic(*json.loads(cipher.decrypt(sealed, [_PURPOSE])))
    except (binascii.Error, ValueError, TypeError, InvalidTag):
        return None
