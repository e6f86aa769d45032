"""The calendar pass: writes the occurrences of schedules ahead of their time.

Nothing is decided here but which dates are promised. What was missed is written too, oldest first,
and judged by the gate; so an outage, however long, leaves no date without an outcome. A pass is one
transaction of bounded size and may be repeated: schedules are locked, skipping those that another
sweep has, and a date that is promised already is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import psycopg
import structlog
from psycopg.rows import dict_row

from duebook.db.sql import query
from duebook.domain.calendar import Occurrence, Rule, is_known_zone, occurrences, tzdb_version
from duebook.services.recompute import recompute_waiting
from duebook.services.rules import rule_of
from duebook.services.zones import compare_tzdb, older_tzdb

_log = structlog.get_logger(__name__)

PAST_RULES_AT_ONCE: Final = 100
_DAY: Final = timedelta(days=1)


@dataclass(slots=True)
class CalendarReport:
    """What passes did. `is_left`: there is more to do. `refusal`: why nothing may be computed."""

    written: int = 0
    recomputed: int = 0
    cancelled: int = 0
    held: int = 0
    is_left: bool = False
    refusal: str | None = None

    def add(self, other: CalendarReport) -> None:
        """Enter a further pass."""
        self.written += other.written
        self.recomputed += other.recomputed
        self.cancelled += other.cancelled
        self.held += other.held
        self.is_left = other.is_left
        self.refusal = other.refusal


@dataclass(slots=True)
class _Draft:
    """Dates to write, as columns."""

    account_ids: list[str] = field(default_factory=list)
    schedules: list[str] = field(default_factory=list)
    nominal_ons: list[date] = field(default_factory=list)
    intended_locals: list[datetime] = field(default_factory=list)
    zones: list[str] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    due_ats: list[datetime | None] = field(default_factory=list)
    rule_versions: list[int] = field(default_factory=list)
    past: set[tuple[str, str, date]] = field(default_factory=set)

    def add(self, row: Mapping[str, Any], dates: Sequence[Occurrence]) -> None:
        count = len(dates)
        self.account_ids += [row["account_id"]] * count
        self.schedules += [row["schedule"]] * count
        self.nominal_ons += [one.nominal_on for one in dates]
        self.intended_locals += [one.intended_local for one in dates]
        self.zones += [one.zone for one in dates]
        self.cases += [one.case for one in dates]
        self.due_ats += [one.due_at for one in dates]
        self.rule_versions += [row["rule_version"]] * count


@dataclass(slots=True)
class _Stretch:
    """Dates of a rule from one date on up to a horizon, and the first one after them."""

    dates: list[Occurrence]
    following: Occurrence | None


class _Stretches:
    """The stretches of one pass, each computed once: schedules share rules by the thousand."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[tuple[Rule, date, datetime], _Stretch] = {}

    def find(self, rule: Rule, start: date, until: datetime) -> _Stretch:
        key = (rule, start, until)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._compute(rule, start, until)
        return found

    def _compute(self, rule: Rule, start: date, until: datetime) -> _Stretch:
        dates: list[Occurrence] = []
        for one in occurrences(rule, after=start - _DAY):
            if instant_of(one) > until or len(dates) > self._most:
                return _Stretch(dates, one)
            dates.append(one)
        return _Stretch(dates, None)


def instant_of(one: Occurrence) -> datetime:
    """When it is due; in an unknown zone its local time read as UTC, until that is known."""
    return one.due_at or one.intended_local.replace(tzinfo=UTC)


def keep_calendar(
    transact: Callable[[Callable[[psycopg.Connection[Any]], CalendarReport]], CalendarReport],
    *,
    horizon: timedelta,
    most: int,
    sender: str,
    offset: timedelta,
    may_go_on: Callable[[], bool],
) -> CalendarReport:
    """Passes until nothing is left or `may_go_on` says no; each by `transact`, repeatable.

    `offset` shifts the clock of a test database.
    """
    total = CalendarReport()
    while True:
        total.add(
            transact(
                lambda conn: pass_calendar(
                    conn, horizon=horizon, most=most, sender=sender, offset=offset
                )
            )
        )
        if not total.is_left or not may_go_on():
            return total


def pass_calendar(
    conn: psycopg.Connection[Any],
    *,
    horizon: timedelta,
    most: int,
    sender: str,
    offset: timedelta = timedelta(0),
) -> CalendarReport:
    """One pass: time zone data is compared, waiting rows are computed again, dates written."""
    row = conn.execute(query("read_clock")).fetchone()
    assert row is not None
    now: datetime = row[0] + offset
    refusal = compare_tzdb(conn, sender)
    if refusal is not None:
        return CalendarReport(refusal=refusal)
    report = CalendarReport()
    redone = recompute_waiting(conn, most, sender)
    report.recomputed, report.cancelled, report.held = redone.moved, redone.cancelled, redone.held
    written = write_occurrences(conn, now, horizon, most)
    report.written, report.refusal = written.written, written.refusal
    report.is_left = report.refusal is None and (redone.is_left or written.is_left)
    return report


