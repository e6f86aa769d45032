"""Incidents: from open, which freezes manual replay, to close, which proves what came of it.

One is open at a time. While it is, nobody replays by hand, and where it says so the sweeps claim
nothing; what Airflow starts by its schedule goes on. The functions of the same names in SQL do the
work: an operator with nothing but psql can do all of it.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import psycopg
from psycopg import errors
from psycopg.rows import class_row, dict_row

from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.errors import InputError, RefusedError
from duebook.services.preview import write_due_occurrences

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
SHORTEST_POLL: Final = timedelta(seconds=1)
# A look at the backlog costs the database time: it gets at most a tenth of it.
_SHARE_OF_TIME: Final = 10
# Fewer samples are kept than seen: enough to draw the curve of a long night.
MOST_SAMPLES: Final = 200


@dataclass(frozen=True, slots=True)
class Sample:
    """How far the backlog has fallen at one instant.

    `due` and `oldest_due_s` are of everything that is due, `in_doubt` of everything in doubt;
    `sent`, `done`, `ended`, `later` and `sending` of what the incident noted. `last_at`: when the
    last of those that were put off may go.
    """

    at: datetime
    due: int
    oldest_due_s: float
    in_doubt: int
    sent: int
    done: int
    ended: int
    later: int
    sending: int
    last_at: datetime | None

    @property
    def is_clear(self) -> bool:
        """Whether nothing is due and no sender has anything of the incident in hand."""
        return self.due == 0 and self.sending == 0

    def to_json(self) -> dict[str, Any]:
        """Instants as ISO 8601, ages in seconds."""
        return {
            **asdict(self),
            "at": self.at.isoformat(),
            "oldest_due_s": round(self.oldest_due_s, 3),
            "last_at": None if self.last_at is None else self.last_at.isoformat(),
        }


def require_no_incident(connect: Connect, what: str) -> None:
    """Raise RefusedError naming the open incident, if there is one; `what` is what was asked."""
    with connect() as conn:
        row = conn.execute(query("find_open_incident")).fetchone()
    if row is not None:
        name, opened_by = row[0], row[1]
        raise RefusedError(
            f"incident {name} is open (by {opened_by}): {what} is frozen until "
            f"`duebook incident close {name}`"
        )


def open_incident(
    connect: Connect, *, name: str, reason: str, band: timedelta, pauses_sweep: bool, by: str
) -> dict[str, Any]:
    """Open one: `{name, reason, pauses_sweep, band_s, opened_by, opened_at, due, batches}`.

    `due` intents were noted, `batches` are with senders, which finish their window. Raises
    InputError (a bad name, no reason, a band below a second), RefusedError (one is open already, or
    the name was used).
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is no name of an incident; expected one like `2026-11-30-relay-down`: "
            "letters, digits, dots, dashes, underscores, at most 63"
        )
    if not reason.strip():
        raise InputError("an incident states its reason")
    if band < timedelta(seconds=1):
        raise InputError("the band is at least a second, such as PT5M")
    values = {
        "name": name,
        "reason": reason,
        "band": band,
        "pauses_sweep": pauses_sweep,
        "by": by,
    }
    with connect() as conn, conn.cursor(row_factory=dict_row) as cursor:
        with _refusals():
            opened = cursor.execute(query("open_incident"), values).fetchone()
        row = cursor.execute(query("read_opened_incident"), opened).fetchone()
    assert row is not None
    return _plain(row)


def resume_incident(connect: Connect, name: str | None, *, by: str) -> dict[str, Any]:
    """Let the sweeps go on: `{name, incident_id, resumed, calendar}`.

    `resumed` is False where it was before. First every occurrence of a schedule that fell due
    meanwhile is written, so that what is noted is all that is due; `calendar` says why none could
    be. Raises RefusedError when none, or another one, is open.
    """
    calendar = None
    with connect() as conn:
        found = _open_one(conn, name)
        if found["resumed_at"] is None:
            calendar = write_due_occurrences(
                lambda work: work(conn), sender=f"incident:{found['name']}"
            )
        with _refusals(), conn.transaction():
            row = conn.execute(
                query("resume_incident"), {"name": found["name"], "by": by}
            ).fetchone()
    assert row is not None
    return {
        "name": found["name"],
        "incident_id": found["incident_id"],
        "resumed": row[0],
        "calendar": None if calendar is None else calendar.refusal,
    }


