"""From an intent and its facts to the message that a channel is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any, Protocol

from duebook.channels.base import Message, message_id_for
from duebook.channels.render import Rendered, render, render_digest
from duebook.domain.gate import find_zone
from duebook.services.flush import Claimed
from duebook.services.judge import message_facts
from duebook.services.manners import Parcel


class Links(Protocol):
    """Where the recipient of a message can leave its topic."""

    def headers_for(self, account_id: str, kind: str, channel: str) -> Mapping[str, str]:
        """The headers that say so (RFC 2369, RFC 8058); none where the topic can't be left."""
        ...


class Writer:
    """Writes the messages of one channel; `sender` gives their ids a domain."""

    def __init__(self, sender: str | None, links: Links | None) -> None:
        self._sender = sender
        self._links = links

    def render(self, row: Claimed, facts: Mapping[str, Any]) -> Rendered:
        """What one intent says. Raises RenderError."""
        return render(row.kind, message_facts(facts, find_zone(row.recipient_zone) or UTC))

    def write(self, channel: str, parcel: Parcel, texts: Sequence[Rendered]) -> Message:
        """The message of a parcel whose intents say `texts`."""
        row = parcel.rows[0]
        key = parcel.digest_key or row.operation_key or ""
        rendered = texts[0] if len(texts) == 1 else render_digest(texts)
        kinds = {each.kind for each in parcel.rows}
        # A message of several topics is left by leaving each.
        kind = kinds.pop() if len(kinds) == 1 else ""
        return Message(
            operation_key=key,
            message_id=message_id_for(row.account_id, key, self._sender),
            recipient=row.address or "",
            subject=rendered.subject,
            text=rendered.text,
            html=rendered.html,
            headers=self._headers(row.account_id, kind, channel),
            account_id=row.account_id,
            kind=kind or "digest",
        )

    def _headers(self, account_id: str, kind: str, channel: str) -> Mapping[str, str]:
        if self._links is None or not kind:
            return {}
        return self._links.headers_for(account_id, kind, channel)
