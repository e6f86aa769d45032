"""Asks whoever may know what became of the messages that are in doubt, and ends their doubt.

"Accepted" ends a key as sent at any time. "Not known" counts only for a doubt whose lease, time-out
and stated delay have passed by the database's clock: then the key is due again. What nobody can
tell stays in doubt, for a late result or a person.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import psycopg

from duebook.channels.base import Known, LookUp, Tried, message_id_for
from duebook.db.connect import Connect
from duebook.db.sql import query

_AT_ONCE: Final = 5000
_ACTOR: Final = "look_up"
_HOW: Final = "looked_up"
_FIRST = (datetime(1970, 1, 1, tzinfo=UTC), "", 0)


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What became of the doubts that were looked up: counts of intents."""

    asked: int = 0
    sent: int = 0
    due: int = 0
    too_early: int = 0
    cannot_tell: int = 0

    def to_json(self) -> dict[str, int]:
        """The counts by name."""
        return {
            "asked": self.asked,
            "sent": self.sent,
            "due": self.due,
            "too_early": self.too_early,
            "cannot_tell": self.cannot_tell,
        }


def look_up_doubts(
    connect: Connect,
    look_ups: Mapping[str, LookUp],
    mail_senders: Mapping[str, str | None],
    most: int,
) -> LookedUp:
    """Look up at most `most` doubts of each channel that `look_ups` has, the oldest first.

    `mail_senders` as the senders of the sweep: they give the domain of each Message-ID. Raises
    UnavailableError when the database is away.
    """
    counts: Counter[str] = Counter()
    with connect() as conn:
        for channel, look_up in sorted(look_ups.items()):
            _look_up_channel(conn, channel, look_up, mail_senders.get(channel), most, counts)
    return LookedUp(**counts)


def _look_up_channel(
    conn: psycopg.Connection[Any],
    channel: str,
    look_up: LookUp,
    mail_sender: str | None,
    most: int,
    counts: Counter[str],
) -> None:
    after: tuple[datetime, str, int] = _FIRST
    left = most
    while left > 0:
        rows = conn.execute(
            query("list_doubts_to_look_up"),
            {
                "channel": channel,
                "after_since": after[0],
                "after_account_id": after[1],
                "after_intent_id": after[2],
                "most": min(left, _AT_ONCE),
            },
        ).fetchall()
        if not rows:
            return
        answers = asyncio.run(_ask(look_up, rows, mail_sender))
        _resolve(conn, look_up, rows, answers, counts)
        left -= len(rows)
        after = (rows[-1][5], rows[-1][0], rows[-1][1])


async def _ask(
    look_up: LookUp, rows: Sequence[tuple[Any, ...]], mail_sender: str | None
) -> Sequence[Known]:
    return await look_up.look_up(
        [Tried(message_id_for(row[0], row[2], mail_sender), row[3], row[4]) for row in rows]
    )


def _resolve(
    conn: psycopg.Connection[Any],
    look_up: LookUp,
    rows: Sequence[tuple[Any, ...]],
    answers: Sequence[Known],
    counts: Counter[str],
) -> None:
    counts["asked"] += len(rows)
    counts["cannot_tell"] += sum(1 for answer in answers if answer == "cannot_tell")
    for known in ("accepted", "not_known"):
        chosen = [row for row, answer in zip(rows, answers, strict=True) if answer == known]
        if not chosen:
            continue
        done = conn.execute(
            query("resolve_looked_up"),
            {
                "account_ids": [row[0] for row in chosen],
                "intent_ids": [row[1] for row in chosen],
                "accepted": known == "accepted",
                "known_within": look_up.known_within,
                "how": _HOW,
                "why": known,
                "resolved_by": _ACTOR,
            },
        ).fetchall()
        counts.update(what for _, _, what in done if what in ("sent", "due", "too_early"))
