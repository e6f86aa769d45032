"""From an intent and its facts to the message that a channel is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any, Final, NamedTuple, Protocol

from duebook.channels.base import Message, message_id_for
from duebook.channels.render import Form, Rendered, render, render_digest
from duebook.domain.gate import find_zone
from duebook.services.flush import Claimed
from duebook.services.judge import facts_for_programs, message_facts
from duebook.services.manners import Parcel


class Said(NamedTuple):
    """What one intent says: to people, and to programs."""

    rendered: Rendered
    facts: Mapping[str, object]


class Links(Protocol):
    """Where the recipient of a message can leave its topic."""

    def headers_for(self, account_id: str, kind: str, channel: str) -> Mapping[str, str]:
        """The headers that say so (RFC 2369, RFC 8058); none where the topic can't be left."""
        ...


_NO_TEXT: Final = Rendered("", "", None)


class Writer:
    """Writes the messages of one channel.

    `sender` gives their ids a domain. `form` None is for channels that speak to programs: they are
    given facts, and no template is asked for a text.
    """

    def __init__(
        self, channel: str, *, sender: str | None, links: Links | None, form: Form | None
    ) -> None:
        self._channel = channel
        self._form = form
        self._sender = sender
        self._links = links

    def render(self, row: Claimed, facts: Mapping[str, Any]) -> Said:
        """What one intent says. Raises RenderError."""
        told = message_facts(facts, find_zone(row.recipient_zone) or UTC)
        text = _NO_TEXT if self._form is None else render(row.kind, told, self._form)
        return Said(text, facts_for_programs(told, facts.get("occurred_at")))

    def write(self, parcel: Parcel, said: Sequence[Said]) -> Message:
        """The message of a parcel whose intents say so. Raises RenderError."""
        row = parcel.rows[0]
        key = parcel.digest_key or row.operation_key or ""
        rendered, facts = said[0]
        if len(said) > 1:
            facts = {"notices": [each.facts for each in said]}
            if self._form is not None:
                rendered = render_digest([each.rendered for each in said], self._form)
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
            headers=self._headers(row.account_id, kind),
            account_id=row.account_id,
            kind="digest" if len(said) > 1 else row.kind,
            facts=facts,
        )

    def _headers(self, account_id: str, kind: str) -> Mapping[str, str]:
        if self._links is None or not kind:
            return {}
        return self._links.headers_for(account_id, kind, self._channel)
