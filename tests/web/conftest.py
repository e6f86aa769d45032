"""A receiver of two Stripe endpoints and one of Standard Webhooks, for the test's own database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from duebook.settings import Settings
from tests.web.receiving import CONFIGURATION, Running, running, with_database


@pytest.fixture
def configured(tmp_path: Path) -> Settings:
    """Settings whose duebook.toml has endpoints, and whose database is nowhere."""
    file = tmp_path / "duebook.toml"
    file.write_text(CONFIGURATION)
    nowhere = SecretStr("postgresql://nobody@127.0.0.1:1/nothing")
    return Settings(home=tmp_path / "home", config_file=file, database_url=nowhere)


@pytest.fixture
def receiving(configured: Settings, database_url: str) -> Settings:
    """The same, with a database."""
    return with_database(configured, database_url)


@pytest.fixture
def receiver(receiving: Settings) -> Iterator[Running]:
    with running(receiving) as started:
        yield started
