"""One simulated world a test; many histories are played in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from tests.simulation.world import World


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """A database with nobody about, the product's clock in the hands of the test."""
    made = World(database_url)
    before = structlog.get_config()
    # Thousands of broken connections are no news here.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    try:
        with made.entered():
            yield made
    finally:
        structlog.configure(**before)
        made.close()
