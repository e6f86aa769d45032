"""Hundreds of histories, thousands in `make prove`: none breaks what the model says must hold.

A failing seed prints its shortest history; `DUEBOOK_HISTORY=<seed>` plays one seed alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

from tests.simulation.histories import History, draw, explain_fault, fault_of
from tests.simulation.world import Setup, World

pytestmark = pytest.mark.slow

FEW, MANY, PARTS = 250, 10_000, 8
# Where processes must have died in them: the crash matrix of a queue, each point of it.
MATRIX = {
    "claim_batch, before its commit",
    "claim_batch, and nothing open",
    "lock_batch, before its commit",
    "read_window_facts, before its commit",
    "before the provider",
    "after the provider",
    "advance_batch, before its commit",
    "close_batch, before its commit",
    "rescue_batches, before its commit",
    "retest_held, before its commit",
    "expire_due, before its commit",
    "pick_schedules, before its commit",
    "finish_internal_batch, before its commit",
    "finish_internal_batch, and nothing open",
}
# The shortest form of each history that once broke something.
BROKE: dict[str, History] = {
    "an answer comes late while a repeat is in a batch that dies": History(
        seed=67,
        setup=Setup(batch_size=2, window=1, channel="echo", tokens=None, promised=5),
        deeds=(
            ("sweep", -54.0),
            ("to_send", 0),
            ("pass", 1000.0),
            ("sweep", 600.0),
            ("run", 0, 2),
            ("run", -1, 8),
            ("run", 1, 21),
            ("run", 5, 13),
            ("run", 5, 34),
            ("opt_out", 5),
            ("lose", 5, 0),
            ("run", 5, 34),
            ("to_send", 0),
            ("crash", 0),
            ("pass", 12000.0),
        ),
    ),
    "a provider recognises a repeat, and check calls it no second send": History(
        seed=6,
        setup=Setup(batch_size=2, window=3, channel="echo", tokens=None, promised=2),
        deeds=(
            ("sweep", 0.0),
            ("to_send", 5),
            ("pass", 1000.0),
            ("sweep", -600.0),
            ("run", 3, 34),
            ("run", 5, 21),
        ),
    ),
    "a sender sleeps in its repeat for longer than the provider remembers": History(
        seed=3090,
        setup=Setup(batch_size=6, window=2, channel="echo", tokens=5, promised=6),
        deeds=(
            ("sweep", 600.0),
            ("sweep", -378.0),
            ("to_send", 5),
            ("pass", 1000.0),
            ("to_send", 0),
            ("pass", 12000.0),
        ),
    ),
    "an answer comes late while the next sender gives its key up": History(
        seed=741,
        setup=Setup(batch_size=3, window=1, channel="echo", tokens=None, promised=4),
        deeds=(
            ("sweep", 0.0),
            ("to_send", 1),
            ("answer", 3, 0, 6, 2),
            ("sweep", -600.0),
            ("run", 0, 5),
            ("sweep", -600.0),
            ("to_send", 2),
            ("to_send", 2),
            ("pass", 1000.0),
            ("run", 0, 55),
            ("run", 2, 5),
        ),
    ),
}


def play_all(world: World, seeds: Iterable[int]) -> None:
    for seed in seeds:
        history = draw(seed)
        fault = fault_of(world, history)
        if fault is not None:
            pytest.fail(explain_fault(world, history, fault))


@pytest.mark.parametrize("history", BROKE.values(), ids=BROKE)
def test_what_broke_once_holds(world: World, history: History) -> None:
    assert fault_of(world, history) is None


@pytest.mark.timeout(900)
def test_no_history_breaks_a_promise(world: World) -> None:
    chosen = os.environ.get("DUEBOOK_HISTORY")
    play_all(world, [int(chosen)] if chosen else range(FEW))
    assert chosen or world.crashes.keys() >= MATRIX


@pytest.mark.prove
@pytest.mark.timeout(6000)
@pytest.mark.parametrize("part", range(PARTS))
def test_ten_thousand_histories_break_no_promise(world: World, part: int) -> None:
    play_all(world, range(FEW + part, MANY, PARTS))
