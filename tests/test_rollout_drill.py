"""The rollout drill: each key is sent once, by exactly one of the two senders."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from duebook.commands.rollout import render_drill
from duebook.drill.old_sender import SendLog
from duebook.drill.rollout import NIGHTS, PER_NIGHT, judge, rolled_out
from duebook.settings import Settings


@pytest.mark.crash
@pytest.mark.timeout(400)
def test_each_key_is_sent_once_by_exactly_one_of_the_two(settings: Settings) -> None:
    printed = io.StringIO()
    console = Console(file=printed, width=120, emoji=False)
    with rolled_out(settings, console) as rollout:
        document = judge(rollout)
        (account, key), owner = next(iter(rollout.expected.items()))
        SendLog(rollout.log).send((account, key))
        broken = judge(rollout)
    render_drill({**document, "seconds": 1.0}, console)
    assert document["wrong"] == document["violations"] == []
    assert document["ok"] is True
    assert document["keys"] == len(NIGHTS) * PER_NIGHT
    assert document["sent_by_old_sender"] + document["sent_by_duebook"] == document["keys"]
    assert document["sent_by_duebook"] > PER_NIGHT
    assert (document["lost"], document["doubled"]) == (0, 0)
    assert document["kills"] == 4
    assert document["comparison"]["both"] == document["sent_by_old_sender"]
    assert document["comparison"]["only_ours"] == document["sent_by_duebook"]
    assert "0 lost, 0 doubled" in printed.getvalue()
    assert owner == "old sender"
    assert broken["ok"] is False
    assert broken["doubled"] == 1
    assert key in broken["wrong"][0]


def test_the_first_five_nights_are_in_shadow_then_a_tenth_back_and_all() -> None:
    stages = [night.stage for night in NIGHTS]
    assert stages[:5] == ["shadow"] * 5
    assert [
        stage for stage, before in zip(stages, [None, *stages], strict=False) if stage != before
    ] == [
        "shadow",
        "tenth",
        "shadow",
        "all",
    ]
    assert {night.order for night in NIGHTS} == {"old_first", "duebook_first", "together"}
