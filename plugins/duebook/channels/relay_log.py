"""What a mail relay accepted, by its own log: the look-up of a channel that has no API for it.

Postfix names a message when it begins to take it (`cleanup[…]: ID: message-id=<…>`) and once it has
answered for it (`qmgr[…]: ID: from=<…>, size=…`): the two together say that it was accepted, the
first alone says nothing. That no line names a message says something only where the log covers the
time asked about: Postfix wrote before it and went on after it, in one file or in files that
rotation numbered without a gap. Anything else can't be told, so a log that was rotated away, cut,
unreadable, standing still or of another program never turns into a second message.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from duebook.channels.base import Known, Tried
from duebook.errors import ConfigurationError

_POSTFIX: Final = re.compile(r" postfix\S*/\w+\[\d+\]: ")
_TAKING: Final = re.compile(r"/cleanup\[\d+\]: (\w+): message-id=(<[^<>\s]{1,998}>)\s*$")
_TAKEN: Final = re.compile(r"/qmgr\[\d+\]: (\w+): from=<[^>]*>, size=\d+")
_SYSLOG: Final = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d{2}:\d{2}:\d{2})\b")
# Short queue ids come again; what is queued under one so much later is another message.
_SAME_QUEUE_ID: Final = timedelta(hours=1)

# The earliest and the latest instant that a line's time can mean.
_Written = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class RelayLog:
    """The log at `path` and what it was rotated to beside it (`.1`, `.2.gz`, `-20261130`, ...).

    `known_within`: how long after accepting a message the relay may take to write its lines.
    """

    path: Path
    known_within: timedelta = timedelta(minutes=1)

    async def look_up(self, tried: Sequence[Tried]) -> list[Known]:
        """What the log says of each message; see base.LookUp."""
        if not tried:
            return []
        reading = _Reading(
            wanted=frozenset(each.message_id for each in tried),
            near=max(each.tried_until for each in tried),
        )
        files = self._files()
        parts = {part: reading.read(paths) for part, paths in files.items()}
        accepted = reading.queued(path for paths in files.values() for path in paths)
        covered = list(_covered(parts))

        def answer(each: Tried) -> Known:
            if each.message_id in accepted:
                return "accepted"
            until = each.tried_until + self.known_within
            is_covered = any(x.first <= each.tried_from and x.last >= until for x in covered)
            was_begun = each.message_id in reading.begun
            return "not_known" if is_covered and not was_begun else "cannot_tell"

        return [answer(each) for each in tried]

    def verify(self) -> str:
        """One line that says of which time it can tell. Raises ConfigurationError if of none."""
        try:
            near = datetime.fromtimestamp(self.path.stat().st_mtime, UTC)
        except OSError as error:
            raise ConfigurationError(f"{self.path}: {error.strerror}") from None
        reading = _Reading(wanted=frozenset(), near=near)
        covered = list(_covered({part: reading.read(x) for part, x in self._files().items()}))
        if not covered:
            raise ConfigurationError(
                f"{self.path}: can't be read, or names no message that Postfix took"
            )
        newest = max(covered, key=lambda span: span.last)
        return (
            f"{self.path} tells of {newest.first:%Y-%m-%d %H:%MZ} to {newest.last:%Y-%m-%d %H:%MZ}"
        )

    def _files(self) -> Mapping[int | str, list[Path]]:
        """The files of each part: 0 for the log itself, rotation's number, or its date.

        The newest first: what rotation moves meanwhile is then read twice, and never missed.
        """
        rotated = re.compile(re.escape(self.path.name) + r"(?:\.([0-9]+)|-([0-9]{8}))?(?:\.gz)?")
        found: dict[int | str, list[Path]] = {}
        with suppress(OSError):
            for path in sorted(self.path.parent.iterdir()):
                match = rotated.fullmatch(path.name)
                if match is not None:
                    part = match[2] or int(match[1] or 0)
                    found.setdefault(part, []).append(path)
        numbers = sorted(part for part in found if isinstance(part, int))
        dates = sorted((part for part in found if isinstance(part, str)), reverse=True)
        newest_first: list[int | str] = [*numbers, *dates]
        return {part: found[part] for part in newest_first}


@dataclass(frozen=True, slots=True)
class _Span:
    """From when to when Postfix wrote; `names_messages`: also which messages it took."""

    first: datetime
    last: datetime
    names_messages: bool


@dataclass(slots=True)
class _Reading:
    """One look into the files for the messages `wanted`, tried at about `near`."""

    wanted: Collection[str]
    near: datetime
    begun: set[str] = field(default_factory=set)
    _queue_ids: dict[str, list[tuple[str, datetime]]] = field(default_factory=dict)

    def read(self, paths: Sequence[Path]) -> _Span | bool:
        """The span of a part that was read to its end; True if it is empty, False if it was not.

        Rotation leaves two files of a part while it compresses: one whole file is enough.
        """
        for path in paths:
            with suppress(OSError, EOFError, zlib.error):
                return self._read(path) or True
        return False

    def _read(self, path: Path) -> _Span | None:
        first: _Written | None = None
        last_line, names_messages = "", False
        for line in _postfix_lines(path):
            first = first or _written_at(line, self.near)
            last_line = line
            match = _TAKING.search(line)
            if match is None:
                continue
            names_messages = True
            if match[2] in self.wanted:
                self.begun.add(match[2])
                written = _written_at(line, self.near)
                if written is not None:
                    self._queue_ids.setdefault(match[1], []).append((match[2], written[0]))
        last = _written_at(last_line, self.near)
        return _Span(first[1], last[0], names_messages) if first and last else None

    def queued(self, paths: Iterable[Path]) -> set[str]:
        """Those of the messages that the relay has answered for."""
        found = set[str]()
        if not self._queue_ids:
            return found
        for path in paths:
            with suppress(OSError, EOFError, zlib.error):
                for line in _postfix_lines(path):
                    match = _TAKEN.search(line)
                    if match is not None and match[1] in self._queue_ids:
                        written = _written_at(line, self.near)
                        found.update(
                            message_id
                            for message_id, begun_at in self._queue_ids[match[1]]
                            if written and abs(written[0] - begun_at) <= _SAME_QUEUE_ID
                        )
        return found


def _covered(parts: Mapping[int | str, _Span | bool]) -> Iterator[_Span]:
    """The times in which no line can be missing: files in a row by their numbers, or one file."""
    row: list[_Span] = []
    numbers = [part for part in parts if isinstance(part, int)]
    previous = None
    for number in sorted(numbers):
        part = parts[number]
        if part is False or (previous is not None and number != previous + 1):
            yield from _joined(row)
            row = []
        previous = number
        if isinstance(part, _Span):
            row.append(part)
    yield from _joined(row)
    for number_or_date, part in parts.items():
        if isinstance(number_or_date, str) and isinstance(part, _Span):
            yield from _joined([part])


def _joined(row: Sequence[_Span]) -> Iterator[_Span]:
    if any(each.names_messages for each in row):
        yield _Span(min(each.first for each in row), max(each.last for each in row), True)


def _postfix_lines(path: Path) -> Iterator[str]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if _POSTFIX.search(line):
                yield line


def _written_at(line: str, near: datetime) -> _Written | None:
    """When a line was written: RFC 3339 with an offset, or syslog's "Dec  1 04:00:00".

    The latter has neither year nor offset: it is local time of this machine, in the year that
    brings it nearest to `near`. In the hour that a clock repeats it can mean two instants.
    """
    with suppress(ValueError):
        instant = datetime.fromisoformat(line.partition(" ")[0])
        return (instant.astimezone(UTC),) * 2 if instant.tzinfo is not None else None
    match = _SYSLOG.match(line)
    if match is None:
        return None
    candidates: list[_Written] = []
    for year in (near.year - 1, near.year, near.year + 1):
        with suppress(ValueError):
            text = f"{year} {match[1]} {match[2]} {match[3]}"
            once = datetime.strptime(text, "%Y %b %d %H:%M:%S").astimezone(UTC)
            again = once.astimezone().replace(tzinfo=None, fold=1).astimezone(UTC)
            candidates.append((min(once, again), max(once, again)))
    return min(candidates, key=lambda written: abs(written[0] - near), default=None)
