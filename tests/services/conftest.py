"""A database with the shipped configuration, for the services that reconcile and import."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.settlement_files import World, make_world


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> World:
    """A database of this test's own; provider accounts are applied by the first run."""
    return make_world(database_url, tmp_path)
