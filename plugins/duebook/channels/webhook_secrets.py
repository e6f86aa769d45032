"""The signing secret of each endpoint: derived from the master key whenever needed, never stored.

So no table holds a secret, a copy of the database signs nothing, and two customers, or two
addresses of one, share none. Whoever has the master key can make them all: it stands in an Airflow
connection or a secrets backend only.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Final

from duebook.errors import ConfigurationError

_DOMAIN: Final = "duebook/webhook-endpoint-secret/v1"
_SHORTEST: Final = 32


def require_master_key(key: str) -> None:
    """Raise ConfigurationError for a key that could be guessed; its text does not repeat it."""
    if len(key.encode()) < _SHORTEST:
        raise ConfigurationError(
            f"webhook connection: each master key (password, previous) has at least {_SHORTEST} "
            "bytes, such as those of `openssl rand -base64 32`"
        )


def endpoint_key(master_key: str, account_id: str, identity: str) -> bytes:
    """The key of one account's endpoint; `identity` is its origin and path (Endpoint.identity)."""
    subject = json.dumps([_DOMAIN, account_id, identity], ensure_ascii=False).encode()
    return hmac.digest(master_key.encode(), subject, hashlib.sha256)


def endpoint_secret(master_key: str, account_id: str, identity: str) -> str:
    """The same as customers are given it, "whsec_…" (Standard Webhooks)."""
    key = endpoint_key(master_key, account_id, identity)
    return f"whsec_{base64.b64encode(key).decode()}"
