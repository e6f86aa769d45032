"""Why something was late, and what is paused: the words of `explain` about catching up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from duebook.domain.catch_up import MISSED_AFTER
from duebook.services.story import minute, span

Row = Mapping[str, Any]

_POLICIES = {
    "all": "sends all that are at most {window} old, {most:,} of one subject at most",
    "latest": "sends the newest that is at most {window} old",
    "skip": "sends none that was missed",
}


def why_late(row: Row) -> str:
    """`; 7 d late: due …, found by a sweep …; its kind's policy …`; empty when it was in time.

    `row` is an intent of a story that has ended.
    """
    detail = row["catch_up"]
    if detail is not None:
        return f"; {decision_text(detail, row['first_claimed_at'])}"
    late = row["ended_at"] - row["due_at"]
    if row["state"] != "sent" or late <= MISSED_AFTER:
        return ""
    found = _found(row["first_claimed_at"])
    return f"; {span(late)} late: due {minute(row['due_at'])}{found}"


def decision_text(detail: Row, found_at: datetime | None = None) -> str:
    """What the catch-up policy said about one missed intent, and when it was due and found."""
    due_at = datetime.fromisoformat(detail["due_at"])
    late = timedelta(seconds=detail["late_s"])
    policy = _POLICIES[detail["catch_up"]].format(
        window=span(timedelta(seconds=detail["window_s"])), most=detail["max_occurrences"]
    )
    text = (
        f"found {span(late)} late: due {minute(due_at)}{_found(found_at)}; the policy of its "
        f"{detail['policy_of']} {policy}"
    )
    if detail["verdict"] == "superseded":
        text += f" ({detail['newer_due']} newer)"
    if detail.get("slot_at"):
        slot_at = datetime.fromisoformat(detail["slot_at"])
        rate = f"{detail['spread_per_minute']:,} a minute"
        text += f"; at {rate} its turn was {minute(slot_at)}"
    return text


def _found(at: datetime | None) -> str:
    return f", found by a sweep {minute(at)}" if at is not None else ""


def pauses_of(row: Row, pauses: Sequence[Row]) -> list[Row]:
    """The pauses that hold for an intent now, those that drop first."""
    scopes = {
        ("all", "*"),
        ("kind", row["kind"]),
        ("channel", row["channel"]),
        ("account", row["account_id"]),
    }
    found = [pause for pause in pauses if (pause["scope"], pause["name"]) in scopes]
    return sorted(found, key=lambda pause: str(pause["mode"]))


def pause_text(pause: Row) -> str:
    """`kind:payment_missing is paused (hold) since … by ann: the relay is replaced`."""
    return (
        f"{target(pause)} is paused ({pause['mode']}) since {minute(pause['paused_at'])} by "
        f"{pause['paused_by']}: {pause['reason']}"
    )


def target(pause: Row) -> str:
    """A pause as the command line names it."""
    return "all" if pause["scope"] == "all" else f"{pause['scope']}:{pause['name']}"
