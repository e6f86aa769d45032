"""What an operator's command or a DAG's task does, put together from the services.

The only place that joins settings, duebook.toml, connections and services. Where connections come
from is the caller's: the environment for the command line, Airflow's own look-up inside a task.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psycopg.errors import UndefinedTable

from duebook.connections import ConnectionSpec, connection_from_environment
from duebook.db.sql import query
from duebook.errors import ConfigurationError, InputError

if TYPE_CHECKING:
    from duebook.channels.base import Channel
    from duebook.config import Config, ProviderAccountConfig
    from duebook.db.connect import Connect
    from duebook.services.provider_events import EventsReport
    from duebook.services.reconcile import ReconcileReport
    from duebook.services.staging import Progress
    from duebook.services.sweep import SweepReport
    from duebook.settings import Settings
    from duebook.settlements.base import ApiSource
    from duebook.settlements.stores import StoreFactory

ConnectionLookup = Callable[[str], ConnectionSpec | None]


def from_environment(conn_id: str) -> ConnectionSpec | None:
    """The connection as `AIRFLOW_CONN_<ID>` of this process defines it, or None."""
    return connection_from_environment(conn_id, os.environ)


def migrate_database(settings: Settings) -> dict[str, Any]:
    """Migrate; a database that is new is accepted as this environment, a copied one never is."""
    from duebook.db.connect import connect_url, ensure_database_url
    from duebook.db.migrate import migrate

    url = ensure_database_url(settings)
    report = migrate(url)
    with connect_url(url, autocommit=True) as conn:
        conn.execute(
            query("accept_new_environment"),
            {
                "name": settings.environment,
                "is_test": settings.environment == "test",
                "accepted_by": settings.operator,
            },
        )
    return {
        "before": report.before,
        "after": report.after,
        "migrations": list(report.migrations),
        "objects": list(report.objects),
        "notices": list(report.notices),
    }


def is_migrated(connect: Connect) -> bool:
    """Whether the database has this version's tables."""
    from duebook.db.migrate import current_revision, head_revision

    with connect() as conn:
        try:
            return current_revision(conn) == head_revision()
        except UndefinedTable:
            return False


def load_configuration(settings: Settings) -> Config:
    """duebook.toml as the settings name it, else the shipped one."""
    from duebook.config import load_config

    return load_config(settings.config_file)


def reconcile_account(
    connect: Connect,
    settings: Settings,
    *,
    account: str,
    files: Sequence[Path] = (),
    as_of: datetime | None = None,
    dry_run: bool = False,
    triggered_by: str | None = None,
    connections: ConnectionLookup = from_environment,
    progress: Progress | None = None,
    stores: StoreFactory | None = None,
) -> ReconcileReport:
    """Reconcile one provider account of duebook.toml; see `duebook.services.reconcile`."""
    from duebook.services.reconcile import ReconcileRequest, reconcile
    from duebook.services.restore import require_witness

    config = load_configuration(settings)
    if not dry_run:
        require_witness(connect, config, settings.witness_location, account=account)
    request = ReconcileRequest(
        account=account,
        files=tuple(files),
        as_of=as_of,
        dry_run=dry_run,
        triggered_by=triggered_by or settings.operator,
    )
    return reconcile(
        connect,
        request,
        config,
        lambda name, block: make_api_source(name, block, connections),
        progress,
        stores,
    )


def read_provider_events(
    connect: Connect,
    settings: Settings,
    *,
    account: str | None = None,
    triggered_by: str | None = None,
    connections: ConnectionLookup = from_environment,
) -> EventsReport:
    """Read again what received events are about; see `duebook.services.provider_events`.

    Raises InputError for a provider account that duebook.toml does not have.
    """
    from duebook.services.provider_events import EventsRequest, read_events
    from duebook.services.restore import require_witness

    config = load_configuration(settings)
    if account is not None and account not in config.provider_accounts:
        known = ", ".join(config.provider_accounts) or "none"
        raise InputError(f"unknown provider account {account}; duebook.toml has {known}")
    for name in sorted({block.provider_account for block in config.webhooks.values()}):
        if account in (None, name):
            require_witness(connect, config, settings.witness_location, account=name)
    limits = config.provider_events
    request = EventsRequest(
        account=account,
        batch_size=limits.batch_size,
        lease=timedelta(seconds=limits.lease_seconds),
        time_budget=timedelta(seconds=limits.time_budget_seconds),
        max_tries=limits.max_tries,
        triggered_by=triggered_by or settings.operator,
    )
    return read_events(
        connect,
        request,
        config,
        lambda name, block: make_api_source(name, block, connections),
    )


