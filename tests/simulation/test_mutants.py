"""Each fault that is put into the product is noticed within 200 histories."""

from __future__ import annotations

import pytest

from tests.simulation.histories import draw, fault_of
from tests.simulation.mutants import NAMED, OTHERS, Mutant, applied
from tests.simulation.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

HISTORIES = 200


def dies_at(world: World, mutant: Mutant) -> int | None:
    """The seed of the first history that notices."""
    with applied(mutant, world.conn):
        for seed in range(HISTORIES):
            if fault_of(world, draw(seed)) is not None:
                return seed
    return None


@pytest.mark.parametrize("mutant", NAMED, ids=lambda mutant: mutant.name)
def test_a_fault_of_the_four_is_noticed(world: World, mutant: Mutant) -> None:
    assert dies_at(world, mutant) is not None


@pytest.mark.prove
@pytest.mark.parametrize("mutant", OTHERS, ids=lambda mutant: mutant.name)
def test_every_other_fault_is_noticed(world: World, mutant: Mutant) -> None:
    assert dies_at(world, mutant) is not None
