"""What a story says of doubts that somebody ended, and of what was sent again on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duebook.domain.keys import KeyFormatError, ResendKey, parse_key
from duebook.services.story import minute

Row = Mapping[str, Any]


def doubt_text(row: Row) -> str:
    """What is in doubt, since when and why, and how it ends."""
    return (
        f"in doubt since {minute(row['since'])} ({row['reason']}): the provider may have accepted "
        "it, so it is never resent blindly; look there, then `duebook resolve KEY sent` or "
        "`not-sent`"
    )


def ended_doubt_text(row: Row) -> str | None:
    """How the doubt about what counts as sent ended; None where there was none."""
    if row["reason"] not in ("resolved", "looked_up") or row["resolution"] is None:
        return None
    verdict = verdict_text(row["resolution"], row["resolution"]["by"])
    return f"sent by {row['channel']}; in doubt until {minute(row['ended_at'])}, when {verdict}"


def verdict_text(detail: Row, by: str) -> str:
    """`ada said that it was not sent: the relay lost it`, or what a look-up found."""
    if detail["how"] == "looked_up":
        known = "it was accepted" if detail["accepted"] else "it is not known there"
        return f"a look-up said that {known}"
    return f"{by} said that it was {'sent' if detail['accepted'] else 'not sent'}: {detail['why']}"


def act_text(row: Row) -> str | None:
    """What a person or a look-up did about a key; None for any other decision."""
    detail = row["detail"]
    if row["action"] == "resolve_in_doubt":
        doubt = f"attempt {detail['attempt_no']}, in doubt ({detail['cause']})"
        return f"{doubt}: {verdict_text(detail, row['actor'])}"
    if row["action"] == "resend_intent":
        again = (
            f"a repeat of {detail['first_key']}"
            if row["subject"] == detail["new_key"]
            else f"sent again as {detail['new_key']}"
        )
        return f"{again}, asked for by {row['actor']}: {detail['reason']}"
    return None


def repeat_text(operation_key: str) -> str:
    """` (repeat 2 of ...)` for the key of a repeat, else nothing."""
    try:
        key = parse_key(operation_key)
    except KeyFormatError:
        return ""
    return f" (repeat {key.count} of {key.original})" if isinstance(key, ResendKey) else ""
