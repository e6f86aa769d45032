"""Every error a user can meet, each one clear line and an exit code.

Exit codes (the command line's contract): 0 done; 1 done, with differences, quarantined rows or
violations; 2 input unreadable as a whole or refused, nothing applied; 3 provider or database away.
"""

from __future__ import annotations


class DuebookError(Exception):
    """Duebook could not do what was asked."""

    exit_code = 2

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip().splitlines()[0])


class InputError(DuebookError):
    """The input can't be read as a whole; nothing was applied."""


class RefusedError(DuebookError):
    """The request contradicts what is stored; nothing was applied."""


class ConfigurationError(DuebookError):
    """A setting is missing or wrong."""


class UnavailableError(DuebookError):
    """A provider or the database is away; the next run picks up."""

    exit_code = 3


class WitnessAwayError(UnavailableError):
    """The witness can't be read or written; nothing is sent without it."""
