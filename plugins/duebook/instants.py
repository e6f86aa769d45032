"""Instants as people and schedulers write them."""

from __future__ import annotations

from datetime import UTC, datetime

from duebook.errors import InputError

# Outside these years a promise's own arithmetic (a week later, a month before) leaves the calendar.
FIRST_YEAR, LAST_YEAR = 1970, 9000


def parse_instant(text: str | None, name: str) -> datetime | None:
    """An ISO 8601 instant with its offset; None for None.

    Raises InputError naming what it is (`--as-of`) and what was expected.
    """
    if text is None:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{name}: {text!r} is no ISO 8601 instant such as 2026-11-30T02:00:00Z"
        ) from None
    if instant.tzinfo is None:
        raise InputError(f"{name}: {text!r} has no offset; write 2026-11-30T02:00:00Z")
    try:
        year = instant.astimezone(UTC).year
    except OverflowError:
        year = 0
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise InputError(f"{name}: {text!r} is not between the years {FIRST_YEAR} and {LAST_YEAR}")
    return instant