def write_occurrences(
    conn: psycopg.Connection[Any], now: datetime, horizon: timedelta, most: int
) -> CalendarReport:
    """Write what is due before `now + horizon`, oldest first, at most `most` dates.

    One transaction. A schedule whose rule can't be computed is put off and logged, and stops no
    other one.
    """
    until = now + horizon
    with conn.transaction():
        past = _rows(conn, "pick_past_rules", most=PAST_RULES_AT_ONCE)
        picked = _rows(conn, "pick_schedules", until=until, most=most)
        if not past and not picked:
            return CalendarReport()
        refusal = _hold_tzdb(conn)
        if refusal is not None:
            return CalendarReport(refusal=refusal)
        draft, stretches = _Draft(), _Stretches(most)
        is_left = _draft_past(conn, past, draft, stretches, most)
        is_left |= _draft_current(conn, picked, draft, stretches, until, most)
        written = _write(conn, draft)
    is_left |= len(picked) == most or len(past) == PAST_RULES_AT_ONCE
    return CalendarReport(written=written, is_left=is_left)


def _rows(conn: psycopg.Connection[Any], name: str, **values: Any) -> list[dict[str, Any]]:
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query(name), values).fetchall()


def _hold_tzdb(conn: psycopg.Connection[Any]) -> str | None:
    """Nobody brings newer data until this transaction ends; why this one may not write."""
    held = conn.execute(query("hold_calendar_state")).fetchone()
    return None if held is None else older_tzdb(held[0])


def _draft_past(
    conn: psycopg.Connection[Any],
    rows: Iterable[Mapping[str, Any]],
    draft: _Draft,
    stretches: _Stretches,
    most: int,
) -> bool:
    """Dates of edited rules that were due before the edit. Returns whether some are left."""
    is_left = False
    for row in rows:
        until: datetime = row["promised_until"]
        found = _try_stretch(row, stretches, until) or _Stretch([], None)
        dates = _promised(row, found.dates, until)
        taken = dates[: most - len(draft.schedules)]
        draft.add(row, taken)
        draft.past |= {_key(row, one) for one in taken}
        following = dates[len(taken)] if len(taken) < len(dates) else found.following
        keys = {name: row[name] for name in ("account_id", "schedule", "rule_version")}
        if following is not None and instant_of(following) < until:
            is_left = True
            conn.execute(query("move_past_rule"), {**keys, "next_on": following.nominal_on})
        else:
            conn.execute(query("drop_past_rule"), keys)
    return is_left


def _draft_current(
    conn: psycopg.Connection[Any],
    rows: Sequence[Mapping[str, Any]],
    draft: _Draft,
    stretches: _Stretches,
    until: datetime,
    most: int,
) -> bool:
    """Dates of the rules that stand. Returns whether some are left."""
    moved: list[tuple[str, str, date | None, datetime | None, bool]] = []
    is_left = False
    for row in rows:
        left = most - len(draft.schedules)
        if left <= 0:
            is_left = True
            break
        found = _try_stretch(row, stretches, until)
        if found is None:
            keys = {"account_id": row["account_id"], "schedule": row["schedule"]}
            conn.execute(query("postpone_schedule"), {**keys, "until": until})
            continue
        dates = _promised(row, found.dates, None)
        taken = dates[:left]
        # The same date of the rule before its edit was due, and is that key's promise.
        draft.add(row, [one for one in taken if _key(row, one) not in draft.past])
        following = found.following
        if len(taken) < len(dates):
            following, is_left = dates[len(taken)], True
        elif following is not None and instant_of(following) <= until:
            is_left = True
        moved.append(
            (
                row["account_id"],
                row["schedule"],
                None if following is None else following.nominal_on,
                None if following is None else instant_of(following),
                is_known_zone(row["zone"]),
            )
        )
    _move(conn, moved)
    return is_left


def _key(row: Mapping[str, Any], one: Occurrence) -> tuple[str, str, date]:
    return row["account_id"], row["schedule"], one.nominal_on


def _try_stretch(row: Mapping[str, Any], stretches: _Stretches, until: datetime) -> _Stretch | None:
    try:
        return stretches.find(rule_of(row), row["next_on"], until)
    except Exception as error:  # one bad rule never stops a pass
        _log.error(
            "schedule_not_computed",
            account_id=row["account_id"],
            schedule=row["schedule"],
            error=type(error).__name__,
        )
        return None


def _promised(
    row: Mapping[str, Any], dates: Sequence[Occurrence], until: datetime | None
) -> list[Occurrence]:
    """Those due from the moment on in which the rule was put, and before it was edited."""
    promised_from: datetime = row["promised_from"]
    return [
        one
        for one in dates
        if instant_of(one) >= promised_from and (until is None or instant_of(one) < until)
    ]


def _move(
    conn: psycopg.Connection[Any],
    moved: Sequence[tuple[str, str, date | None, datetime | None, bool]],
) -> None:
    if not moved:
        return
    account_ids, schedules, next_ons, next_ats, are_known = zip(*moved, strict=True)
    conn.execute(
        query("move_next_dates"),
        {
            "account_ids": list(account_ids),
            "schedules": list(schedules),
            "next_ons": list(next_ons),
            "next_ats": list(next_ats),
            "are_zones_known": list(are_known),
        },
    )


def _write(conn: psycopg.Connection[Any], draft: _Draft) -> int:
    if not draft.schedules:
        return 0
    row = conn.execute(
        query("write_occurrences"),
        {
            "tzdb_version": tzdb_version(),
            "account_ids": draft.account_ids,
            "schedules": draft.schedules,
            "nominal_ons": draft.nominal_ons,
            "intended_locals": draft.intended_locals,
            "zones": draft.zones,
            "cases": draft.cases,
            "due_ats": draft.due_ats,
            "rule_versions": draft.rule_versions,
        },
    ).fetchone()
    conn.execute(
        query("doubt_lost_occurrences"),
        {
            "account_ids": draft.account_ids,
            "schedules": draft.schedules,
            "nominal_ons": draft.nominal_ons,
        },
    )
    return 0 if row is None else int(row[0])
