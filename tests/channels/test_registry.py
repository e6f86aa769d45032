"""From duebook.toml's name and a connection to a channel."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

from duebook.channels.base import ChannelConnection
from duebook.channels.registry import make_channel
from duebook.channels.webhook import WebhookChannel
from duebook.errors import ConfigurationError


@dataclass(frozen=True)
class Config:
    sender: str | None = "billing@shop.example"
    io_timeout_seconds: float = 20
    safe_retry_for: timedelta | None = None
    retry_waits: tuple[timedelta, ...] | None = None
    disable_after: timedelta | None = None
    max_segments: int = 3


def test_an_email_channel_has_its_settings() -> None:
    connection = ChannelConnection("smtp.example", extra={"max_connections": "3"})
    channel = make_channel("email", Config(), connection)
    assert channel.name == "email"
    assert channel.io_timeout.total_seconds() == 20
    # While one mail waits for its answer, the next one is under way on the same connection.
    assert channel.max_concurrency == 2 * 3
    assert not channel.idempotent


def test_a_second_account_of_a_kind_has_its_own_name() -> None:
    channel = make_channel("email_eu", Config(), ChannelConnection("smtp.example"))
    assert channel.name == "email_eu"


def test_a_webhook_channel_recognises_repeats_for_the_time_of_its_block() -> None:
    connection = ChannelConnection("", password="k" * 32, extra={"max_connections": "3"})
    channel = make_channel("webhook_partners", Config(sender=None), connection)
    assert (channel.name, channel.max_concurrency) == ("webhook_partners", 3)
    assert channel.idempotent
    assert channel.safe_retry_for == timedelta(days=3)
    config = Config(
        safe_retry_for=timedelta(hours=1),
        retry_waits=(timedelta(seconds=1),),
        disable_after=timedelta(days=2),
    )
    channel = make_channel("webhook", config, connection)
    assert channel.safe_retry_for == timedelta(hours=1)
    assert isinstance(channel, WebhookChannel)
    assert channel.retry_waits == (timedelta(seconds=1),)
    assert channel.disable_after == timedelta(days=2)


def test_a_channel_that_needs_no_connection() -> None:
    assert make_channel("noop", Config(sender=None)).name == "noop"


@pytest.mark.parametrize(
    ("name", "config", "connection"),
    [
        ("pigeon", Config(), ChannelConnection("h")),
        ("email", Config(), None),
        ("webhook", Config(), None),
        ("webhook", Config(), ChannelConnection("")),
        ("email", Config(sender=None), ChannelConnection("h")),
        ("email", Config(sender="nobody"), ChannelConnection("h")),
    ],
)
def test_what_is_missing_is_named(
    name: str, config: Config, connection: ChannelConnection | None
) -> None:
    with pytest.raises(ConfigurationError):
        make_channel(name, config, connection)