def close_incident(connect: Connect, name: str | None, *, by: str) -> dict[str, Any]:
    """Close it with its report, which is stored; see docs/runbook.md for what it holds.

    Where `refused` is not empty, it stays open and nothing was changed. Raises RefusedError when
    none, or another one, is open.
    """
    with connect() as conn:
        found = _open_one(conn, name)
        with _refusals(), conn.transaction():
            row = conn.execute(
                query("close_incident"), {"name": found["name"], "by": by}
            ).fetchone()
    assert row is not None
    report: dict[str, Any] = row[0]
    return report


def read_report(connect: Connect, name: str) -> dict[str, Any]:
    """The report of a closed incident, or what an open one comes to as of now.

    Raises InputError for an unknown name.
    """
    with connect() as conn:
        row = conn.execute(query("read_incident_report"), {"name": name}).fetchone()
    if row is None:
        raise InputError(f"there is no incident {name}; `duebook incident list` shows them all")
    report: dict[str, Any] = row[0]
    return report


def list_incidents(connect: Connect) -> list[dict[str, Any]]:
    """Every incident, the newest first."""
    with connect() as conn, conn.cursor(row_factory=dict_row) as cursor:
        return [_plain(row) for row in cursor.execute(query("list_incidents"))]


def watch(
    connect: Connect,
    incident_id: int,
    *,
    every: timedelta,
    longest: timedelta | None,
    should_stop: Callable[[float], bool],
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Sample]:
    """Samples until the backlog is clear, `longest` has passed, or `should_stop` says so.

    `should_stop` waits for the given seconds. Samples are at least a second apart, and further
    where a look takes the database long.
    """
    started = clock()
    every_s = max(every, SHORTEST_POLL).total_seconds()
    with connect() as conn:
        while True:
            looked = clock()
            sample = read_sample(conn, incident_id)
            took = clock() - looked
            yield sample
            if sample.is_clear:
                return
            pause = max(every_s, took * _SHARE_OF_TIME)
            if longest is not None:
                pause = min(pause, longest.total_seconds() - (clock() - started))
                if pause <= 0:
                    return
            if should_stop(pause):
                return


def read_sample(conn: psycopg.Connection[Any], incident_id: int) -> Sample:
    """How far the backlog has fallen, now."""
    with conn.cursor(row_factory=class_row(Sample)) as cursor:
        sample = cursor.execute(
            query("read_incident_progress"), {"incident_id": incident_id}
        ).fetchone()
    assert sample is not None
    return sample


def store_samples(connect: Connect, incident_id: int, samples: Sequence[Sample]) -> None:
    """Keep the curve with the incident, thinned out to MOST_SAMPLES; the last one always."""
    step = -(-len(samples) // MOST_SAMPLES) or 1
    kept = list(reversed(samples[::-1][::step]))
    with connect() as conn:
        conn.execute(
            query("store_incident_samples"),
            {
                "incident_id": incident_id,
                "samples": json.dumps([sample.to_json() for sample in kept]),
            },
        )


def _open_one(conn: psycopg.Connection[Any], name: str | None) -> dict[str, Any]:
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(query("read_incident"), {"name": name}).fetchone()
    if row is None:
        raise RefusedError(
            "no incident is open" if name is None else f"there is no incident {name}"
        )
    if row["closed_at"] is not None:
        raise RefusedError(f"incident {row['name']} is closed")
    return row


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """What a function refuses, as one clear line."""
    try:
        yield
    except errors.ObjectNotInPrerequisiteState as error:
        raise RefusedError(error.diag.message_primary) from None


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value.isoformat() if isinstance(value, datetime) else value
        for key, value in row.items()
    }
