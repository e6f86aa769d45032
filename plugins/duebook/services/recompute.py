"""Computes waiting occurrences again: after an edit, with newer time zone data, with a zone back.

Only what waits in due or held is touched; what a sender has, and what has ended, stays as it is.
Each step is one transaction of bounded size. Newer time zone data is gone through once, along the
keys of the waiting rows; where it stands is kept in the database, so any sweep goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final, Literal

import psycopg
import structlog
from psycopg.rows import dict_row

from duebook.db.sql import query
from duebook.domain.calendar import Occurrence, Rule, is_known_zone, occurrences, tzdb_version
from duebook.services.rules import rule_of

_log = structlog.get_logger(__name__)

SCHEDULES_AT_ONCE: Final = 200
_DAY: Final = timedelta(days=1)
_HELD_FOR_THE_CALENDAR: Final = frozenset({"zone_unknown", "rule_edited"})

Reason = Literal["tzdb", "edited"]
_Intent = tuple[str, int]


@dataclass(slots=True)
class Recomputed:
    """What became of waiting occurrences. `is_left`: there are more to look at."""

    moved: int = 0
    held: int = 0
    cancelled: int = 0
    is_left: bool = False

    def add(self, other: Recomputed) -> None:
        """Enter a further step."""
        self.moved += other.moved
        self.held += other.held
        self.cancelled += other.cancelled
        self.is_left |= other.is_left


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an intent waits: its due time there, and for a held one the cause."""

    due_at: datetime
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class _Verdict:
    row: Mapping[str, Any]
    verdict: Literal["keep", "move", "release", "hold", "cancel"]
    row_due_at: datetime
    one: Occurrence | None


def recompute_waiting(conn: psycopg.Connection[Any], most: int, sender: str) -> Recomputed:
    """One step of each kind: edited schedules, zones that are back, newer time zone data."""
    total = Recomputed()
    total.add(_recompute_edited(conn, sender))
    total.add(_recompute_returned(conn, sender))
    total.add(_recompute_all(conn, most, sender))
    return total


def _recompute_edited(conn: psycopg.Connection[Any], sender: str) -> Recomputed:
    with conn.transaction():
        picked = conn.execute(
            query("pick_edited_schedules"), {"most": SCHEDULES_AT_ONCE}
        ).fetchall()
        return _recompute_schedules(conn, picked, "edited", sender)


def _recompute_returned(conn: psycopg.Connection[Any], sender: str) -> Recomputed:
    missing = [row[0] for row in conn.execute(query("list_missing_zones"))]
    known = [zone for zone in missing if is_known_zone(zone)]
    if not known:
        return Recomputed()
    with conn.transaction():
        picked = conn.execute(
            query("pick_returned_schedules"), {"zones": known, "most": SCHEDULES_AT_ONCE}
        ).fetchall()
        return _recompute_schedules(conn, picked, "tzdb", sender)


def _recompute_schedules(
    conn: psycopg.Connection[Any],
    picked: Sequence[tuple[Any, ...]],
    reason: Reason,
    sender: str,
) -> Recomputed:
    if not picked or not _holds_newest(conn):
        return Recomputed()
    account_ids, schedules, edited_ats = map(list, zip(*picked, strict=True))
    named = {"account_ids": account_ids, "schedules": schedules}
    found: list[_Intent] = conn.execute(
        query("find_open_occurrences"), {**named, "edited_ats": edited_ats}
    ).fetchall()
    done, zones = _recompute(conn, found, reason, sender)
    conn.execute(
        query("settle_schedules"),
        {
            **named,
            "are_zones_known": [zones.get(key, True) for key in zip(account_ids, schedules)],  # noqa: B905
        },
    )
    done.is_left = len(picked) == SCHEDULES_AT_ONCE
    return done


def _recompute_all(conn: psycopg.Connection[Any], most: int, sender: str) -> Recomputed:
    with conn.transaction():
        locked = conn.execute(query("lock_recomputation")).fetchone()
        if locked is None or locked[0] != tzdb_version():
            return Recomputed()
        _, account_id, intent_id = locked
        waiting = conn.execute(
            query("list_waiting_rows"),
            {"account_id": account_id, "intent_id": intent_id, "most": most},
        ).fetchall()
        reminders = [(account, intent) for account, intent, is_reminder in waiting if is_reminder]
        done, zones = _recompute(conn, reminders, "tzdb", sender)
        missing = [key for key, is_known in zones.items() if not is_known]
        conn.execute(
            query("note_missing_zones"),
            {
                "account_ids": [account_id for account_id, _ in missing],
                "schedules": [schedule for _, schedule in missing],
            },
        )
        done.is_left = len(waiting) == most
        reached = waiting[-1][:2] if done.is_left else (None, None)
        conn.execute(
            query("advance_recomputation"), {"account_id": reached[0], "intent_id": reached[1]}
        )
        return done


def _holds_newest(conn: psycopg.Connection[Any]) -> bool:
    """Nobody brings newer data until this transaction ends, and this process has the newest."""
    held = conn.execute(query("hold_calendar_state")).fetchone()
    return held is not None and held[0] <= tzdb_version()


