"""How many events a second an endpoint takes, and who can use that up."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duebook.settings import Settings
from duebook.web.allowance import Allowance
from tests.web.receiving import CONFIGURATION, event, running, stripe_headers

# One at once, and the next after a hundred seconds: no test takes so long.
LIMITED = CONFIGURATION.replace("[webhooks.stripe]\n", "[webhooks.stripe]\nmax_per_second = 0.01\n")


@pytest.fixture
def limited(receiving: Settings) -> Settings:
    assert receiving.config_file is not None
    receiving.config_file.write_text(LIMITED)
    return receiving


def test_what_is_beyond_the_rate_is_told_to_come_again_and_is_not_stored(
    limited: Settings, conn: psycopg.Connection[Any]
) -> None:
    with running(limited) as receiver:
        answers = [receiver.post(event(name)) for name in "123"]
        other = receiver.post(event("2"), endpoint="second")
    assert [answer.status_code for answer in answers] == [200, 429, 429]
    assert 90 <= int(answers[1].headers["retry-after"]) <= 100
    # Each endpoint has its own.
    assert other.status_code == 200
    stored = conn.execute("select endpoint, event_id from duebook.webhook_receipt order by 1")
    assert stored.fetchall() == [("second", "evt_2"), ("stripe", "evt_1")]


def test_strangers_use_up_nothing_of_the_providers_allowance(limited: Settings) -> None:
    body = event("1")
    forged = stripe_headers(body, secrets=("whsec_of_nobody",))
    stale = stripe_headers(body, at=1)
    with running(limited) as receiver:
        strangers = [receiver.post(body, headers) for headers in (forged, stale, {}) * 5]
        no_event = receiver.post(b"[]")
        genuine = receiver.post(body)
        # Nor is a forgery answered otherwise once the allowance is gone.
        after = receiver.post(body, forged)
    assert {answer.status_code for answer in strangers} == {401}
    assert (no_event.status_code, genuine.status_code, after.status_code) == (400, 200, 401)


def test_an_allowance_fills_up_to_one_second() -> None:
    allowance = Allowance(4.0)
    assert [allowance.take(100.0) for _ in range(5)] == [0.0, 0.0, 0.0, 0.0, 0.25]
    assert allowance.take(100.25) == 0.0
    assert [allowance.take(1000.0) for _ in range(5)] == [0.0, 0.0, 0.0, 0.0, 0.25]


@given(
    st.sampled_from([0.01, 0.5, 1.0, 7.0, 1000.0]),
    st.lists(st.floats(0, 10), min_size=1, max_size=200),
)
def test_no_time_sees_more_than_its_rate_and_a_wait_is_enough(
    per_second: float, gaps: list[float]
) -> None:
    allowance, now_s = Allowance(per_second), 0.0
    for taken, gap in enumerate(gaps, start=1):
        now_s += gap
        wait_s = allowance.take(now_s)
        if wait_s:
            now_s += wait_s + 1e-6
            assert allowance.take(now_s) == 0.0
        assert taken <= max(1.0, per_second) + now_s * per_second + 1e-3
