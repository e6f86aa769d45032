"""Hundreds of histories, thousands in `make prove`: none breaks what the model says must hold.

A failing seed prints its shortest history; `DUEBOOK_HISTORY=<seed>` plays one seed alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import pytest

from tests.simulation.histories import draw, explain_fault, fault_of
from tests.simulation.world import World

pytestmark = pytest.mark.slow

FEW, MANY = 250, 10_000


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    made = World(database_url)
    with made.entered():
        yield made
    made.close()


def play_all(world: World, seeds: Iterable[int]) -> None:
    for seed in seeds:
        history = draw(seed)
        fault = fault_of(world, history)
        if fault is not None:
            pytest.fail(explain_fault(world, history, fault))


@pytest.mark.timeout(300)
def test_no_history_breaks_a_promise(world: World) -> None:
    chosen = os.environ.get("DUEBOOK_HISTORY")
    play_all(world, [int(chosen)] if chosen else range(FEW))