def _recompute(
    conn: psycopg.Connection[Any], intents: Sequence[_Intent], reason: Reason, sender: str
) -> tuple[Recomputed, dict[tuple[str, str], bool]]:
    """What became of some waiting occurrences, and whether the zone of their schedule is known."""
    if not intents:
        return Recomputed(), {}
    keys = {
        "account_ids": [account_id for account_id, _ in intents],
        "intent_ids": [intent_id for _, intent_id in intents],
    }
    places: dict[_Intent, _Place] = {}
    for account_id, intent_id, due_at in conn.execute(query("lock_due_rows"), keys):
        places[account_id, intent_id] = _Place(due_at)
    for account_id, intent_id, due_at, cause in conn.execute(query("lock_held_rows"), keys):
        places[account_id, intent_id] = _Place(due_at, cause)
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(query("list_open_occurrences"), keys).fetchall()
    verdicts = list(_verdicts(rows, places, reason))
    _write(conn, [each for each in verdicts if each.verdict != "cancel"], reason)
    _cancel(conn, [each for each in verdicts if each.verdict == "cancel"], reason, sender)
    counts = Counter(each.verdict for each in verdicts)
    done = Recomputed(
        moved=counts["move"] + counts["release"],
        held=counts["hold"],
        cancelled=counts["cancel"],
    )
    return done, {(row["account_id"], row["schedule"]): is_known_zone(row["zone"]) for row in rows}


def _verdicts(
    rows: Iterable[Mapping[str, Any]], places: Mapping[_Intent, _Place], reason: Reason
) -> Iterable[_Verdict]:
    computed: dict[tuple[Rule, date], Occurrence | None] = {}
    for row in rows:
        place = places.get((row["account_id"], row["intent_id"]))
        if place is None:
            continue
        if reason == "tzdb" and row["was_rule_version"] != row["rule_version"]:
            # Due before the edit, or about to be computed again for it.
            continue
        rule = rule_of(row)
        key = (rule, row["nominal_on"])
        try:
            if key not in computed:
                computed[key] = _compute(rule, row["nominal_on"])
        except Exception as error:  # one bad rule never stops a pass
            _log.error(
                "schedule_not_computed", schedule=row["schedule"], error=type(error).__name__
            )
            continue
        yield _judge(row, place, computed[key])


def _compute(rule: Rule, nominal_on: date) -> Occurrence | None:
    one = next(occurrences(rule, after=nominal_on - _DAY), None)
    return one if one is not None and one.nominal_on == nominal_on else None


def _judge(row: Mapping[str, Any], place: _Place, one: Occurrence | None) -> _Verdict:
    was = row["due_at"]
    if one is None:
        return _Verdict(row, "cancel", place.due_at, None)
    if one.due_at is None:
        return _Verdict(row, "keep" if was is None else "hold", place.due_at, one)
    if was is None:
        is_released = place.cause in _HELD_FOR_THE_CALENDAR
        return _Verdict(row, "release" if is_released else "move", one.due_at, one)
    # What was put off (quiet hours, a try that failed) is not called earlier again.
    is_put_off = place.due_at != was
    due_at = max(place.due_at, one.due_at) if is_put_off else one.due_at
    if place.cause in _HELD_FOR_THE_CALENDAR:
        return _Verdict(row, "release", due_at, one)
    is_same = one.due_at == was and one.intended_local == row["intended_local"]
    return _Verdict(row, "keep" if is_same else "move", due_at, one)


def _write(conn: psycopg.Connection[Any], verdicts: Sequence[_Verdict], reason: Reason) -> None:
    found = [(each, each.one) for each in verdicts if each.one is not None]
    if not found:
        return
    conn.execute(
        query("write_recomputed"),
        {
            "tzdb_version": tzdb_version(),
            "account_ids": [each.row["account_id"] for each, _ in found],
            "intent_ids": [each.row["intent_id"] for each, _ in found],
            "schedules": [each.row["schedule"] for each, _ in found],
            "nominal_ons": [one.nominal_on for _, one in found],
            "verdicts": [each.verdict for each, _ in found],
            "row_due_ats": [each.row_due_at for each, _ in found],
            "due_ats": [one.due_at for _, one in found],
            "intended_locals": [one.intended_local for _, one in found],
            "zones": [one.zone for _, one in found],
            "cases": [one.case for _, one in found],
            "rule_versions": [each.row["rule_version"] for each, _ in found],
            "reason": reason,
        },
    )


def _cancel(
    conn: psycopg.Connection[Any], verdicts: Sequence[_Verdict], reason: Reason, sender: str
) -> None:
    if not verdicts:
        return
    why = (
        "the edited rule does not have this date"
        if reason == "edited"
        else f"the clock skips this time by time zone data {tzdb_version()}"
    )
    conn.execute(
        query("end_lacking_occurrences"),
        {
            "account_ids": [each.row["account_id"] for each in verdicts],
            "intent_ids": [each.row["intent_id"] for each in verdicts],
            "why": why,
            "ended_by": sender,
        },
    )
