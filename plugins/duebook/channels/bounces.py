"""Mails that tell what became of mails: delivery reports (RFC 3464), complaints (RFC 5965).

Anybody may send anything to the address that bounces go to. So the size is bounded, whatever the
parser does is caught, and only what names one of our Message-IDs says anything: nobody can guess
one who was not sent it. No address and no text of the mail is kept.
"""

from __future__ import annotations

import email
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Final, Literal

from duebook.channels.smtp_replies import is_address_dead

ReportStatus = Literal["delivered", "delayed", "failed", "complained"]

LARGEST: Final = 1024 * 1024
"""Bytes: a report returns headers, or at most a message of ours."""
_MOST_PARTS: Final = 50
_MOST_RECIPIENTS: Final = 20
# Those of base.message_id_for(), with or without their brackets.
_OUR_ID: Final = re.compile(r"<?([0-9a-f]{40}@[A-Za-z0-9.-]{1,255})>?", re.ASCII)
_STATUS: Final = re.compile(r"([245])\.([0-9]{1,3})\.([0-9]{1,3})(?![0-9.])", re.ASCII)
_BY_CLASS: Final[dict[str, ReportStatus]] = {"2": "delivered", "4": "delayed", "5": "failed"}
_RETURNED: Final = frozenset(
    {"message/rfc822", "message/global", "message/rfc822-headers", "text/rfc822-headers"}
)
_COMPLAINTS: Final = frozenset({"abuse", "fraud", "opt-out", "opt-out-list", "other"})
_NOT_COMPLAINTS: Final = frozenset({"not-spam", "auth-failure", "virus", "dmarc"})


class UnreadableError(Exception):
    """The mail tells nothing that can be used; the reason repeats nothing of it."""


@dataclass(frozen=True, slots=True)
class BounceReport:
    """What one mail says of one of ours; `suppression`: why its address is not to be used again."""

    message_id: str
    status: ReportStatus
    code: str | None
    suppression: str | None
    reported_at: datetime
    source: Literal["dsn", "arf"]


def read_report(raw: bytes, now: datetime) -> list[BounceReport]:
    """What the mail reports; nothing where it tells of no ending (relayed, not spam).

    `now` stands in for a date that is absent or in the future. Raises UnreadableError and nothing
    else, whatever the bytes are.
    """
    if len(raw) > LARGEST:
        raise UnreadableError("larger than a report")
    try:
        return _read(raw, now)
    except UnreadableError:
        raise
    except Exception as error:  # the parser meets whatever a stranger wrote; also RecursionError
        raise UnreadableError(f"can't be parsed ({type(error).__name__})") from None


def _read(raw: bytes, now: datetime) -> list[BounceReport]:
    message = email.message_from_bytes(raw)
    if not message.is_multipart():
        raise UnreadableError("not a report")
    parts = list(_parts(message))
    by_type = {part.get_content_type(): part for part in reversed(parts)}
    reported_at = _date(message, now)
    complaint = by_type.get("message/feedback-report")
    if complaint is not None:
        return _complaint(complaint, parts, reported_at)
    delivery = by_type.get("message/delivery-status")
    if delivery is None:
        raise UnreadableError("not a report")
    return _delivery(delivery, parts, reported_at)


def _parts(message: Message) -> Iterator[Message]:
    """The parts of the report itself, and not those of what it returns."""
    payload = message.get_payload()
    for part in payload[:_MOST_PARTS] if isinstance(payload, list) else ():
        if isinstance(part, Message):
            yield part


def _complaint(
    complaint: Message, parts: list[Message], reported_at: datetime
) -> list[BounceReport]:
    fields = _blocks(complaint)
    kind = next((text for each in fields if (text := _field(each, "Feedback-Type"))), "").lower()
    if kind in _NOT_COMPLAINTS:
        return []
    if kind not in _COMPLAINTS:
        raise UnreadableError("feedback of an unknown type")
    message_id = _message_id(fields, parts)
    return [BounceReport(message_id, "complained", None, "complaint", reported_at, "arf")]


def _delivery(delivery: Message, parts: list[Message], reported_at: datetime) -> list[BounceReport]:
    blocks = _blocks(delivery)
    told: list[tuple[ReportStatus, str]] = []
    for block in blocks[: _MOST_RECIPIENTS + 1]:
        status = _STATUS.search(_field(block, "Status")) or _STATUS.search(
            _field(block, "Diagnostic-Code")
        )
        action = _field(block, "Action").lower()
        if status is None or not action or action in ("relayed", "expanded"):
            continue
        # The status decides where the two differ: a 5.4.4 is no delay, whoever calls it one.
        verdict = _BY_CLASS[status[1]]
        if verdict == "delayed" and action == "failed":
            verdict = "failed"
        told.append((verdict, status[0]))
    if not told:
        if any(_field(block, "Action") for block in blocks):
            return []
        raise UnreadableError("a delivery report without action and status")
    message_id = _message_id(blocks, parts)
    return [
        BounceReport(
            message_id,
            verdict,
            code,
            code if verdict == "failed" and is_address_dead(code) else None,
            reported_at,
            "dsn",
        )
        for verdict, code in dict.fromkeys(told)
    ]


def _blocks(part: Message) -> list[Message]:
    """The groups of fields of a part; some senders encode them, which the parser leaves alone."""
    payload = part.get_payload()
    if isinstance(payload, list):
        blocks = [each for each in payload if isinstance(each, Message)]
        if any(each.keys() for each in blocks):
            return blocks
    decoded = part.get_payload(decode=True)
    text = decoded if isinstance(decoded, bytes) else b""
    return [email.message_from_bytes(each) for each in re.split(rb"\r?\n\r?\n", text) if each]


def _field(block: Message, name: str) -> str:
    return str(block.get(name, "")).strip()


def _message_id(blocks: list[Message], parts: list[Message]) -> str:
    """Ours: the envelope's id that we gave, or the Message-ID of what is returned."""
    for block in blocks:
        found = _OUR_ID.fullmatch(_field(block, "Original-Envelope-Id"))
        if found is not None:
            return f"<{found[1]}>"
    for part in parts:
        for returned in _returned(part):
            found = _OUR_ID.fullmatch(_field(returned, "Message-ID"))
            if found is not None:
                return f"<{found[1]}>"
    raise UnreadableError("names no message of ours")


def _returned(part: Message) -> Iterator[Message]:
    if part.get_content_type() in _RETURNED:
        yield from _blocks(part)[:1]


def _date(message: Message, now: datetime) -> datetime:
    try:
        stated = parsedate_to_datetime(_field(message, "Date"))
        told = stated.astimezone(UTC) if stated.tzinfo is not None else now
    except (ValueError, TypeError, IndexError, OverflowError):
        return now
    return min(told, now)
