"""Schedules as an application or an operator states them: put, cancel, list, and their policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import psycopg
from psycopg import errors
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from duebook.channels.render import RenderError, render
from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.domain.calendar import LAST, WEEKDAYS, Rule, next_after, validate
from duebook.domain.catch_up import CatchUpPolicy
from duebook.errors import InputError, RefusedError
from duebook.services.judge import reminder_facts
from duebook.services.rules import rule_of
from duebook.services.story import instant, span

LIST_LIMIT: Final = 1000
_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth")


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """One schedule to be put. `message` holds the texts for the kind's template, by their names.

    `channel` None is the kind's. `replace`: a schedule of this name may have other content.
    """

    account_id: str
    schedule: str
    kind: str
    rule: Rule
    catch_up: CatchUpPolicy
    message: Mapping[str, str] = field(default_factory=dict)
    channel: str | None = None
    replace: bool = False


def put_schedule(connect: Connect, request: ScheduleRequest, *, by: str) -> dict[str, Any]:
    """Put one schedule; says what was done, the rule in words, and the next date that is ahead.

    `done` is put, unchanged, changed (policy or message) or edited (the rule). Raises InputError
    naming field and reason, RefusedError where other content is there and it is not to be replaced.
    """
    rule = request.rule
    validate(rule)
    with connect() as conn:
        with conn.transaction():
            done = _put(conn, request, by)
            _try_message(request)
        clock = conn.execute(query("read_clock")).fetchone()
    assert clock is not None
    following = next_after(rule, clock[0])
    return {
        "account_id": request.account_id,
        "schedule": request.schedule,
        "done": done,
        "rule": describe_rule(rule),
        "next_on": None if following is None else following.nominal_on.isoformat(),
        "next_local": None if following is None else f"{following.intended_local:%Y-%m-%dT%H:%M}",
        "zone": rule.zone,
        "next_due_at": None if following is None else instant(following.due_at),
    }


def _put(conn: psycopg.Connection[Any], request: ScheduleRequest, by: str) -> str:
    rule, policy = request.rule, request.catch_up
    values = {
        "account_id": request.account_id,
        "schedule": request.schedule,
        "kind": request.kind,
        "channel": request.channel,
        "frequency": rule.frequency,
        "every": rule.every,
        "weekdays": list(rule.weekdays) or None,
        "month_day": rule.month_day,
        "nth": rule.nth,
        "business_shift": rule.business_shift,
        "holiday_calendar": rule.holiday_calendar,
        "zone": rule.zone,
        "wall_time": rule.wall_time,
        "absent": rule.absent,
        "gap": rule.gap,
        "overlap": rule.overlap,
        "starts_on": rule.starts_on,
        "ends_on": rule.ends_on,
        "count": rule.count,
        "catch_up": policy.mode,
        "catch_up_window": policy.window,
        "max_occurrences": policy.max_occurrences,
        "spread_per_minute": policy.spread_per_minute,
        "message": Jsonb(dict(request.message)),
        "put_by": by,
        "replace": request.replace,
    }
    try:
        row = conn.execute(query("put_schedule"), values).fetchone()
    except errors.InvalidParameterValue as error:
        raise InputError(error.diag.message_primary) from None
    except errors.UniqueViolation as error:
        what = f": {error.diag.message_detail}" if error.diag.message_detail else ""
        raise RefusedError(
            f"{error.diag.message_primary}{what}; state --replace, or take another name"
        ) from None
    assert row is not None
    return str(row[0])


def _try_message(request: ScheduleRequest) -> None:
    """Refuse texts that the kind's template can't do with."""
    rule = request.rule
    facts = reminder_facts(
        request.account_id,
        request.schedule,
        request.message,
        datetime.combine(rule.starts_on, rule.wall_time),
        rule.zone,
    )
    try:
        render(request.kind, facts)
    except RenderError as error:
        raise InputError(f"message: {error}") from None


def cancel_schedule(
    connect: Connect, account_id: str, schedule: str, *, reason: str, by: str
) -> dict[str, Any]:
    """Cancel one schedule: `{account_id, schedule, cancelled, ended, requested}`.

    `cancelled` is False where it was cancelled before. `ended` occurrences will not be sent;
    `requested` are with a sender, whose gate is asked not to. Raises InputError for an unknown one.
    """
    values = {
        "account_id": account_id,
        "schedule": schedule,
        "reason": reason,
        "cancelled_by": by,
    }
    with connect() as conn, conn.transaction():
        try:
            row = conn.execute(query("cancel_schedule"), values).fetchone()
        except errors.NoDataFound as error:
            raise InputError(f"schedule cancel: {error.diag.message_primary}") from None
    assert row is not None
    cancelled, ended, requested = row
    return {
        "account_id": account_id,
        "schedule": schedule,
        "cancelled": cancelled,
        "ended": ended,
        "requested": requested,
    }


def list_schedules(connect: Connect, account_id: str | None = None) -> list[dict[str, Any]]:
    """The schedules of one account, or the first 1,000 of all, with rules and what is next."""
    with connect() as conn, conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            query("list_schedules"), {"account_id": account_id, "row_limit": LIST_LIMIT}
        ).fetchall()
    return [schedule_document(row) for row in rows]


def schedule_document(row: Mapping[str, Any]) -> dict[str, Any]:
    """One row of the report `schedules` as JSON; `rule` and `policy` say it in words."""
    stated = {name: value for name, value in row.items() if name != "catch_up_window"}
    window: timedelta = row["catch_up_window"]
    return {
        **stated,
        "wall_time": f"{row['wall_time']:%H:%M}",
        "catch_up_window_s": int(window.total_seconds()),
        "next_due_at": instant(row["next_due_at"]),
        "zone_missing_since": instant(row["zone_missing_since"]),
        "rule": describe_rule(rule_of(row)),
        "policy": describe_policy(row),
    }


def describe_rule(rule: Rule) -> str:
    """`every 2 weeks on MON, THU at 09:00 Europe/Berlin, from 2027-01-04`."""
    unit = "week" if rule.frequency == "weekly" else "month"
    often = f"every {unit}" if rule.every == 1 else f"every {rule.every} {unit}s"
    weekdays = ", ".join(WEEKDAYS[number - 1] for number in rule.weekdays)
    if rule.month_day is not None:
        days = "the last day" if rule.month_day == LAST else f"day {rule.month_day}"
    elif rule.nth is not None:
        days = f"the {'last' if rule.nth == LAST else _ORDINALS[rule.nth - 1]} {weekdays}"
    else:
        days = weekdays
    parts = [f"{often} on {days} at {rule.wall_time:%H:%M} {rule.zone}, from {rule.starts_on}"]
    if rule.ends_on is not None:
        parts.append(f"until {rule.ends_on}")
    if rule.count is not None:
        parts.append(f"{rule.count} times")
    if rule.business_shift != "none":
        parts.append(f"off days of {rule.holiday_calendar} move to the {rule.business_shift} one")
    return ", ".join(parts)


def describe_policy(row: Mapping[str, Any]) -> str:
    """`missed: latest, not older than 1 d, at most 1, 300 a minute; absent omit, gap later, …`."""
    return (
        f"missed: {row['catch_up']}, not older than {span(row['catch_up_window'])}, at most "
        f"{row['max_occurrences']}, {row['spread_per_minute']} a minute; absent {row['absent']}, "
        f"gap {row['gap']}, overlap {row['overlap']}"
    )


def rules_of(
    conn: psycopg.Connection[Any], schedules: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[Rule, CatchUpPolicy]]:
    """Rule and catch-up policy of each (account, schedule) that there is."""
    if not schedules:
        return {}
    with conn.cursor(row_factory=dict_row) as cursor:
        cursor.execute(
            query("list_rules"),
            {
                "account_ids": [account_id for account_id, _ in schedules],
                "schedules": [schedule for _, schedule in schedules],
            },
        )
        return {
            (row["account_id"], row["schedule"]): (rule_of(row), _policy_of(row)) for row in cursor
        }


def _policy_of(row: Mapping[str, Any]) -> CatchUpPolicy:
    window: timedelta = row["catch_up_window"]
    return CatchUpPolicy(row["catch_up"], window, row["max_occurrences"], row["spread_per_minute"])
