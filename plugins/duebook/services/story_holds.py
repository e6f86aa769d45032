"""What became of a hold, in one sentence: by the clock, whether or not a sweep has come by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duebook.services.story import Answer, minute, span
from duebook.services.story_answers import Context

Row = Mapping[str, Any]


def hold_title(row: Row) -> str:
    """`hold h1 of account a`."""
    return f"hold {row['hold']} of account {row['account_id']}"


def hold_summary(row: Row) -> str:
    """What it reserves, and from when until when."""
    what = f"{row['quantity']} of {row['resource']}" if row["resource"] else "nothing counted"
    return f"reserves {what}, {minute(row['created_at'])} until {minute(row['expires_at'])}"


def hold_answer(row: Row, context: Context) -> Answer:
    """What the hold is now and why."""
    return Answer(
        f"hold_{row['state']}",
        f"hold {row['hold']}: {_text(row, context)}",
        payment_id=row["payment_id"],
        operation_key=row["operation_key"],
    )


def _text(row: Row, context: Context) -> str:
    end, payment = minute(row["expires_at"]), row["payment_id"]
    match row["state"]:
        case "open":
            return f"open until {end}, {span(row['expires_at'] - context.now)} left"
        case "confirmed":
            paid = f" by payment {payment}" if payment else ""
            return f"confirmed {minute(row['confirmed_at'])}{paid}"
        case "cancelled":
            return f"cancelled {minute(row['cancelled_at'])}"
        case "reheld":
            return (
                f"expired {end}; payment {payment} came after that, and since there still was room "
                f"it is held again, {minute(row['reheld_at'])}"
            )
        case "refunded":
            return (
                f"expired {end}; payment {payment} came after that, and since there was no room "
                f"left it is to be refunded, {minute(row['refunded_at'])}"
            )
        case _:
            swept = (
                f"a sweep recorded it {minute(row['expired_at'])}"
                if row["expired_at"]
                else "no sweep has recorded it yet, which changes nothing"
            )
            return f"expired {end}; {swept}"
