"""How a task fails: one clear line first in its log, no traceback, and no value of a row.

Airflow logs an exception with its traceback and its text, and the text of a database error quotes
rows: amounts and addresses would stand in the log. A task that exits is logged as "Task exited"
with its code and nothing else, so tasks say their own line and exit with the code that the command
line would give. The retry policy tells the exits apart.
"""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

from duebook.errors import DuebookError, UnavailableError

log = logging.getLogger("duebook.airflow")

UNEXPECTED_EXIT_CODE = 70
# Serialization failure and deadlock, out of resources, lock not to be had in time, cancelled.
PASSING = ("40001", "40P01", "53", "55P03", "57014")


class TaskRefused(SystemExit):
    """Input, settings or a request are wrong: a repeat would end the same way."""


class TaskAway(SystemExit):
    """A provider or the database is away: a repeat may find it back."""


class TaskBroken(SystemExit):
    """Something that Duebook did not foresee."""


def retry_when_away(delay: timedelta) -> ExceptionRetryPolicy:
    """Try again after `delay` what was away, as often as the task's `retries`; never the rest."""
    return ExceptionRetryPolicy(
        rules=[
            RetryRule(
                exception=TaskAway,
                retry_delay=delay,
                reason="a provider or the database is away",
            ),
            RetryRule(
                exception=TaskRefused,
                action=RetryAction.FAIL,
                reason="input, settings or the request are wrong; a retry can't help",
            ),
            RetryRule(
                exception=TaskBroken,
                action=RetryAction.FAIL,
                reason="not foreseen; a person has to look at it",
            ),
        ]
    )


@contextlib.contextmanager
def one_clear_line() -> Iterator[None]:
    """End the task with one line about what went wrong, when something does."""
    import psycopg

    from duebook.db.connect import describe, is_away

    try:
        yield
    except UnavailableError as error:
        log.error("%s", error)
        raise TaskAway(error.exit_code) from None
    except DuebookError as error:
        log.error("%s", error)
        raise TaskRefused(error.exit_code) from None
    except psycopg.Error as error:
        if is_away(error):
            log.error("the database went away: %s", describe(error))
            raise TaskAway(UnavailableError.exit_code) from None
        if str(error.sqlstate).startswith(PASSING):
            log.error("the database was busy: %s", describe(error))
            raise TaskAway(UnavailableError.exit_code) from None
        log.error("the database refused a statement: %s at %s", describe(error), _where(error))
        raise TaskBroken(UNEXPECTED_EXIT_CODE) from None
    except Exception as error:
        # Its text may quote a row; its place in the code can't.
        log.error("unexpected %s at %s", type(error).__name__, _where(error))
        raise TaskBroken(UNEXPECTED_EXIT_CODE) from None


def _where(error: BaseException) -> str:
    """The innermost calls of a traceback, `file:line function`, newest first."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    return " < ".join(
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames)
    )
