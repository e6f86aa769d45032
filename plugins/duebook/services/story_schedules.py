"""What became of a schedule's dates: the four facts of each, and why one has no intent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

from duebook.domain.business_days import holiday_calendars
from duebook.domain.calendar import occurrences
from duebook.domain.keys import ReminderKey
from duebook.services.rules import rule_of
from duebook.services.schedule import describe_policy, describe_rule
from duebook.services.story import Answer, counted, minute, span
from duebook.services.story_answers import EXPIRED, Context

Row = Mapping[str, Any]

_CASES: Final = {
    "exact": "",
    "gap": ", which the clock skips",
    "overlap": ", which comes twice",
    "absent": ", a date the month does not have",
    "unknown_zone": ", in a zone that is unknown",
}


def schedule_title(row: Row) -> str:
    """`schedule rent of account a`."""
    return f"schedule {row['schedule']} of account {row['account_id']}"


def schedule_summary(row: Row, dates: Sequence[Row]) -> Iterator[str]:
    """Its rule and its policy, then the four facts of each date, newest first."""
    yield f"rule     {describe_rule(rule_of(row))}"
    yield f"policy   {describe_policy(row)}"
    for each in dates:
        yield occurrence_text(each)


def occurrence_text(row: Row) -> str:
    """Intended local time and zone, UTC due time and what computed it, outcome, key."""
    local = f"{row['intended_local']:%Y-%m-%d %H:%M} {row['zone']}{_CASES[row['case_of']]}"
    due = "no UTC time yet" if row["due_at"] is None else f"due {minute(row['due_at'])}"
    return f"{local}; {due} by tzdb {row['tzdb_version']}; {_standing(row)}; {row['operation_key']}"


def _standing(row: Row) -> str:
    if row["result"] is None:
        return str(row["state"]) + (f": {row['reason']}" if row["reason"] else "")
    ended = f"{row['result']} {minute(row['ended_at'])}"
    if row["reason"]:
        return f"{ended}: {EXPIRED.get(row['reason'], row['reason'])}"
    late = timedelta(seconds=row["late_seconds"] or 0)
    return ended + (f", {span(late)} late" if late >= timedelta(minutes=2) else "")


def occurrence_facts(row: Row) -> dict[str, Any]:
    """The four facts of one date, for JSON."""
    return {
        key: row[key]
        for key in (
            "nominal_on", "intended_local", "zone", "case_of", "due_at", "tzdb_version",
            "operation_key", "state", "reason", "result", "ended_at", "late_seconds",
        )
    } | {"nominal_on": row["nominal_on"].isoformat()}  # fmt: skip


def schedule_facts(row: Row, dates: Sequence[Row]) -> dict[str, Any]:
    """The schedule and its dates, for JSON; dates and times of day as text."""
    facts = {
        key: value.isoformat() if hasattr(value, "isoformat") and key.endswith("_on") else value
        for key, value in row.items()
    }
    return {
        **facts,
        "wall_time": f"{row['wall_time']:%H:%M}",
        "occurrences": [occurrence_facts(each) for each in dates],
    }


def schedule_answer(row: Row, context: Context) -> Answer:
    """How a schedule stands."""
    code, text = _state(row, context)
    return Answer(code, f"schedule {row['schedule']}: {text}")


def _state(row: Row, context: Context) -> tuple[str, str]:
    match row["state"]:
        case "cancelled":
            by = f"{minute(row['cancelled_at'])} by {row['cancelled_by']}"
            return "schedule_cancelled", f"cancelled {by}, so nothing more is written"
        case "zone_unknown":
            since = minute(row["zone_missing_since"])
            return "schedule_zone_unknown", (
                f"its zone {row['zone']} is in no time zone data here since {since}: its reminders "
                "are held until it is"
            )
        case "ended":
            return "schedule_ended", "every date of its rule has ended"
        case _:
            return "schedule_active", _active(row, context)


def _active(row: Row, context: Context) -> str:
    if row["waiting"]:
        due = row["next_due_at"]
        when = "" if due is None else f", the first due {minute(due)}"
        if due is not None and due > context.now:
            when += f" ({span(due - context.now)} left)"
        return f"{counted(row['waiting'], 'date')} written and not ended{when}"
    if row["holiday_calendar"] not in {None, *holiday_calendars()}:
        return f"no date can be computed: {row['holiday_calendar']} is no calendar of holidays here"
    return f"no date is written yet; the next from {row['next_on']} on is, some days ahead"


def never_promised(row: Row, key: ReminderKey) -> Answer:
    """Why a date of a schedule has no intent."""
    code, text = _unwritten(row, key.nominal_on)
    return Answer(code, f"{key}: {text}", operation_key=None)


def _unwritten(row: Row, nominal_on: date) -> tuple[str, str]:
    one = next(occurrences(rule_of(row), after=nominal_on - timedelta(days=1)), None)
    if one is None or one.nominal_on != nominal_on:
        return "no_such_date", "the rule of its schedule does not have this date"
    if row["state"] == "cancelled":
        return "schedule_cancelled", "its schedule was cancelled before it was written"
    if one.due_at is not None and one.due_at < row["put_at"]:
        return "before_put", (
            f"it was due {minute(one.due_at)}, before its schedule was put or edited "
            f"({minute(row['put_at'])}), so it is no promise"
        )
    due = "its zone is unknown" if one.due_at is None else f"due {minute(one.due_at)}"
    return "not_written_yet", f"{due}; sweeps write it some days ahead (sweep.horizon)"
