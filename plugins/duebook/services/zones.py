"""Time zone data: what this process has, what the server has, and what promises need of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import psycopg
import structlog

from duebook.db.sql import query
from duebook.domain.business_days import holiday_calendars
from duebook.domain.calendar import is_known_zone, tzdb_version

_log = structlog.get_logger(__name__)

# Offsets in hours east of UTC that changed lately or are easily old: a copy of the tz database
# from before 2026f says otherwise (Vancouver, Edmonton, Winnipeg and Inuvik stay on summer time
# from 1 November 2026, Havana stays too, Casablanca is at 0 from 20 September 2026).
ZONE_PROBES: Final[Sequence[tuple[str, datetime, int]]] = (
    ("America/Vancouver", datetime(2026, 12, 15, 12, tzinfo=UTC), -7),
    ("America/Edmonton", datetime(2026, 12, 15, 12, tzinfo=UTC), -6),
    ("America/Winnipeg", datetime(2026, 12, 15, 12, tzinfo=UTC), -5),
    ("America/Inuvik", datetime(2026, 12, 15, 12, tzinfo=UTC), -6),
    ("America/Havana", datetime(2026, 12, 15, 12, tzinfo=UTC), -4),
    ("Africa/Casablanca", datetime(2026, 12, 15, 12, tzinfo=UTC), 0),
    ("Europe/Berlin", datetime(2026, 7, 15, 12, tzinfo=UTC), 2),
)


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that promises depend on and that is not known here: `users` of them."""

    name: str
    users: int

    def __str__(self) -> str:
        return f"{self.name} ({self.users:,})"


@dataclass(frozen=True, slots=True)
class PromiseZones:
    """What schedules and contacts name that this process does not know."""

    of_schedules: tuple[Missing, ...]
    of_contacts: tuple[Missing, ...]
    holidays: tuple[Missing, ...]


def missing_zones(conn: psycopg.Connection[Any]) -> PromiseZones:
    """Unknown zones of schedules that go on and of contacts, and unknown calendars of holidays."""
    unknown: dict[str, list[Missing]] = {"schedule": [], "contact": []}
    for zone_of, zone, users in conn.execute(query("list_promise_zones")):
        if not is_known_zone(zone):
            unknown[zone_of].append(Missing(zone, users))
    calendars = holiday_calendars()
    return PromiseZones(
        of_schedules=tuple(unknown["schedule"]),
        of_contacts=tuple(unknown["contact"]),
        holidays=tuple(
            Missing(name, users)
            for name, users in conn.execute(query("list_holiday_calendars"))
            if name not in calendars
        ),
    )


def older_tzdb(newest: str) -> str | None:
    """Why this process may compute no occurrence; None when its data is the newest."""
    ours = tzdb_version()
    if newest <= ours:
        return None
    return (
        f"time zone data {ours} of this process is older than {newest}, which another process used "
        "here: no occurrence is computed until tzdata is updated"
    )


def compare_tzdb(conn: psycopg.Connection[Any], sender: str) -> str | None:
    """Record this process's time zone data where it is the newest; why it may compute nothing."""
    ours = tzdb_version()
    state = conn.execute(query("read_calendar_state")).fetchone()
    if state is None or state[0] < ours:
        with conn.transaction():
            conn.execute(query("lock_calendar_state"))
            conn.execute(query("record_tzdb"), {"tzdb_version": ours, "recorded_by": sender})
        state = conn.execute(query("read_calendar_state")).fetchone()
    return None if state is None else older_tzdb(state[0])


def newest_tzdb(conn: psycopg.Connection[Any]) -> tuple[str, str] | None:
    """The newest time zone data that a sweep had on this database, and which sender brought it."""
    state = conn.execute(query("read_calendar_state")).fetchone()
    return None if state is None else (state[0], state[3])


def differing_server_zones(conn: psycopg.Connection[Any]) -> list[str]:
    """Zones that changed lately of which the server still has the old rules, or none."""
    rows = conn.execute(
        query("compare_offsets"),
        {
            "zones": [zone for zone, _, _ in ZONE_PROBES],
            "instants": [instant for _, instant, _ in ZONE_PROBES],
            "offsets": [hours * 3600 for _, _, hours in ZONE_PROBES],
        },
    )
    return [row[0] for row in rows]


def compare_at_start(conn: psycopg.Connection[Any], sender: str) -> tuple[str, ...]:
    """Compare this process's time zone data with the newest that was here and with the server's.

    Returns the zones that the server has other rules of: due times are computed in Python, so that
    only local days of reports may be wrong.
    """
    refusal = compare_tzdb(conn, sender)
    if refusal is not None:
        _log.error("tzdb_is_old", sender=sender, reason=refusal)
    return tuple(differing_server_zones(conn))
