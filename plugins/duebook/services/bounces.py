"""Mail that came back, from a Maildir or a file to delivery reports.

Each mail is by itself: what can't be read is copied into the quarantine with its reason, and the
others go on. A report is recorded once however often its mail is read, so a run that dies halfway
is simply repeated.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg
import structlog

from duebook.channels.bounces import LARGEST, BounceReport, UnreadableError, read_report
from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.errors import InputError

_log = structlog.get_logger(__name__)

_SEEN: Final = "S"
_OURS_ALONE: Final = 0o600


@dataclass(slots=True)
class BouncesRead:
    """What came of it, in mails; `recorded` and `known` are reports."""

    read: int = 0
    recorded: int = 0
    known: int = 0
    ignored: int = 0
    quarantined: list[dict[str, str]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The document of `duebook bounces read --json`."""
        return asdict(self)


def read_bounces(connect: Connect, source: Path, *, channel: str, quarantine: Path) -> BouncesRead:
    """Record what the mails of a Maildir, or the one of a file, report of `channel`'s mails.

    Of a Maildir those are read that are not marked as seen, and then marked so. Raises InputError
    (it is neither), UnavailableError.
    """
    done = BouncesRead()
    with connect() as conn:
        row = conn.execute(query("read_clock")).fetchone()
        assert row is not None
        for path in _mails(source):
            raw = _read(path)
            if raw is None:
                continue
            done.read += 1
            try:
                _record(conn, channel, read_report(raw, row[0]), done)
            except UnreadableError as error:
                done.quarantined.append({"file": path.name, "reason": str(error)})
                _keep(quarantine, raw, str(error))
            if source.is_dir():
                _mark_seen(source, path)
    _log.info("bounces_read", channel=channel, read=done.read, unreadable=len(done.quarantined))
    return done


def _record(
    conn: psycopg.Connection[Any], channel: str, reports: list[BounceReport], done: BouncesRead
) -> None:
    if not reports:
        done.ignored += 1
    for report in reports:
        row = conn.execute(
            query("record_delivery_report"), {"channel": channel, **asdict(report)}
        ).fetchone()
        if row is not None and row[0] == "recorded":
            done.recorded += 1
        else:
            done.known += 1


def _mails(source: Path) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    if not (source / "new").is_dir() or not (source / "cur").is_dir():
        raise InputError(f"{source}: no Maildir, which has the folders new and cur")
    for folder in ("cur", "new"):
        for path in sorted((source / folder).iterdir()):
            flags = path.name.rpartition(":2,")[2] if ":2," in path.name else ""
            if _SEEN not in flags and not path.name.startswith("."):
                yield path


def _read(path: Path) -> bytes | None:
    """At most one byte more than a report may have; None for what is gone or no plain file."""
    try:
        # Not through a link: whoever may write into the folder could have any file read.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as stream:
            return stream.read(LARGEST + 1)
    except OSError as error:
        _log.warning("bounce_not_readable", error=error.strerror)
        return None


def _mark_seen(source: Path, path: Path) -> None:
    base, _, flags = path.name.partition(":2,")
    marked = "".join(sorted({*flags, _SEEN}))
    path.rename(source / "cur" / f"{base}:2,{marked}")


def _keep(quarantine: Path, raw: bytes, reason: str) -> None:
    """By a name made of the content, so that the same mail is kept once."""
    quarantine.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = hashlib.sha256(raw).hexdigest()[:32]
    for suffix, content in (("eml", raw), ("reason", f"{reason}\n".encode())):
        target = quarantine / f"{name}.{suffix}"
        unfinished = quarantine / f".{name}.{suffix}.part"
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OURS_ALONE)
        with open(descriptor, "wb") as stream:
            stream.write(content)
        unfinished.replace(target)
