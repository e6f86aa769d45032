"""A receiver of two Stripe endpoints and one of Standard Webhooks, for the test's own database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from duebook.settings import Settings
from tests.web.receiving import CONFIGURATION, Running, running


@pytest.fixture
def receiving(settings: Settings, tmp_path: Path) -> Settings:
    """Settings whose duebook.toml has endpoints."""
    file = tmp_path / "duebook.toml"
    file.write_text(CONFIGURATION)
    return settings.model_copy(update={"config_file": file})


@pytest.fixture
def receiver(receiving: Settings) -> Iterator[Running]:
    with running(receiving) as started:
        yield started
