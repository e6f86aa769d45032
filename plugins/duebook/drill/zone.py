"""A zone whose clock jumps when the drill needs it to, in place of one where nobody lives.

No real zone can be relied on to change its clock within the last half hour. So the drill writes a
TZif file of its own (RFC 8536) under a name that PostgreSQL knows too, and only its own processes
read it, in front of the pinned zones.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import whenever

NAME: Final = "Antarctica/Troll"
GAP: Final = timedelta(hours=1)

_HEADER: Final = struct.Struct(">4sc15x6l")


def write_zone(folder: Path, jumps_at: datetime) -> Path:
    """Write the zone: UTC until `jumps_at` (aware), then an hour ahead of it. Returns the file.

    So its clock never shows the hour that follows `jumps_at` in UTC.
    """
    before, after = b"+00\0", b"+01\0"
    kinds = struct.pack(">lbB", 0, 0, 0) + struct.pack(
        ">lbB", int(GAP.total_seconds()), 0, len(before)
    )
    # Version 1 knows 32 bits only and is left without a transition; every reader takes the second.
    first = _HEADER.pack(b"TZif", b"2", 0, 0, 0, 0, 1, len(before))
    first += struct.pack(">lbB", 0, 0, 0) + before
    second = _HEADER.pack(b"TZif", b"2", 0, 0, 0, 1, 2, len(before + after))
    second += struct.pack(">qB", int(jumps_at.timestamp()), 1) + kinds + before + after
    path = folder / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(first + second + b"\n<+01>-1\n")
    return path


@contextlib.contextmanager
def zones_of(folder: Path) -> Iterator[None]:
    """The calendar of this process reads `folder` before the pinned zones, for as long as this."""
    before = whenever.get_tzpath()
    whenever.reset_tzpath((folder,))
    whenever.clear_tzcache(only_keys=[NAME])
    try:
        yield
    finally:
        whenever.reset_tzpath(before)
        whenever.clear_tzcache(only_keys=[NAME])
