"""Waits grow, are capped and jittered; Retry-After is read in each of its forms."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duebook.domain.backoff import (
    LONGEST_RETRY,
    LONGEST_RETRY_AFTER,
    SHORTEST_RETRY,
    parse_retry_after,
    pause_until,
    retry_delay,
)

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
jitters = st.floats(min_value=0, max_value=1, exclude_max=True)


def test_delays_double_up_to_the_longest() -> None:
    delays = [retry_delay(n, jitter=0) for n in range(1, 12)]
    assert delays[0] == SHORTEST_RETRY / 2
    assert delays[1] == SHORTEST_RETRY
    assert delays[-1] == LONGEST_RETRY / 2


@given(st.integers(min_value=1, max_value=10**6), jitters)
def test_a_delay_is_positive_and_never_beyond_the_longest(n: int, jitter: float) -> None:
    delay = retry_delay(n, jitter=jitter)
    assert SHORTEST_RETRY / 2 <= delay <= LONGEST_RETRY


@pytest.mark.parametrize(("n", "jitter"), [(0, 0.5), (1, 1.0), (1, -0.1)])
def test_a_nonsensical_delay_is_refused(n: int, jitter: float) -> None:
    with pytest.raises(ValueError, match=r"n|jitter"):
        retry_delay(n, jitter=jitter)


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("120", timedelta(seconds=120)),
        (" 120 ", timedelta(seconds=120)),
        ("0", timedelta(0)),
        ("1.5", timedelta(seconds=1.5)),
        ("Mon, 30 Nov 2026 12:05:00 GMT", timedelta(minutes=5)),
        ("Monday, 30-Nov-26 12:05:00 GMT", timedelta(minutes=5)),
        ("Mon Nov 30 12:05:00 2026", timedelta(minutes=5)),
        ("Mon, 30 Nov 2026 11:00:00 GMT", timedelta(0)),
        ("Wed, 30 Nov 2099 12:00:00 GMT", LONGEST_RETRY_AFTER),
        ("31536000000", LONGEST_RETRY_AFTER),
        ("9" * 5000, LONGEST_RETRY_AFTER),
        (None, None),
        ("", None),
        ("-5", None),
        ("soon", None),
        ("Mon, 99 Nov 2026 12:05:00 GMT", None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(value: str | None, wait: timedelta | None) -> None:
    assert parse_retry_after(value, NOW) == wait


@given(st.text(max_size=40))
def test_no_retry_after_breaks_the_reader(value: str) -> None:
    wait = parse_retry_after(value, NOW)
    assert wait is None or timedelta(0) <= wait <= LONGEST_RETRY_AFTER


@given(
    st.integers(min_value=1, max_value=50),
    jitters,
    st.one_of(st.none(), st.timedeltas(timedelta(0), LONGEST_RETRY_AFTER)),
)
def test_a_pause_is_never_shorter_than_the_provider_asked(
    n: int, jitter: float, asked: timedelta | None
) -> None:
    until = pause_until(NOW, n, jitter=jitter, retry_after=asked)
    assert NOW + (asked or timedelta(0)) <= until <= NOW + LONGEST_RETRY_AFTER
    assert until > NOW
