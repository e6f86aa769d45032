"""What single replies mean: their code, their scope, and the id that they name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duebook.channels.smtp_replies import Stage, judge_reply

STAGES: list[Stage] = ["greeting", "login", "sender", "recipient", "data", "message"]


@pytest.mark.parametrize(
    ("stage", "code", "text", "scope"),
    [
        ("recipient", 452, "4.2.2 mailbox full", "message"),
        ("recipient", 450, "4.2.0 greylisted", "message"),
        ("recipient", 450, "4.7.1 greylisted", "message"),
        ("recipient", 451, "4.7.1 greylisted", "message"),
        ("recipient", 454, "4.7.0 not now", "channel"),
        ("recipient", 450, "mailbox busy", "message"),
        ("recipient", 550, "4.2.2 full for now", "message"),
        ("recipient", 450, "4.7.28 too much from you", "channel"),
        ("recipient", 452, "4.3.1 disk full", "channel"),
        ("recipient", 451, "local error", "channel"),
        ("recipient", 452, "too many", "channel"),
        ("recipient", 421, "4.2.1 closing", "channel"),
        ("message", 452, "4.2.2 mailbox full", "message"),
        ("message", 451, "4.7.1 wait", "channel"),
        ("message", 450, "wait", "channel"),
        ("sender", 450, "4.1.8 no", "channel"),
        ("greeting", 450, "4.2.1 no", "channel"),
    ],
)
def test_one_mailbox_does_not_stop_the_channel(
    stage: Stage, code: int, text: str, scope: str
) -> None:
    result = judge_reply(stage, code, text)
    assert (result.status, result.scope) == ("later", scope)


@given(st.sampled_from(STAGES), st.integers(-1, 999), st.text(max_size=60))
def test_every_reply_has_a_meaning_and_repeats_nothing(stage: Stage, code: int, text: str) -> None:
    marked = judge_reply(stage, code, f"{text} jane@example.org 1234567.89")
    assert marked.status in ("accepted", "later", "refused", "unknown")
    assert (marked.status == "unknown") <= (stage == "message")
    assert (marked.status == "accepted") == (stage == "message" and 200 <= code < 300)
    assert (marked.status == "refused") <= (500 <= code < 600)
    assert "@" not in repr(marked)
    assert "1234567" not in repr(marked)
