"""What a mail relay accepted, by its own log: the look-up of a channel that has no API for it.

A line that names a Message-ID (Postfix's cleanup, and most others, write `message-id=<...>` when
they take a message) says that it was accepted. That none does says something only where the log
covers the time asked about: its lines begin before and go on after. Anything else can't be told, so
a log that was rotated away, cut or stands still never turns into a second message.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from duebook.channels.base import Known

_MESSAGE_ID: Final = re.compile(r"<[^<>\s]{1,998}>")
_SYSLOG: Final = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d{2}:\d{2}:\d{2})\b")


@dataclass(frozen=True, slots=True)
class RelayLog:
    """The log at `path` and what it was rotated to beside it (`.1`, `.2.gz`, ...).

    `known_within`: how long after accepting a message the relay may take to write its line.
    """

    path: Path
    known_within: timedelta = timedelta(minutes=1)

    async def look_up(
        self, message_ids: Sequence[str], *, tried_from: datetime, tried_until: datetime
    ) -> list[Known]:
        """What the log says of each Message-ID tried between two instants; see base.LookUp."""
        wanted, found = set(message_ids), set[str]()
        first: datetime | None = None
        last: datetime | None = None
        for path in self._files():
            with suppress(OSError, EOFError, UnicodeError):
                for line in _lines(path):
                    found.update(wanted.intersection(_MESSAGE_ID.findall(line)))
                    written_at = _written_at(line, tried_until)
                    if written_at is not None:
                        first = min(first or written_at, written_at)
                        last = max(last or written_at, written_at)
        is_covered = (
            first is not None
            and last is not None
            and first <= tried_from
            and last >= tried_until + self.known_within
        )
        absent: Known = "not_known" if is_covered else "cannot_tell"
        return ["accepted" if each in found else absent for each in message_ids]

    def _files(self) -> list[Path]:
        rotated = re.compile(re.escape(self.path.name) + r"(\.[0-9]+|-[0-9]{8})?(\.gz)?")
        with suppress(OSError):
            return sorted(p for p in self.path.parent.iterdir() if rotated.fullmatch(p.name))
        return []


def _lines(path: Path) -> Iterator[str]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", errors="replace") as lines:
        yield from lines


def _written_at(line: str, near: datetime) -> datetime | None:
    """When a line was written: RFC 3339 with an offset, or syslog's "Dec  1 04:00:00".

    The latter has neither year nor offset: it is local time of this machine, in the year that
    brings it nearest to `near`.
    """
    word = line.partition(" ")[0]
    with suppress(ValueError):
        instant = datetime.fromisoformat(word)
        return instant.astimezone(UTC) if instant.tzinfo is not None else None
    match = _SYSLOG.match(line)
    if match is None:
        return None
    candidates = []
    for year in (near.year - 1, near.year, near.year + 1):
        with suppress(ValueError):
            text = f"{year} {match[1]} {match[2]} {match[3]}"
            candidates.append(datetime.strptime(text, "%Y %b %d %H:%M:%S").astimezone(UTC))
    return min(candidates, key=lambda instant: abs(instant - near), default=None)