def make_api_source(
    account: str, block: ProviderAccountConfig, connections: ConnectionLookup
) -> ApiSource:
    """The API source of a provider account. Raises ConfigurationError naming what is missing."""
    from duebook.settlements.stripe import StripeSource
    from duebook.settlements.stripe_api import make_stripe_client

    if block.provider != "stripe":
        raise ConfigurationError(f"provider_accounts.{account}: {block.provider} is no API")
    conn_id = block.connection or "stripe_default"
    connection = connections(conn_id)
    if connection is None or not connection.password:
        raise ConfigurationError(
            f"provider_accounts.{account}: the connection {conn_id} with the API key as its "
            f"password is missing; set AIRFLOW_CONN_{conn_id.upper()}"
        )
    client = make_stripe_client(
        connection.password,
        base_address=base_address(connection),
        stripe_account=connection.extra.get("stripe_account"),
    )
    return StripeSource(client, reference=block.reference)


def base_address(connection: ConnectionSpec) -> str | None:
    """Where the API is, when the connection names a host; None is the provider's own."""
    if not connection.host:
        return None
    scheme, separator, host = connection.host.rpartition("://")
    port = f":{connection.port}" if connection.port else ""
    return f"{scheme if separator else 'https'}://{host}{port}"


def sweep_due(
    connect: Connect,
    settings: Settings,
    *,
    now: datetime | None = None,
    sender: str = "",
    max_batches: int | None = None,
    connections: ConnectionLookup = from_environment,
    should_stop: Callable[[], bool] | None = None,
) -> SweepReport:
    """One sender over every channel of duebook.toml; `now` shifts the clock of a test database."""
    from duebook.services.sweep import SweepRequest, sweep
    from duebook.services.unsubscribe import make_links

    config = load_configuration(settings)
    limits = config.sweep
    is_left = any(kind.may_unsubscribe for kind in config.kinds.values())
    request = SweepRequest(
        environment=settings.environment,
        sender=sender,
        batch_size=limits.batch_size,
        lease=timedelta(seconds=limits.lease_seconds),
        time_budget=timedelta(seconds=limits.time_budget_seconds),
        max_batches=max_batches,
        due_offset=clock_offset(connect, now),
        horizon=limits.horizon,
        links=make_links(config, connections) if is_left else None,
        witness=settings.witness_location,
        should_stop=should_stop,
    )
    channels, missing = make_channels(config, connections)
    report = sweep(connect, request, channels, config)
    if missing and report.backlog:
        raise ConfigurationError(f"{missing[0]} ({report.backlog} notices are due)")
    return report


def require_no_incident(connect: Connect, what: str = "manual replay") -> None:
    """Raise RefusedError naming the open incident, if there is one; `what` is what was asked."""
    from duebook.services import incident

    incident.require_no_incident(connect, what)


def preview_resume(
    connect: Connect,
    settings: Settings,
    *,
    lift: Sequence[str] = (),
    longest: timedelta | None = None,
    connections: ConnectionLookup = from_environment,
) -> dict[str, Any]:
    """What a resume would do as of now, with the pauses `lift` (`kind:…`, `all`) lifted too."""
    from duebook.services.pause import parse_target
    from duebook.services.preview import LONGEST, PreviewRequest, preview

    config = load_configuration(settings)
    targets = [parse_target(text) for text in lift]
    request = PreviewRequest(
        environment=settings.environment,
        lift=tuple((target.scope, target.name) for target in targets),
        longest=longest or LONGEST,
        witness=settings.witness_location,
    )
    channels, _ = make_channels(config, connections)
    return preview(connect, request, channels, config).to_json()


def doubts_in_full(
    connect: Connect, settings: Settings, *, look_up: bool, most: int = 10_000
) -> dict[str, Any]:
    """`{"looked_up": counts or None, "doubts": [...]}`; with `look_up` those are asked first."""
    from duebook.services.resolve import list_doubts

    mail_senders = {n: b.sender for n, b in load_configuration(settings).channels.items()}
    counts = look_up_doubts(connect, settings, most=most) if look_up else None
    return {"looked_up": counts, "doubts": list_doubts(connect, mail_senders)}


