"""Every way a task can fail: one line first, no traceback, and never a value of a row."""

from __future__ import annotations

import logging

import psycopg
import pytest
from psycopg.rows import TupleRow

from duebook.airflow.failures import (
    TaskAway,
    TaskBroken,
    TaskRefused,
    one_clear_line,
)
from duebook.errors import InputError, RefusedError, UnavailableError

SECRETS = ("7654321", "76543.21", "ada@example.org")


def said(caplog: pytest.LogCaptureFixture) -> str:
    """The one line that was logged."""
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is None
    message = record.getMessage()
    assert "\n" not in message
    assert not any(secret in message for secret in SECRETS)
    return message


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (InputError("report.csv can't be read as a whole: line 7"), TaskRefused, 2),
        (RefusedError("an as-of older than the last run's"), TaskRefused, 2),
        (UnavailableError("stripe is away: 503"), TaskAway, 3),
    ],
)
def test_what_duebook_foresees_is_said_as_it_is(
    caplog: pytest.LogCaptureFixture, error: Exception, kind: type[SystemExit], code: int
) -> None:
    with pytest.raises(kind) as caught, one_clear_line():
        raise error
    assert caught.value.code == code
    assert caught.value.__cause__ is None
    assert said(caplog) == str(error)


def test_a_database_error_is_told_without_the_row_it_quotes(
    caplog: pytest.LogCaptureFixture, conn: psycopg.Connection[TupleRow]
) -> None:
    conn.execute("create temporary table promise (address text primary key)")
    conn.execute("insert into promise values ('ada@example.org')")
    with pytest.raises(TaskBroken), one_clear_line():
        conn.execute("insert into promise values ('ada@example.org')")
    message = said(caplog)
    assert "promise_pkey" in message
    assert "23505" in message


def test_a_value_that_can_not_be_read_is_not_quoted(
    caplog: pytest.LogCaptureFixture, conn: psycopg.Connection[TupleRow]
) -> None:
    with pytest.raises(TaskBroken), one_clear_line():
        conn.execute("select '76543.21'::integer")
    assert "22P02" in said(caplog)


def test_a_database_that_goes_away_in_mid_work_is_tried_again(
    caplog: pytest.LogCaptureFixture, conn: psycopg.Connection[TupleRow], database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s)", [conn.info.backend_pid])
    with pytest.raises(TaskAway) as caught, one_clear_line():
        conn.execute("select 1")
    assert caught.value.code == 3
    assert "the database went away" in said(caplog)


def test_a_lock_that_is_not_to_be_had_is_tried_again(
    caplog: pytest.LogCaptureFixture, conn: psycopg.Connection[TupleRow], database_url: str
) -> None:
    with psycopg.connect(database_url) as other:
        other.execute("lock table duebook.environment")
        conn.execute("set lock_timeout = '50ms'")
        with pytest.raises(TaskAway), one_clear_line():
            conn.execute("select from duebook.environment")
    assert "the database was busy" in said(caplog)


def test_what_nobody_foresaw_is_told_by_its_place_alone(caplog: pytest.LogCaptureFixture) -> None:
    def parse() -> None:
        raise ValueError("invalid amount 76543.21 of ada@example.org")

    with pytest.raises(TaskBroken) as caught, one_clear_line():
        parse()
    assert caught.value.code == 70
    message = said(caplog)
    assert "unexpected ValueError" in message
    assert "test_failures.py" in message
    assert "parse" in message
