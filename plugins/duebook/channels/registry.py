"""From a name in duebook.toml to a channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from duebook.channels.base import Channel, ChannelConfig, ConnectionLike, LookUp, LookUpConfig
from duebook.channels.email import EmailChannel, EmailOptions
from duebook.channels.noop import NoopChannel
from duebook.channels.relay_log import RelayLog
from duebook.channels.sms import SmsChannel, SmsOptions
from duebook.channels.webhook import WebhookChannel, WebhookOptions
from duebook.errors import ConfigurationError

_Maker = Callable[[str, ChannelConfig, ConnectionLike | None], Channel]


def make_channel(
    name: str, config: ChannelConfig, connection: ConnectionLike | None = None
) -> Channel:
    """The channel of a block [channels.<name>], not yet open.

    The name says the kind: `email`, `sms`, `webhook`, `noop`; further accounts of a kind are
    `email_<account>`. `connection` may be None only where none is needed. Raises
    ConfigurationError.
    """
    kind = name.partition("_")[0]
    maker = _MAKERS.get(kind)
    if maker is None:
        known = ", ".join(sorted(_MAKERS))
        raise ConfigurationError(f"channels.{name}: unknown kind of channel, expected {known}")
    return maker(name, config, connection)


def _make_email(name: str, config: ChannelConfig, connection: ConnectionLike | None) -> Channel:
    if connection is None:
        raise ConfigurationError(f"channels.{name}: its connection is not defined")
    if not config.sender:
        raise ConfigurationError(f"channels.{name}: sender is missing")
    options = EmailOptions.from_connection(
        connection,
        sender=config.sender,
        io_timeout=timedelta(seconds=config.io_timeout_seconds),
    )
    return EmailChannel(options, name=name)


def _make_noop(name: str, config: ChannelConfig, connection: ConnectionLike | None) -> Channel:
    del connection
    return NoopChannel(name, io_timeout=timedelta(seconds=config.io_timeout_seconds))


def _make_sms(name: str, config: ChannelConfig, connection: ConnectionLike | None) -> Channel:
    if connection is None:
        raise ConfigurationError(f"channels.{name}: its connection is not defined")
    options = SmsOptions.from_connection(
        connection,
        io_timeout=timedelta(seconds=config.io_timeout_seconds),
        max_segments=config.max_segments,
    )
    return SmsChannel(options, name=name)


def _make_webhook(name: str, config: ChannelConfig, connection: ConnectionLike | None) -> Channel:
    if connection is None:
        raise ConfigurationError(f"channels.{name}: its connection is not defined")
    options = WebhookOptions.from_connection(
        connection,
        io_timeout=timedelta(seconds=config.io_timeout_seconds),
        safe_retry_for=config.safe_retry_for,
        retry_waits=config.retry_waits,
        disable_after=config.disable_after,
    )
    return WebhookChannel(options, name=name)


def make_look_up(config: LookUpConfig) -> LookUp | None:
    """Who knows what became of messages of this block, or None where nobody can be asked."""
    return RelayLog(config.relay_log) if config.relay_log is not None else None


_MAKERS: Final[Mapping[str, _Maker]] = MappingProxyType(
    {"email": _make_email, "noop": _make_noop, "sms": _make_sms, "webhook": _make_webhook}
)