def look_up_doubts(connect: Connect, settings: Settings, *, most: int) -> dict[str, int]:
    """Look up at most `most` doubts of each channel that somebody can be asked about."""
    from duebook.channels.registry import make_look_up
    from duebook.services import look_up

    blocks = load_configuration(settings).channels
    known = {name: found for name, block in blocks.items() if (found := make_look_up(block))}
    mail_senders = {name: block.sender for name, block in blocks.items()}
    return look_up.look_up_doubts(connect, known, mail_senders, most).to_json()


def clock_offset(connect: Connect, now: datetime | None) -> timedelta:
    """How far `now` is from the database's clock."""
    if now is None:
        return timedelta(0)
    with connect() as conn:
        row = conn.execute(query("read_clock")).fetchone()
    clock: datetime = row[0] if row else now
    return now - clock


def make_channels(
    config: Config, connections: ConnectionLookup
) -> tuple[dict[str, Channel], list[ConfigurationError]]:
    """Every channel that an enabled kind uses, not yet open, and why others can't be made.

    A channel that can't be made stops no other one, nor a sweep that has nothing for it.
    """
    channels, missing = {}, []
    for name in sorted({kind.channel for kind in config.kinds.values() if kind.enabled}):
        try:
            channels[name] = open_channel(config, name, connections)
        except ConfigurationError as error:
            missing.append(error)
    return channels, missing


def open_channel(config: Config, name: str, connections: ConnectionLookup) -> Channel:
    """The channel of one block. Raises ConfigurationError naming its missing connection."""
    from duebook.channels.registry import make_channel

    block = config.channels[name]
    connection = connections(block.connection) if block.connection else None
    if block.connection and connection is None:
        raise ConfigurationError(
            f"channels.{name}: the connection {block.connection} is missing; "
            f"set AIRFLOW_CONN_{block.connection.upper()}"
        )
    return make_channel(name, block, connection)


def show_channel_secret(
    connect: Connect,
    settings: Settings,
    *,
    account_id: str,
    channel: str,
    connections: ConnectionLookup = from_environment,
) -> dict[str, Any]:
    """`{account_id, channel, secrets}`, the current one first; that they were shown is kept.

    Raises InputError where the account has no such contact or the channel signs nothing, and
    ConfigurationError.
    """
    from duebook.channels.endpoints import EndpointError
    from duebook.channels.webhook import WebhookChannel

    config = load_configuration(settings)
    if channel not in config.channels:
        raise InputError(f"duebook.toml has no channel {channel}")
    made = open_channel(config, channel, connections)
    if not isinstance(made, WebhookChannel):
        raise InputError(f"channel {channel} signs nothing")
    keys = {"account_id": account_id, "channel": channel}
    with connect() as conn, conn.transaction():
        row = conn.execute(query("read_contact_address"), keys).fetchone()
        if row is None:
            raise InputError(f"account {account_id} has no contact of channel {channel}")
        try:
            secrets = made.secrets_of(account_id, row[0])
        except EndpointError as error:
            raise InputError(f"account {account_id}, channel {channel}: {error}") from None
        conn.execute(query("record_secret_shown"), keys | {"actor": settings.operator})
    return keys | {"secrets": list(secrets)}


def current_status(
    connect: Connect, settings: Settings, airflow: Callable[[], Mapping[str, bool]] | None = None
) -> dict[str, Any]:
    """The document of `duebook status --json`."""
    from duebook.services.status import status

    config = load_configuration(settings)
    return status(connect, config, airflow, environment=settings.environment).to_json()


def examine(
    connect: Connect,
    settings: Settings,
    airflow: Callable[[], Mapping[str, bool]] | None = None,
    stores: StoreFactory | None = None,
) -> dict[str, Any]:
    """The document of `duebook doctor --json`."""
    from duebook.services.doctor import Probes, doctor, report

    config = load_configuration(settings)
    probes = Probes(
        environment=settings.environment,
        connection=from_environment,
        channel=lambda name: open_channel(config, name, from_environment),
        airflow=airflow,
        home=settings.home if settings.database_url is None else None,
        witness=settings.witness_location,
        stores=stores,
    )
    return report(doctor(connect, config, probes))
